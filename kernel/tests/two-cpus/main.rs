// SPDX-License-Identifier: Apache-2.0
//! All orders in which two or three pCPUs can see each other's words, by the sources of the kernel: the
//! mailbox, the event gate, the life of a partition and the words of a microcontroller with two pCPUs. Each
//! run also tries the same with a defect, as without fences or without orders, and must then find a wake-up
//! that is lost, or a word that is not seen.
//!
//! The sources name `core` and `bulkhead_abi`. Both names stand for this crate here, which has loom's types
//! in their places.

extern crate bulkhead_abi as real_abi;
extern crate self as bulkhead_abi;
extern crate self as core;

#[path = "core.rs"]
mod model;

/// `core::sync` for the sources.
pub(crate) mod sync {
    /// `core::sync::atomic`.
    pub(crate) mod atomic {
        pub(crate) use crate::model::{AtomicBool, AtomicU32, Ordering, fence};
    }
}
/// `core::hint`.
pub(crate) mod hint {
    pub(crate) use loom::hint::spin_loop;
}
/// `bulkhead_abi::atomic`.
pub(crate) mod atomic {
    pub(crate) use crate::model::AtomicU64;
}
/// `core::iter`.
pub(crate) mod iter {
    pub(crate) use std::iter::from_fn;
}

#[allow(
    dead_code,
    unused_imports,
    reason = "the kernel uses the rest, and its own tests are left out"
)]
#[path = "../../src/event.rs"]
mod event;
#[allow(dead_code, reason = "the kernel uses the rest")]
#[path = "../../../abi/src/atomic/guarded.rs"]
mod guarded;
#[allow(dead_code, reason = "the kernel uses the rest")]
#[path = "../../../abi/src/atomic/halves.rs"]
mod halves;
#[allow(
    dead_code,
    unused_imports,
    reason = "the kernel uses the rest, and its own tests are left out"
)]
#[path = "../../src/mailbox.rs"]
mod mailbox;
#[allow(
    dead_code,
    unused_imports,
    reason = "the kernel uses the rest, and its own tests are left out"
)]
#[path = "../../src/partition.rs"]
mod partition;

pub(crate) use real_abi::{Error, PartitionState, StartCause, StartMode, status};

use bulkhead_arch_api::{GuestPhys, PartitionId, PcpuId, VcpuId};
use bulkhead_sched::{Slot, SlotSet};
use event::Gate;
use loom::sync::{Arc, Mutex};
use loom::thread;
use mailbox::{Mailbox, Post};
use model::{AtomicU32, FENCES, IN_TURN, ORDERS, Ordering, RUN};
use partition::{Control, Effects, Homes, Launch, Request};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;

/// The slot that is woken.
const SLOT: Slot = Slot(1);
/// The same as a bit.
const BIT: u32 = 1 << 1;

/// Tries all orders of `model`, with at most three changes from one CPU to another that nothing asks for.
fn try_all(model: fn()) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        RUN.fetch_add(1, Ordering::Relaxed);
        model();
    });
}

/// Tells whether some order fails while `defect` is false.
fn fails_without(defect: &AtomicBool, model: fn()) -> bool {
    defect.store(false, Ordering::Relaxed);
    let found = catch_unwind(AssertUnwindSafe(|| try_all(model))).is_err();
    defect.store(true, Ordering::Relaxed);
    found
}

/// Makes a mailbox all of whose words exist.
fn mailbox() -> Arc<Mailbox> {
    let mailbox = Mailbox::new();
    let _ = mailbox.post_wake(SLOT) | mailbox.post_review(SLOT) | mailbox.post_start(SLOT);
    let _ = mailbox.post_load(PartitionId(0), SLOT);
    mailbox.post_stop(PartitionId(0));
    mailbox.post_critical(SLOT);
    mailbox.take();
    Arc::new(mailbox)
}

/// Tries whether a pCPU that goes to sleep has seen the mail, or is signalled.
fn no_wake_up_is_lost() {
    let mail = mailbox();
    mail.publish(SlotSet(0));
    let theirs = Arc::clone(&mail);
    let poster = thread::spawn(move || theirs.post_wake(SLOT));
    mail.publish(SlotSet(BIT));
    let sees = mail.is_pressing(SlotSet(BIT));
    let is_signalled = poster.join().unwrap();
    assert!(sees || is_signalled, "asleep with mail");
}

/// Tries whether a pCPU that takes a bit sees what was written before the bit was posted.
fn mail_announces_what_was_written() {
    let mail = mailbox();
    let written = Arc::new(AtomicU32::new(0));
    written.store(0, Ordering::Relaxed);
    let (theirs, place) = (Arc::clone(&mail), Arc::clone(&written));
    let poster = thread::spawn(move || {
        place.store(7, Ordering::Relaxed);
        theirs.post_wake(SLOT)
    });
    if mail.take().wake != 0 {
        assert_eq!(written.load(Ordering::Relaxed), 7, "a bit without its cause");
    }
    poster.join().unwrap();
}

/// Tries whether every bit that two pCPUs post is taken, at once or later, and an order that is put back.
fn nothing_that_is_posted_is_lost() {
    let mail = mailbox();
    let (first, second) = (Arc::clone(&mail), Arc::clone(&mail));
    let one = thread::spawn(move || first.post_wake(SLOT));
    let other = thread::spawn(move || second.post_stop(PartitionId(2)));
    let early = mail.take();
    mail.put_back(early.stop, early.load);
    one.join().unwrap();
    other.join().unwrap();
    let late = mail.take();
    assert_eq!((early.wake | late.wake, late.stop), (BIT, 0b100), "lost mail");
    assert_eq!(mail.take(), Post::default());
}

/// Tries whether a slot that is switched on is taken once, by the short way or by the long one.
fn a_start_is_taken_once() {
    let mail = mailbox();
    let theirs = Arc::clone(&mail);
    let poster = thread::spawn(move || {
        let _ = theirs.post_start(SLOT);
        theirs.post_schedule();
    });
    let (short, long) = (mail.take_starts(), mail.take());
    poster.join().unwrap();
    let late = mail.take();
    let all = [short, long.start, late.start];
    assert_eq!(all.iter().filter(|starts| **starts == BIT).count(), 1, "{all:?}");
    assert!(long.schedule || late.schedule);
}

/// Makes a gate all of whose words exist.
fn gate() -> Arc<Gate> {
    let gate = Gate::new();
    let _ = gate.raise(1);
    gate.clear();
    Arc::new(gate)
}

/// Tries whether a vCPU that waits has seen the event, or the raiser sees the vCPU.
fn no_event_is_lost() {
    let gate = gate();
    let theirs = Arc::clone(&gate);
    let raiser = thread::spawn(move || theirs.raise(4));
    let events = gate.wait(VcpuId(0));
    let told = raiser.join().unwrap();
    assert!(events == 4 || !told.is_empty(), "a waiter that is not told");
    // It looks again when it is told.
    assert_eq!(events | gate.take(), 4);
}

/// Tries the same for a vCPU that consumes nothing.
fn no_watcher_is_forgotten() {
    let gate = gate();
    let theirs = Arc::clone(&gate);
    let raiser = thread::spawn(move || theirs.raise(4));
    let sees = gate.watch(VcpuId(0));
    let told = raiser.join().unwrap();
    assert!(sees || !told.is_empty(), "a watcher that is not told");
}

/// Tries whether one of two vCPUs that look gets an event.
fn an_event_is_consumed_once() {
    let gate = gate();
    let _ = gate.raise(4);
    let theirs = Arc::clone(&gate);
    let other = thread::spawn(move || theirs.wait(VcpuId(1)));
    let own = gate.wait(VcpuId(0));
    let others = other.join().unwrap();
    assert_eq!((own ^ others, own & others), (4, 0), "consumed twice, or never");
}

/// A partition with a vCPU on each of two pCPUs, as the dispatcher uses it.
struct Life {
    control: Mutex<Control>,
    mail: [Arc<Mailbox>; 2],
    homes: Homes,
    /// 1 while the vCPU of the second pCPU runs.
    runs: AtomicU32,
}

/// The partition.
const PARTITION: PartitionId = PartitionId(0);

impl Life {
    /// Makes a partition that runs.
    fn new() -> Arc<Self> {
        let mut homes = Homes::NONE;
        homes.push(PcpuId(0));
        homes.push(PcpuId(1));
        let mut control = Control::new();
        let start = Request::Start(Launch::again(StartMode::Cold, StartCause::Boot));
        control.request(start, &homes).expect("a start");
        control.loaded().expect("a load");
        control.switch_on(1, GuestPhys(0), 0);
        control.take_start(1).expect("a second vCPU");
        let life = Self {
            control: Mutex::new(control),
            mail: [mailbox(), mailbox()],
            homes,
            runs: AtomicU32::new(1),
        };
        life.runs.store(1, Ordering::Relaxed);
        Arc::new(life)
    }

    /// Carries the effects of a change to the pCPUs.
    fn apply(&self, effects: Effects) {
        for pcpu in effects.stop.iter() {
            self.mail[usize::from(pcpu.0)].post_stop(PARTITION);
        }
        if effects.load {
            let _ = self.mail[0].post_load(PARTITION, Slot(0));
        }
    }

    fn request(&self, request: Request) {
        let effects = self.control.lock().unwrap().request(request, &self.homes);
        self.apply(effects.unwrap_or_default());
    }

    /// Takes the mail of a pCPU, and does what it says.
    fn settle(&self, pcpu: u8) {
        let post = self.mail[usize::from(pcpu)].take();
        if post.stop != 0 {
            let is_last = pcpu == 1;
            if is_last && IN_TURN.load(Ordering::Relaxed) {
                self.runs.store(0, Ordering::Relaxed);
            }
            let effects = self.control.lock().unwrap().confirm_stop(PcpuId(pcpu));
            self.apply(effects);
            if is_last {
                self.runs.store(0, Ordering::Relaxed);
            }
        }
        if post.load != 0 && self.control.lock().unwrap().state() == PartitionState::Loading {
            assert_eq!(
                self.runs.load(Ordering::Relaxed),
                0,
                "a vCPU runs in memory that is loaded"
            );
        }
    }
}

/// Tries whether a partition that is restarted is loaded only when its vCPU on another pCPU has stopped. No
/// confirmation may be lost, also if a holder of a capability wants the partition stopped meanwhile.
fn a_restart_waits_for_the_other_pcpu() {
    let life = Life::new();
    let (other, holder) = (Arc::clone(&life), Arc::clone(&life));
    let second = thread::spawn(move || other.settle(1));
    let third = thread::spawn(move || holder.request(Request::Stop));
    life.request(Request::Restart(Launch::again(StartMode::Cold, StartCause::Boot)));
    life.settle(0);
    life.settle(0);
    second.join().unwrap();
    third.join().unwrap();
    // A signal makes each pCPU look again.
    life.settle(1);
    life.settle(0);
    life.settle(0);
    let state = life.control.lock().unwrap().state();
    assert_ne!(state, PartitionState::Stopping, "a confirmation is lost");
    assert_eq!(life.runs.load(Ordering::Relaxed), 0);
}

/// Tries whether both halves of a word are of one store.
fn a_word_of_halves_is_whole() {
    let word = Arc::new(guarded::AtomicU64::new(0));
    word.store(0, Ordering::Relaxed);
    let theirs = Arc::clone(&word);
    let other = thread::spawn(move || theirs.store(u64::MAX, Ordering::Relaxed));
    let seen = word.load(Ordering::Relaxed);
    other.join().unwrap();
    assert!(seen == 0 || seen == u64::MAX, "a torn word: {seen:x}");
}

/// Tries whether bits that two pCPUs set in one word are all there.
fn no_bit_of_a_word_is_lost() {
    let word = Arc::new(guarded::AtomicU64::new(0));
    word.store(0, Ordering::Relaxed);
    let theirs = Arc::clone(&word);
    let other = thread::spawn(move || theirs.fetch_or(1 << 40, Ordering::Relaxed));
    word.fetch_or(1, Ordering::Relaxed);
    other.join().unwrap();
    assert_eq!(word.load(Ordering::Relaxed), 1 << 40 | 1, "a bit is lost");
}

/// A model: its name, the model, and the defect that it must find.
type Model = (&'static str, fn(), Option<&'static AtomicBool>);

const MODELS: [Model; 10] = [
    ("no wake-up is lost", no_wake_up_is_lost, Some(&FENCES)),
    (
        "mail announces what was written",
        mail_announces_what_was_written,
        Some(&ORDERS),
    ),
    (
        "nothing that is posted is lost",
        nothing_that_is_posted_is_lost,
        None,
    ),
    ("a start is taken once", a_start_is_taken_once, None),
    ("no event is lost", no_event_is_lost, Some(&FENCES)),
    ("no watcher is forgotten", no_watcher_is_forgotten, Some(&FENCES)),
    ("an event is consumed once", an_event_is_consumed_once, None),
    (
        "a restart waits for the other pCPU",
        a_restart_waits_for_the_other_pcpu,
        Some(&IN_TURN),
    ),
    (
        "a word of halves is whole",
        a_word_of_halves_is_whole,
        Some(&ORDERS),
    ),
    (
        "no bit of a word is lost",
        no_bit_of_a_word_is_lost,
        Some(&ORDERS),
    ),
];

fn main() {
    for (name, model, defect) in MODELS {
        try_all(model);
        if let Some(defect) = defect {
            let hook = std::panic::take_hook();
            std::panic::set_hook(Box::new(|_| {}));
            let is_found = fails_without(defect, model);
            std::panic::set_hook(hook);
            assert!(is_found, "{name}: the defect is not found");
        }
        println!("two-cpus: {name}");
    }
}
