// SPDX-License-Identifier: Apache-2.0
//! The policies of a system's pCPUs for simulations: ours, and the user's own in a program of its own.

use crate::build::artifacts::Workspace;
use crate::build::own_policy::OwnCrate;
use crate::problem::Problem;
use crate::ui::progress::Progress;
use bulkhead_manifest::timing::PcpuTiming;
use bulkhead_manifest::{Policy as Kind, System};
use bulkhead_remote_policy::{Remote, Server};
use bulkhead_sched::{AnyPolicy, Either};
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

/// The policy of a pCPU: one of ours, or the user's own.
pub type SystemPolicy = Either<AnyPolicy, Remote>;
