// SPDX-License-Identifier: Apache-2.0
//! STUB by backend until vgic's irq.rs lands: overwrite or delete freely.
#![allow(missing_docs, dead_code, unused_variables)]
use bulkhead_arch_api::*;
pub struct PcpuIrq;
impl PcpuIrq { pub const fn new() -> Self { Self } }
pub struct VcpuIrq;
impl VcpuIrq { pub const fn new() -> Self { Self } }
pub struct GicConfig { pub distributor: usize, pub redistributors: usize, pub redistributors_size: usize, pub maintenance: u32, pub hypervisor_timer: u32, pub virtual_timer: u32, pub physical_timer: u32 }
pub unsafe fn init_distributor(config: &GicConfig) {}
pub fn init_pcpu(p: &mut PcpuIrq, id: PcpuId, mpidr: u64) -> bool { true }
pub fn adopt(v: &mut VcpuIrq, id: VcpuId, plan: &VcpuPlan, pcpu: PcpuId) {}
pub fn configure(partition: PartitionId, controller: Option<&VirtualController>) {}
pub fn reset_shared(partition: PartitionId) {}
pub fn reset(p: &mut PcpuIrq, v: &mut VcpuIrq) {}
pub fn detach(p: &mut PcpuIrq, v: &mut VcpuIrq) {}
pub fn has_work(v: &mut VcpuIrq) -> bool { false }
pub fn inject(p: &mut PcpuIrq, partition: PartitionId, line: VirtualLine) -> VcpuSet { VcpuSet::EMPTY }
pub fn withdraw(p: &mut PcpuIrq, partition: PartitionId, line: VirtualLine) {}
pub fn route(p: &mut PcpuIrq, line: Line, partition: PartitionId, virtual_line: VirtualLine, edge: bool) {}
pub fn enable(p: &mut PcpuIrq, line: Line, edge: bool) {}
pub fn disable(p: &mut PcpuIrq, line: Line) {}
pub fn complete(p: &mut PcpuIrq, line: Line) {}
pub fn signal(p: &mut PcpuIrq, target: PcpuId) {}
pub fn unload(p: &mut PcpuIrq, v: &mut VcpuIrq) {}
pub fn load(p: &mut PcpuIrq, v: &mut VcpuIrq) {}
pub fn resume(p: &mut PcpuIrq, v: &mut VcpuIrq) {}
pub fn interrupt(p: &mut PcpuIrq, v: &mut VcpuIrq) -> Option<Exit> { None }
pub fn idle_interrupt(p: &mut PcpuIrq) -> Option<Exit> { None }
pub fn park(p: &mut PcpuIrq) {}
pub struct Answer { pub value: u64, pub wake: VcpuSet }
pub fn mmio_read(p: &mut PcpuIrq, v: &mut VcpuIrq, address: GuestPhys, size: u8) -> Option<Answer> { None }
pub fn mmio_write(p: &mut PcpuIrq, v: &mut VcpuIrq, address: GuestPhys, size: u8, value: u64) -> Option<Answer> { None }
pub enum SysRegister { Sgi1r, Asgi1r, Sgi0r, Dir }
pub fn sysreg_write(p: &mut PcpuIrq, v: &mut VcpuIrq, register: SysRegister, value: u64) -> VcpuSet { VcpuSet::EMPTY }
