// SPDX-License-Identifier: Apache-2.0
//! Random services against a reference model that is written the obvious way: lists in the order in which
//! processes became ready, or began to wait.

use bulkhead_apex::{
    Apex, Attributes, Configuration, Deadline, INFINITE_TIME_VALUE, Name, OperatingMode, Outcome,
    ProcessState, QueuingDiscipline, ReturnCode, StartCondition, Time,
};
use proptest::prelude::{Strategy, prop_oneof, proptest};
use proptest::test_runner::Config;

const PROCESSES: usize = 5;
const MAXIMUM: i32 = 2;

#[derive(Clone, Copy, Debug)]
enum Step {
    Start(usize),
    Stop(usize),
    StopSelf,
    Suspend(usize),
    Resume(usize),
    Priority(usize, i32),
    Wait(Time),
    Signal,
    Sleep(Time),
    Pass(Time),
}

fn step() -> impl Strategy<Value = Step> {
    let process = || 0..PROCESSES;
    prop_oneof![
        process().prop_map(Step::Start),
        process().prop_map(Step::Stop),
        proptest::strategy::Just(Step::StopSelf),
        process().prop_map(Step::Suspend),
        process().prop_map(Step::Resume),
        (process(), 1..4_i32).prop_map(|(process, priority)| Step::Priority(process, priority)),
        (-1..4_i64).prop_map(Step::Wait),
        proptest::strategy::Just(Step::Signal),
        (0..4_i64).prop_map(Step::Sleep),
        (1..4_i64).prop_map(Step::Pass),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Waits {
    No,
    Time(Time),
    Semaphore(Option<Time>),
}

#[derive(Clone, Debug)]
struct Process {
    alive: bool,
    base: i32,
    priority: i32,
    waits: Waits,
    suspended: bool,
}

/// The model. `ready` holds the ready ones in the order in which they became so, `queue` those that wait.
struct Model {
    now: Time,
    processes: Vec<Process>,
    ready: Vec<usize>,
    queue: Vec<usize>,
    value: i32,
    running: Option<usize>,
}

impl Model {
    fn make_ready(&mut self, process: usize) {
        self.ready.retain(|other| *other != process);
        self.ready.push(process);
    }

    fn leave(&mut self, process: usize) {
        self.ready.retain(|other| *other != process);
        self.queue.retain(|other| *other != process);
    }

    fn wake(&mut self, process: usize) {
        self.queue.retain(|other| *other != process);
        self.processes[process].waits = Waits::No;
        if !self.processes[process].suspended {
            self.make_ready(process);
        }
    }

    fn choose(&mut self) {
        let highest = self
            .ready
            .iter()
            .map(|process| self.processes[*process].priority)
            .max();
        let is_highest = |process: &&usize| Some(self.processes[**process].priority) == highest;
        self.running = self.ready.iter().find(is_highest).copied();
    }

    fn state(&self, process: usize) -> ProcessState {
        let facts = &self.processes[process];
        if !facts.alive {
            ProcessState::Dormant
        } else if self.running == Some(process) {
            ProcessState::Running
        } else if self.ready.contains(&process) {
            ProcessState::Ready
        } else {
            ProcessState::Waiting
        }
    }

    fn pass(&mut self, time: Time) {
        self.now += time;
        for process in 0..PROCESSES {
            let until = match self.processes[process].waits {
                Waits::No => continue,
                Waits::Time(until) => Some(until),
                Waits::Semaphore(until) => until,
            };
            if until.is_some_and(|until| until <= self.now) {
                self.wake(process);
            }
        }
    }

    fn end(&mut self, process: usize) {
        self.leave(process);
        let facts = &mut self.processes[process];
        (facts.alive, facts.waits, facts.suspended) = (false, Waits::No, false);
    }

    fn apply(&mut self, step: Step) -> Result<bool, ReturnCode> {
        let alive = |model: &Self, process: usize| model.processes[process].alive;
        match step {
            Step::Start(process) if alive(self, process) => return Err(ReturnCode::NoAction),
            Step::Start(process) => {
                self.processes[process].alive = true;
                self.processes[process].priority = self.processes[process].base;
                self.make_ready(process);
            }
            Step::Stop(process) if self.running == Some(process) => return Err(ReturnCode::InvalidParam),
            Step::Stop(process) if !alive(self, process) => return Err(ReturnCode::NoAction),
            Step::Stop(process) => self.end(process),
            Step::StopSelf => {
                if let Some(process) = self.running {
                    self.end(process);
                }
            }
            Step::Suspend(process) | Step::Resume(process) if self.running == Some(process) => {
                return Err(ReturnCode::InvalidParam);
            }
            Step::Suspend(process) | Step::Resume(process) | Step::Priority(process, _)
                if !alive(self, process) =>
            {
                return Err(ReturnCode::InvalidMode);
            }
            Step::Suspend(process) => {
                if self.processes[process].suspended {
                    return Err(ReturnCode::NoAction);
                }
                self.processes[process].suspended = true;
                self.ready.retain(|other| *other != process);
            }
            Step::Resume(process) => {
                if !self.processes[process].suspended {
                    return Err(ReturnCode::NoAction);
                }
                self.processes[process].suspended = false;
                if self.processes[process].waits == Waits::No {
                    self.make_ready(process);
                }
            }
            Step::Priority(process, priority) => {
                self.processes[process].priority = priority;
                if self.ready.contains(&process) {
                    self.make_ready(process);
                }
            }
            Step::Wait(time_out) => return self.wait(time_out),
            Step::Signal => {
                if self.value >= MAXIMUM {
                    return Err(ReturnCode::NoAction);
                }
                match self.queue.first().copied() {
                    Some(process) => self.wake(process),
                    None => self.value += 1,
                }
            }
            Step::Sleep(delay) => {
                let process = self.running.ok_or(ReturnCode::InvalidMode)?;
                if delay == 0 {
                    self.make_ready(process);
                } else {
                    self.ready.retain(|other| *other != process);
                    self.processes[process].waits = Waits::Time(self.now + delay);
                }
                return Ok(true);
            }
            Step::Pass(time) => self.pass(time),
        }
        Ok(false)
    }

    fn wait(&mut self, time_out: Time) -> Result<bool, ReturnCode> {
        if self.value > 0 {
            self.value -= 1;
            return Ok(false);
        }
        if time_out == 0 {
            return Err(ReturnCode::NotAvailable);
        }
        let process = self.running.ok_or(ReturnCode::InvalidMode)?;
        let until = (time_out != INFINITE_TIME_VALUE).then_some(self.now + time_out);
        self.ready.retain(|other| *other != process);
        self.queue.push(process);
        self.processes[process].waits = Waits::Semaphore(until);
        Ok(true)
    }
}

fn carry_out(apex: &mut Apex, now: &mut Time, semaphore: i64, step: Step) -> Result<bool, ReturnCode> {
    let identifier = |process: usize| process as i64 + 1;
    let waits = |outcome: Outcome| outcome == Outcome::Waits;
    match step {
        Step::Start(process) => apex.start(identifier(process), *now).map(|()| false),
        Step::Stop(process) => apex.stop(identifier(process)).map(|()| false),
        Step::StopSelf => {
            apex.stop_self();
            Ok(false)
        }
        Step::Suspend(process) => apex.suspend(identifier(process)).map(|()| false),
        Step::Resume(process) => apex.resume(identifier(process)).map(|()| false),
        Step::Priority(process, priority) => apex.set_priority(identifier(process), priority).map(|()| false),
        Step::Wait(time_out) => apex.wait_semaphore(semaphore, time_out, *now).map(waits),
        Step::Signal => apex.signal_semaphore(semaphore).map(|()| false),
        Step::Sleep(delay) => apex.timed_wait(delay, *now).map(waits),
        Step::Pass(time) => {
            *now += time;
            apex.advance(*now);
            Ok(false)
        }
    }
}

proptest! {
    #![proptest_config(Config { cases: 2000, failure_persistence: None, ..Config::default() })]

    #[test]
    fn services_do_what_the_model_does(steps in proptest::collection::vec(step(), 1..80)) {
        let mut apex = Apex::new(Configuration::BLANK, OperatingMode::ColdStart, StartCondition::NormalStart);
        let mut processes = Vec::new();
        for number in 0..PROCESSES {
            let base = 1 + number as i32 % 3;
            let attributes = Attributes {
                name: Name::new(&number.to_string()),
                entry_point: 1,
                stack_size: 1,
                base_priority: base,
                period: INFINITE_TIME_VALUE,
                time_capacity: INFINITE_TIME_VALUE,
                deadline: Deadline::Soft,
            };
            apex.create_process(&attributes).unwrap();
            processes.push(Process { alive: false, base, priority: base, waits: Waits::No, suspended: false });
        }
        let semaphore = apex
            .create_semaphore(Name::new("s"), 0, MAXIMUM, QueuingDiscipline::Fifo)
            .unwrap();
        apex.set_partition_mode(OperatingMode::Normal, 0, 0).unwrap();
        let mut model =
            Model { now: 0, processes, ready: vec![], queue: vec![], value: 0, running: None };
        let mut now = 0;
        for step in steps {
            assert_eq!(carry_out(&mut apex, &mut now, semaphore, step), model.apply(step), "{step:?}");
            apex.dispatch();
            model.choose();
            assert_eq!(apex.running(), model.running, "{step:?}");
            for process in 0..PROCESSES {
                let status = apex.get_process_status(process as i64 + 1).unwrap();
                assert_eq!(status.state, model.state(process), "{process} after {step:?}");
            }
            let status = apex.get_semaphore_status(semaphore).unwrap();
            let expected = (model.value, model.queue.len() as i32);
            assert_eq!((status.current_value, status.waiting_processes), expected);
        }
    }
}
