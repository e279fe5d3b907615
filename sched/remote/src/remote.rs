// SPDX-License-Identifier: Apache-2.0
//! The side of the host tool: a policy that is in another program.

use crate::ERRORS;
use bulkhead_sched::{
    Decision, Policy, PolicyError, Signals, Slot, SlotSet, StopReason, Ticks, VcpuParameters,
};
use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::io::{BufRead, Write};
use std::rc::Rc;

/// Most decisions at one moment of time. A policy with more never lets time pass.
const DECISIONS_MAX: u32 = 100_000;

/// A program that answers for policies.
pub struct Server {
    to: RefCell<Box<dyn Write>>,
    from: RefCell<Box<dyn BufRead>>,
    /// Requests that are not sent yet: none of them wants an answer.
    unsent: RefCell<String>,
    failure: RefCell<Option<String>>,
}

impl Server {
    /// Returns the server that reads from `to` and writes to `from`.
    pub fn new(to: impl Write + 'static, from: impl BufRead + 'static) -> Rc<Self> {
        Rc::new(Self {
            to: RefCell::new(Box::new(to)),
            from: RefCell::new(Box::new(from)),
            unsent: RefCell::default(),
            failure: RefCell::default(),
        })
    }

    /// Returns what went wrong first. All decisions after that are to idle for ever.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.failure.borrow().clone()
    }

    fn fail(&self, why: &str) {
        self.failure.borrow_mut().get_or_insert_with(|| why.to_owned());
    }

    /// Notes a request.
    fn tell(&self, word: &str, numbers: &[u64]) {
        let mut unsent = self.unsent.borrow_mut();
        unsent.push_str(word);
        for number in numbers {
            let _ = write!(unsent, " {number}");
        }
        unsent.push('\n');
    }

    /// Sends a request, after those that are not sent yet, and returns the answer. There is none after a
    /// failure.
    fn ask(&self, word: &str, numbers: &[u64]) -> Option<String> {
        if self.failure.borrow().is_some() {
            return None;
        }
        self.tell(word, numbers);
        let text = std::mem::take(&mut *self.unsent.borrow_mut());
        let mut to = self.to.borrow_mut();
        let sent = to.write_all(text.as_bytes()).and_then(|()| to.flush());
        let mut line = String::new();
        let read = sent.and_then(|()| self.from.borrow_mut().read_line(&mut line));
        match read {
            Ok(length) if length != 0 => Some(line.trim_end().to_owned()),
            _ => {
                self.fail("it ended");
                None
            }
        }
    }

    /// Returns the number in an answer, or the error.
    fn number(&self, word: &str, numbers: &[u64]) -> Result<u64, PolicyError> {
        let answer = self.ask(word, numbers).unwrap_or_default();
        answer.parse().map_err(|_| {
            let mut errors = ERRORS.iter();
            let found = errors.find(|(_, word)| *word == answer);
            found.map_or(PolicyError::NotSupported, |(error, _)| *error)
        })
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

/// A policy in another program, with donation around it.
#[derive(Debug)]
pub struct Remote {
    server: Rc<Server>,
    number: u64,
    /// The slots that exist.
    all: u32,
    /// The slots that are ready, as the kernel counts them.
    ready: u32,
    interested: SlotSet,
    signals: Signals,
    /// The moment of the last decision, and the number of decisions at that moment.
    moment: Cell<(Ticks, u32)>,
}

impl Remote {
    /// Returns the policy of a pCPU with these vCPUs, slot 0 first, and this quantum.
    ///
    /// # Errors
    /// The error of the policy. [`Server::failure`] says whether the program is there at all.
    pub fn new(server: Rc<Server>, vcpus: &[VcpuParameters], quantum: Ticks) -> Result<Self, PolicyError> {
        let mut numbers = vec![quantum];
        for vcpu in vcpus {
            let (budget, period) = vcpu
                .server
                .map_or((0, 0), |server| (server.budget, server.period));
            numbers.extend([vcpu.priority.into(), budget, period, vcpu.deadline]);
        }
        let number = server.number("new", &numbers)?;
        Ok(Self {
            server,
            number,
            all: ((1_u64 << vcpus.len().min(32)) - 1) as u32,
            ready: 0,
            interested: SlotSet(0),
            signals: Signals::default(),
            moment: Cell::new((0, 0)),
        })
    }

    fn tell(&self, word: &str, slot: Slot, numbers: [Ticks; 2], count: usize) {
        let all = [self.number, slot.0.into(), numbers[0], numbers[1]];
        self.server.tell(word, &all[..2 + count]);
    }

    /// Counts the decisions at one moment.
    fn count(&self, now: Ticks) {
        let (moment, count) = self.moment.get();
        let count = if moment == now { count + 1 } else { 0 };
        self.moment.set((now, count));
        if count > DECISIONS_MAX {
            self.server
                .fail("it decides at one moment again and again, and never lets time pass");
        }
    }

    fn set(&mut self, slot: Slot, is_ready: bool) {
        let bit = 1_u32.checked_shl(slot.0.into()).unwrap_or(0) & self.all;
        if is_ready {
            self.ready |= bit;
        } else {
            self.ready &= !bit;
        }
    }

    fn is_ready(&self, slot: Slot) -> bool {
        self.ready.checked_shr(slot.0.into()).unwrap_or(0) & 1 != 0
    }
}

impl Clone for Remote {
    fn clone(&self) -> Self {
        let number = self.server.number("copy", &[self.number]).unwrap_or(0);
        Self {
            server: Rc::clone(&self.server),
            number,
            moment: self.moment.clone(),
            ..*self
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.server.tell("drop", &[self.number]);
    }
}

impl Policy for Remote {
    fn ready(&mut self, slot: Slot, now: Ticks) {
        self.tell("ready", slot, [now, 0], 1);
        self.set(slot, true);
    }

    fn critical(&mut self, slot: Slot, now: Ticks) {
        self.tell("critical", slot, [now, 0], 1);
        self.set(slot, true);
    }

    fn stopped(&mut self, slot: Slot, why: StopReason, ran: Ticks, now: Ticks) {
        let word = match why {
            StopReason::Preempted => "preempted",
            StopReason::Yielded => "yielded",
            StopReason::Blocked => {
                self.set(slot, false);
                "blocked"
            }
        };
        self.tell(word, slot, [ran, now], 2);
    }

    fn withdraw(&mut self, slot: Slot, now: Ticks) {
        self.tell("withdraw", slot, [now, 0], 1);
        self.set(slot, false);
    }

    /// Returns a decision that the kernel would stand by: a slot that is ready runs, or none does.
    fn next(&mut self, now: Ticks) -> Decision {
        self.count(now);
        let answer = self.server.ask("next", &[self.number, now]).unwrap_or_default();
        let numbers: Vec<u64> = answer.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [slot, until, interested, exhausted, replenished, window, period] = numbers[..] else {
            self.server.fail("its answer is not one");
            self.interested = SlotSet(0);
            return Decision::Idle(Ticks::MAX);
        };
        let own = |slots: u64| SlotSet(slots as u32 & self.all);
        self.interested = own(interested);
        self.signals = Signals {
            exhausted: own(exhausted),
            replenished: own(replenished),
            window_start: own(window),
            period_start: own(period),
            schedule_changed: false,
        };
        let slot = Slot(u8::try_from(slot).unwrap_or(u8::MAX));
        if self.is_ready(slot) {
            Decision::Run(slot, until)
        } else {
            Decision::Idle(until)
        }
    }

    fn ready_slots(&self) -> SlotSet {
        let slots = self.server.number("slots", &[self.number]);
        SlotSet(slots.unwrap_or(0) as u32)
    }

    fn interested(&self) -> SlotSet {
        self.interested
    }

    fn signals(&mut self) -> Signals {
        std::mem::take(&mut self.signals)
    }

    fn check_donation(&self, from: Slot, to: Slot) -> Result<(), PolicyError> {
        let numbers = [self.number, from.0.into(), to.0.into()];
        self.server.number("check-donation", &numbers).map(drop)
    }

    fn donate(&mut self, from: Slot, to: Slot, now: Ticks) -> Result<(), PolicyError> {
        let numbers = [self.number, from.0.into(), to.0.into(), now];
        self.server.number("donate", &numbers).map(drop)
    }

    fn return_donation(&mut self, from: Slot, now: Ticks) -> Result<(), PolicyError> {
        let numbers = [self.number, from.0.into(), now];
        self.server.number("return-donation", &numbers)?;
        self.set(from, true);
        Ok(())
    }

    fn retract_donation(&mut self, from: Slot, now: Ticks) -> Result<(), PolicyError> {
        let numbers = [self.number, from.0.into(), now];
        self.server.number("retract-donation", &numbers).map(drop)
    }
}
