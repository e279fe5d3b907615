// SPDX-License-Identifier: Apache-2.0
//! Facts of the board that every pCPU needs.

use bulkhead_arch_api::{MAX_PCPUS, PcpuId};
use bulkhead_arch_support::SetOnce;
use bulkhead_arch_x86_64_core::time::Ratio;

/// Facts of the board that every pCPU needs.
pub(crate) struct Board {
    /// APIC id of each pCPU.
    pub(crate) hardware_ids: [u64; MAX_PCPUS],
    /// Memory for translation tables of partitions: address and bytes.
    pub(crate) pool: (u64, u64),
    /// Rings of the trace: address, and records of each.
    pub(crate) trace: (u64, usize),
    /// Registers of the local APIC, and of the I/O APIC.
    pub(crate) apics: [u64; 2],
    /// First port of the power management registers.
    pub(crate) power: u16,
    /// Ticks of the counter in a second.
    pub(crate) hertz: u64,
    /// Ticks of the local APIC's timer by ticks of the counter.
    pub(crate) timer: Ratio,
    /// Nanoseconds, ticks of the PIT and of the PM timer by ticks of the counter.
    pub(crate) nanos: Ratio,
    pub(crate) pit: Ratio,
    pub(crate) pm: Ratio,
    /// Ticks of the counter by ticks of the PIT.
    pub(crate) from_pit: Ratio,
    /// Seconds since 1970 when the counter was 0.
    pub(crate) epoch: u64,
    /// Address space identifiers of the processor.
    pub(crate) spaces: u32,
    /// True if the processor can forget the translations of one address space alone (FlushByAsid).
    pub(crate) forgets_own: bool,
}

pub(crate) static BOARD: SetOnce<Board> = SetOnce::new();

/// Returns the APIC id of a pCPU that the board has.
pub(crate) fn hardware_id(pcpu: PcpuId) -> Option<u64> {
    let board = BOARD.get()?;
    let id = *board.hardware_ids.get(usize::from(pcpu.0))?;
    (id != u64::MAX).then_some(id)
}
