// SPDX-License-Identifier: Apache-2.0
//! The policies of a system's pCPUs for simulations: ours, and the user's own in a program of its own.

use crate::build::artifacts::Workspace;
use crate::build::own_policy::OwnCrate;
use crate::problem::Problem;
use crate::ui::progress::Progress;
use bulkhead_manifest::timing::PcpuTiming;
use bulkhead_manifest::{Policy as Kind, System};
use bulkhead_remote_policy::{Remote, Server};
use bulkhead_sched::{
    AnyPolicy, Decision, Policy, PolicyError, ScheduleStatus, Signals, Slot, SlotSet, StopReason, Ticks,
};
use std::cell::RefCell;
use std::io::{BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;

/// The policies of a system.
#[derive(Debug, Default)]
pub struct Policies(Option<Own>);

/// The program with the user's own policy.
#[derive(Debug)]
struct Own {
    name: String,
    server: Rc<Server>,
    program: RefCell<Child>,
}

impl Policies {
    /// Returns the policies of a system whose manifest is in `folder`. Builds and starts the program with the
    /// user's own policy, if the system has one.
    ///
    /// # Errors
    /// The crate of the policy cannot be built, with the message of the compiler.
    pub fn of(system: &System, folder: &Path, progress: &Progress) -> Result<Self, Problem> {
        let Some(own) = OwnCrate::of(system, folder)? else {
            return Ok(Self(None));
        };
        let program = Workspace::locate()?.simulator_of(&own, progress)?;
        let mut child = Command::new(&program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(Problem::io(program.display()))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (to, from) = pipes.ok_or_else(|| Problem::new("the program has no pipes"))?;
        Ok(Self(Some(Own {
            name: own.name().to_owned(),
            server: Server::new(to, BufReader::new(from)),
            program: RefCell::new(child),
        })))
    }

    /// Returns the policy of a pCPU, with the schedule of this number to begin with.
    ///
    /// # Errors
    /// The policy refuses its parameters, or its program has ended.
    pub fn policy(&self, pcpu: &PcpuTiming, schedule: u8) -> Result<SystemPolicy, Problem> {
        let made = match &self.0 {
            Some(own) if pcpu.policy == Kind::Own => {
                let vcpus: Vec<_> = pcpu.vcpus.iter().map(|vcpu| vcpu.parameters).collect();
                Remote::new(Rc::clone(&own.server), &vcpus, pcpu.quantum).map(SystemPolicy::Own)
            }
            _ => pcpu.policy(schedule).map(SystemPolicy::from),
        };
        self.check()?;
        made.map_err(|error| {
            Problem::new(format!(
                "pCPU {}: the policy refuses its parameters: {error:?}",
                pcpu.number
            ))
        })
    }

    /// Checks that the program with the user's own policy did its work.
    ///
    /// # Errors
    /// It did not, because of this.
    pub fn check(&self) -> Result<(), Problem> {
        let Some((own, why)) = self.0.as_ref().and_then(|own| Some((own, own.server.failure()?))) else {
            return Ok(());
        };
        let mut said = String::new();
        let mut program = own.program.borrow_mut();
        let _ = program.kill();
        if let Some(errors) = &mut program.stderr {
            // The tool has no use for bytes that are no text.
            let _ = errors.read_to_string(&mut said);
        }
        let said = said.trim();
        let said = if said.is_empty() {
            String::new()
        } else {
            format!(":\n{said}")
        };
        Err(Problem::new(format!("own policy `{}`: {why}{said}", own.name))
            .remedy("on a board, the hypervisor would stop here: mend the crate"))
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let mut program = self.program.borrow_mut();
        // It may have ended.
        let _ = program.kill();
        let _ = program.wait();
    }
}

/// The policy of a pCPU.
#[derive(Clone, Debug)]
pub enum SystemPolicy {
    /// One of ours.
    Ours(Box<AnyPolicy>),
    /// The user's own.
    Own(Remote),
}

impl From<AnyPolicy> for SystemPolicy {
    fn from(policy: AnyPolicy) -> Self {
        Self::Ours(Box::new(policy))
    }
}

/// Calls the policy, whichever it is.
macro_rules! either {
    ($self:expr, $policy:ident => $call:expr) => {
        match $self {
            Self::Ours($policy) => $call,
            Self::Own($policy) => $call,
        }
    };
}

impl Policy for SystemPolicy {
    fn ready(&mut self, slot: Slot, now: Ticks) {
        either!(self, policy => policy.ready(slot, now));
    }

    fn critical(&mut self, slot: Slot, now: Ticks) {
        either!(self, policy => policy.critical(slot, now));
    }

    fn stopped(&mut self, slot: Slot, why: StopReason, ran: Ticks, now: Ticks) {
        either!(self, policy => policy.stopped(slot, why, ran, now));
    }

    fn withdraw(&mut self, slot: Slot, now: Ticks) {
        either!(self, policy => policy.withdraw(slot, now));
    }

    fn next(&mut self, now: Ticks) -> Decision {
        either!(self, policy => policy.next(now))
    }

    fn ready_slots(&self) -> SlotSet {
        either!(self, policy => policy.ready_slots())
    }

    fn interested(&self) -> SlotSet {
        either!(self, policy => policy.interested())
    }

    fn signals(&mut self) -> Signals {
        either!(self, policy => policy.signals())
    }

    fn has_signals(&self) -> bool {
        either!(self, policy => policy.has_signals())
    }

    fn check_donation(&self, from: Slot, to: Slot) -> Result<(), PolicyError> {
        either!(self, policy => policy.check_donation(from, to))
    }

    fn donate(&mut self, from: Slot, to: Slot, now: Ticks) -> Result<(), PolicyError> {
        either!(self, policy => policy.donate(from, to, now))
    }

    fn return_donation(&mut self, from: Slot, now: Ticks) -> Result<(), PolicyError> {
        either!(self, policy => policy.return_donation(from, now))
    }

    fn retract_donation(&mut self, from: Slot, now: Ticks) -> Result<(), PolicyError> {
        either!(self, policy => policy.retract_donation(from, now))
    }

    fn change_schedule(&mut self, schedule: u8, now: Ticks) -> Result<(), PolicyError> {
        either!(self, policy => policy.change_schedule(schedule, now))
    }

    fn schedule(&self) -> ScheduleStatus {
        either!(self, policy => policy.schedule())
    }
}
