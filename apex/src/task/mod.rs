// SPDX-License-Identifier: Apache-2.0
//! The services for the processes of a task partition: the state machines of this crate, the switch between
//! processes that the guest library has, and the hypervisor's objects.
//!
//! Model: [`run`] finds the partition's objects by the kinds of its capabilities, and calls the
//! initialisation. That creates objects and processes, and ends with [`set_partition_mode`]: from then on
//! only processes run. Each service is a function with the name of the standard. A service marks the
//! partition as locked, uses the state, and looks whether another process must run. An upcall that finds the
//! mark only notes that it came.
//!
//! The partition's ports are kernel ports: a port of the standard is the capability of the same name.

mod services;
mod world;

pub use bulkhead_guest::task::process::Entry;
pub use services::*;

use crate::configuration::{Configuration, HmAction};
use crate::limits::{HANDLER, SLOTS};
use crate::state::Apex;
use crate::types::{Answer, OperatingMode, Outcome, StartCondition, Time};
use crate::{ErrorCode, ReturnCode, Woken};
use bulkhead_guest::abi::status::PERIOD_START_EVENT;
use bulkhead_guest::abi::{ObjectKind, StartCause, StartMode};
use bulkhead_guest::hypercall::{self, Handle, SELF};
use bulkhead_guest::println;
use bulkhead_guest::startup_page::StartupPage;
use bulkhead_guest::task::cell::TaskCell;
use bulkhead_guest::task::process::{self, Choice, Extent, Stack};
use bulkhead_guest::task::{exit, fail};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use world::World;

/// All that the partition knows.
struct State {
    apex: Apex,
    world: World,
    entries: [Option<Entry>; SLOTS],
    stacks: [Option<Stack>; SLOTS],
    /// The processes that are below their stacks, and of which that was said.
    below: [bool; SLOTS],
    /// The time of the next upcall; 0 if there is none.
    armed: u64,
}

static STATE: TaskCell<State> = TaskCell::new(State {
    apex: Apex::new(
        Configuration::BLANK,
        OperatingMode::ColdStart,
        StartCondition::NormalStart,
    ),
    world: World::new(),
    entries: [None; SLOTS],
    stacks: [None; SLOTS],
    below: [false; SLOTS],
    armed: 0,
});

/// A service is under way: an upcall must not touch the state.
static LOCKED: AtomicBool = AtomicBool::new(false);
/// An upcall came while a service was under way.
static PENDING: AtomicBool = AtomicBool::new(false);
/// The process that has the CPU; [`SLOTS`] for the initialisation.
static CURRENT: AtomicUsize = AtomicUsize::new(SLOTS);
static GATE: AtomicU32 = AtomicU32::new(0);
static CLOCK: AtomicU32 = AtomicU32::new(0);

fn gate() -> Handle {
    Handle(GATE.load(Ordering::Relaxed))
}

/// Returns the time since boot.
fn now() -> Time {
    hypercall::timer_now(Handle(CLOCK.load(Ordering::Relaxed))).unwrap_or(0) as Time
}

/// Uses the state. The caller has marked the partition as locked, or is an upcall that found no mark.
fn with<R>(user: impl FnOnce(&mut State) -> R) -> R {
    match STATE.with(user) {
        Some(result) => result,
        None => fail(),
    }
}

/// Runs a partition: finds its objects, calls `initialise`, and then runs processes. Returns only if the
/// partition lacks a gate or a clock, or `initialise` returns without having left the initialisation.
pub fn run(page: StartupPage<'static>, configuration: &Configuration, initialise: fn()) {
    let find = |kind| page.first(kind).map(|capability| capability.index);
    let (Some(gate), Some(clock)) = (find(ObjectKind::EventGate), find(ObjectKind::Timer)) else {
        println!("apex: the partition needs an event gate and a timer");
        return;
    };
    GATE.store(gate, Ordering::Relaxed);
    CLOCK.store(clock, Ordering::Relaxed);
    process::set_hooks(choose_at_upcall, process_returned, Handle(gate));
    let (mode, condition) = start_of_life();
    with(|state| {
        state.apex.configure(configuration);
        (state.apex.mode, state.apex.condition) = (mode, condition);
        state.world.attach(page);
        state.apex.follow_schedule(&mut state.world, 0);
    });
    initialise();
}

/// Returns the mode and the reason of this life.
fn start_of_life() -> (OperatingMode, StartCondition) {
    let Ok(word) = hypercall::partition_start_word(SELF) else {
        return (OperatingMode::ColdStart, StartCondition::NormalStart);
    };
    let mode = match word.mode {
        StartMode::Cold => OperatingMode::ColdStart,
        StartMode::Warm => OperatingMode::WarmStart,
    };
    let condition = match word.cause {
        StartCause::Boot => StartCondition::NormalStart,
        StartCause::Supervisor | StartCause::Own => StartCondition::PartitionRestart,
        StartCause::Health(_) => StartCondition::HmPartitionRestart,
    };
    (mode, condition)
}

/// Does a service that does not wait.
fn call<R>(service: impl FnOnce(&mut State, Time) -> R) -> R {
    LOCKED.store(true, Ordering::Relaxed);
    let now = now();
    let result = with(|state| service(state, now));
    settle();
    result
}

/// Does a service that can wait. `finish` takes the answer that comes after a wait.
fn call_and_wait<T>(
    service: impl FnOnce(&mut State, Time) -> Answer<Outcome<T>>,
    finish: impl FnOnce(Woken<'_>) -> T,
) -> Answer<T> {
    LOCKED.store(true, Ordering::Relaxed);
    let now = now();
    let outcome = with(|state| service(state, now));
    match outcome {
        Ok(Outcome::Waits) => {}
        Ok(Outcome::Done(value)) => {
            settle();
            return Ok(value);
        }
        Err(code) => {
            settle();
            return Err(code);
        }
    }
    change();
    call(|state, _| {
        let woken = state.apex.result();
        woken.answer.map(|()| finish(woken))
    })
}

/// Ends a service of a process that can go on: another one goes first if it must.
fn settle() {
    let must_look = with(|state| {
        state.look_at_stack(stack_pointer());
        let next = until(state.apex.next_time());
        state.apex.must_switch()
            || state.apex.has_action()
            || (next != 0 && (state.armed == 0 || next < state.armed))
    });
    if must_look || PENDING.load(Ordering::Relaxed) {
        return change();
    }
    LOCKED.store(false, Ordering::Relaxed);
    if PENDING.load(Ordering::Relaxed) {
        LOCKED.store(true, Ordering::Relaxed);
        change();
    }
}

/// Returns an address that is about the caller's stack pointer.
#[inline(always)]
fn stack_pointer() -> usize {
    let here = 0_u8;
    (&raw const here).addr()
}

/// Returns a time as the hypervisor takes it: 0 for never.
fn until(time: Option<Time>) -> u64 {
    time.map_or(0, |time| time.max(1) as u64)
}

/// Gives the CPU to the process that is to run now, which can be the caller. Returns when the caller has it
/// again. Requires: locked.
fn change() {
    // Without an upcall no code saves the caller at a place that is not its own.
    let _none_now = hypercall::event_no_upcall(gate());
    let caller = CURRENT.load(Ordering::Relaxed);
    with(|state| state.look_at_stack(stack_pointer()));
    let has_ended = with(|state| match state.apex.processes.get(caller) {
        Some(process) => process.is_fresh,
        None => true,
    });
    let (next, until) = choose();
    LOCKED.store(false, Ordering::Relaxed);
    PENDING.store(false, Ordering::Relaxed);
    let from = if has_ended { None } else { Some(caller) };
    process::switch(from, next, until);
}

/// Waits until there is a process to run. Returns its place and the time of the next upcall.
fn choose() -> (usize, u64) {
    loop {
        let events = hypercall::event_poll(gate()).unwrap_or(0);
        let now = now();
        let (next, until) = with(|state| {
            if events & PERIOD_START_EVENT != 0 {
                state.apex.follow_schedule(&mut state.world, now);
            }
            state.choose(now)
        });
        if let Some(place) = next {
            CURRENT.store(place, Ordering::Relaxed);
            return (place, until);
        }
        let _event_or_time = hypercall::event_wait(gate(), until);
    }
}

/// Chooses the process that goes on after an upcall.
fn choose_at_upcall(stack_pointer: usize) -> Choice {
    if LOCKED.load(Ordering::Relaxed) {
        PENDING.store(true, Ordering::Relaxed);
        return Choice::Same;
    }
    with(|state| state.look_at_stack(stack_pointer));
    let (place, until) = choose();
    Choice::Process(place, until)
}

/// Ends a process that has returned from its entry.
fn process_returned() {
    stop_self();
}

impl State {
    /// Does what is due, and chooses a process. Returns its place, and the time at which something is due.
    fn choose(&mut self, now: Time) -> (Option<usize>, u64) {
        self.apex.catch_up(&mut self.world, now);
        if let Some((action, code)) = self.apex.take_action() {
            match self.apex.culprit() {
                Some(process) => println!("apex: health: {code:?} of {process}, action {action:?}"),
                None => println!("apex: health: {code:?}, action {action:?}"),
            }
            react(action);
        }
        let next = self.apex.dispatch();
        if let Some(place) = next
            && self.apex.take_entry(place).is_some()
            && let (Some(entry), Some(stack)) = (self.entries[place], self.stacks[place])
        {
            stack.restore_guard();
            self.below[place] = false;
            process::prepare(place, entry, stack);
        }
        self.armed = until(self.apex.next_time());
        (next, self.armed)
    }

    /// Raises `STACK_OVERFLOW` if the process that has the CPU has used more than its stack, and for the
    /// process whose stack that may have changed. Below the lowest stack nothing is of use to anybody.
    fn look_at_stack(&mut self, pointer: usize) {
        let place = CURRENT.load(Ordering::Relaxed);
        let Some(stack) = self.stacks.get(place).copied().flatten() else {
            return;
        };
        let extent = stack.look(pointer);
        let was_told = core::mem::replace(&mut self.below[place], !stack.has(pointer));
        if extent == Extent::Within || was_told {
            return;
        }
        if stack.has(pointer) {
            stack.restore_guard();
        }
        self.apex.fail(Some(place), ErrorCode::StackOverflow, b"");
        if extent == Extent::Beyond {
            let is_below = |other: &Option<Stack>| other.is_some_and(|other| other.is_below(&stack));
            if let Some(below) = self.stacks.iter().position(is_below) {
                self.apex
                    .fail(Some(below), ErrorCode::StackOverflow, b"by another process");
            }
        }
    }

    /// Gives a process its stack and its first instruction.
    fn equip(&mut self, place: usize, entry: Entry, size: u32) -> Answer {
        let stack = process::take_stack(size as usize).ok_or(ReturnCode::InvalidConfig)?;
        self.entries[place] = Some(entry);
        self.stacks[place] = Some(stack);
        Ok(())
    }
}

/// Carries out what the health table demands.
fn react(action: HmAction) {
    let mode = match action {
        HmAction::Ignore => return,
        HmAction::Idle => exit(),
        HmAction::ColdStart => StartMode::Cold,
        HmAction::WarmStart => StartMode::Warm,
    };
    restart(mode, true)
}

/// Ends this life of the partition and begins another one. `is_health`: the health table demands it.
fn restart(mode: StartMode, is_health: bool) -> ! {
    let options = bulkhead_guest::abi::status::StartOptions {
        mode,
        alternative: None,
        is_health,
    };
    let _ends_here = hypercall::partition_restart_as(SELF, options);
    fail()
}

/// Waits for a start of the partition's period, if its windows are watched, and returns the time.
fn period_start(period: Time) -> Time {
    let limit = now().saturating_add(period.saturating_mul(2));
    loop {
        let events = hypercall::event_wait(gate(), until(Some(limit)));
        match events {
            Ok(events) if events & PERIOD_START_EVENT == 0 => {}
            _ => return now(),
        }
    }
}

/// `SET_PARTITION_MODE`. Normal mode begins with a start of the partition's period, and does not return to
/// the initialisation. Every other mode ends the partition's life.
///
/// # Errors
/// As [`Apex::set_partition_mode`].
pub fn set_partition_mode(mode: OperatingMode) -> Answer {
    LOCKED.store(true, Ordering::Relaxed);
    let (is_normal, period) = with(|state| {
        let is_normal = state.apex.mode == OperatingMode::Normal;
        (is_normal, state.apex.get_partition_status().period)
    });
    let begins = mode == OperatingMode::Normal && !is_normal;
    let epoch = if begins && period > 0 {
        period_start(period)
    } else {
        now()
    };
    let now = now();
    let answer = with(|state| {
        state.apex.follow_schedule(&mut state.world, epoch);
        state.apex.set_partition_mode(mode, epoch, now)
    });
    if answer.is_err() {
        settle();
        return answer;
    }
    match mode {
        OperatingMode::Normal => change(),
        OperatingMode::Idle => exit(),
        OperatingMode::ColdStart => restart(StartMode::Cold, false),
        OperatingMode::WarmStart => restart(StartMode::Warm, false),
    }
    Ok(())
}

/// Returns the first instruction of a process.
#[must_use]
pub fn entry_of(identifier: i64) -> Option<Entry> {
    call(|state, _| {
        let place = state.apex.place(identifier).ok()?;
        state.entries.get(place).copied().flatten()
    })
}

/// `CREATE_ERROR_HANDLER`.
///
/// # Errors
/// As [`Apex::create_error_handler`]; `INVALID_CONFIG` also if there is no memory for the stack.
pub fn create_error_handler(entry: Entry, stack_size: u32) -> Answer {
    call(|state, _| {
        state
            .apex
            .create_error_handler(entry as *const () as usize, stack_size)?;
        state.equip(HANDLER, entry, stack_size)
    })
}
