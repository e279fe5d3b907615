// SPDX-License-Identifier: Apache-2.0
//! Interrupts: the kernel's requests about lines. `gic` has the controllers, and the way of a line that has
//! interrupted.

use crate::gic;
use crate::machine::Machine;
use bulkhead_arch_api::{Irqs, Line, LineRoute, PartitionId};

impl Irqs for Machine {
    fn route(&mut self, line: Line, partition: PartitionId, route: LineRoute) {
        gic::route(&mut self.irq, line, partition, route);
    }

    fn enable(&mut self, line: Line, edge: bool) {
        gic::enable(&mut self.irq, line, edge);
    }

    fn disable(&mut self, line: Line) {
        gic::disable(&mut self.irq, line);
    }

    fn complete(&mut self, line: Line) {
        gic::complete(&mut self.irq, line);
    }
}
