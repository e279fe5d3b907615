// SPDX-License-Identifier: Apache-2.0
//! Each service with each of its return codes, in the order of the standard.

use bulkhead_apex::ReturnCode::{InvalidConfig, InvalidMode, InvalidParam, NoAction, NotAvailable, TimedOut};
use bulkhead_apex::limits::{
    MAX_BLACKBOARDS, MAX_BUFFERS, MAX_EVENTS, MAX_LOCK_LEVEL, MAX_MUTEXES, MAX_PROCESSES, MAX_SEMAPHORES,
};
use bulkhead_apex::{
    Answer, Apex, Attributes, Configuration, Deadline, Environment, ErrorCode, HmAction, INFINITE_TIME_VALUE,
    NO_MUTEX_OWNED, Name, OperatingMode, Outcome, PREEMPTION_LOCK_MUTEX, PortDirection, PortFacts, PortKind,
    ProcessState, QueueSize, QueuingDiscipline, ScheduleStatus, StartCondition, Time, Validity,
};
use std::collections::VecDeque;

const MS: Time = 1_000_000;
const PERIOD: Time = 10 * MS;
const FIFO: QueuingDiscipline = QueuingDiscipline::Fifo;
const FOREVER: Time = INFINITE_TIME_VALUE;

const PORTS: &[PortFacts] = &[
    PortFacts {
        name: Name::new("s-out"),
        direction: PortDirection::Source,
        size: 8,
        kind: PortKind::Sampling { refresh: 5 * MS },
    },
    PortFacts {
        name: Name::new("s-in"),
        direction: PortDirection::Destination,
        size: 8,
        kind: PortKind::Sampling { refresh: 5 * MS },
    },
    PortFacts {
        name: Name::new("q-out"),
        direction: PortDirection::Source,
        size: 8,
        kind: PortKind::Queuing { depth: 2 },
    },
    PortFacts {
        name: Name::new("q-in"),
        direction: PortDirection::Destination,
        size: 8,
        kind: PortKind::Queuing { depth: 2 },
    },
];

const CONFIGURATION: Configuration = Configuration {
    identifier: 7,
    period: PERIOD,
    duration: 2 * MS,
    ports: PORTS,
    schedules: &[Name::new("normal"), Name::new("landing")],
    times: &[],
    health: [HmAction::ColdStart; ErrorCode::COUNT],
};

/// A world in which a source and the destination of the same kind are connected.
#[derive(Default)]
struct World {
    queues: [VecDeque<Vec<u8>>; 2],
    room: usize,
    reports: usize,
    schedules: Option<ScheduleStatus>,
    asked: Option<u64>,
}

impl World {
    fn new(room: usize) -> Self {
        Self {
            room,
            ..Self::default()
        }
    }
}

impl Environment for World {
    fn open(&mut self, name: &Name, _direction: PortDirection) -> Option<u32> {
        Some(u32::from(name.text().starts_with('q')))
    }
    fn send(&mut self, link: u32, message: &[u8]) -> bool {
        let queue = &mut self.queues[link as usize];
        let has_room = queue.len() < self.room;
        if has_room {
            queue.push_back(message.to_vec());
        }
        has_room
    }
    fn replace(&mut self, link: u32, message: &[u8]) -> bool {
        let queue = &mut self.queues[link as usize];
        if queue.len() >= self.room {
            queue.pop_front();
        }
        self.send(link, message)
    }
    fn receive(&mut self, link: u32, buffer: &mut [u8]) -> Option<usize> {
        let message = self.queues[link as usize].pop_front()?;
        buffer[..message.len()].copy_from_slice(&message);
        Some(message.len())
    }
    fn report(&mut self, _message: &[u8]) {
        self.reports += 1;
    }
    fn schedules(&mut self) -> Option<ScheduleStatus> {
        self.schedules
    }
    fn change_schedule(&mut self, number: u64) -> Answer {
        self.asked = Some(number);
        Ok(())
    }
}

fn apex() -> Apex {
    Apex::new(
        CONFIGURATION,
        OperatingMode::ColdStart,
        StartCondition::NormalStart,
    )
}

fn attributes(name: &str, priority: i32) -> Attributes {
    Attributes {
        name: Name::new(name),
        entry_point: 4096,
        stack_size: 1024,
        base_priority: priority,
        period: FOREVER,
        time_capacity: FOREVER,
        deadline: Deadline::Soft,
    }
}

fn process(apex: &mut Apex, name: &str, priority: i32) -> i64 {
    let identifier = apex.create_process(&attributes(name, priority)).unwrap();
    apex.start(identifier, 0).unwrap();
    identifier
}

fn normal(apex: &mut Apex) {
    apex.set_partition_mode(OperatingMode::Normal, 0, 0).unwrap();
    apex.dispatch();
}

/// Makes two processes, the first of which runs.
fn pair(apex: &mut Apex) -> (i64, i64) {
    (process(apex, "high", 20), process(apex, "low", 10))
}

fn state(apex: &Apex, identifier: i64) -> ProcessState {
    apex.get_process_status(identifier).unwrap().state
}

#[test]
fn set_partition_mode() {
    let mut apex = apex();
    assert_eq!(
        apex.set_partition_mode(OperatingMode::WarmStart, 0, 0),
        Err(InvalidMode)
    );
    normal(&mut apex);
    assert_eq!(
        apex.set_partition_mode(OperatingMode::Normal, 0, 0),
        Err(NoAction)
    );
    let status = apex.get_partition_status();
    assert_eq!(
        (status.identifier, status.period, status.duration),
        (7, PERIOD, 2 * MS)
    );
    assert_eq!(status.operating_mode, OperatingMode::Normal);
    assert_eq!(apex.set_partition_mode(OperatingMode::Idle, 0, 0), Ok(()));
    assert_eq!(apex.dispatch(), None);
}

#[test]
fn create_process() {
    let mut apex = apex();
    let good = attributes("a", 1);
    assert_eq!(apex.create_process(&good), Ok(1));
    assert_eq!(apex.create_process(&good), Err(NoAction));
    let wrong = [
        Attributes {
            stack_size: 0,
            ..good
        },
        Attributes {
            base_priority: 0,
            ..good
        },
        Attributes {
            base_priority: 240,
            ..good
        },
        Attributes { period: 0, ..good },
        Attributes {
            time_capacity: -5,
            ..good
        },
        Attributes {
            period: PERIOD,
            time_capacity: PERIOD + 1,
            ..good
        },
    ];
    for wrong in wrong {
        let named = Attributes {
            name: Name::new("w"),
            ..wrong
        };
        assert_eq!(apex.create_process(&named), Err(InvalidParam), "{wrong:?}");
    }
    let odd = Attributes {
        name: Name::new("odd"),
        period: PERIOD + 1,
        ..good
    };
    assert_eq!(apex.create_process(&odd), Err(InvalidConfig));
    for number in 1..MAX_PROCESSES {
        let other = attributes(&format!("p{number}"), 1);
        assert_eq!(apex.create_process(&other), Ok(number as i64 + 1));
    }
    assert_eq!(apex.create_process(&attributes("more", 1)), Err(InvalidConfig));
    let mut late = self::apex();
    normal(&mut late);
    assert_eq!(late.create_process(&good), Err(InvalidMode));
}

#[test]
fn start_and_stop() {
    let mut apex = apex();
    let (high, low) = pair(&mut apex);
    let idle = apex.create_process(&attributes("idle", 5)).unwrap();
    assert_eq!(apex.start(high, 0), Err(NoAction));
    assert_eq!(apex.start(99, 0), Err(InvalidParam));
    assert_eq!(apex.start(0, 0), Err(InvalidParam));
    assert_eq!(apex.delayed_start(idle, -1, 0), Err(InvalidParam));
    assert_eq!(apex.delayed_start(idle, Time::MAX, 5), Err(InvalidParam));
    normal(&mut apex);
    assert_eq!(apex.get_my_id(), Ok(high));
    assert_eq!(state(&apex, low), ProcessState::Ready);
    assert_eq!(apex.stop(high), Err(InvalidParam));
    assert_eq!(apex.stop(idle), Err(NoAction));
    assert_eq!(apex.stop(low), Ok(()));
    assert_eq!(state(&apex, low), ProcessState::Dormant);
    assert_eq!(apex.delayed_start(low, 3 * MS, MS), Ok(()));
    assert_eq!(state(&apex, low), ProcessState::Waiting);
    assert_eq!(apex.next_time(), Some(4 * MS));
    apex.advance(4 * MS);
    assert_eq!(state(&apex, low), ProcessState::Ready);
    apex.stop_self();
    assert_eq!(apex.dispatch(), Some(1));
    assert_eq!(apex.get_my_id(), Ok(low));
    apex.stop_self();
    assert_eq!(apex.dispatch(), None);
    assert_eq!(apex.get_my_id(), Err(InvalidMode));
}

#[test]
fn an_overflow_of_the_first_deadline_is_refused() {
    let mut apex = apex();
    let long = Attributes {
        time_capacity: Time::MAX,
        ..attributes("long", 1)
    };
    let long = apex.create_process(&long).unwrap();
    assert_eq!(apex.start(long, 1), Err(InvalidConfig));
}

#[test]
fn suspend_and_resume() {
    let mut apex = apex();
    let (high, low) = pair(&mut apex);
    let dormant = apex.create_process(&attributes("dormant", 5)).unwrap();
    let periodic = Attributes {
        period: PERIOD,
        ..attributes("periodic", 5)
    };
    let periodic = apex.create_process(&periodic).unwrap();
    apex.start(periodic, 0).unwrap();
    assert_eq!(apex.suspend_self(MS, 0), Err(InvalidMode));
    normal(&mut apex);
    assert_eq!(apex.suspend(high), Err(InvalidParam));
    assert_eq!(apex.suspend(99), Err(InvalidParam));
    assert_eq!(apex.suspend(dormant), Err(InvalidMode));
    assert_eq!(apex.suspend(periodic), Err(InvalidMode));
    assert_eq!(apex.suspend(low), Ok(()));
    assert_eq!(apex.suspend(low), Err(NoAction));
    assert_eq!(apex.resume(high), Err(InvalidParam));
    assert_eq!(apex.resume(dormant), Err(InvalidMode));
    assert_eq!(apex.resume(low), Ok(()));
    assert_eq!(apex.resume(low), Err(NoAction));
    assert_eq!(apex.suspend_self(-2, 0), Err(InvalidParam));
    assert_eq!(apex.suspend_self(0, 0), Ok(Outcome::Done(())));
    assert_eq!(apex.suspend_self(MS, 0), Ok(Outcome::Waits));
    assert_eq!(apex.dispatch(), Some(1));
    apex.advance(MS);
    assert_eq!(apex.dispatch(), Some(0));
    assert_eq!(apex.result().answer, Err(TimedOut));
    assert_eq!(apex.suspend_self(FOREVER, MS), Ok(Outcome::Waits));
    apex.dispatch();
    assert_eq!(apex.resume(high), Ok(()));
    assert_eq!(apex.dispatch(), Some(0));
    assert_eq!(apex.result().answer, Ok(()));
}

#[test]
fn priorities() {
    let mut apex = apex();
    let (high, low) = pair(&mut apex);
    let dormant = apex.create_process(&attributes("dormant", 5)).unwrap();
    normal(&mut apex);
    assert_eq!(apex.set_priority(99, 5), Err(InvalidParam));
    assert_eq!(apex.set_priority(low, 0), Err(InvalidParam));
    assert_eq!(apex.set_priority(dormant, 5), Err(InvalidMode));
    assert_eq!(apex.set_priority(low, 20), Ok(()));
    assert!(!apex.must_switch(), "an equal does not interrupt");
    assert_eq!(apex.set_priority(high, 20), Ok(()));
    assert_eq!(
        apex.dispatch(),
        Some(1),
        "a new priority puts a process behind its equals"
    );
    assert_eq!(apex.get_process_id(&Name::new("low")), Ok(low));
    assert_eq!(apex.get_process_id(&Name::new("none")), Err(InvalidConfig));
    assert_eq!(apex.get_process_status(99), Err(InvalidParam));
}

#[test]
fn preemption_lock() {
    let mut apex = apex();
    let (high, low) = pair(&mut apex);
    assert_eq!(apex.lock_preemption(), Err(NoAction));
    normal(&mut apex);
    apex.timed_wait(MS, 0).unwrap();
    apex.dispatch();
    assert_eq!(apex.unlock_preemption(), Err(NoAction));
    for level in 1..=MAX_LOCK_LEVEL {
        assert_eq!(apex.lock_preemption(), Ok(level));
    }
    assert_eq!(apex.lock_preemption(), Err(InvalidConfig));
    assert_eq!(apex.get_process_mutex_state(low), Ok(PREEMPTION_LOCK_MUTEX));
    apex.advance(MS);
    assert_eq!(state(&apex, high), ProcessState::Ready);
    assert!(!apex.must_switch());
    assert_eq!(apex.timed_wait(MS, MS), Err(InvalidMode));
    for level in (0..MAX_LOCK_LEVEL).rev() {
        assert_eq!(apex.unlock_preemption(), Ok(level));
    }
    assert!(apex.must_switch());
}

#[test]
fn time() {
    let mut apex = apex();
    let (high, _) = pair(&mut apex);
    let periodic = Attributes {
        period: PERIOD,
        time_capacity: 4 * MS,
        ..attributes("periodic", 30)
    };
    let periodic = apex.create_process(&periodic).unwrap();
    apex.start(periodic, 0).unwrap();
    assert_eq!(apex.replenish(MS, 0), Err(NoAction));
    assert_eq!(apex.periodic_wait(0), Err(InvalidMode));
    normal(&mut apex);
    assert_eq!(apex.periodic_wait(0), Err(InvalidMode), "not periodic");
    assert_eq!(apex.timed_wait(-1, 0), Err(InvalidParam));
    assert_eq!(apex.timed_wait(Time::MAX, 1), Err(InvalidParam));
    assert_eq!(apex.next_time(), Some(PERIOD));
    apex.advance(PERIOD);
    assert_eq!(
        apex.dispatch(),
        Some(2),
        "the first release is a start of the period"
    );
    assert_eq!(
        apex.get_process_status(periodic).unwrap().deadline_time,
        PERIOD + 4 * MS
    );
    assert_eq!(apex.replenish(-2, PERIOD), Err(InvalidParam));
    assert_eq!(apex.replenish(PERIOD + 1, PERIOD), Err(InvalidMode));
    assert_eq!(apex.replenish(PERIOD, PERIOD), Ok(()));
    assert_eq!(
        apex.get_process_status(periodic).unwrap().deadline_time,
        2 * PERIOD
    );
    assert_eq!(apex.periodic_wait(PERIOD + MS), Ok(Outcome::Waits));
    assert_eq!(apex.dispatch(), Some(0));
    assert_eq!(apex.get_my_id(), Ok(high));
    assert_eq!(apex.next_time(), Some(2 * PERIOD));
    apex.advance(2 * PERIOD);
    apex.dispatch();
    apex.advance(2 * PERIOD + 4 * MS);
    assert_eq!(
        apex.take_action(),
        Some((HmAction::ColdStart, ErrorCode::DeadlineMissed))
    );
    assert_eq!(apex.culprit(), Some("periodic"));
    assert_eq!(apex.take_action(), None);
    // A release point that has passed is taken at once.
    assert_eq!(apex.periodic_wait(3 * PERIOD + MS), Ok(Outcome::Waits));
    assert_eq!(apex.dispatch(), Some(2));
}

#[test]
fn a_wait_of_no_time_lets_equals_go_first() {
    let mut apex = apex();
    process(&mut apex, "one", 5);
    process(&mut apex, "two", 5);
    normal(&mut apex);
    assert_eq!(apex.dispatch(), Some(0));
    assert_eq!(apex.timed_wait(0, 0), Ok(Outcome::Waits));
    assert_eq!(apex.dispatch(), Some(1));
}

#[test]
fn semaphores() {
    let mut apex = apex();
    let name = Name::new("s");
    let semaphore = apex.create_semaphore(name, 1, 2, FIFO).unwrap();
    assert_eq!(apex.create_semaphore(name, 1, 2, FIFO), Err(NoAction));
    assert_eq!(
        apex.create_semaphore(Name::new("x"), 3, 2, FIFO),
        Err(InvalidParam)
    );
    assert_eq!(
        apex.create_semaphore(Name::new("x"), -1, 2, FIFO),
        Err(InvalidParam)
    );
    for number in 1..MAX_SEMAPHORES {
        apex.create_semaphore(Name::new(&number.to_string()), 0, 1, FIFO)
            .unwrap();
    }
    assert_eq!(
        apex.create_semaphore(Name::new("x"), 0, 1, FIFO),
        Err(InvalidConfig)
    );
    pair(&mut apex);
    normal(&mut apex);
    assert_eq!(apex.get_semaphore_id(&name), Ok(semaphore));
    assert_eq!(apex.get_semaphore_id(&Name::new("none")), Err(InvalidConfig));
    assert_eq!(apex.wait_semaphore(99, 0, 0), Err(InvalidParam));
    assert_eq!(apex.wait_semaphore(semaphore, -2, 0), Err(InvalidParam));
    assert_eq!(apex.wait_semaphore(semaphore, 0, 0), Ok(Outcome::Done(())));
    assert_eq!(apex.wait_semaphore(semaphore, 0, 0), Err(NotAvailable));
    assert_eq!(apex.wait_semaphore(semaphore, MS, 0), Ok(Outcome::Waits));
    apex.dispatch();
    assert_eq!(apex.get_semaphore_status(semaphore).unwrap().waiting_processes, 1);
    assert_eq!(apex.get_semaphore_status(99), Err(InvalidParam));
    assert_eq!(apex.signal_semaphore(99), Err(InvalidParam));
    assert_eq!(apex.signal_semaphore(semaphore), Ok(()));
    assert_eq!(apex.get_semaphore_status(semaphore).unwrap().current_value, 0);
    assert_eq!(apex.dispatch(), Some(0));
    assert_eq!(apex.result().answer, Ok(()));
    assert_eq!(apex.wait_semaphore(semaphore, MS, 0), Ok(Outcome::Waits));
    apex.advance(MS);
    apex.dispatch();
    assert_eq!(apex.result().answer, Err(TimedOut));
    apex.lock_preemption().unwrap();
    assert_eq!(apex.wait_semaphore(semaphore, MS, 0), Err(InvalidMode));
    assert_eq!(apex.signal_semaphore(semaphore), Ok(()));
    assert_eq!(apex.signal_semaphore(semaphore), Ok(()));
    assert_eq!(apex.signal_semaphore(semaphore), Err(NoAction));
    assert_eq!(
        apex.create_semaphore(Name::new("late"), 0, 1, FIFO),
        Err(InvalidConfig)
    );
}

#[test]
fn objects_are_only_made_during_initialisation() {
    let mut apex = apex();
    let mut world = World::new(2);
    normal(&mut apex);
    let name = Name::new("late");
    assert_eq!(apex.create_semaphore(name, 0, 1, FIFO), Err(InvalidMode));
    assert_eq!(apex.create_event(name), Err(InvalidMode));
    assert_eq!(apex.create_mutex(name, 5, FIFO), Err(InvalidMode));
    assert_eq!(apex.create_buffer(name, 8, 1, FIFO), Err(InvalidMode));
    assert_eq!(apex.create_blackboard(name, 8), Err(InvalidMode));
    assert_eq!(apex.create_error_handler(4096, 1024), Err(InvalidMode));
    let port = apex.create_queuing_port(
        &mut world,
        Name::new("q-in"),
        QueueSize {
            message: 8,
            messages: 2,
        },
        PortDirection::Destination,
        FIFO,
    );
    assert_eq!(port, Err(InvalidMode));
    let port = apex.create_sampling_port(
        &mut world,
        Name::new("s-in"),
        8,
        PortDirection::Destination,
        5 * MS,
    );
    assert_eq!(port, Err(InvalidMode));
}

#[test]
fn events() {
    let mut apex = apex();
    let name = Name::new("e");
    let event = apex.create_event(name).unwrap();
    assert_eq!(apex.create_event(name), Err(NoAction));
    for number in 1..MAX_EVENTS {
        apex.create_event(Name::new(&number.to_string())).unwrap();
    }
    assert_eq!(apex.create_event(Name::new("x")), Err(InvalidConfig));
    pair(&mut apex);
    normal(&mut apex);
    assert_eq!(apex.get_event_id(&name), Ok(event));
    assert_eq!(apex.get_event_id(&Name::new("none")), Err(InvalidConfig));
    assert_eq!(apex.wait_event(99, 0, 0), Err(InvalidParam));
    assert_eq!(apex.wait_event(event, -2, 0), Err(InvalidParam));
    assert_eq!(apex.wait_event(event, 0, 0), Err(NotAvailable));
    assert_eq!(apex.wait_event(event, FOREVER, 0), Ok(Outcome::Waits));
    apex.dispatch();
    assert_eq!(apex.get_event_status(event).unwrap().waiting_processes, 1);
    assert_eq!(apex.set_event(99), Err(InvalidParam));
    assert_eq!(apex.set_event(event), Ok(()));
    assert_eq!(apex.dispatch(), Some(0));
    assert_eq!(apex.wait_event(event, 0, 0), Ok(Outcome::Done(())));
    assert_eq!(apex.reset_event(99), Err(InvalidParam));
    assert_eq!(apex.reset_event(event), Ok(()));
    assert!(!apex.get_event_status(event).unwrap().is_up);
    assert_eq!(apex.get_event_status(99), Err(InvalidParam));
    assert_eq!(apex.wait_event(event, MS, 0), Ok(Outcome::Waits));
    apex.advance(MS);
    apex.dispatch();
    assert_eq!(apex.result().answer, Err(TimedOut));
    apex.lock_preemption().unwrap();
    assert_eq!(apex.wait_event(event, MS, 0), Err(InvalidMode));
}

#[test]
fn mutexes() {
    let mut apex = apex();
    let name = Name::new("m");
    let mutex = apex.create_mutex(name, 15, FIFO).unwrap();
    assert_eq!(apex.create_mutex(name, 15, FIFO), Err(NoAction));
    assert_eq!(apex.create_mutex(Name::new("x"), 0, FIFO), Err(InvalidParam));
    let other = apex.create_mutex(Name::new("other"), 30, FIFO).unwrap();
    for number in 2..MAX_MUTEXES {
        apex.create_mutex(Name::new(&number.to_string()), 5, FIFO)
            .unwrap();
    }
    assert_eq!(apex.create_mutex(Name::new("x"), 5, FIFO), Err(InvalidConfig));
    let (high, low) = pair(&mut apex);
    normal(&mut apex);
    assert_eq!(apex.get_mutex_id(&name), Ok(mutex));
    assert_eq!(apex.get_mutex_id(&Name::new("none")), Err(InvalidConfig));
    assert_eq!(apex.acquire_mutex(99, 0, 0), Err(InvalidParam));
    assert_eq!(apex.acquire_mutex(mutex, -2, 0), Err(InvalidParam));
    assert_eq!(
        apex.acquire_mutex(mutex, 0, 0),
        Err(InvalidMode),
        "above the mutex's priority"
    );
    apex.timed_wait(MS, 0).unwrap();
    apex.dispatch();
    assert_eq!(apex.acquire_mutex(other, 0, 0), Ok(Outcome::Done(())));
    assert_eq!(apex.get_process_status(low).unwrap().current_priority, 30);
    assert_eq!(apex.acquire_mutex(mutex, 0, 0), Err(InvalidMode), "one at a time");
    assert_eq!(apex.timed_wait(MS, 0), Err(InvalidMode), "no wait with a mutex");
    apex.advance(MS);
    assert!(!apex.must_switch(), "the owner has the mutex's priority");
    for _ in 1..MAX_LOCK_LEVEL {
        assert_eq!(apex.acquire_mutex(other, 0, 0), Ok(Outcome::Done(())));
    }
    assert_eq!(apex.acquire_mutex(other, 0, 0), Err(InvalidConfig));
    assert_eq!(apex.get_mutex_status(other).unwrap().lock_count, MAX_LOCK_LEVEL);
    assert_eq!(apex.get_mutex_status(99), Err(InvalidParam));
    assert_eq!(apex.get_process_mutex_state(low), Ok(other));
    assert_eq!(apex.get_process_mutex_state(99), Err(InvalidParam));
    assert_eq!(apex.get_process_mutex_state(high), Ok(NO_MUTEX_OWNED));
    assert_eq!(apex.release_mutex(99), Err(InvalidParam));
    assert_eq!(apex.release_mutex(mutex), Err(InvalidMode));
    assert_eq!(apex.release_mutex(other), Ok(()));
    assert_eq!(apex.reset_mutex(99, low), Err(InvalidParam));
    assert_eq!(apex.reset_mutex(other, 99), Err(InvalidParam));
    assert_eq!(apex.reset_mutex(other, high), Err(InvalidMode));
    assert_eq!(apex.reset_mutex(other, low), Ok(()));
    assert_eq!(apex.get_process_status(low).unwrap().current_priority, 10);
    assert_eq!(apex.dispatch(), Some(0));
}

#[test]
fn a_mutex_goes_to_the_one_who_waits() {
    let mut apex = apex();
    let mutex = apex.create_mutex(Name::new("m"), 20, FIFO).unwrap();
    let (high, low) = pair(&mut apex);
    normal(&mut apex);
    apex.timed_wait(MS, 0).unwrap();
    apex.dispatch();
    assert_eq!(apex.acquire_mutex(mutex, 0, 0), Ok(Outcome::Done(())));
    apex.advance(MS);
    apex.set_priority(low, 5).unwrap();
    assert_eq!(apex.dispatch(), Some(1), "equals do not interrupt each other");
    apex.suspend(high).unwrap();
    apex.resume(high).unwrap();
    // The owner is not interrupted; the other one asks when the owner stops being the first in line.
    assert_eq!(apex.release_mutex(mutex), Ok(()));
    assert_eq!(apex.dispatch(), Some(0));
    assert_eq!(apex.acquire_mutex(mutex, 0, MS), Ok(Outcome::Done(())));
    assert_eq!(apex.stop(low), Ok(()));
    apex.stop_self();
    assert_eq!(
        apex.get_mutex_status(mutex).unwrap().owner,
        None,
        "who ends gives back"
    );
}

#[test]
fn buffers() {
    let mut apex = apex();
    let name = Name::new("b");
    let buffer = apex.create_buffer(name, 4, 1, FIFO).unwrap();
    assert_eq!(apex.create_buffer(name, 4, 1, FIFO), Err(NoAction));
    for (size, number) in [(0, 1), (4, 0), (9999, 1)] {
        assert_eq!(
            apex.create_buffer(Name::new("x"), size, number, FIFO),
            Err(InvalidParam)
        );
    }
    assert_eq!(
        apex.create_buffer(Name::new("x"), 512, 60_000, FIFO),
        Err(InvalidConfig)
    );
    for number in 1..MAX_BUFFERS {
        apex.create_buffer(Name::new(&number.to_string()), 4, 1, FIFO)
            .unwrap();
    }
    assert_eq!(apex.create_buffer(Name::new("x"), 4, 1, FIFO), Err(InvalidConfig));
    pair(&mut apex);
    normal(&mut apex);
    let mut to = [0; 8];
    assert_eq!(apex.get_buffer_id(&name), Ok(buffer));
    assert_eq!(apex.get_buffer_id(&Name::new("none")), Err(InvalidConfig));
    assert_eq!(apex.send_buffer(99, b"a", 0, 0), Err(InvalidParam));
    assert_eq!(apex.send_buffer(buffer, b"", 0, 0), Err(InvalidParam));
    assert_eq!(apex.send_buffer(buffer, b"12345", 0, 0), Err(InvalidParam));
    assert_eq!(apex.send_buffer(buffer, b"a", -2, 0), Err(InvalidParam));
    assert_eq!(apex.receive_buffer(99, &mut to, 0, 0), Err(InvalidParam));
    assert_eq!(apex.receive_buffer(buffer, &mut to, -2, 0), Err(InvalidParam));
    assert_eq!(apex.receive_buffer(buffer, &mut to, 0, 0), Err(NotAvailable));
    assert_eq!(apex.send_buffer(buffer, b"one", 0, 0), Ok(Outcome::Done(())));
    assert_eq!(apex.send_buffer(buffer, b"two", 0, 0), Err(NotAvailable));
    assert_eq!(apex.send_buffer(buffer, b"two", FOREVER, 0), Ok(Outcome::Waits));
    apex.dispatch();
    let status = apex.get_buffer_status(buffer).unwrap();
    assert_eq!((status.messages, status.waiting_processes), (1, 1));
    assert_eq!(apex.get_buffer_status(99), Err(InvalidParam));
    assert_eq!(apex.receive_buffer(buffer, &mut to, 0, 0), Ok(Outcome::Done(3)));
    assert_eq!(&to[..3], b"one");
    assert_eq!(
        apex.dispatch(),
        Some(0),
        "the sender goes on: its message has room"
    );
    assert_eq!(apex.receive_buffer(buffer, &mut to, 0, 0), Ok(Outcome::Done(3)));
    assert_eq!(&to[..3], b"two");
    assert_eq!(apex.receive_buffer(buffer, &mut to, MS, 0), Ok(Outcome::Waits));
    apex.dispatch();
    assert_eq!(apex.send_buffer(buffer, b"4", 0, 0), Ok(Outcome::Done(())));
    assert_eq!(apex.dispatch(), Some(0));
    assert_eq!((apex.result().answer, apex.result().message), (Ok(()), &b"4"[..]));
    assert_eq!(apex.receive_buffer(buffer, &mut to, MS, 0), Ok(Outcome::Waits));
    apex.advance(MS);
    apex.dispatch();
    assert_eq!(apex.result().answer, Err(TimedOut));
    apex.lock_preemption().unwrap();
    assert_eq!(apex.receive_buffer(buffer, &mut to, MS, 0), Err(InvalidMode));
    assert_eq!(apex.send_buffer(buffer, b"a", MS, 0), Ok(Outcome::Done(())));
    assert_eq!(apex.send_buffer(buffer, b"a", MS, 0), Err(InvalidMode));
}

#[test]
fn blackboards() {
    let mut apex = apex();
    let name = Name::new("b");
    let board = apex.create_blackboard(name, 4).unwrap();
    assert_eq!(apex.create_blackboard(name, 4), Err(NoAction));
    assert_eq!(apex.create_blackboard(Name::new("x"), 0), Err(InvalidParam));
    for number in 1..MAX_BLACKBOARDS {
        apex.create_blackboard(Name::new(&number.to_string()), 4).unwrap();
    }
    assert_eq!(apex.create_blackboard(Name::new("x"), 4), Err(InvalidConfig));
    pair(&mut apex);
    normal(&mut apex);
    let mut to = [0; 8];
    assert_eq!(apex.get_blackboard_id(&name), Ok(board));
    assert_eq!(apex.get_blackboard_id(&Name::new("none")), Err(InvalidConfig));
    assert_eq!(apex.display_blackboard(99, b"a"), Err(InvalidParam));
    assert_eq!(apex.display_blackboard(board, b""), Err(InvalidParam));
    assert_eq!(apex.display_blackboard(board, b"12345"), Err(InvalidParam));
    assert_eq!(apex.read_blackboard(99, &mut to, 0, 0), Err(InvalidParam));
    assert_eq!(apex.read_blackboard(board, &mut to, -2, 0), Err(InvalidParam));
    assert_eq!(apex.read_blackboard(board, &mut to, 0, 0), Err(NotAvailable));
    assert_eq!(
        apex.read_blackboard(board, &mut to, FOREVER, 0),
        Ok(Outcome::Waits)
    );
    apex.dispatch();
    assert_eq!(apex.get_blackboard_status(board).unwrap().waiting_processes, 1);
    assert_eq!(apex.get_blackboard_status(99), Err(InvalidParam));
    assert_eq!(apex.display_blackboard(board, b"hi"), Ok(()));
    assert_eq!(apex.dispatch(), Some(0));
    assert_eq!(apex.result().message, b"hi");
    assert_eq!(apex.read_blackboard(board, &mut to, 0, 0), Ok(Outcome::Done(2)));
    assert_eq!(apex.clear_blackboard(99), Err(InvalidParam));
    assert_eq!(apex.clear_blackboard(board), Ok(()));
    assert_eq!(apex.read_blackboard(board, &mut to, MS, 0), Ok(Outcome::Waits));
    apex.advance(MS);
    apex.dispatch();
    assert_eq!(apex.result().answer, Err(TimedOut));
    apex.lock_preemption().unwrap();
    assert_eq!(apex.read_blackboard(board, &mut to, MS, 0), Err(InvalidMode));
}

#[test]
fn sampling_ports() {
    let (mut apex, mut world) = (apex(), World::new(1));
    let (source, destination) = (PortDirection::Source, PortDirection::Destination);
    let create = |apex: &mut Apex, world: &mut World, name, size, direction, refresh| {
        apex.create_sampling_port(world, Name::new(name), size, direction, refresh)
    };
    for (name, size, direction, refresh) in [
        ("none", 8, source, 5 * MS),
        ("q-in", 8, destination, 5 * MS),
        ("s-in", 9, destination, 5 * MS),
        ("s-in", 8, source, 5 * MS),
        ("s-in", 8, destination, MS),
        ("s-in", 8, destination, 0),
    ] {
        let port = create(&mut apex, &mut world, name, size, direction, refresh);
        assert_eq!(port, Err(InvalidConfig), "{name} {size} {refresh}");
    }
    let out = create(&mut apex, &mut world, "s-out", 8, source, 5 * MS).unwrap();
    let into = create(&mut apex, &mut world, "s-in", 8, destination, 5 * MS).unwrap();
    assert_eq!(
        create(&mut apex, &mut world, "s-in", 8, destination, 5 * MS),
        Err(NoAction)
    );
    normal(&mut apex);
    let mut to = [0; 8];
    assert_eq!(apex.get_sampling_port_id(&Name::new("s-in")), Ok(into));
    assert_eq!(apex.get_sampling_port_id(&Name::new("none")), Err(InvalidConfig));
    assert_eq!(
        apex.read_sampling_message(&mut world, 99, &mut to, 0),
        Err(InvalidParam)
    );
    assert_eq!(
        apex.read_sampling_message(&mut world, out, &mut to, 0),
        Err(InvalidMode)
    );
    assert_eq!(
        apex.read_sampling_message(&mut world, into, &mut to, 0),
        Err(NoAction)
    );
    assert_eq!(
        apex.write_sampling_message(&mut world, 99, b"a", 0),
        Err(InvalidParam)
    );
    assert_eq!(
        apex.write_sampling_message(&mut world, out, b"", 0),
        Err(InvalidParam)
    );
    assert_eq!(
        apex.write_sampling_message(&mut world, out, b"123456789", 0),
        Err(InvalidConfig)
    );
    assert_eq!(
        apex.write_sampling_message(&mut world, into, b"a", 0),
        Err(InvalidMode)
    );
    assert_eq!(apex.write_sampling_message(&mut world, out, b"old", 0), Ok(()));
    assert_eq!(apex.write_sampling_message(&mut world, out, b"mid", MS), Ok(()));
    assert_eq!(
        apex.write_sampling_message(&mut world, out, b"newest", 2 * MS),
        Ok(())
    );
    let read = apex.read_sampling_message(&mut world, into, &mut to, 7 * MS);
    assert_eq!((read, &to[..6]), (Ok((Validity::Valid, 6)), &b"newest"[..]));
    let later = apex.read_sampling_message(&mut world, into, &mut to, 7 * MS + 1);
    assert_eq!((later, &to[..6]), (Ok((Validity::Invalid, 6)), &b"newest"[..]));
    let status = apex.get_sampling_port_status(into).unwrap();
    assert_eq!(
        (status.last_validity, status.refresh_period),
        (Validity::Invalid, 5 * MS)
    );
    assert_eq!(apex.get_sampling_port_status(99), Err(InvalidParam));
}

/// Creates a queuing port.
/// Writes `writes` messages a millisecond apart, one for each number, and returns the one that a reader gets
/// then.
fn read_after(writes: u8, room: usize) -> (Answer<(Validity, usize)>, u8) {
    let (mut apex, mut world) = (apex(), World::new(room));
    let create = |apex: &mut Apex, world: &mut World, name, direction| {
        apex.create_sampling_port(world, Name::new(name), 8, direction, 5 * MS)
    };
    let out = create(&mut apex, &mut world, "s-out", PortDirection::Source).unwrap();
    let into = create(&mut apex, &mut world, "s-in", PortDirection::Destination).unwrap();
    normal(&mut apex);
    for number in 0..writes {
        let now = Time::from(number) * MS;
        apex.write_sampling_message(&mut world, out, &[number], now)
            .unwrap();
    }
    let mut to = [0; 8];
    let answer = apex.read_sampling_message(&mut world, into, &mut to, Time::from(writes) * MS);
    (answer, to[0])
}

#[test]
fn a_slow_reader_gets_the_newest_message_of_a_sampling_port() {
    for (writes, room) in [(1, 1), (3, 1), (20, 4), (40, 20), (100, 17), (255, 200)] {
        let newest = (Ok((Validity::Valid, 1)), writes - 1);
        assert_eq!(
            read_after(writes, room),
            newest,
            "{writes} writes, room for {room}"
        );
    }
}

/// Lets a process wait 5 ms for a message, or for room for one, and returns its answer. The message, or the
/// room, comes before the time is over. The partition has no window from then until long after.
fn answer_after_a_pause(sends: bool) -> Answer {
    let (mut apex, mut world, out, into) = with_queues();
    let mut to = [0; 8];
    if sends {
        assert_eq!(
            apex.send_queuing_message(&mut world, out, b"one", 0, 0),
            Ok(Outcome::Done(()))
        );
        let waits = apex.send_queuing_message(&mut world, out, b"two", 5 * MS, 0);
        assert_eq!(waits, Ok(Outcome::Waits));
        world.queues[1].clear();
    } else {
        let waits = apex.receive_queuing_message(&mut world, into, &mut to, 5 * MS, 0);
        assert_eq!(waits, Ok(Outcome::Waits));
        world.queues[1].push_back(b"one".to_vec());
    }
    assert_eq!(apex.dispatch(), Some(1));
    apex.catch_up(&mut world, 20 * MS);
    assert_eq!(apex.dispatch(), Some(0));
    apex.result().answer
}

#[test]
fn a_message_and_room_that_came_before_the_time_out_win() {
    assert_eq!(answer_after_a_pause(false), Ok(()));
    assert_eq!(answer_after_a_pause(true), Ok(()));
}

fn queuing_port(
    (apex, world): (&mut Apex, &mut World),
    name: &str,
    (size, depth): (u32, u32),
    direction: PortDirection,
) -> Result<i64, bulkhead_apex::ReturnCode> {
    let size = QueueSize {
        message: size,
        messages: depth,
    };
    apex.create_queuing_port(world, Name::new(name), size, direction, FIFO)
}

/// Creates the source and the destination that the partition has, and starts two processes.
fn with_queues() -> (Apex, World, i64, i64) {
    let (mut apex, mut world) = (apex(), World::new(1));
    let out = queuing_port((&mut apex, &mut world), "q-out", (8, 2), PortDirection::Source).unwrap();
    let into = queuing_port(
        (&mut apex, &mut world),
        "q-in",
        (8, 2),
        PortDirection::Destination,
    )
    .unwrap();
    pair(&mut apex);
    normal(&mut apex);
    (apex, world, out, into)
}

#[test]
fn queuing_ports_are_those_of_the_configuration() {
    let (mut apex, mut world) = (apex(), World::new(1));
    let (source, destination) = (PortDirection::Source, PortDirection::Destination);
    for (name, size, depth, direction) in [
        ("none", 8, 2, source),
        ("s-in", 8, 2, destination),
        ("q-in", 9, 2, destination),
        ("q-in", 8, 3, destination),
        ("q-in", 8, 2, source),
    ] {
        let port = queuing_port((&mut apex, &mut world), name, (size, depth), direction);
        assert_eq!(port, Err(InvalidConfig), "{name} {size} {depth}");
    }
    let into = queuing_port((&mut apex, &mut world), "q-in", (8, 2), destination).unwrap();
    let again = queuing_port((&mut apex, &mut world), "q-in", (8, 2), destination);
    assert_eq!(again, Err(NoAction));
    assert_eq!(apex.get_queuing_port_id(&Name::new("q-in")), Ok(into));
    assert_eq!(apex.get_queuing_port_id(&Name::new("none")), Err(InvalidConfig));
}

#[test]
fn queuing_ports_refuse_bad_parameters() {
    let (mut apex, mut world, out, into) = with_queues();
    let mut to = [0; 8];
    assert_eq!(
        apex.send_queuing_message(&mut world, 99, b"a", 0, 0),
        Err(InvalidParam)
    );
    assert_eq!(
        apex.send_queuing_message(&mut world, out, b"", 0, 0),
        Err(InvalidParam)
    );
    assert_eq!(
        apex.send_queuing_message(&mut world, out, b"a", -2, 0),
        Err(InvalidParam)
    );
    assert_eq!(
        apex.send_queuing_message(&mut world, out, b"123456789", 0, 0),
        Err(InvalidConfig)
    );
    assert_eq!(
        apex.send_queuing_message(&mut world, into, b"a", 0, 0),
        Err(InvalidMode)
    );
    assert_eq!(
        apex.receive_queuing_message(&mut world, 99, &mut to, 0, 0),
        Err(InvalidParam)
    );
    assert_eq!(
        apex.receive_queuing_message(&mut world, into, &mut to, -2, 0),
        Err(InvalidParam)
    );
    assert_eq!(
        apex.receive_queuing_message(&mut world, out, &mut to, 0, 0),
        Err(InvalidMode)
    );
    assert_eq!(
        apex.receive_queuing_message(&mut world, into, &mut to, 0, 0),
        Err(NotAvailable)
    );
}

#[test]
fn queuing_ports_make_processes_wait() {
    let (mut apex, mut world, out, into) = with_queues();
    let mut to = [0; 8];
    assert_eq!(
        apex.send_queuing_message(&mut world, out, b"one", 0, 0),
        Ok(Outcome::Done(()))
    );
    assert_eq!(
        apex.send_queuing_message(&mut world, out, b"two", 0, 0),
        Err(NotAvailable)
    );
    assert_eq!(
        apex.send_queuing_message(&mut world, out, b"two", FOREVER, 0),
        Ok(Outcome::Waits)
    );
    assert_eq!(apex.dispatch(), Some(1));
    assert_eq!(
        apex.get_queuing_port_status(&mut world, out)
            .unwrap()
            .waiting_processes,
        1
    );
    assert_eq!(
        apex.get_queuing_port_status(&mut world, into).unwrap().messages,
        1
    );
    assert_eq!(apex.get_queuing_port_status(&mut world, 99), Err(InvalidParam));
    apex.poll(&mut world);
    assert_eq!(apex.dispatch(), Some(0), "the sender goes on");
    assert_eq!(
        apex.receive_queuing_message(&mut world, into, &mut to, 0, 0),
        Ok(Outcome::Done(3))
    );
    assert_eq!(&to[..3], b"one");
    assert_eq!(apex.clear_queuing_port(&mut world, 99), Err(InvalidParam));
    assert_eq!(apex.clear_queuing_port(&mut world, out), Err(InvalidMode));
    assert_eq!(apex.clear_queuing_port(&mut world, into), Ok(()));
    assert_eq!(
        apex.receive_queuing_message(&mut world, into, &mut to, MS, 0),
        Ok(Outcome::Waits)
    );
    world.queues[1].push_back(b"from far".to_vec());
    apex.poll(&mut world);
    assert_eq!(apex.dispatch(), Some(0));
    assert_eq!(apex.result().message, b"from far");
    assert_eq!(
        apex.receive_queuing_message(&mut world, into, &mut to, MS, 0),
        Ok(Outcome::Waits)
    );
    apex.advance(MS);
    apex.dispatch();
    assert_eq!(apex.result().answer, Err(TimedOut));
    apex.lock_preemption().unwrap();
    assert_eq!(
        apex.receive_queuing_message(&mut world, into, &mut to, MS, 0),
        Err(InvalidMode)
    );
    world.room = 0;
    assert_eq!(
        apex.send_queuing_message(&mut world, out, b"a", MS, 0),
        Err(InvalidMode)
    );
}

#[test]
fn health_monitoring() {
    let (mut apex, mut world) = (apex(), World::new(1));
    assert_eq!(apex.create_error_handler(4096, 0), Err(InvalidConfig));
    assert_eq!(apex.create_error_handler(4096, 1024), Ok(()));
    assert_eq!(apex.create_error_handler(4096, 1024), Err(NoAction));
    let (high, _) = pair(&mut apex);
    normal(&mut apex);
    let code = ErrorCode::ApplicationError;
    assert_eq!(apex.raise_application_error(code, &[0; 129]), Err(InvalidParam));
    assert_eq!(
        apex.raise_application_error(ErrorCode::PowerFail, b""),
        Err(InvalidParam)
    );
    assert_eq!(
        apex.get_error_status().map(drop),
        Err(InvalidConfig),
        "not the handler"
    );
    assert_eq!(apex.raise_application_error(code, b"why"), Ok(()));
    assert_eq!(apex.dispatch(), Some(MAX_PROCESSES));
    assert_eq!(apex.take_entry(MAX_PROCESSES), Some(4096));
    assert_eq!(apex.get_my_id(), Err(InvalidMode));
    assert_eq!(apex.lock_preemption(), Err(NoAction));
    assert_eq!(apex.timed_wait(MS, 0), Err(InvalidMode));
    let error = apex.get_error_status().unwrap();
    assert_eq!((error.code, error.process), (code, high));
    assert_eq!(&error.message[..error.length], b"why");
    assert_eq!(apex.get_error_status().map(drop), Err(NoAction));
    assert_eq!(apex.take_action(), None);
    assert_eq!(apex.raise_application_error(code, b"own"), Ok(()));
    assert_eq!(
        apex.take_action(),
        Some((HmAction::ColdStart, code)),
        "the handler has no handler"
    );
    assert_eq!(apex.culprit(), Some("the error handler"));
    apex.stop_self();
    assert_eq!(apex.dispatch(), Some(0));
    assert_eq!(
        apex.report_application_message(&mut world, &[0; 129]),
        Err(InvalidParam)
    );
    assert_eq!(apex.report_application_message(&mut world, b"hello"), Ok(()));
    assert_eq!(world.reports, 1);
}

#[test]
fn module_schedules() {
    let (mut apex, mut world) = (apex(), World::new(1));
    normal(&mut apex);
    assert_eq!(apex.get_module_schedule_id(&Name::new("landing")), Ok(2));
    assert_eq!(
        apex.get_module_schedule_id(&Name::new("none")),
        Err(InvalidConfig)
    );
    assert_eq!(
        apex.get_module_schedule_status(&mut world).map(drop),
        Err(InvalidConfig)
    );
    assert_eq!(apex.set_module_schedule(&mut world, 2), Err(InvalidConfig));
    world.schedules = Some(ScheduleStatus {
        since: 0,
        current: 0,
        next: 0,
    });
    assert_eq!(apex.set_module_schedule(&mut world, 3), Err(InvalidParam));
    assert_eq!(apex.set_module_schedule(&mut world, 0), Err(InvalidParam));
    assert_eq!(apex.set_module_schedule(&mut world, 1), Err(NoAction));
    assert_eq!(apex.set_module_schedule(&mut world, 2), Ok(()));
    assert_eq!(world.asked, Some(1));
    let status = apex.get_module_schedule_status(&mut world).unwrap();
    assert_eq!((status.current, status.next), (1, 1));
}

#[test]
fn period_and_duration_are_those_of_the_schedule_in_force() {
    let mut apex = Apex::new(
        Configuration {
            times: &[(PERIOD, 2 * MS), (4 * PERIOD, 3 * MS)],
            ..CONFIGURATION
        },
        OperatingMode::ColdStart,
        StartCondition::NormalStart,
    );
    let mut world = World::new(1);
    let mut enter = |apex: &mut Apex, current, since, start| {
        world.schedules = Some(ScheduleStatus {
            since,
            current,
            next: current,
        });
        apex.follow_schedule(&mut world, start);
        let status = apex.get_partition_status();
        (status.period, status.duration)
    };
    assert_eq!(enter(&mut apex, 0, 0, 0), (PERIOD, 2 * MS));
    let periodic = Attributes {
        period: 4 * PERIOD,
        ..attributes("periodic", 20)
    };
    let process = apex.create_process(&periodic).unwrap();
    normal(&mut apex);
    assert_eq!(enter(&mut apex, 1, 50 * MS, 53 * MS), (4 * PERIOD, 3 * MS));
    // The next period begins four old ones after the first in this schedule.
    apex.start(process, 60 * MS).unwrap();
    assert_eq!(apex.next_time(), Some(93 * MS));
    assert_eq!(enter(&mut apex, 1, 50 * MS, 70 * MS), (4 * PERIOD, 3 * MS));
    assert_eq!(enter(&mut apex, 0, 100 * MS, 101 * MS), (PERIOD, 2 * MS));
}
