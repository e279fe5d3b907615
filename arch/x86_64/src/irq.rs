// SPDX-License-Identifier: Apache-2.0
//! Interrupts: the kernel's requests about lines. `physical` has the controllers, and `switch` the way of a
//! vector that has interrupted.

use crate::board::hardware_id;
use crate::machine::Machine;
use crate::physical;
use bulkhead_arch_api::{Irqs, Line, LineRoute, PartitionId};

impl Irqs for Machine {
    fn route(&mut self, _line: Line, _partition: PartitionId, _route: LineRoute) {
        // No board of the class has a device that a partition can own yet; see docs/x86_64.md.
    }

    fn enable(&mut self, line: Line, edge: bool) {
        if let Some(target) = hardware_id(self.pcpu) {
            physical::enable(line.0, edge, target);
        }
    }

    fn disable(&mut self, line: Line) {
        physical::disable(line.0);
    }

    fn complete(&mut self, _line: Line) {
        physical::end();
    }
}
