// SPDX-License-Identifier: Apache-2.0
//! The switch from one vCPU to another.
//!
//! The Non-secure world stays with the VM that had it last, the *tenant*, until another VM runs. While a task
//! runs or the CPU waits, the tenant is *parked*: no exception of its world can be taken, and its lines
//! interrupt the hypervisor. So a switch between a task and a VM costs little, and a switch between two VMs
//! moves the whole world.

use crate::attribution::Attribution;
use crate::fp;
use crate::line_set::{Lines, WORDS, is_empty};
use crate::machine::Machine;
use crate::world::{LineState, World};
use crate::{passage, protection, sysreg};
use bulkhead_arch_api::{TimeMode, VcpuId};

/// No line.
const NO_LINES: Lines = [0; WORDS];

impl Machine {
    /// Parks the tenant, if it is not parked.
    pub(crate) fn park(&mut self) {
        if self.parked {
            return;
        }
        self.parked = true;
        let Some(context) = self.tenant.and_then(|tenant| self.contexts.get(tenant)) else {
            return;
        };
        context.world.primask = sysreg::primask();
        sysreg::set_primask(1);
        if self.irq.has_lines(context.partition) {
            self.lines_are_out = true;
            context.world.save_lines();
            let LineState { enabled, active, .. } = &context.world.lines;
            self.irq.take_back(context.partition, active);
            self.irq.watch(context.partition, enabled, active);
        }
    }

    /// Tells whether the tenant is not parked and has lines.
    pub(crate) fn tenant_has_lines(&mut self) -> bool {
        let tenant = self.tenant.filter(|_| !self.parked);
        let context = tenant.and_then(|tenant| self.contexts.get(tenant));
        context.is_some_and(|context| self.irq.has_lines(context.partition))
    }

    /// Lets the parked tenant run again.
    fn unpark(&mut self) {
        let Some(context) = self.tenant.and_then(|tenant| self.contexts.get(tenant)) else {
            return;
        };
        if self.lines_are_out {
            self.lines_are_out = false;
            self.irq
                .unwatch(context.partition, &mut context.world.lines.pending);
            self.irq.lend(context.partition);
            context.world.load_lines();
            // Cortex-M33, erratum 1435973: priorities may be wrong for a moment after such a change.
            sysreg::synchronize();
        }
        sysreg::set_primask(context.world.primask);
        self.parked = false;
        if self.is_closed
            && let Some(space) = self.spaces.get(context.partition)
        {
            self.is_closed = false;
            context.world.put_stacks();
            self.attribution.uncover(&space.share);
        }
    }

    /// Makes the memory of the tenant Secure, before a task runs.
    fn cover(&mut self) {
        let tenant = self.tenant.and_then(|tenant| self.contexts.get(tenant));
        if let Some(context) = tenant
            && let Some(space) = self.spaces.get(context.partition)
            && !self.is_closed
        {
            self.is_closed = true;
            context.world.take_stacks();
            self.attribution.cover(&space.share);
        }
    }

    /// Takes the world of the tenant out of the hardware. Afterwards the Non-secure world is as after a
    /// reset.
    pub(crate) fn evict(&mut self) {
        self.return_floats();
        self.park();
        let Some(tenant) = self.tenant.take() else { return };
        let Some(context) = self.contexts.get(tenant) else {
            return;
        };
        let Some(space) = self.spaces.get(context.partition) else {
            return;
        };
        self.attribution.close(&space.share);
        if core::mem::take(&mut self.is_closed) {
            context.world.put_stacks();
        }
        Attribution::open_block();
        if !self.lines_are_out {
            context.world.save_lines();
        }
        context.world.save(|| self.counter.read());
        context.world.take_late();
        context.own_faults = 0;
        if fp::exists() {
            context.fp.save();
        }
        World::clear();
        let partition = context.partition;
        let LineState { enabled, active, .. } = context.world.lines;
        if !is_empty(&active) {
            self.unwind(&active);
        }
        self.irq.take_back(partition, &NO_LINES);
        self.irq.watch(partition, &enabled, &NO_LINES);
        self.lines_are_out = false;
        Attribution::close_block();
    }

    /// Puts the world of a VM into the hardware, parked. Requires: no VM has it.
    fn move_in(&mut self, vcpu: VcpuId) {
        let Some(context) = self.contexts.get(vcpu) else {
            return;
        };
        let partition = context.partition;
        let active = context.world.lines.active;
        self.irq.unwatch(partition, &mut context.world.lines.pending);
        self.irq.lend(partition);
        Attribution::open_block();
        if !is_empty(&active) {
            sysreg::set_primask(0);
            self.rewind(&active);
            sysreg::set_primask(1);
        }
        if let Some(context) = self.contexts.get(vcpu) {
            // The note of room to be filled comes with the world, when no more instruction of ours can fill
            // it.
            if fp::exists() {
                context.fp.load();
            }
            context
                .world
                .load(self.counter.read(), context.time == TimeMode::Real);
            context.world.load_lines();
        }
        Attribution::close_block();
        if let Some(space) = self.spaces.get(partition) {
            self.attribution.open(&space.share);
        }
        self.tenant = Some(vcpu);
    }

    /// Makes a vCPU the one that runs next.
    pub(crate) fn switch_to(&mut self, vcpu: VcpuId) -> bool {
        self.settle_faults();
        let Some(context) = self.contexts.get(vcpu) else {
            return false;
        };
        let is_task = context.is_task();
        let Some(space) = self.spaces.get(context.partition) else {
            return false;
        };
        if is_task {
            protection::load(&space.share.stretches, &mut self.loaded);
            self.park();
            self.cover();
            self.show_floats(vcpu);
        } else {
            self.return_floats();
            if self.tenant != Some(vcpu) {
                self.evict();
                self.move_in(vcpu);
            }
            if self.parked {
                self.unpark();
            }
        }
        self.current = Some(vcpu);
        true
    }

    /// Makes lines pending again whose level a virtual device holds, unless their handler runs.
    pub(crate) fn raise_levels(&mut self, vcpu: VcpuId) {
        let Some(context) = self.contexts.get(vcpu) else {
            return;
        };
        if is_empty(&context.levels) {
            return;
        }
        let levels = context.levels;
        let active = passage::active();
        for ((word, level), active) in (0..).zip(levels).zip(active) {
            sysreg::other_space().write32(sysreg::NVIC_ISPR + 4 * word, level & !active);
        }
    }
}
