// SPDX-License-Identifier: Apache-2.0
//! Networks: accesses to virtual interfaces, and the switch between the interfaces.
//!
//! A frame is moved in the exit that completes the frame: the last word that a guest writes, or an interrupt
//! of the board's interface. An exit moves at most one frame, and copies the frame once for each receiver. So
//! an exit costs at most `MAX_NICS + 1` copies of the longest frame. A guest pays for the frames that it
//! sends. Frames from outside interrupt only while one of their receivers would be let run
//! (`Network::open_network`).

use crate::dispatch::Pcpu;
use crate::dispatch::regions::Place;
use crate::network::{Address, Frames, NicFacts, NicId, NicWindow, OUTSIDE, word_at};
use crate::parts::{FRAME_RING, NETWORKS, PartOf, Rest};
use bulkhead_abi::PartitionState;
use bulkhead_abi::log::Kind;
use bulkhead_arch_api::{
    Access, AccessKind, Arch, Drivers, Exit, FrameWords, HostPhys, Line, PartitionId, Reply, Ticks, VcpuId,
    VcpuSet,
};
use bulkhead_devices::nic::{Adapter, Arrival, FRAME_MAX, counted, is_counter};
use bulkhead_sched::PcpuPolicy;

/// Bytes of the header of a frame: destination, source, type (IEEE 802.3, 3.1.1).
const HEADER: u32 = 14;
const CRC: u32 = 4;

/// Consecutive words of memory.
#[derive(Clone, Copy)]
struct Run {
    at: HostPhys,
    words: u32,
}

impl Run {
    const EMPTY: Self = Self {
        at: HostPhys(0),
        words: 0,
    };

    /// Returns the run without its first words.
    const fn behind(self, words: u32) -> Self {
        Self {
            at: word_at(self.at, words),
            words: self.words.saturating_sub(words),
        }
    }
}

/// The place of a frame in memory: at most two runs.
type Runs = [Run; 2];

/// The origin of a frame.
#[derive(Clone, Copy)]
enum Source {
    Memory(Runs),
    /// The board's interface, which has handed out these words of the frame.
    Outside([u32; 2]),
}

/// Returns the first address in a frame.
const fn destination([low, high]: [u32; 2]) -> Address {
    let ([a, b, c, d], [e, f, ..]) = (low.to_le_bytes(), high.to_le_bytes());
    [a, b, c, d, e, f]
}

/// The networks, on a pCPU.
pub(crate) struct Switching<'p, 's, 'i, A: Arch, D, P> {
    pub(super) pcpu: &'p mut Pcpu<'s, 'i, A, D, P>,
}

impl<'s, 'i, A: Arch, D: Drivers, P: PcpuPolicy> Pcpu<'s, 'i, A, D, P> {
    /// Returns the part with its pCPU.
    #[inline(always)]
    pub(crate) const fn networks(&mut self) -> Switching<'_, 's, 'i, A, D, P> {
        Switching { pcpu: self }
    }
}

impl<A: Arch, D: Drivers, P: PcpuPolicy> Switching<'_, '_, '_, A, D, P> {
    /// Runs a vCPU, with its interface, if it has one, at hand.
    #[inline(always)]
    pub(crate) fn run_vcpu(&mut self, vcpu: VcpuId) -> Exit {
        if self.is_there() && self.pcpu.system.has_nic(vcpu) {
            self.run_beside_nic(vcpu)
        } else {
            self.pcpu.machine.run_answering(vcpu, &self.pcpu.short)
        }
    }

    #[inline(never)]
    fn run_beside_nic(&mut self, vcpu: VcpuId) -> Exit {
        let partition = self.pcpu.system.binding(vcpu).partition;
        let Some(nic) = self.pcpu.system.facts_of(partition).nic else {
            return self.pcpu.machine.run(vcpu);
        };
        let facts = self.pcpu.system.nic(nic);
        let mut window = NicWindow {
            nic: self.pcpu.shared.nics.of(nic),
            memory: facts.memory,
        };
        self.pcpu.machine.run_beside(vcpu, &facts.device, &mut window)
    }

    /// Carries out an access to the virtual interface of a partition.
    pub(crate) fn access_nic(&mut self, place: &Place<'_>, access: &Access) -> Option<Reply> {
        let offset = place.offset;
        let nic = self.pcpu.system.facts_of(place.partition).nic?;
        Some(match access.kind {
            AccessKind::Read if is_counter(offset) => {
                let now = self.pcpu.system.time.nanoseconds(self.pcpu.machine.now());
                Reply::Read(counted(now).into())
            }
            // No load changes the line.
            AccessKind::Read => {
                let (base, words) = (
                    self.pcpu.system.nic(nic).memory,
                    &mut self.pcpu.machine.frame_words(),
                );
                let mut state = self.pcpu.shared.nics.of(nic).lock();
                let memory = &mut Frames { words, base };
                Reply::Read(state.device.read(offset, access.size, memory).into())
            }
            AccessKind::Write(value) => {
                let size = access.size;
                let sent = self.with_nic(nic, |device, (machine, _), base| {
                    let words = &mut machine.frame_words();
                    device.write(offset, size, value as u32, &mut Frames { words, base })
                });
                if let Some(sent) = sent {
                    self.switch(nic, sent.bytes);
                }
                Reply::Written
            }
        })
    }

    /// Changes a virtual interface, then its interrupt line. The change gets the address at which the memory
    /// of the interface begins.
    fn with_nic<T>(
        &mut self,
        nic: NicId,
        change: impl FnOnce(&mut Adapter, (&mut A, &mut D), HostPhys) -> T,
    ) -> T {
        self.change_nic(nic, |device, backend, base| {
            (change(device, backend, base), VcpuSet::EMPTY)
        })
    }

    /// Does what [`Self::with_nic`] does. The change also says which vCPUs it has interrupted. It does so
    /// only if it leaves the level of the line.
    #[inline]
    fn change_nic<T>(
        &mut self,
        nic: NicId,
        change: impl FnOnce(&mut Adapter, (&mut A, &mut D), HostPhys) -> (T, VcpuSet),
    ) -> T {
        let facts = self.pcpu.system.nic(nic);
        let mut state = self.pcpu.shared.nics.of(nic).lock();
        let before = state.device.level();
        let (result, interrupted) = change(
            &mut state.device,
            (&mut self.pcpu.machine, &mut self.pcpu.drivers),
            facts.memory,
        );
        let after = state.device.level();
        let line = facts.device.interrupt().filter(|_| before != after);
        let woken = line.map(|line| {
            self.pcpu
                .set_lines(facts.partition, line, [before, false], [after, false])
        });
        drop(state);
        self.pcpu.wake_all(woken.unwrap_or(interrupted));
        result
    }

    /// Switches a frame that a guest has completed.
    fn switch(&mut self, nic: NicId, bytes: u32) {
        let facts = self.pcpu.system.nic(nic);
        if FRAME_RING && facts.is_seen {
            self.close(facts.memory, bytes);
        }
        let start = word_at(facts.memory, Adapter::TRANSMIT_AT);
        let [first, second, third] =
            [0, 1, 2].map(|index| self.pcpu.machine.frame_words().word(word_at(start, index)));
        let head = [first, second];
        let (_, [s0, s1]) = (second as u16, ((second >> 16) as u16).to_le_bytes());
        let [s2, s3, s4, s5] = third.to_le_bytes();
        if bytes < HEADER || [s0, s1, s2, s3, s4, s5] != facts.address {
            self.refuse(nic);
            return;
        }
        let run = Run {
            at: start,
            words: bytes.wrapping_add(CRC).div_ceil(4),
        };
        let taken = self.distribute(
            facts.network,
            Some(nic),
            head,
            bytes,
            Source::Memory([run, Run::EMPTY]),
        );
        if !taken && facts.network == OUTSIDE {
            // Without room in the board's interface the frame is lost, as on any network.
            let memory = &mut self.pcpu.machine.frame_words();
            let _is_sent = self.pcpu.drivers.send_frame(start, bytes, memory);
        }
    }

    /// Clears what follows a frame that its sender has perhaps written to the memory itself.
    #[cold]
    #[inline(never)]
    fn close(&mut self, base: HostPhys, bytes: u32) {
        let words = &mut self.pcpu.machine.frame_words();
        Adapter::close(bytes, &mut Frames { words, base });
    }

    /// Refuses a frame with a foreign address, or with none at all. The log says so once per start of the
    /// partition.
    #[cold]
    fn refuse(&mut self, nic: NicId) {
        let partition = self.pcpu.system.nic(nic).partition;
        let refused = {
            let mut state = self.pcpu.shared.nics.of(nic).lock();
            state.refused = state.refused.saturating_add(1);
            state.refused
        };
        if refused == 1 {
            let first = self.pcpu.system.facts_of(partition).first;
            let entry = self.pcpu.entry(Kind::WrongSender, first);
            self.pcpu.log(&entry);
        }
    }

    /// Gives a frame of `bytes` bytes, without the CRC, to its receivers on a network. Returns true if no
    /// other receiver is possible.
    fn distribute(
        &mut self,
        network: u8,
        sender: Option<NicId>,
        head: [u32; 2],
        bytes: u32,
        source: Source,
    ) -> bool {
        let destination = destination(head);
        let is_group = head.first().is_some_and(|word| word & 1 != 0);
        let mut source = source;
        for nic in self.pcpu.system.nics() {
            let facts = self.pcpu.system.nic(nic);
            let is_for_it = is_group || facts.address == destination;
            if facts.network != network || Some(nic) == sender || !is_for_it {
                continue;
            }
            // A frame that has left the board's interface is in memory from then on.
            if let Some(runs) = self.hand_over(nic, facts, head, bytes, source) {
                source = Source::Memory(runs);
            }
            if !is_group {
                return true;
            }
        }
        false
    }

    /// Copies a frame to an interface that wants the frame and has room. Returns the place of the copy.
    fn hand_over(
        &mut self,
        nic: NicId,
        facts: &NicFacts,
        head: [u32; 2],
        bytes: u32,
        source: Source,
    ) -> Option<Runs> {
        if self.pcpu.shared.partition(facts.partition).state() != PartitionState::Running {
            return None;
        }
        let line = facts.device.interrupt();
        self.change_nic(nic, |device, (machine, drivers), base| {
            let (offered, wanted) = (bytes.wrapping_add(CRC), VcpuSet::EMPTY);
            let words = &mut machine.frame_words();
            let Some(arrival) = device.offer(head, offered, &mut Frames { words, base }) else {
                return (None, wanted);
            };
            let to = runs(base, &arrival);
            match source {
                Source::Memory(from) => copy(machine, from, to),
                Source::Outside(head) => receive(machine, drivers, head, to),
            }
            let words = &mut machine.frame_words();
            let interrupts = device.arrived(&arrival, &mut Frames { words, base });
            let woken = match line.filter(|_| interrupts) {
                Some(line) => machine.pulse(facts.partition, line),
                None => wanted,
            };
            (Some(to), woken)
        })
    }

    /// Takes a frame after an interrupt of the board's interface. Returns false if there is no time for
    /// another frame.
    fn take_frame(&mut self) -> bool {
        let began = self.pcpu.machine.now();
        if let Some(received) = self.pcpu.drivers.next_frame()
            && let Some(bytes) = received
                .bytes
                .checked_sub(CRC)
                .filter(|bytes| *bytes <= FRAME_MAX)
        {
            self.distribute(
                OUTSIDE,
                None,
                received.head,
                bytes,
                Source::Outside(received.head),
            );
        }
        self.pcpu.drivers.end_frame();
        self.pcpu.local.charge_intake(began, self.pcpu.machine.now())
    }

    /// Opens the board's interface again: there is time again for frames from outside.
    #[inline(never)]
    fn listen_again(&mut self) {
        if let Some(line) = self.pcpu.drivers.network_line() {
            self.pcpu.machine.complete(line);
        }
    }

    /// Raises the interrupt line of the interface of a partition that starts anew, if its output is high
    /// after a reset. The interrupts of the partition's vCPU are reset already.
    #[inline(never)]
    fn raise_after_reset(&mut self, nic: NicId) {
        let facts = self.pcpu.system.nic(nic);
        if self.pcpu.shared.nics.of(nic).lock().device.level()
            && let Some(line) = facts.device.interrupt()
        {
            self.pcpu.machine.inject(facts.partition, line);
        }
    }

    /// Puts the interface of a partition that starts anew into its state after a reset.
    fn reset_nic(&mut self, nic: NicId) {
        let facts = self.pcpu.system.nic(nic);
        self.pcpu.shared.nics.of(nic).lock().reset(facts);
    }
}

impl<A: Arch, D: Drivers, P: PcpuPolicy> PartOf for Switching<'_, '_, '_, A, D, P> {
    const IS_THERE: bool = D::HAS_NETWORK && NETWORKS;

    #[inline(always)]
    fn reset(&mut self, partition: PartitionId) {
        if let Some(nic) = self.pcpu.system.facts_of(partition).nic {
            self.reset_nic(nic);
        }
    }

    #[inline(always)]
    fn goes_live(&mut self, partition: PartitionId) {
        if let Some(nic) = self.pcpu.system.facts_of(partition).nic {
            self.raise_after_reset(nic);
        }
    }

    #[inline(always)]
    fn take_interrupt(&mut self, line: Line) -> Rest {
        if self.pcpu.drivers.network_line() != Some(line) {
            Rest::Others
        } else if self.take_frame() {
            Rest::Unmasked
        } else {
            Rest::Masked
        }
    }

    #[inline(always)]
    fn work(&mut self, now: Ticks) {
        if self.pcpu.local.take_intake(now) {
            self.listen_again();
        }
    }
}

fn runs(base: HostPhys, arrival: &Arrival) -> Runs {
    arrival.pieces.map(|piece| Run {
        at: word_at(base, piece.at),
        words: piece.words,
    })
}

/// Copies as many words as both places have. Each round finishes a run of one of them.
fn copy<A: Arch>(machine: &mut A, from: Runs, to: Runs) {
    let ([mut source, mut next_source], [mut target, mut next_target]) = (from, to);
    for _ in 0..3 {
        if source.words == 0 {
            (source, next_source) = (next_source, Run::EMPTY);
        }
        if target.words == 0 {
            (target, next_target) = (next_target, Run::EMPTY);
        }
        let words = source.words.min(target.words);
        if words == 0 {
            return;
        }
        machine.copy_frame(source.at, target.at, words);
        source = source.behind(words);
        target = target.behind(words);
    }
}

/// Moves the frame that the board's interface is handing out. The words `head` are handed out already.
fn receive<A: Arch, D: Drivers>(machine: &mut A, drivers: &mut D, head: [u32; 2], to: Runs) {
    let mut head = head.iter();
    for run in to {
        let mut rest = run;
        for word in head.by_ref().take(run.words as usize) {
            machine.frame_words().set_word(rest.at, *word);
            rest = rest.behind(1);
        }
        drivers.take_frame(rest.at, rest.words, &mut machine.frame_words());
    }
}
