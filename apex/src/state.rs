// SPDX-License-Identifier: Apache-2.0
//! The state of a partition, the waits of its processes, and the choice of the process that runs.

use crate::configuration::{Configuration, HmAction};
use crate::limits::{
    HANDLER, MAX_BLACKBOARDS, MAX_BUFFERS, MAX_EVENTS, MAX_MESSAGE, MAX_MUTEXES, MAX_QUEUING_PORTS,
    MAX_SAMPLING_PORTS, MAX_SEMAPHORES, SLOTS,
};
use crate::memory::Pool;
use crate::record::{
    Blackboard, Buffer, Errors, Event, Mutex, Process, QueuingPort, SamplingPort, Semaphore, Wait,
};
use crate::table::Table;
use crate::types::{
    Answer, ErrorCode, INFINITE_TIME_VALUE, NEVER, OperatingMode, ProcessState, QueuingDiscipline,
    ReturnCode, StartCondition, Time,
};

/// A partition.
#[derive(Debug)]
pub struct Apex {
    pub(crate) configuration: Configuration,
    pub(crate) mode: OperatingMode,
    pub(crate) condition: StartCondition,
    /// Start of a period of the partition, in normal mode.
    pub(crate) epoch: Time,
    /// Period and duration in the schedule in force.
    pub(crate) times: (Time, Time),
    /// The beginning of the schedule in force, as far as it is known.
    pub(crate) schedule_since: Option<Time>,
    pub(crate) lock_level: i32,
    pub(crate) lock_holder: Option<usize>,
    pub(crate) running: Option<usize>,
    /// Grows with each entry into a queue or into the ready ones.
    clock: u64,
    pub(crate) processes: [Process; SLOTS],
    pub(crate) count: usize,
    pub(crate) mail: [[u8; MAX_MESSAGE]; SLOTS],
    pub(crate) pool: Pool,
    pub(crate) buffers: Table<Buffer, MAX_BUFFERS>,
    pub(crate) blackboards: Table<Blackboard, MAX_BLACKBOARDS>,
    pub(crate) semaphores: Table<Semaphore, MAX_SEMAPHORES>,
    pub(crate) events: Table<Event, MAX_EVENTS>,
    pub(crate) mutexes: Table<Mutex, MAX_MUTEXES>,
    pub(crate) sampling: Table<SamplingPort, MAX_SAMPLING_PORTS>,
    pub(crate) queuing: Table<QueuingPort, MAX_QUEUING_PORTS>,
    pub(crate) errors: Errors,
    action: Option<(HmAction, ErrorCode)>,
    /// The process whose error the last reaction is for.
    culprit: Option<usize>,
}

/// The answer that a service left for the process that waited in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Woken<'a> {
    /// The answer.
    pub answer: Answer,
    /// The message that came with it, if the service receives one.
    pub message: &'a [u8],
}

impl Apex {
    /// Returns a partition that starts.
    #[must_use]
    pub const fn new(configuration: Configuration, mode: OperatingMode, condition: StartCondition) -> Self {
        Self {
            configuration,
            mode,
            condition,
            epoch: 0,
            times: (configuration.period, configuration.duration),
            schedule_since: None,
            lock_level: 0,
            lock_holder: None,
            running: None,
            clock: 0,
            processes: [Process::UNUSED; SLOTS],
            count: 0,
            mail: [[0; MAX_MESSAGE]; SLOTS],
            pool: Pool::new(),
            buffers: Table::new(),
            blackboards: Table::new(),
            semaphores: Table::new(),
            events: Table::new(),
            mutexes: Table::new(),
            sampling: Table::new(),
            queuing: Table::new(),
            errors: Errors::new(),
            action: None,
            culprit: None,
        }
    }

    /// Returns the place of the process that runs: 0 for the first one created,
    /// [`MAX_PROCESSES`](crate::limits::MAX_PROCESSES) for the error handler. `None` if none runs.
    #[must_use]
    pub const fn running(&self) -> Option<usize> {
        self.running
    }

    /// Chooses the process that runs from now on. Returns its place. `None` if there is nothing to run.
    pub fn dispatch(&mut self) -> Option<usize> {
        let next = self.heir();
        if next != self.running {
            if let Some(process) = self.running.map(|place| &mut self.processes[place])
                && process.state == ProcessState::Running
            {
                process.state = ProcessState::Ready;
            }
            self.running = next;
        }
        if let Some(place) = next {
            self.processes[place].state = ProcessState::Running;
        }
        next
    }

    /// Returns the process that should run: the error handler, else the one that has locked preemption, else
    /// the one of the highest priority that has been ready for the longest time.
    fn heir(&self) -> Option<usize> {
        if self.mode != OperatingMode::Normal {
            return None;
        }
        let can_run = |place: usize| self.processes[place].can_run();
        if can_run(HANDLER) {
            return Some(HANDLER);
        }
        if let Some(holder) = self.lock_holder
            && can_run(holder)
        {
            return Some(holder);
        }
        (0..self.count)
            .filter(|place| can_run(*place))
            .max_by_key(|place| {
                let process = &self.processes[*place];
                (process.priority, u64::MAX - process.ready_since)
            })
    }

    /// Tells whether the process that runs must give way: [`Apex::dispatch`] would choose another one.
    #[must_use]
    pub fn must_switch(&self) -> bool {
        self.mode == OperatingMode::Normal && self.heir() != self.running
    }

    /// Returns the answer that a service left for the process that runs, and has waited.
    #[must_use]
    pub fn result(&self) -> Woken<'_> {
        let Some(place) = self.running else {
            return Woken {
                answer: Ok(()),
                message: &[],
            };
        };
        let process = &self.processes[place];
        Woken {
            answer: process.result,
            message: &self.mail[place][..process.mail_length],
        }
    }

    /// Returns the reaction that the partition's health table demands, once.
    pub const fn take_action(&mut self) -> Option<(HmAction, ErrorCode)> {
        self.action.take()
    }

    /// Tells whether there is such a reaction.
    #[must_use]
    pub const fn has_action(&self) -> bool {
        self.action.is_some()
    }

    /// Returns the name of the process whose error the last reaction is for. `None`: the partition's own.
    #[must_use]
    pub fn culprit(&self) -> Option<&str> {
        self.culprit.map(|place| match place {
            HANDLER => "the error handler",
            place => self.processes[place].attributes.name.text(),
        })
    }

    /// Notes the reaction to an error that no error handler takes. `place` is the process that made it.
    pub(crate) fn demand(&mut self, place: Option<usize>, code: ErrorCode) {
        self.culprit = place;
        let action = self.configuration.health[code as usize];
        self.action = Some((action, code));
    }

    /// Refuses what is for the initialisation only.
    pub(crate) const fn must_initialise(&self) -> Answer {
        match self.mode {
            OperatingMode::Normal => Err(ReturnCode::InvalidMode),
            OperatingMode::Idle | OperatingMode::ColdStart | OperatingMode::WarmStart => Ok(()),
        }
    }

    /// Checks a time-out. It is 0, a time from now on, or infinite.
    pub(crate) const fn check_time_out(time_out: Time, now: Time) -> Answer {
        if time_out < INFINITE_TIME_VALUE || now.checked_add(time_out).is_none() {
            return Err(ReturnCode::InvalidParam);
        }
        Ok(())
    }

    /// Tells whether the caller may wait: a process that holds no mutex and has not locked preemption.
    pub(crate) fn may_wait(&self) -> bool {
        let Some(place) = self.running else { return false };
        self.mode == OperatingMode::Normal
            && place != HANDLER
            && self.lock_holder != Some(place)
            && self.processes[place].mutex.is_none()
    }

    /// Makes the process that runs wait for something that is not there, at most for `time_out`. The last
    /// checks of all services that wait.
    pub(crate) fn wait_for(&mut self, wait: Wait, time_out: Time, now: Time) -> Answer {
        if time_out == 0 {
            return Err(ReturnCode::NotAvailable);
        }
        if !self.may_wait() {
            return Err(ReturnCode::InvalidMode);
        }
        let until = if time_out == INFINITE_TIME_VALUE {
            NEVER
        } else {
            now + time_out
        };
        self.block(wait, until);
        Ok(())
    }

    /// Makes the process that runs wait.
    pub(crate) fn block(&mut self, wait: Wait, until: Time) {
        if let Some(place) = self.running {
            self.set_waiting(place, wait, until);
        }
    }

    /// Makes a process wait.
    pub(crate) fn set_waiting(&mut self, place: usize, wait: Wait, until: Time) {
        self.clock += 1;
        let process = &mut self.processes[place];
        process.waits = wait;
        process.until = until;
        process.waits_since = self.clock;
        process.state = ProcessState::Waiting;
        process.result = Ok(());
    }

    /// Ends the wait of a process. It is ready, unless it is suspended as well.
    pub(crate) fn wake(&mut self, place: usize, result: Answer) {
        let process = &mut self.processes[place];
        process.waits = Wait::Nothing;
        process.until = NEVER;
        process.result = result;
        if !process.suspended {
            self.make_ready(place);
        }
    }

    /// Makes a process ready, as the last one of its priority.
    pub(crate) fn make_ready(&mut self, place: usize) {
        self.clock += 1;
        let process = &mut self.processes[place];
        process.state = ProcessState::Ready;
        process.ready_since = self.clock;
    }

    /// Hands a message to a process that waits for one, and wakes it.
    pub(crate) fn deliver(&mut self, place: usize, message: &[u8]) {
        let length = message.len().min(MAX_MESSAGE);
        self.mail[place][..length].copy_from_slice(&message[..length]);
        self.processes[place].mail_length = length;
        self.wake(place, Ok(()));
    }

    /// Keeps the message that the process that runs cannot send yet.
    pub(crate) fn keep(&mut self, message: &[u8]) {
        if let Some(place) = self.running {
            let length = message.len().min(MAX_MESSAGE);
            self.mail[place][..length].copy_from_slice(&message[..length]);
            self.processes[place].mail_length = length;
        }
    }

    /// Returns the process whose turn it is among those that wait for the same thing.
    pub(crate) fn first_waiter(&self, wait: Wait, discipline: QueuingDiscipline) -> Option<usize> {
        (0..self.count)
            .filter(|place| self.processes[*place].waits == wait)
            .min_by_key(|place| {
                let process = &self.processes[*place];
                let rank = match discipline {
                    QueuingDiscipline::Fifo => 0,
                    QueuingDiscipline::Priority => -process.priority,
                };
                (rank, process.waits_since)
            })
    }

    /// Returns the number of processes that wait for something.
    pub(crate) fn waiters(&self, wait: Wait) -> i32 {
        let waits = |process: &&Process| process.waits == wait;
        self.processes[..self.count].iter().filter(waits).count() as i32
    }
}
