// SPDX-License-Identifier: Apache-2.0
//! Frames for a VM that sees the memory in which they wait.
//!
//! The VM says by a register that it takes its frames there. Before that, and after each reset, it is a VM like
//! others ([`super::switch`]). It sends as others do, too, but that all of the frame is in the memory when it
//! stores the length.
//!
//! The VM does not run while the hypervisor reads and writes its memory: a class with networks has one pCPU. So
//! the addresses that the switch has checked are those that it copies.

use super::switch::{CRC, Run, Runs, Source, Switching, move_frame};
use crate::network::{Frames, NicFacts, NicId, word_at};
use bulkhead_abi::PartitionState;
use bulkhead_arch_api::{Arch, Drivers};
use bulkhead_sched::PcpuPolicy;

impl<A: Arch, D: Drivers, P: PcpuPolicy> Switching<'_, '_, '_, A, D, P> {
    /// Copies a frame to the memory that its receiver sees, if the receiver wants it and has room, and
    /// interrupts the receiver. Returns the place of the copy.
    #[inline(never)]
    pub(super) fn hand_to_ring(
        &mut self,
        nic: NicId,
        facts: &NicFacts,
        head: [u32; 2],
        bytes: u32,
        source: Source,
    ) -> Option<Runs> {
        if !self.pcpu.shared.nics.of(nic).lock().device.has_ring() {
            return self.hand_over(nic, facts, head, bytes, source);
        }
        if self.pcpu.shared.partition(facts.partition).state() != PartitionState::Running {
            return None;
        }
        let (to, interrupts) = self.with_nic(nic, |device, (machine, drivers), base| {
            let words = &mut machine.frame_words();
            let entry = device.offer_in_ring(head, bytes.wrapping_add(CRC), &mut Frames { words, base })?;
            let run = Run {
                at: word_at(base, entry.piece.at),
                words: entry.piece.words,
            };
            let to = [run, Run::EMPTY];
            move_frame(machine, drivers, source, to);
            let words = &mut machine.frame_words();
            Some((to, device.arrived_in_ring(entry, &mut Frames { words, base })))
        })?;
        if interrupts && let Some(line) = facts.device.interrupt() {
            let woken = self.pcpu.machine.pulse(facts.partition, line);
            self.pcpu.wake_all(woken);
        }
        Some(to)
    }
}
