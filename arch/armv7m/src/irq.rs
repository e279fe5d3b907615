// SPDX-License-Identifier: Apache-2.0
//! Interrupts: the kernel's requests about lines, and the way of a line that has interrupted.

use crate::lines::{Route, bit, strike};
use crate::machine::Machine;
use crate::starts;
use crate::sysreg::{MAX_LINES, NVIC_ICER};
use bulkhead_arch_api::{Exit, Irqs, Line, LineRoute, PartitionId, VcpuSet};
use core::num::NonZeroU32;

impl Machine {
    /// Forgets everything about a partition's lines, when the partition starts anew or has ended.
    pub(crate) fn forget_lines(&mut self, partition: PartitionId) {
        self.irq.reset(partition);
        if let Some(held) = self.held.get_mut(usize::from(partition.0)) {
            *held = None;
        }
    }

    /// Handles a line that has interrupted, or was found pending. Tells whether this concerns the kernel: if
    /// so, the machine's exit says how.
    pub(crate) fn interrupt(&mut self, line: u32) -> bool {
        if line == self.timer_line {
            self.timer_fired();
            self.exit = Exit::Deadline;
            return self.take_deadline();
        }
        if line < MAX_LINES && self.irq.own & bit(line) != 0 {
            if self.irq.shared & bit(line) != 0 {
                self.irq.held |= bit(line);
                self.irq.apply();
            } else {
                strike(NVIC_ICER, line);
            }
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
        self.settle_early(vcpu);
        if let Some(context) = self.contexts.get(vcpu) {
            // The line is pulsed for a level, too: the level is looked at again when the handler has ended.
            context.core.pulse_line(route.virtual_line);
        }
        let is_running = self.runs && self.current == Some(vcpu);
        if let Some(latency) = route.latency {
            self.hold(route.partition, line, latency);
        }
        self.exit = Exit::Device(VcpuSet::of(vcpu), Line(line));
        route.critical || !is_running
    }
}

impl Irqs for Machine {
    fn route(&mut self, line: Line, partition: PartitionId, route: LineRoute) {
        let is_early = starts::IS_THERE && route.early;
        if let Some(slot) = self.irq.routes.get_mut(line.0 as usize) {
            *slot = Some(Route {
                partition,
                virtual_line: route.virtual_line.0 as u8,
                edge: route.edge,
                critical: route.critical,
                latency: NonZeroU32::new(route.latency.0 as u32).filter(|_| !is_early),
            });
            if route.latency.0 != 0 {
                self.irq.prompt |= bit(line.0);
            }
            if is_early {
                starts::limit(route.latency);
            }
            if let Some(lines) = self.irq.of.get_mut(usize::from(partition.0)) {
                *lines |= bit(line.0);
            }
        }
    }

    fn enable(&mut self, line: Line, _edge: bool) {
        self.irq.own(line.0);
    }

    fn share(&mut self, line: Line, partitions: u32) {
        self.irq.share(line.0, partitions);
    }

    fn disable(&mut self, line: Line) {
        strike(NVIC_ICER, line.0);
    }

    fn admit(&mut self, vcpus: VcpuSet) {
        if vcpus == self.admitted {
            return;
        }
        self.admitted = vcpus;
        let mut admitted = 0;
        for (vcpu, lines) in self.first.iter().zip(&self.irq.of) {
            if vcpu.is_some_and(|vcpu| vcpus.contains(vcpu)) {
                admitted |= lines;
            }
        }
        self.irq.admit(admitted);
    }

    fn complete(&mut self, line: Line) {
        self.irq.complete(line.0);
    }
}
