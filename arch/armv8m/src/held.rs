// SPDX-License-Identifier: Apache-2.0
//! Memory that a partition holds. A task gets a region of the Secure protection unit. A VM gets blocks and a
//! region of the SAU with the rest of its memory, each time that it runs.

use crate::machine::Machine;
use crate::pair::IS_PAIR;
use crate::protection::{self, Space};
use crate::windows::IS_THERE;
use bulkhead_arch_api::{GuestPhys, PartitionId, Permissions};
use bulkhead_arch_regions::Rights;

impl Machine {
    /// Gives a partition other rights to the window that begins at `guest`.
    pub(crate) fn change_window(
        &mut self,
        partition: PartitionId,
        guest: GuestPhys,
        permissions: Permissions,
    ) {
        if !IS_THERE || IS_PAIR {
            // The other CPU may use the space now, so a window stays closed. The tool refuses such a system.
            return;
        }
        let is_vm = self.attribution.is_vm(partition.0.into());
        let Permissions { read, write, .. } = permissions;
        // The SAU knows no rights: what a VM may load, it could write.
        let is_open = read && (write || !is_vm);
        let rights = Rights {
            read: is_open,
            write: is_open && write,
            execute: false,
        };
        let holder = self.first_of(partition);
        if is_vm && holder.is_some() && self.tenant == holder {
            self.evict();
            // So the VM gets its world anew when it runs next.
            self.current = self.current.filter(|current| Some(*current) != holder);
        }
        let Some(Space { share, windows }) = self.spaces.get_mut(partition) else {
            return;
        };
        windows.change(&mut share.stretches, guest.0 as u32, rights);
        if is_vm {
            // There is room: each stretch has a run, and one more for each controller.
            let _fits = self.attribution.find_runs(share);
        } else if self.current == holder {
            protection::load(&share.stretches, &mut self.loaded);
        }
    }
}
