// SPDX-License-Identifier: Apache-2.0
//! A guest's accesses to its interrupt controller that trap: registers by address, and registers of the CPU
//! interface.
//!
//! This module finds out which register is meant. The effect of the access is a matter of `arch/vgic`.

use super::local::Local;
use super::state::{DISTRIBUTOR_SIZE, PcpuIrq, VERSION_2, VcpuIrq};
use bulkhead_arch_aarch64_core::registers::InterruptRegister;
use bulkhead_arch_api::{GuestPhys, VcpuSet};
use bulkhead_arch_vgic::{Frame, RegisterAccess, Sgi};

pub(super) const REDISTRIBUTOR_SHIFT: u32 = 17;
/// Page of `GICC_DIR` in a GICv2's CPU interface, after the page that a guest has as it is.
pub(super) const DEACTIVATE: u64 = 0x1000;
const DEACTIVATE_SIZE: u64 = 0x1000;

/// Returns the address of a vCPU's redistributor. The first vCPU's is at `first`.
pub(super) const fn frame_of(first: u64, index: usize) -> u64 {
    first.wrapping_add((index as u64) << REDISTRIBUTOR_SHIFT)
}

/// Answer to a guest's access.
pub(crate) struct Answer {
    /// The value, of a load.
    pub(crate) value: u64,
    /// The vCPUs that the access made due. If the set is not empty: finish the instruction, then return
    /// `Exit::Wake`.
    pub(crate) wake: VcpuSet,
}

impl VcpuIrq {
    /// Returns the registers at `address`.
    #[inline]
    fn frame(&self, address: GuestPhys, size: u8) -> Option<RegisterAccess> {
        let offset = address.0.wrapping_sub(self.distributor);
        if offset < DISTRIBUTOR_SIZE {
            return Some(RegisterAccess {
                frame: if VERSION_2 {
                    Frame::Version2
                } else {
                    Frame::Distributor
                },
                offset: offset as u32,
                size,
            });
        }
        let offset = address.0.wrapping_sub(self.second);
        if VERSION_2 {
            let offset = offset.wrapping_sub(DEACTIVATE);
            return (offset < DEACTIVATE_SIZE).then_some(RegisterAccess {
                frame: Frame::Deactivate,
                offset: offset as u32,
                size,
            });
        }
        let index = offset >> REDISTRIBUTOR_SHIFT;
        if index < u64::from(self.count) {
            let offset = offset as u32 & ((1 << REDISTRIBUTOR_SHIFT) - 1);
            return Some(RegisterAccess {
                frame: Frame::Redistributor(index as usize),
                offset,
                size,
            });
        }
        None
    }
}

/// Handles a guest's load. Returns `None` if the address is not in the interrupt controller.
#[inline]
pub(crate) fn mmio_read(p: &mut PcpuIrq, v: &mut VcpuIrq, address: GuestPhys, size: u8) -> Option<Answer> {
    let access = v.frame(address, size)?;
    let vgic = v.vgic()?;
    let value = vgic.read(
        v.index,
        &mut v.bank,
        &mut Local {
            pcpu: p,
            first: v.first,
        },
        access,
    );
    Some(Answer {
        value,
        wake: p.take_wake(),
    })
}

/// Handles a guest's store. Returns `None` if the address is not in the interrupt controller.
#[inline]
pub(crate) fn mmio_write(
    p: &mut PcpuIrq,
    v: &mut VcpuIrq,
    address: GuestPhys,
    size: u8,
    value: u64,
) -> Option<Answer> {
    let access = v.frame(address, size)?;
    let vgic = v.vgic()?;
    vgic.write(
        v.index,
        &mut v.bank,
        &mut Local {
            pcpu: p,
            first: v.first,
        },
        access,
        value,
    );
    Some(Answer {
        value: 0,
        wake: p.take_wake(),
    })
}

/// Handles a guest's write to a trapped register of the CPU interface.
pub(crate) fn sysreg_write(
    p: &mut PcpuIrq,
    v: &mut VcpuIrq,
    register: InterruptRegister,
    value: u64,
) -> VcpuSet {
    let (Some(vgic), Some(_)) = (v.vgic(), v.own) else {
        return VcpuSet::EMPTY;
    };
    let mut local = Local {
        pcpu: p,
        first: v.first,
    };
    match register {
        InterruptRegister::Sgi1r => vgic.send(v.index, Sgi::Group1, value, &mut local),
        InterruptRegister::Asgi1r => vgic.send(v.index, Sgi::OtherGroup1, value, &mut local),
        InterruptRegister::Sgi0r => vgic.send(v.index, Sgi::Group0, value, &mut local),
        InterruptRegister::Dir => vgic.deactivate(v.index, &mut v.bank, &mut local, value as u32 & 0xFF_FFFF),
    }
    p.take_wake()
}
