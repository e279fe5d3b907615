// SPDX-License-Identifier: Apache-2.0
//! The switch between vCPUs of a pCPU.
//!
//! At any time at most one vCPU is *current* on a pCPU: its EL1 registers, timers and list registers are in
//! the hardware, whether it runs or not, and stay there over hypercalls and idle time. They move in two cases
//! only: another vCPU runs, or the kernel asks for something (reset, detach, fault) that is simpler done on
//! memory.

use crate::context::{
    Context, RARE_AARCH32, RARE_AUXILIARY, RARE_DEBUG, RARE_FROZEN, RARE_LATE, RARE_RAS, RARE_SERROR,
};
use crate::machine::Machine;
use crate::sysreg::{instruction, write_guest_register};
use crate::timer::Timers;
use crate::{gic, predictions, serror, space, state};
use bulkhead_arch_api::{MAX_PARTITIONS, VcpuId};

impl Context {
    /// Saves the registers that only a `rare` vCPU has.
    #[inline(never)]
    fn save_rare(&mut self) {
        if self.rare & RARE_FROZEN != 0 {
            self.timers.freeze();
        }
        if self.rare & RARE_DEBUG != 0 {
            self.debug.unload();
        }
        if self.rare & RARE_AARCH32 != 0 {
            self.banked.save();
        }
        if self.rare & RARE_AUXILIARY != 0 {
            self.auxiliary.save();
        }
        if self.rare & RARE_SERROR != 0 && !serror::virtual_is_pending() {
            self.drop_serror();
        }
    }

    /// Loads the registers that only a `rare` vCPU has.
    #[inline(never)]
    fn load_rare(&mut self) {
        if self.rare & RARE_FROZEN != 0 {
            self.timers.thaw();
        }
        if self.rare & RARE_DEBUG != 0 {
            self.debug.load();
        }
        if self.rare & RARE_AARCH32 != 0 {
            self.banked.load();
            write_guest_register!("cptr_el2", self.cptr);
        }
        if self.rare & RARE_AUXILIARY != 0 {
            self.auxiliary.load();
        }
        if self.rare & RARE_RAS != 0 {
            state::forget_deferred();
        }
        if self.rare & RARE_SERROR != 0 {
            serror::describe_virtual();
        }
    }
}

impl Machine {
    /// Runs `action` on the context of an adopted vCPU that is not current (any more).
    pub(crate) fn with_stored<R>(
        &mut self,
        vcpu: VcpuId,
        action: impl FnOnce(&mut Self, &mut Context) -> R,
    ) -> Option<R> {
        let context = self.adopted(vcpu)?;
        if self.current == context {
            self.unload();
        }
        // SAFETY: this pCPU claimed the slot in `adopt`, `&mut self` is the only handle of this pCPU,
        // and no other function of it holds a reference to a context while it calls this one.
        Some(action(self, unsafe { &mut *context }))
    }

    /// Makes `vcpu` the current one. Returns false if this CPU cannot run the vCPU, or must not enter it
    /// before its next exit. Nearly always the vCPU before was waiting and both have nothing unusual: that
    /// way is in one function without calls.
    #[inline(never)]
    pub(crate) fn switch_to(&mut self, vcpu: VcpuId, context: &mut Context) -> bool {
        let before = self.current;
        if before.is_null() {
            return self.load_fast(vcpu, context);
        }
        // SAFETY: `current` is the context of an adopted vCPU or null, and `context` is another one's; see
        // `with_stored`.
        let before = unsafe { &mut *before };
        match before.rare | context.rare {
            0 => {}
            RARE_RAS => state::forget_deferred(),
            _ => return self.switch_slowly(context),
        }
        if !gic::switch_fast(&mut self.irq, &mut before.irq, &mut context.irq, vcpu) {
            return self.switch_otherwise(context);
        }
        instruction!("dsb sy");
        // AArch32 is rare. The ISB that the look at SErrors needs is in `save`.
        before.el1.save(state::NO_WALKS);
        if serror::is_pending() {
            return self.switch_late(before, context);
        }
        self.finish_switch(before, context)
    }

    /// Does [`Machine::switch_to`] if one of the two, both with nothing unusual, has no virtual interrupts or
    /// no short way for them.
    #[inline(never)]
    fn switch_otherwise(&mut self, context: &mut Context) -> bool {
        // SAFETY: as in `switch_to`, which has found that it is not null, and does not use its reference any
        // more.
        let before = unsafe { &mut *self.current };
        if before.is_task() && context.is_task() {
            return self.switch_tasks(before, context);
        }
        self.switch_slowly(context)
    }

    /// Switches from one task to another one, both with nothing unusual. A task has no registers of EL1, no
    /// timers and no virtual interrupts. So HCR_EL2, these registers and the virtual interface stay as they
    /// are, and no walk of stage 1 could use the next task's space too early.
    #[inline(always)]
    fn switch_tasks(&mut self, before: &mut Context, context: &mut Context) -> bool {
        instruction!("dsb sy");
        instruction!("isb");
        if serror::is_pending() {
            serror::charge(before);
        }
        before.el1.exchange_task(&context.el1);
        self.current = context;
        let (space, cptr) = (context.space, context.cptr);
        write_guest_register!("cptr_el2", cptr);
        space::enter(space);
        self.forget_sibling(context);
        true
    }

    /// Does the rest of [`Machine::switch_to`] if the vCPU that leaves has caused an SError.
    #[cold]
    #[inline(never)]
    fn switch_late(&mut self, before: &mut Context, context: &mut Context) -> bool {
        serror::charge(before);
        self.finish_switch(before, context)
    }

    /// Does the rest of [`Machine::switch_to`]: the registers of EL1 are saved and translation is shut.
    #[inline(always)]
    fn finish_switch(&mut self, before: &mut Context, context: &mut Context) -> bool {
        Timers::switch(&mut before.timers, &context.timers);
        self.current = context;
        self.enter_space(context);
        context.el1.load();
        true
    }

    /// Does [`Machine::switch_to`] if no vCPU was current.
    #[inline(never)]
    fn load_fast(&mut self, vcpu: VcpuId, context: &mut Context) -> bool {
        if context.rare != 0 || !gic::load_fast(&mut self.irq, &mut context.irq, vcpu) {
            return self.switch_slowly(context);
        }
        self.current = context;
        self.enter_space(context);
        context.timers.load();
        context.el1.load();
        true
    }

    /// Does all work of [`Machine::switch_to`], also the unusual parts.
    #[inline(never)]
    fn switch_slowly(&mut self, context: &mut Context) -> bool {
        if context.is_aarch32() && !state::has_aarch32() {
            return false;
        }
        self.take_out();
        self.current = context;
        self.enter_space(context);
        gic::load(&mut self.irq, &mut context.irq);
        if context.rare != 0 {
            self.predictions
                .belong_to(context.plan.partition, predictions::forget);
            self.load_status(context);
            context.load_rare();
        }
        context.timers.load();
        context.el1.load();
        context.rare & RARE_LATE == 0
    }

    /// Loads the registers of EL2 that are the vCPU's.
    #[inline(always)]
    fn enter_space(&mut self, context: &Context) {
        let (hcr, vmpidr) = (context.hcr, context.vmpidr);
        let (space, cptr) = (context.space, context.cptr);
        write_guest_register!("hcr_el2", hcr);
        write_guest_register!("vmpidr_el2", vmpidr);
        write_guest_register!("cptr_el2", cptr);
        space::enter(space);
        self.forget_sibling(context);
    }

    /// Removes the TLB entries that another vCPU of the partition left. Two vCPUs of a partition may use the
    /// same ASIDs for different things, and on one pCPU they share a VMID (Arm DDI 0487 D8.13, "vCPU" TLB
    /// sharing).
    #[inline(always)]
    #[expect(clippy::indexing_slicing, reason = "a remainder is below the length")]
    fn forget_sibling(&mut self, context: &Context) {
        let partition = usize::from(context.plan.partition.0) % MAX_PARTITIONS;
        if self.last_index[partition] != context.plan.index {
            self.last_index[partition] = context.plan.index;
            instruction!("tlbi vmalle1");
            instruction!("ic iallu");
            // The exception return is the ISB for these invalidations.
            instruction!("dsb nsh");
        }
    }

    /// Takes the current vCPU's state out of the hardware.
    #[inline(never)]
    pub(crate) fn unload(&mut self) {
        self.take_out();
        gic::close();
    }

    /// Takes the current vCPU's state out of the hardware, before another vCPU becomes current.
    fn take_out(&mut self) {
        let context = core::mem::take(&mut self.current);
        if context.is_null() {
            return;
        }
        // SAFETY: `current` is the context of an adopted vCPU or null; see `with_stored`.
        let context = unsafe { &mut *context };
        instruction!("dsb sy");
        instruction!("isb");
        if serror::is_pending() {
            serror::charge(context);
        }
        gic::unload(&mut self.irq, &mut context.irq);
        context.timers.save();
        context.el1.save(state::NO_WALKS_AARCH32);
        if context.rare != 0 {
            context.save_rare();
            self.save_status(context);
        }
    }

    /// Handles an acknowledged interrupt that is about the list registers of the current vCPU while this vCPU
    /// does not run.
    pub(crate) fn answer(&mut self, line: u32) {
        let context = self.current;
        if context.is_null() {
            return;
        }
        // SAFETY: `current` is the context of an adopted vCPU or null; see `with_stored`.
        let context = unsafe { &mut *context };
        gic::answer(&mut self.irq, &mut context.irq, line);
    }
}
