// SPDX-License-Identifier: Apache-2.0
//! Interrupts of devices that belong to tasks, on classes that map such devices.
//!
//! **Model.** A task has no interrupt controller, so an interrupt of its device is an event at its gate. The
//! interrupt masks the line. The line opens again when the task waits for events, because the task has served
//! its devices by then. So a device that interrupts all the time costs the others one short exit for each
//! wait of its task.
//!
//! **None is lost.** The line is a level: a device that was not served makes an interrupt as soon as the line
//! opens. Before the first wait of a life, and after the end of one, the lines are masked.
//!
//! **Work bounds.** A wait of a task, and the end of a partition, look at each interrupt of the image once.

use crate::dispatch::Pcpu;
use crate::parts::{PartOf, Rest, TASK_LINES};
use bulkhead_arch_api::{Arch, Drivers, Line, PartitionId, PartitionKind, VcpuId};
use bulkhead_image::layout::{InterruptRecord, TRIGGER_EDGE};
use bulkhead_sched::{PcpuPolicy, Slot};

/// The lines of tasks, on a pCPU.
pub(crate) struct TaskLines<'p, 's, 'i, A: Arch, D, P> {
    pcpu: &'p mut Pcpu<'s, 'i, A, D, P>,
}

impl<'s, 'i, A: Arch, D: Drivers, P: PcpuPolicy> Pcpu<'s, 'i, A, D, P> {
    /// Returns the lines of tasks with their pCPU.
    #[inline(always)]
    pub(crate) const fn task_lines(&mut self) -> TaskLines<'_, 's, 'i, A, D, P> {
        TaskLines { pcpu: self }
    }
}

fn owner_of(record: &InterruptRecord) -> PartitionId {
    PartitionId(record.partition.get() as u8)
}

impl<A: Arch, D: Drivers, P: PcpuPolicy> TaskLines<'_, '_, '_, A, D, P> {
    fn is_task(&self, partition: PartitionId) -> bool {
        self.pcpu.system.facts_of(partition).kind == PartitionKind::Task
    }

    /// Opens or masks the lines of a partition, if it is a task.
    #[inline(never)]
    fn set_lines(&mut self, partition: PartitionId, are_open: bool) {
        if !self.is_task(partition) {
            return;
        }
        let interrupts = self.pcpu.system.image.interrupts().iter();
        for record in interrupts.filter(|record| owner_of(record) == partition) {
            let line = Line(record.line.get());
            if are_open {
                self.pcpu
                    .machine
                    .enable(line, record.trigger.get() == TRIGGER_EDGE);
            } else {
                self.pcpu.machine.disable(line);
            }
        }
    }
}

impl<A: Arch, D: Drivers, P: PcpuPolicy> PartOf for TaskLines<'_, '_, '_, A, D, P> {
    const IS_THERE: bool = TASK_LINES && A::CAPS.guards_memory();

    #[inline(always)]
    fn life_ended(&mut self, partition: PartitionId) {
        self.set_lines(partition, false);
    }

    #[inline(always)]
    fn vcpu_is_quiet(&mut self, _slot: Slot, vcpu: VcpuId) {
        self.set_lines(self.pcpu.system.binding(vcpu).partition, true);
    }

    #[inline(always)]
    fn take_interrupt(&mut self, line: Line) -> Rest {
        let mut interrupts = self.pcpu.system.image.interrupts().iter();
        let of_line = interrupts.find(|record| record.line.get() == line.0);
        let Some(record) = of_line.filter(|record| self.is_task(owner_of(record))) else {
            return Rest::Others;
        };
        self.pcpu.machine.disable(line);
        let event = 1_u64.wrapping_shl(record.virtual_line.get());
        self.pcpu.raise(owner_of(record), event);
        Rest::Masked
    }
}
