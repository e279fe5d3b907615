// SPDX-License-Identifier: Apache-2.0
//! The regions of a partition's address space whose accesses the kernel answers: virtual devices.
//!
//! A region begins where the system image says. Its size and its address space are facts of the class
//! ([`DeviceFacts`](bulkhead_arch_api::class::DeviceFacts)). The table in [`Pcpu::answer_in_region`] says who
//! answers. A new trapped region is a line there, and a device of the class.

use crate::dispatch::Pcpu;
use crate::parts::PartOf;
use bulkhead_arch_api::class::DeviceRole;
use bulkhead_arch_api::{Access, AccessKind, Arch, Drivers, PartitionId, Reply, VirtualDevice};
use bulkhead_sched::PcpuPolicy;

/// The place of an access.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'d> {
    /// The partition whose region it is.
    pub partition: PartitionId,
    /// The device, one window of it.
    pub device: &'d VirtualDevice,
    /// The offset in the window.
    pub offset: u64,
}

/// The kinds of access to a region that are answered.
#[derive(Clone, Copy, Debug)]
struct Kinds {
    load: bool,
    store: bool,
}

const BOTH: Kinds = Kinds {
    load: true,
    store: true,
};

/// Answers an access by a table with a line for each region: the part that the region's device plays, whether
/// the class binary has such devices, the kinds of access, and the answer.
macro_rules! answer_by {
    (($role:expr, $access:expr) $($device:pat, $is_there:expr, $kinds:expr, $answer:expr;)*) => {
        match $role {
            $(
                Some($device) if $is_there && $kinds.allow($access.kind) => {
                    Some($answer)
                }
            )*
            _ => None,
        }
    };
}

impl Kinds {
    const fn allow(self, kind: AccessKind) -> bool {
        match kind {
            AccessKind::Read => self.load,
            AccessKind::Write(_) => self.store,
        }
    }
}

impl<A: Arch, D: Drivers, P: PcpuPolicy> Pcpu<'_, '_, A, D, P> {
    /// Answers an access to a region. `None`: no line of the table is for such an access. `Some(None)`: the
    /// access is answered later.
    #[inline(always)]
    pub(crate) fn answer_in_region(&mut self, place: &Place<'_>, access: &Access) -> Option<Option<Reply>> {
        answer_by! {
            (self.system.role_of(place.device), access)
            DeviceRole::Console(_), true, BOTH, self.access_console(place, access);
            DeviceRole::Flash, self.flash().is_there(), BOTH, self.flash().access_flash(place, access);
            DeviceRole::Bridge, self.functions().is_there(), BOTH, self.functions().access_bridge(place, access);
            DeviceRole::Network, self.networks().is_there(), BOTH, self.networks().access_nic(place, access);
        }
    }
}
