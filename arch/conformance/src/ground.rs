// SPDX-License-Identifier: Apache-2.0
//! The ground of the checks: partitions that are built once and vCPUs that are started again and again.

use crate::{At, Bench, Outcome, PATIENCE, Role, Space, Step};
use bulkhead_arch_api::{Clock, Exit, GuestPhys, Irqs, Reply, SpacePlan, Spaces, VcpuPlan, Vcpus};

/// The bench, and what has been done on it for good.
#[derive(Debug)]
pub struct Ground<'b, B> {
    pub(crate) bench: &'b mut B,
    /// Roles whose space is built, and whose vCPU is adopted, as bitmaps.
    built: u8,
    adopted: u8,
}

impl<'b, B: Bench> Ground<'b, B> {
    pub(crate) const fn new(bench: &'b mut B) -> Self {
        Self {
            bench,
            built: 0,
            adopted: 0,
        }
    }

    pub(crate) fn machine(&mut self) -> &mut B::Machine {
        self.bench.machine()
    }

    pub(crate) fn space(&self, role: Role) -> Space {
        self.bench.space(role)
    }

    pub(crate) fn address(&self, role: Role, at: At) -> GuestPhys {
        self.bench.address(role, at)
    }

    /// Gives the role's partition its space.
    pub(crate) fn build(&mut self, role: Role) -> Outcome {
        let bit = 1 << role as u8;
        if self.built & bit != 0 {
            return Ok(());
        }
        let space = self.bench.space(role);
        let (devices, lines) = match self.bench.controller() {
            Some((windows, lines)) => (Some(windows), lines),
            None => (None, 0),
        };
        let with_program = [space.ram, space.constant, space.program.unwrap_or(space.ram)];
        let count = 2 + usize::from(space.program.is_some());
        let regions = with_program.get(..count).unwrap_or(&with_program);
        self.machine()
            .build(
                role.partition(),
                &SpacePlan { regions, lines },
                devices.into_iter().flatten(),
            )
            .map_err(|_| "a good space was refused")?;
        self.built |= bit;
        Ok(())
    }

    /// Gives the role's partition its space, and starts its vCPU with a program, as the kernel starts it
    /// anew.
    pub(crate) fn start(&mut self, role: Role, steps: &'static [Step]) -> Outcome {
        self.build(role)?;
        let bit = 1 << role as u8;
        if self.adopted & bit == 0 {
            let plan = VcpuPlan {
                partition: role.partition(),
                kind: role.kind(),
                first: role.vcpu(),
                ..VcpuPlan::BLANK
            };
            self.machine().adopt(role.vcpu(), &plan);
            self.adopted |= bit;
        } else {
            self.machine().detach(role.vcpu());
        }
        self.reset_all_shared(role);
        self.reset(role, steps);
        Ok(())
    }

    /// Resets what the vCPUs share, in as many parts as the backend likes.
    pub(crate) fn reset_all_shared(&mut self, role: Role) {
        let mut part = Some(0);
        while let Some(at) = part {
            part = self.machine().reset_shared(role.partition(), at);
        }
    }

    /// Resets the vCPU, with a program.
    pub(crate) fn reset(&mut self, role: Role, steps: &'static [Step]) {
        let reset = self.bench.load(role, steps);
        self.machine().reset(role.vcpu(), &reset);
    }

    /// Runs the vCPU until it exits for a reason of its own.
    pub(crate) fn run(&mut self, role: Role) -> Result<Exit, &'static str> {
        for _ in 0..PATIENCE {
            match self.machine().run(role.vcpu()) {
                Exit::Interrupt(line) => self.machine().complete(line),
                Exit::Deadline => self.machine().disarm(),
                Exit::Signal | Exit::Wake(_) | Exit::Device(..) => {}
                own => return Ok(own),
            }
        }
        Err("the vCPU never exits")
    }

    pub(crate) fn reply(&mut self, role: Role, reply: Reply) {
        self.machine().reply(role.vcpu(), reply);
    }
}
