// SPDX-License-Identifier: Apache-2.0
//! Interrupts: the kernel's requests about lines, and the way of a line that has interrupted.

use crate::line_set::{Lines, WORDS, has};
use crate::lines::{Route, strike};
use crate::machine::Machine;
use crate::sysreg::{self, NVIC_ICER, NVIC_ICPR, NVIC_ISER};
use bulkhead_abi::parts::{PARTS, Part};
use bulkhead_arch_api::{Exit, Irqs, Line, LineRoute, PartitionId, VcpuSet};

/// True if lines of others than the hypervisor open after an interrupt that was masked.
const HAS_OTHERS: bool = PARTS.has(Part::TaskLines) || PARTS.has(Part::Lent);

impl Machine {
    /// Handles a Secure line that has interrupted, or was found pending. Tells whether this concerns the
    /// kernel: if so, the machine's exit says how.
    pub(crate) fn interrupt(&mut self, line: u32) -> bool {
        if line == self.timer_line {
            self.exit = Exit::Deadline;
            return self.timer_fired();
        }
        if self.pair.first().is_some_and(|pair| pair.line == line) {
            self.exit = Exit::Signal;
            return self.called();
        }
        if has(&self.irq.own, line) {
            strike(NVIC_ICER, line);
            self.exit = Exit::Interrupt(Line(line));
            return true;
        }
        let Some(route) = self.irq.route_of(line) else {
            return false;
        };
        self.irq.hold(line);
        let Some(vcpu) = self.first_of(route.partition) else {
            return false;
        };
        let is_running = self.runs && self.current == Some(vcpu);
        self.exit = Exit::Device(VcpuSet::of(vcpu), Line(line));
        route.critical || !is_running
    }
}

impl Irqs for Machine {
    fn route(&mut self, line: Line, partition: PartitionId, route: LineRoute) {
        let critical = route.critical;
        self.irq.give(line.0, Route { partition, critical });
    }

    /// Opens a line. A level that is high when the handler of the line ends makes the masked line pending.
    /// The device has been served since, so that is forgotten. A level that is still high keeps the line
    /// pending (Arm DDI 0553B, R_CVJS).
    fn enable(&mut self, line: Line, edge: bool) {
        if HAS_OTHERS && !edge {
            strike(NVIC_ICPR, line.0);
        }
        self.irq.own(line.0);
    }

    fn disable(&mut self, line: Line) {
        strike(NVIC_ICER, line.0);
    }

    fn admit(&mut self, vcpus: VcpuSet) {
        if vcpus == self.admitted {
            return;
        }
        self.admitted = vcpus;
        let mut admitted: Lines = [0; WORDS];
        for (vcpu, lines) in self.first.iter().zip(&self.irq.of) {
            if vcpu.is_some_and(|vcpu| vcpus.contains(vcpu)) {
                for (word, lines) in admitted.iter_mut().zip(lines) {
                    *word |= lines;
                }
            }
        }
        self.irq.admit(admitted);
        // Cortex-M33, erratum 1435973, as in `unpark`.
        sysreg::synchronize();
    }

    /// Opens the line again. The line of a UART that still has a byte is pending by itself: its level is high
    /// when its handler ends.
    fn complete(&mut self, line: Line) {
        strike(NVIC_ISER, line.0);
    }
}
