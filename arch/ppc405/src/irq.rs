// SPDX-License-Identifier: Apache-2.0
//! Interrupts: the kernel's requests about lines, and the way of a line that has interrupted.
//!
//! A line that has interrupted is masked. One of the hypervisor's own is enabled again when the kernel has
//! completed it; one of a partition when the guest has cleared it in its own controller.

use crate::lines::{LINES, Route, bit};
use crate::machine::Machine;
use crate::sysreg::{self, UIC_MASKED_STATUS, UIC_STATUS};
use bulkhead_arch_api::{Exit, Irqs, Line, LineRoute, PartitionId, VcpuSet};

impl Machine {
    /// Forgets everything about a partition's lines, when the partition starts anew or has ended. At most 32
    /// steps.
    pub(crate) fn forget_lines(&mut self, partition: PartitionId) {
        for line in 0..LINES as u32 {
            if self
                .lines
                .route_of(line)
                .is_some_and(|route| route.partition == partition)
            {
                self.lines.held &= !bit(line);
            }
        }
        self.lines.apply();
    }

    /// Lets the lines of the current guest interrupt again that it has cleared. At most 32 steps.
    pub(crate) fn release_lines(&mut self, partition: PartitionId) {
        let mut rest = self.lines.held;
        while rest != 0 {
            let line = rest.leading_zeros();
            rest &= !bit(line);
            let Some(route) = self
                .lines
                .route_of(line)
                .filter(|route| route.partition == partition)
            else {
                continue;
            };
            let vcpu = self.first_of(partition);
            let context = vcpu.and_then(|vcpu| self.contexts.get(vcpu));
            if context.is_some_and(|context| !context.cpu.uic.is_pending(route.virtual_line.into())) {
                sysreg::write_dcr::<UIC_STATUS>(bit(line));
                self.lines.held &= !bit(line);
                self.lines.apply();
            }
        }
    }

    /// Tells whether lines wait for their guests.
    #[inline]
    pub(crate) fn holds_lines(&self) -> bool {
        self.lines.held != 0
    }

    /// Handles the first line that is pending. Tells whether this concerns the kernel: if so, the machine's
    /// exit says how.
    pub(crate) fn interrupt(&mut self) -> bool {
        let line = sysreg::read_dcr::<UIC_MASKED_STATUS>().leading_zeros();
        let Some(route) = self.lines.route_of(line) else {
            self.lines.enabled &= !bit(line);
            self.lines.apply();
            self.exit = Exit::Interrupt(Line(line));
            return bit(line) != 0;
        };
        self.lines.held |= bit(line);
        self.lines.apply();
        let Some(vcpu) = self.first_of(route.partition) else {
            return false;
        };
        if let Some(context) = self.contexts.get(vcpu) {
            context.cpu.uic.pulse_line(route.virtual_line.into());
        }
        let is_running = self.runs && self.current == Some(vcpu);
        self.exit = Exit::Device(VcpuSet::of(vcpu), Line(line));
        route.is_critical || !is_running
    }

    /// Tells whether a line is pending.
    pub(crate) fn has_interrupt() -> bool {
        sysreg::read_dcr::<UIC_MASKED_STATUS>() != 0
    }
}

impl Irqs for Machine {
    fn route(&mut self, line: Line, partition: PartitionId, route: LineRoute) {
        if let Some(slot) = self.lines.routes.get_mut(line.0 as usize) {
            *slot = Some(Route {
                partition,
                virtual_line: route.virtual_line.0 as u8,
                is_critical: route.critical,
            });
            self.lines.enabled |= bit(line.0);
            self.lines.apply();
        }
    }

    fn enable(&mut self, line: Line, _edge: bool) {
        self.lines.enabled |= bit(line.0);
        self.lines.apply();
    }

    fn disable(&mut self, line: Line) {
        self.lines.enabled &= !bit(line.0);
        self.lines.apply();
    }

    fn complete(&mut self, line: Line) {
        sysreg::write_dcr::<UIC_STATUS>(bit(line.0));
        self.lines.enabled |= bit(line.0);
        self.lines.apply();
    }
}
