// SPDX-License-Identifier: Apache-2.0
//! The atomic types with which the sources of the kernel are compiled here: loom's, made when they are used
//! first, so that a constant can have one.
//!
//! [`FENCES`], [`ORDERS`] and [`IN_TURN`] seed defects: without them a fence does nothing, every access is
//! relaxed, or a pCPU confirms a stop before it has stopped.

use loom::sync::atomic as real;
use std::sync::atomic::{AtomicBool as Flag, AtomicUsize};
use std::sync::{Arc, Mutex};

pub(crate) use loom::sync::atomic::Ordering;

/// False if fences do nothing.
pub(crate) static FENCES: Flag = Flag::new(true);
/// False if all accesses are relaxed.
pub(crate) static ORDERS: Flag = Flag::new(true);
/// False if a pCPU confirms a stop too early.
pub(crate) static IN_TURN: Flag = Flag::new(true);
/// The number of the run: what was made in an earlier one is made anew.
pub(crate) static RUN: AtomicUsize = AtomicUsize::new(0);

fn order(wanted: Ordering) -> Ordering {
    if ORDERS.load(Ordering::Relaxed) {
        wanted
    } else {
        Ordering::Relaxed
    }
}

pub(crate) fn fence(order: Ordering) {
    if FENCES.load(Ordering::Relaxed) {
        real::fence(order);
    }
}

macro_rules! atomic {
    ($name:ident, $value:ty) => {
        /// A word of loom's.
        #[derive(Debug, Default)]
        pub(crate) struct $name {
            first: $value,
            made: Mutex<Option<(usize, Arc<real::$name>)>>,
        }

        #[allow(dead_code, reason = "each type has all verbs")]
        impl $name {
            pub(crate) const fn new(first: $value) -> Self {
                Self {
                    first,
                    made: Mutex::new(None),
                }
            }

            fn word(&self) -> Arc<real::$name> {
                let run = RUN.load(Ordering::Relaxed);
                let mut made = self.made.lock().expect("a word");
                match &*made {
                    Some((of, word)) if *of == run => Arc::clone(word),
                    _ => {
                        let word = Arc::new(real::$name::new(self.first));
                        *made = Some((run, Arc::clone(&word)));
                        word
                    }
                }
            }

            pub(crate) fn load(&self, wanted: Ordering) -> $value {
                self.word().load(order(wanted))
            }

            pub(crate) fn store(&self, value: $value, wanted: Ordering) {
                self.word().store(value, order(wanted));
            }

            pub(crate) fn swap(&self, value: $value, wanted: Ordering) -> $value {
                self.word().swap(value, order(wanted))
            }

            pub(crate) fn fetch_or(&self, value: $value, wanted: Ordering) -> $value {
                self.word().fetch_or(value, order(wanted))
            }

            pub(crate) fn fetch_and(&self, value: $value, wanted: Ordering) -> $value {
                self.word().fetch_and(value, order(wanted))
            }

            pub(crate) fn compare_exchange_weak(
                &self,
                from: $value,
                to: $value,
                done: Ordering,
                failed: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(from, to, done, failed)
            }

            pub(crate) fn compare_exchange(
                &self,
                from: $value,
                to: $value,
                done: Ordering,
                failed: Ordering,
            ) -> Result<$value, $value> {
                self.word()
                    .compare_exchange(from, to, order(done), order(failed))
            }
        }
    };
}

atomic!(AtomicBool, bool);
atomic!(AtomicU32, u32);
atomic!(AtomicU64, u64);
