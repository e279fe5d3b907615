// SPDX-License-Identifier: Apache-2.0
//! Processes of a task: programs with a stack of their own, between which the task switches, by itself or
//! when an upcall interrupts it.
//!
//! Model: there are [`PROCESSES`] places. A process is either at the place that runs, or it is saved: its
//! registers are on its own stack and in its `Context`. [`switch`] saves the process that calls, and goes on
//! with another one; it returns when another process switches back. The switch asks the hypervisor for the
//! next upcall in the same call, so nothing comes between. An upcall saves the process that it interrupts,
//! and calls the chooser ([`set_chooser`]) on a stack of its own. The chooser names the process that goes on,
//! and until when. There is no other upcall until then.
//!
//! A chooser that finds the task in the middle of a service answers [`Choice::Same`]: the interrupted process
//! goes on without upcalls, and looks at the time itself when its service ends.
//!
//! Below each stack is a guard of [`GUARD`] bytes with a pattern, which shows afterwards that a process has
//! used more than its stack ([`Stack::look`]). It keeps an overflow of up to its size from the stack below.
//! Below the lowest stack is the chooser's (`link/task.ld`), which holds nothing while a process runs.
//! Below that is nothing that the task can write.
//!
//! Floating-point registers are not saved: tasks are built without them.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::cell::TaskCell;
use super::context::{Context, Wish};
use crate::cpu;
use crate::hypercall::Handle;
use bulkhead_abi::hypercall::UPCALL_WORDS;

pub use super::context::Entry;

/// Processes that a task can have.
pub const PROCESSES: usize = 17;
/// Bytes of the guard below each stack.
pub const GUARD: usize = 2048;
/// Bytes for the stacks of all processes, with their guards.
pub const STACKS: usize = 96 * 1024 + PROCESSES * GUARD;
/// Bytes of a word of a guard.
const WORD: usize = size_of::<usize>();
/// The value of each word of a guard.
const PATTERN: usize = 0x9E37_79B9_7F4A_7C15_u64 as usize;
/// Words of a guard, next to the stack, each of which is looked at.
const NEAR: usize = 128 / WORD;
/// Of the other words one in so many is looked at, so that a look is short.
const STRIDE: usize = 32 / WORD;
/// Multiple of which a stack pointer is, on any CPU.
const STACK_ALIGN: usize = 16;
/// The least stack of a process.
pub const LEAST_STACK: usize = 1024;

/// The answer of a chooser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The interrupted process goes on, without upcalls.
    Same,
    /// The process at this place goes on until an event, or this time (nanoseconds since boot, 0 = for ever).
    Process(usize, u64),
}

struct Contexts([UnsafeCell<Context>; PROCESSES]);

// SAFETY: a task has one vCPU. The entry code and `prepare` use a context one after the other: the first
// only at the place that runs, the second only at one that does not.
unsafe impl Sync for Contexts {}

/// The stacks and their guards. Words that can be shared, so that a guard can be looked at.
#[repr(C, align(16))]
struct Pool([AtomicUsize; STACKS / WORD]);

static POOL: Pool = Pool([const { AtomicUsize::new(0) }; STACKS / WORD]);
static POOL_USED: AtomicUsize = AtomicUsize::new(0);
static CONTEXTS: Contexts = Contexts(
    [const {
        UnsafeCell::new(Context {
            place: [0; UPCALL_WORDS],
            stack: 0,
        })
    }; PROCESSES],
);
/// The place that is saved into when the one that switches has ended.
static NOWHERE: Contexts = Contexts(
    [const {
        UnsafeCell::new(Context {
            place: [0; UPCALL_WORDS],
            stack: 0,
        })
    }; PROCESSES],
);

/// The functions that the entry code calls, and the gate whose events interrupt.
#[derive(Clone, Copy)]
struct Hooks {
    choose: fn(usize) -> Choice,
    ended: fn(),
    gate: Handle,
}

static HOOKS: TaskCell<Option<Hooks>> = TaskCell::new(None);

/// A stack of a process: memory of the task that no other process has.
#[derive(Clone, Copy, Debug)]
pub struct Stack {
    start: usize,
    end: usize,
}

/// The part of its memory that a process has used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The process has stayed within its stack.
    Within,
    /// It has used more, but no more than the guard.
    Guard,
    /// It may have changed what lies below the guard.
    Beyond,
}

/// Takes a stack from the pool, for good, with its guard. Returns `None` if there is no room, or it is too
/// small.
#[must_use]
pub fn take_stack(size: usize) -> Option<Stack> {
    if size < LEAST_STACK {
        return None;
    }
    let size = size.checked_next_multiple_of(STACK_ALIGN)?.checked_add(GUARD)?;
    let used = POOL_USED.load(Ordering::Relaxed);
    if size > STACKS - used {
        return None;
    }
    POOL_USED.store(used + size, Ordering::Relaxed);
    let first = POOL.0.as_ptr().expose_provenance() + used;
    let stack = Stack {
        start: first + GUARD,
        end: first + size,
    };
    stack.restore_guard();
    Some(stack)
}

impl Stack {
    /// Returns the words of the guard, the lowest one first.
    fn guard(&self) -> &'static [AtomicUsize] {
        let end = self.start.saturating_sub(POOL.0.as_ptr().addr()) / WORD;
        POOL.0.get(end.saturating_sub(GUARD / WORD)..end).unwrap_or(&[])
    }

    /// Writes the pattern of the guard. Requires: the process is not below its stack.
    pub fn restore_guard(&self) {
        for word in self.guard() {
            word.store(PATTERN, Ordering::Relaxed);
        }
    }

    /// Tells whether an address is in the stack.
    #[must_use]
    pub const fn has(&self, pointer: usize) -> bool {
        pointer >= self.start && pointer <= self.end
    }

    /// Tells how far the process has used its stack since the guard was written. `pointer` is its stack
    /// pointer now. A process that has left a gap of the size of the guard without a write there is only
    /// found while its stack pointer is that low.
    #[must_use]
    pub fn look(&self, pointer: usize) -> Extent {
        let guard = self.guard();
        let is_whole = |word: &AtomicUsize| word.load(Ordering::Relaxed) == PATTERN;
        let (far, near) = guard.split_at(guard.len().saturating_sub(NEAR));
        let far_is_whole = far.iter().step_by(STRIDE).all(is_whole);
        if self.has(pointer) && far_is_whole && near.iter().all(is_whole) {
            return Extent::Within;
        }
        let lowest = &guard[..NEAR.min(guard.len())];
        if pointer >= self.start.saturating_sub(GUARD) && lowest.iter().all(is_whole) {
            return Extent::Guard;
        }
        Extent::Beyond
    }

    /// Tells whether this stack is the one directly below the guard of another one.
    #[must_use]
    pub const fn is_below(&self, other: &Self) -> bool {
        self.end + GUARD == other.start
    }
}

// The entry code of the CPU (`switch` in its folder).
unsafe extern "C" {
    /// Takes every upcall.
    fn _task_upcall();
    /// Calls the entry of a process that begins.
    fn _task_begin();
    /// Saves the caller and goes on with another process. Requires: `to` was saved, or `first_context` has
    /// made it, and does not run; `from` is where the caller is saved, and no saved process is there.
    fn _task_switch(from: *mut Context, to: *mut Context, gate: u32, wish: *const Wish);
    /// Goes on with a process. Requires: as for `to` above.
    fn _task_resume(context: *mut Context, gate: u32, wish: *const Wish) -> !;
}

/// Names the function that chooses the process at an upcall, the function that is called when a process
/// returns from its entry, and the gate whose events interrupt. The first one is told the stack pointer of
/// the process that was interrupted.
pub fn set_hooks(choose: fn(usize) -> Choice, ended: fn(), gate: Handle) {
    HOOKS.with(|hooks| *hooks = Some(Hooks { choose, ended, gate }));
}

fn hooks() -> Option<Hooks> {
    HOOKS.with(|hooks| *hooks).flatten()
}

/// Returns a process before its first instruction.
fn first_context(entry: Entry, stack_end: usize) -> Context {
    let mut place = [0; UPCALL_WORDS];
    let [pc, state, first, ..] = &mut place;
    *pc = _task_begin as *const () as usize as u64;
    *state = cpu::FIRST_STATE;
    *first = entry as *const () as usize as u64;
    // The stack holds first values of registers that the program writes before it reads them.
    let stack = stack_end - cpu::FIRST_STACK;
    Context { place, stack }
}

/// Puts a process that does not run at the beginning of its program.
pub fn prepare(place: usize, entry: Entry, stack: Stack) {
    let Some(context) = CONTEXTS.0.get(place) else {
        return;
    };
    let fresh = first_context(entry, stack.end);
    // SAFETY: the process does not run, so no other code uses its context.
    unsafe { context.get().write(fresh) }
}

/// Saves the caller, which is the process at `from` or has ended (`None`), and goes on with the process at
/// `to`, until an event or the time `until` (nanoseconds since boot, 0 = for ever). Returns when a process
/// goes on with the caller. Does nothing before [`set_hooks`].
pub fn switch(from: Option<usize>, to: usize, until: u64) {
    let saved = match from {
        Some(place) => CONTEXTS.0.get(place),
        None => NOWHERE.0.first(),
    };
    let (Some(saved), Some(next), Some(hooks)) = (saved, CONTEXTS.0.get(to), hooks()) else {
        return;
    };
    let wish = wish(until);
    // SAFETY: both contexts are statics; `next` was saved by this function or by an upcall, or prepared, or
    // it is `saved` itself, which is written first.
    unsafe { _task_switch(saved.get(), next.get(), hooks.gate.0, &raw const wish) }
}

fn wish(until: u64) -> Wish {
    Wish {
        entry: _task_upcall as *const () as usize as u64,
        until,
    }
}

/// Finds out what goes on after an upcall, on the chooser's stack. Called by the entry code with the context
/// of the interrupted process.
pub(crate) extern "C" fn upcall(interrupted: *mut Context) -> ! {
    let hooks = hooks();
    // SAFETY: the entry code has saved the interrupted process there.
    let pointer = unsafe { (*interrupted).stack };
    let choice = hooks.map_or(Choice::Same, |hooks| (hooks.choose)(pointer));
    let (next, wish) = match choice {
        Choice::Same => (interrupted, Wish { entry: 0, until: 0 }),
        Choice::Process(place, until) => {
            let next = CONTEXTS.0.get(place).map_or(interrupted, UnsafeCell::get);
            (next, wish(until))
        }
    };
    let gate = hooks.map_or(0, |hooks| hooks.gate.0);
    // SAFETY: the context was saved just now, or earlier as in `switch`.
    unsafe { _task_resume(next, gate, &raw const wish) }
}

/// Ends a process that returned from its entry.
pub(crate) extern "C" fn ended() -> ! {
    if let Some(hooks) = hooks() {
        (hooks.ended)();
    }
    super::fail()
}
