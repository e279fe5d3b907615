// SPDX-License-Identifier: Apache-2.0
//! The switch from one vCPU to another.
//!
//! At any time at most one vCPU is *current*: its translations are in the buffer, whether it runs or not.

use crate::machine::Machine;
use bulkhead_arch_api::{Ticks, VcpuId};

impl Machine {
    /// Makes a vCPU the current one. False if it was not adopted, or its partition has no space.
    pub(crate) fn switch_to(&mut self, vcpu: VcpuId) -> bool {
        let Some((context, space, buffer)) = self.guest(vcpu) else {
            return false;
        };
        buffer.clear();
        buffer.keep_direct(!context.is_task());
        context.short.main = space.main();
        let changes = &mut context.cpu.changes;
        (changes.mode, changes.visible) = (true, true);
        self.current = Some(vcpu);
        // The timer is set again, for whichever time it is set now.
        self.armed = Ticks(0);
        true
    }
}
