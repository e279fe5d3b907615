// SPDX-License-Identifier: Apache-2.0
//! Networks: accesses to virtual interfaces, and the switch behind them.
//!
//! A frame is moved in the exit that completes it (the last word a guest writes, or an interrupt of the board's interface): at most one
//! frame per exit, copied once for each receiver, so an exit costs at most `MAX_NICS + 1` copies of the longest frame. A guest pays for what it
//! sends. What comes from outside interrupts only while one of the receivers would be let run (`Network::open_network`).

use super::Pcpu;
use crate::log::Line;
use crate::network::{Address, Frames, NicFacts, NicId, NicWindow, OUTSIDE, word_at};
use bulkhead_abi::PartitionState;
use bulkhead_arch_api::{Access, AccessKind, Arch, Exit, FrameWords, HostPhys, Reply, VcpuId, VcpuSet};
use bulkhead_devices::lan9118::{Arrival, FRAME_MAX, FREE_RUN, Lan9118};
use bulkhead_sched::PcpuPolicy;

/// Nanoseconds of a tick of the chip's counter, which runs at 25 MHz.
const COUNTER_NS: u64 = 40;
/// Bytes of the header of a frame: destination, source, type (IEEE 802.3, 3.1.1).
const HEADER: u32 = 14;
const CRC: u32 = 4;

/// Words of memory that follow each other.
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

    /// Without its first words.
    const fn behind(self, words: u32) -> Self {
        Self {
            at: word_at(self.at, words),
            words: self.words.saturating_sub(words),
        }
    }
}

/// Where a frame is in memory: in at most two runs.
type Runs = [Run; 2];

/// Where a frame comes from.
#[derive(Clone, Copy)]
enum Source {
    Memory(Runs),
    /// The board's interface, which has handed out these words of it.
    Outside([u32; 2]),
}

/// The first address in a frame.
const fn destination([low, high]: [u32; 2]) -> Address {
    let ([a, b, c, d], [e, f, ..]) = (low.to_le_bytes(), high.to_le_bytes());
    [a, b, c, d, e, f]
}

impl<A: Arch, P: PcpuPolicy> Pcpu<'_, '_, A, P> {
    /// Runs a vCPU; its interface, if it has one, is at hand.
    #[inline(always)]
    pub(super) fn run_vcpu(&mut self, vcpu: VcpuId) -> Exit {
        if A::HAS_NETWORK && self.system.has_nic(vcpu) {
            self.run_beside_nic(vcpu)
        } else {
            self.machine.run(vcpu)
        }
    }

    #[inline(never)]
    fn run_beside_nic(&mut self, vcpu: VcpuId) -> Exit {
        let partition = self.system.binding(vcpu).partition;
        let Some(nic) = self.system.facts_of(partition).nic else {
            return self.machine.run(vcpu);
        };
        let facts = self.system.nic(nic);
        let mut window = NicWindow {
            nic: self.shared.nics.of(nic),
            memory: facts.memory,
        };
        self.machine.run_beside(vcpu, &facts.place, &mut window)
    }

    /// An access to the virtual interface of a partition.
    pub(super) fn access_nic(&mut self, nic: NicId, offset: u64, access: &Access) -> Reply {
        match access.kind {
            AccessKind::Read if offset == FREE_RUN => {
                let now = self.system.time.nanoseconds(self.machine.now());
                Reply::Read(u64::from((now / COUNTER_NS) as u32))
            }
            AccessKind::Read => {
                let size = access.size;
                let value = self.with_nic(nic, |device, machine, base| {
                    let words = &mut machine.frame_words();
                    device.read(offset, size, &mut Frames { words, base })
                });
                Reply::Read(value.into())
            }
            AccessKind::Write(value) => {
                let size = access.size;
                let sent = self.with_nic(nic, |device, machine, base| {
                    let words = &mut machine.frame_words();
                    device.write(offset, size, value as u32, &mut Frames { words, base })
                });
                if let Some(sent) = sent {
                    self.switch(nic, sent.bytes);
                }
                Reply::Written
            }
        }
    }

    /// Changes a virtual interface, whose memory begins at the address given; its interrupt line follows.
    fn with_nic<T>(&mut self, nic: NicId, change: impl FnOnce(&mut Lan9118, &mut A, HostPhys) -> T) -> T {
        let facts = self.system.nic(nic);
        let mut state = self.shared.nics.of(nic).lock();
        let before = state.device.level();
        let result = change(&mut state.device, &mut self.machine, facts.memory);
        let after = state.device.level();
        let line = facts.place.line.filter(|_| before != after);
        let woken = line.map(|line| self.set_lines(facts.partition, line, ([before, false], [after, false])));
        drop(state);
        self.wake_all(woken.unwrap_or(VcpuSet::EMPTY));
        result
    }

    /// A guest has completed a frame.
    fn switch(&mut self, nic: NicId, bytes: u32) {
        let facts = self.system.nic(nic);
        let start = word_at(facts.memory, Lan9118::TRANSMIT_AT);
        let [first, second, third] =
            [0, 1, 2].map(|index| self.machine.frame_words().word(word_at(start, index)));
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
            // Without room in the board's interface it is lost, as on any network.
            let _is_sent = self.machine.send_frame(start, bytes);
        }
    }

    /// A frame with a foreign address, or none at all. It is said once per start of the partition.
    #[cold]
    fn refuse(&mut self, nic: NicId) {
        let partition = self.system.nic(nic).partition;
        let refused = {
            let mut state = self.shared.nics.of(nic).lock();
            state.refused = state.refused.saturating_add(1);
            state.refused
        };
        if refused == 1 {
            let mut line = Line::of("partition ");
            line.text(self.system.name(partition))
                .text(": sends frames that do not have its address; they are dropped");
            self.log(&line);
        }
    }

    /// Gives a frame of `bytes` bytes, CRC not included, to those on a network that it is for; true if nobody else can want it.
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
        for nic in self.system.nics() {
            let facts = self.system.nic(nic);
            let is_for_it = is_group || facts.address == destination;
            if facts.network != network || Some(nic) == sender || !is_for_it {
                continue;
            }
            // What has left the board's interface is in memory from then on.
            if let Some(runs) = self.hand_over(nic, facts, head, bytes, source) {
                source = Source::Memory(runs);
            }
            if !is_group {
                return true;
            }
        }
        false
    }

    /// Copies a frame to an interface, if that wants it and has room; returns where it is then.
    fn hand_over(
        &mut self,
        nic: NicId,
        facts: &NicFacts,
        head: [u32; 2],
        bytes: u32,
        source: Source,
    ) -> Option<Runs> {
        if self.shared.partition(facts.partition).state() != PartitionState::Running {
            return None;
        }
        self.with_nic(nic, |device, machine, base| {
            let arrival = device.offer(head, bytes.wrapping_add(CRC))?;
            let to = runs(base, &arrival);
            match source {
                Source::Memory(from) => copy(machine, from, to),
                Source::Outside(head) => receive(machine, head, to),
            }
            device.arrived(&arrival);
            Some(to)
        })
    }

    /// The board's interface has interrupted. False if there is no time for another frame.
    pub(super) fn take_frame(&mut self) -> bool {
        let began = self.machine.now();
        if let Some(received) = self.machine.next_frame()
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
        self.machine.end_frame();
        self.local.charge_intake(began, self.machine.now())
    }

    /// There is time again for frames from outside.
    #[inline(never)]
    pub(super) fn listen_again(&mut self) {
        if let Some(line) = self.machine.network_line() {
            self.machine.complete(line);
        }
    }

    /// The partition starts anew: its interface is as after a reset.
    pub(super) fn reset_nic(&mut self, nic: NicId) {
        let address = self.system.nic(nic).address;
        *self.shared.nics.of(nic).lock() = crate::network::Nic::new(address);
    }
}

fn runs(base: HostPhys, arrival: &Arrival) -> Runs {
    arrival.pieces.map(|piece| Run {
        at: word_at(base, piece.at),
        words: piece.words,
    })
}

/// Copies as many words as both have. Each round finishes a run of one of them.
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
        machine.copy_frame(source.at, target.at, words);
        source = source.behind(words);
        target = target.behind(words);
    }
}

/// Moves the frame that the board's interface is handing out; `head` is what it has handed out already.
fn receive<A: Arch>(machine: &mut A, head: [u32; 2], to: Runs) {
    let mut head = head.iter();
    for run in to {
        let mut rest = run;
        for word in head.by_ref().take(run.words as usize) {
            machine.frame_words().set_word(rest.at, *word);
            rest = rest.behind(1);
        }
        machine.take_frame(rest.at, rest.words);
    }
}
