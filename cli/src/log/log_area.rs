// SPDX-License-Identifier: Apache-2.0
//! The hypervisor's log area in RAM ([`bulkhead_abi::log`]), read from a memory dump.
//!
//! The dump may begin anywhere. The area is found by its magic number, at any multiple of 8 bytes. The reader
//! does not trust the area to be consistent: numbers are bounded before they are used, and characters that
//! could control a terminal are replaced. A dump that holds memory of a guest may hold areas of the guest's
//! own making. The address tells which area is the hypervisor's.

use crate::log::exits::{self, CAUSES, ExitCounts, brief};
use crate::log::names::PartitionNames;
use crate::log::never_ran::NeverRan;
use crate::serial::line::changes_others;
use bulkhead_abi::log::line::{STAMP_LEN, stamp};
use bulkhead_abi::log::{
    Area, CLOCK_STEP, CRASH_EXCEPTION, CRASH_NEW, CRASH_PANIC, CRASH_TOLD, Crash, ENTRY_SIZE, Entry, Header,
    Kind, LARGE, Layout, MAGIC, NONE, Partition, Pcpu, Prompt, SMALL, VERSION, Vcpu, are_positions, in_steps,
};
use bulkhead_abi::trace::{RING_MAX, RING_MIN};
use bulkhead_abi::{HealthClass, PartitionState};
use bulkhead_arch_api::class::Endianness;
use std::fmt::Write;
use std::mem::offset_of;

/// The time after a start in which nothing is said of a vCPU that has not run yet.
const MOMENT_NS: u64 = 1_000_000;

/// Reads so many bytes of memory from an address on.
pub type ReadMemory<'a, E> = dyn FnMut(u64, usize) -> Result<Vec<u8>, E> + 'a;

/// A log area.
#[derive(Clone, Debug)]
pub struct LogArea<'a> {
    bytes: &'a [u8],
    order: Endianness,
    layout: Layout,
}

/// The rings of the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rings {
    /// Bus address of the ring of pCPU 0. The other rings follow.
    pub base: u64,
    /// Records of each, a power of two.
    pub records: u64,
    /// Records ever stored, per pCPU.
    pub stored: Vec<u64>,
    /// Order of the bytes of their words.
    pub order: Endianness,
}

/// Sums over a partition's vCPUs, and the events of the partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionCounts {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: &'static str,
    /// Time its vCPUs ran, in nanoseconds.
    pub ran: u64,
    /// True if the time contains the waiting time of a vCPU that has a pCPU of its own and waits there
    /// without an exit.
    pub waits_in_place: bool,
    /// The exits of each vCPU.
    pub vcpus: Vec<VcpuCounts>,
    /// Restarts.
    pub restarts: u32,
    /// Times that it was loaded, for any reason.
    pub starts: u32,
    /// Health events by class.
    pub events: Vec<(&'static str, u32)>,
    /// The outcomes of the interrupts whose latency the manifest fixes.
    pub prompt: PromptCounts,
}

/// The exits of a vCPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VcpuCounts {
    /// Its number in the partition.
    pub index: u32,
    /// Its pCPU.
    pub pcpu: u32,
    /// The time that it had its pCPU, its waits there included, in nanoseconds.
    pub ran: u64,
    /// Its exits, in the order of [`CAUSES`].
    pub exits: ExitCounts,
}

impl VcpuCounts {
    /// Returns the number of all its exits.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.exits.iter().sum()
    }
}

/// Interrupts whose latency the manifest fixes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PromptCounts {
    /// In time.
    pub kept: u32,
    /// Later.
    pub late: u32,
    /// By how much the latest was later, in nanoseconds.
    pub latest: u64,
    /// The time at which they came is not known.
    pub unknown: u32,
}

impl PromptCounts {
    /// Returns the text for the user, or `None` if there was no such interrupt.
    fn text(&self) -> Option<String> {
        if (self.kept, self.late, self.unknown) == (0, 0, 0) {
            return None;
        }
        let mut text = format!("{} in time, {} late", self.kept, self.late);
        if self.late != 0 {
            let _ = write!(text, " (by {:.2} us at most)", self.latest as f64 / 1000.0);
        }
        if self.unknown != 0 {
            let _ = write!(text, ", {} came while masked", self.unknown);
        }
        Some(text)
    }
}

/// The values of the counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Time of this life of the hypervisor that the counters cover, in nanoseconds.
    pub time: u64,
    /// pCPUs.
    pub pcpus: u32,
    /// Time without a vCPU per pCPU, in nanoseconds.
    pub idle: Vec<u64>,
    /// True for each pCPU whose only vCPU waits there without an exit. This wait is not in `idle`.
    pub waits_in_place: Vec<bool>,
    /// Exceptions of each pCPU that are no vCPU's exits, in the order of [`CAUSES`].
    pub nobody: Vec<ExitCounts>,
    /// Partitions.
    pub partitions: Vec<PartitionCounts>,
}

/// Returns the layout that the header at the start of `memory` names.
fn layout_of(memory: &[u8]) -> Option<(Endianness, Layout)> {
    let is_order = |order: &Endianness| memory.starts_with(&order.bytes(MAGIC));
    let order = Endianness::ALL.into_iter().find(is_order)?;
    let size = memory.get(offset_of!(Header, size)..)?.first_chunk()?;
    Some((order, Layout::of_size(order.word(*size) as usize)?))
}

/// Reads the memory of the log area at `base`, as much as its header says. If no hypervisor has made an area
/// there, reads as much as the smallest area has.
///
/// # Errors
/// Memory could not be read.
pub fn read<E>(base: u64, memory: &mut ReadMemory<'_, E>) -> Result<Vec<u8>, E> {
    let mut bytes = memory(base, SMALL.size)?;
    if layout_of(&bytes).is_some_and(|(_, layout)| layout == LARGE) {
        bytes.extend(memory(base + SMALL.size as u64, LARGE.size - SMALL.size)?);
    }
    Ok(bytes)
}

impl<'a> LogArea<'a> {
    /// Finds the first log area in `dump`, and its offset.
    #[must_use]
    pub fn find(dump: &'a [u8]) -> Option<(usize, Self)> {
        Self::find_from(dump, 0)
    }

    /// Finds all log areas in `dump`, and their offsets.
    pub fn find_all(dump: &'a [u8]) -> impl Iterator<Item = (usize, Self)> {
        std::iter::successors(Self::find(dump), |(last, area)| {
            Self::find_from(dump, last + area.layout.size)
        })
    }

    fn find_from(dump: &'a [u8], start: usize) -> Option<(usize, Self)> {
        let mut at = start;
        while let Some(rest) = dump.get(at..).filter(|rest| rest.len() >= SMALL.size) {
            if let Some(area) = Self::at_start(rest) {
                return Some((at, area));
            }
            at += 8;
        }
        None
    }

    /// Returns the log area that `memory` starts with.
    #[must_use]
    pub fn at_start(memory: &'a [u8]) -> Option<Self> {
        let (order, layout) = layout_of(memory)?;
        let area = Self {
            bytes: memory.get(..layout.size)?,
            order,
            layout,
        };
        area.is_valid().then_some(area)
    }

    /// Returns the place of the trace's rings, if anything is traced.
    #[must_use]
    pub fn rings(&self) -> Option<Rings> {
        let records = self.word(offset_of!(Header, trace_records));
        if !records.is_power_of_two() || !(RING_MIN..=RING_MAX).contains(&records) {
            return None;
        }
        let pcpus = self
            .word(offset_of!(Header, pcpus))
            .min(self.layout.pcpus.1 as u32);
        let stored = |index: u32| {
            let pcpu = self.layout.pcpus.0 + index as usize * size_of::<Pcpu>();
            self.long(pcpu + offset_of!(Pcpu, traced))
        };
        Some(Rings {
            base: self.long(offset_of!(Header, trace_base)),
            records: u64::from(records),
            stored: (0..pcpus).map(stored).collect(),
            order: self.order,
        })
    }

    /// Returns the name of the board.
    #[must_use]
    pub fn board(&self) -> String {
        self.text(offset_of!(Header, board), bulkhead_abi::log::NAME_LEN)
    }

    /// Returns the ticks of the board's counter per second.
    #[must_use]
    pub fn hertz(&self) -> u64 {
        self.long(offset_of!(Header, hertz))
    }

    fn nanoseconds(&self, ticks: u64) -> u64 {
        (u128::from(ticks) * 1_000_000_000 / u128::from(self.hertz().max(1))) as u64
    }

    /// Returns the value of the counter when the last life of the hypervisor began.
    #[must_use]
    pub fn booted(&self) -> u64 {
        self.long(offset_of!(Header, booted))
    }

    /// Returns the names of the partitions, and for each vCPU its partition, its index there and its pCPU.
    #[must_use]
    pub fn tables(&self) -> (Vec<String>, Vec<[u8; 3]>) {
        let partitions = self
            .word(offset_of!(Header, partitions))
            .min(self.layout.partitions.1 as u32);
        let names = (0..partitions as usize).map(|index| {
            let at = self.layout.partitions.0 + index * size_of::<Partition>();
            self.text(at, bulkhead_abi::log::NAME_LEN)
        });
        let vcpus = self
            .word(offset_of!(Header, vcpus))
            .min(self.layout.vcpus.1 as u32);
        let vcpus = (0..vcpus as usize).map(|index| {
            let at = self.layout.vcpus.0 + index * size_of::<Vcpu>();
            let fields = [
                offset_of!(Vcpu, partition),
                offset_of!(Vcpu, index),
                offset_of!(Vcpu, pcpu),
            ];
            fields.map(|field| u8::try_from(self.word(at + field)).unwrap_or(u8::MAX))
        });
        (names.collect(), vcpus.collect())
    }

    /// Returns the name of the partition that has each pCPU, as of the pCPU's last decision.
    #[must_use]
    pub fn running(&self) -> Vec<Option<String>> {
        let (names, vcpus) = self.tables();
        let pcpus = self
            .word(offset_of!(Header, pcpus))
            .min(self.layout.pcpus.1 as u32);
        let running = |index: u32| {
            let pcpu = self.layout.pcpus.0 + index as usize * size_of::<Pcpu>();
            let [partition, ..] = vcpus.get(self.word(pcpu + offset_of!(Pcpu, running)) as usize)?;
            names.get(usize::from(*partition)).cloned()
        };
        (0..pcpus).map(running).collect()
    }

    /// Returns the exits of the vCPU of this number in the system, in the order of [`CAUSES`]. The number is
    /// one of [`LogArea::tables`].
    #[must_use]
    pub fn exits(&self, number: usize) -> ExitCounts {
        self.exits_at(self.layout.vcpus.0 + number * size_of::<Vcpu>() + offset_of!(Vcpu, exits))
    }

    /// Returns the exits of all vCPUs.
    #[must_use]
    pub fn exits_of_all(&self) -> Vec<ExitCounts> {
        let (_, vcpus) = self.tables();
        (0..vcpus.len()).map(|number| self.exits(number)).collect()
    }

    /// Returns the exceptions of each pCPU that are no vCPU's exits ([`Pcpu::exits`]), in the order of
    /// [`CAUSES`].
    #[must_use]
    pub fn exits_of_nobody(&self) -> Vec<ExitCounts> {
        let pcpus = self.word(offset_of!(Header, pcpus)) as usize;
        let at = |index: usize| self.layout.pcpus.0 + index * size_of::<Pcpu>() + offset_of!(Pcpu, exits);
        (0..pcpus.min(self.layout.pcpus.1))
            .map(|index| self.exits_at(at(index)))
            .collect()
    }

    fn exits_at(&self, at: usize) -> ExitCounts {
        CAUSES.map(|(_, counter)| u64::from(self.word(at + counter)))
    }

    fn is_valid(&self) -> bool {
        let (written, reserved) = self.positions();
        self.word(offset_of!(Header, version)) == VERSION && are_positions(written, reserved)
    }

    fn word(&self, at: usize) -> u32 {
        let bytes = self.bytes[at..].first_chunk();
        bytes.map_or(0, |bytes| self.order.word(*bytes))
    }

    fn long(&self, at: usize) -> u64 {
        let bytes = self.bytes[at..].first_chunk();
        bytes.map_or(0, |bytes| self.order.long(*bytes))
    }

    fn text(&self, at: usize, length: usize) -> String {
        let bytes = &self.bytes[at..at + length];
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(length);
        printable(&String::from_utf8_lossy(&bytes[..end]))
    }

    fn positions(&self) -> (u64, u64) {
        (
            self.long(offset_of!(Header, written)),
            self.long(offset_of!(Header, reserved)),
        )
    }

    /// Returns the number of lives of the hypervisor since the area was made.
    #[must_use]
    pub fn boots(&self) -> u32 {
        self.word(offset_of!(Header, boots))
    }

    /// Returns the lines of the log, oldest first. A line whose start was
    /// overwritten has only its end.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let (written, reserved) = self.positions();
        let (start, size) = self.layout.ring;
        let first = reserved.saturating_sub(size as u64) / ENTRY_SIZE as u64;
        let word = |at: usize| self.long(start + at % size);
        let entries = (first..written / ENTRY_SIZE as u64).map(|number| {
            let at = (number % (size / ENTRY_SIZE) as u64) as usize * ENTRY_SIZE;
            Entry::decode(std::array::from_fn(|index| word(at + 8 * index)))
        });
        let entries: Vec<Option<Entry>> = entries.collect();
        let is_partition = |entry: &Entry| entry.kind == Kind::Partition;
        let names = match entries.iter().flatten().any(is_partition) {
            true => Vec::new(),
            false => self.tables().0,
        };
        lines_of(entries, PartitionNames(names))
    }

    /// Returns the time in nanoseconds by which the clock of each pCPU has interrupted it late, at most. A
    /// clock that is due at the end of the life and has not interrupted yet counts too.
    #[must_use]
    pub fn delays(&self) -> Vec<u64> {
        let pcpus = self
            .word(offset_of!(Header, pcpus))
            .min(self.layout.pcpus.1 as u32);
        let pcpu = |index: u32| self.layout.pcpus.0 + index as usize * size_of::<Pcpu>();
        let since = (0..pcpus).map(|index| self.long(pcpu(index) + offset_of!(Pcpu, since)));
        let last = since.chain([self.long(offset_of!(Header, noted))]).max();
        let last = last.unwrap_or(0);
        let delay = |index: u32| {
            let due = self.word(pcpu(index) + offset_of!(Pcpu, due));
            // A clock can be due so much later that only the lower bits of its time look like the past. It
            // cannot have been due before the counter began.
            let behind = match in_steps(last).wrapping_sub(due) {
                behind if due != 0 && behind < u32::MAX / 2 && u64::from(behind) <= last / CLOCK_STEP => {
                    behind
                }
                _ => 0,
            };
            let late = self.word(pcpu(index) + offset_of!(Pcpu, late));
            self.nanoseconds(u64::from(late.max(behind)) * CLOCK_STEP)
        };
        (0..pcpus).map(delay).collect()
    }

    /// Returns the counters of the last life.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let time = |ticks: u64| self.nanoseconds(ticks);
        let pcpus = self
            .word(offset_of!(Header, pcpus))
            .min(self.layout.pcpus.1 as u32);
        let booted = self.long(offset_of!(Header, booted));
        let pcpu = |index: u32| self.layout.pcpus.0 + index as usize * size_of::<Pcpu>();
        let since = (0..pcpus).map(|index| self.long(pcpu(index) + offset_of!(Pcpu, since)));
        let vcpus = self
            .word(offset_of!(Header, vcpus))
            .min(self.layout.vcpus.1 as u32);
        let vcpu = |index: u32| self.layout.vcpus.0 + index as usize * size_of::<Vcpu>();
        let waiting = (0..vcpus).map(|index| self.long(vcpu(index) + offset_of!(Vcpu, waiting)));
        let noted = self.long(offset_of!(Header, noted));
        let last = since.chain(waiting).chain([noted]).max();
        let last = last.unwrap_or(booted);
        let mut counts = Counts {
            time: time(last.saturating_sub(booted)),
            pcpus,
            nobody: self.exits_of_nobody(),
            ..Counts::default()
        };
        // The counters do not contain the time since a pCPU's last decision yet.
        let pending = |index: u32| last.saturating_sub(self.long(pcpu(index) + offset_of!(Pcpu, since)));
        for index in 0..pcpus {
            let runs = self.word(pcpu(index) + offset_of!(Pcpu, running)) != NONE;
            let pending = if runs { 0 } else { pending(index) };
            let idle = self.long(pcpu(index) + offset_of!(Pcpu, idle));
            counts.idle.push(time(idle.saturating_add(pending)));
            counts.waits_in_place.push(false);
        }
        for index in 0..self
            .word(offset_of!(Header, partitions))
            .min(self.layout.partitions.1 as u32)
        {
            counts.partitions.push(self.partition(index));
        }
        let home = |index: u32| {
            self.word(vcpu(index) + offset_of!(Vcpu, pcpu))
                .min(self.layout.pcpus.1 as u32 - 1)
        };
        let homes: Vec<u32> = (0..vcpus).map(home).collect();
        for (index, home) in (0..).zip(&homes) {
            let at = vcpu(index);
            let partition = self.word(at + offset_of!(Vcpu, partition)) as usize;
            let Some(partition) = counts.partitions.get_mut(partition) else {
                continue;
            };
            let runs = self.word(pcpu(*home) + offset_of!(Pcpu, running)) == index;
            let ran = self.long(at + offset_of!(Vcpu, ran));
            let ran = ran.saturating_add(if runs { pending(*home) } else { 0 });
            // A class that sees a vCPU wait in its own time says how long.
            let waited = self.waited(at, last).min(ran);
            partition.ran = partition.ran.saturating_add(time(ran - waited));
            let alone = homes.iter().filter(|other| *other == home).count() == 1;
            // On a microcontroller no vCPU waits in place.
            let waits = self.layout == SMALL || self.word(at + offset_of!(Vcpu, exits.idle)) != 0;
            let in_place = alone && runs && !waits;
            partition.waits_in_place |= in_place;
            if let Some(idle) = counts.idle.get_mut(*home as usize) {
                *idle = idle.saturating_add(time(waited));
            }
            if let Some(pcpu) = counts.waits_in_place.get_mut(*home as usize) {
                *pcpu |= in_place;
            }
            partition.vcpus.push(VcpuCounts {
                index: self.word(at + offset_of!(Vcpu, index)),
                pcpu: *home,
                ran: time(ran),
                exits: self.exits(index as usize),
            });
        }
        counts
    }

    /// Returns the ticks until `last` in which the vCPU at offset `at` waited in its own time.
    fn waited(&self, at: usize, last: u64) -> u64 {
        let waited = self.long(at + offset_of!(Vcpu, waited));
        match self.long(at + offset_of!(Vcpu, waiting)) {
            0 => waited,
            since => waited.saturating_add(last.saturating_sub(since)),
        }
    }

    fn partition(&self, index: u32) -> PartitionCounts {
        let at = self.layout.partitions.0 + index as usize * size_of::<Partition>();
        let event = |class: HealthClass| self.word(at + offset_of!(Partition, events) + 4 * class as usize);
        let state = u8::try_from(self.word(at + offset_of!(Partition, state)));
        let prompt = |field: usize| self.word(at + offset_of!(Partition, prompt) + field);
        PartitionCounts {
            name: self.text(at, bulkhead_abi::log::NAME_LEN),
            state: state
                .ok()
                .and_then(PartitionState::from_number)
                .map_or("?", PartitionState::name),
            restarts: self.word(at + offset_of!(Partition, restarts)),
            starts: self.word(at + offset_of!(Partition, starts)),
            events: HealthClass::ALL
                .iter()
                .map(|class| (class.name(), event(*class)))
                .filter(|(_, count)| *count != 0)
                .collect(),
            prompt: PromptCounts {
                kept: prompt(offset_of!(Prompt, kept)),
                late: prompt(offset_of!(Prompt, late)),
                latest: self.nanoseconds(prompt(offset_of!(Prompt, latest)).into()),
                unknown: prompt(offset_of!(Prompt, unknown)),
            },
            ..PartitionCounts::default()
        }
    }

    /// Describes how the hypervisor ended, if it crashed.
    #[must_use]
    pub fn crash(&self) -> Option<String> {
        let base = offset_of!(Area, crash);
        let state = self.word(base + offset_of!(Crash, state));
        if state != CRASH_NEW && state != CRASH_TOLD {
            return None;
        }
        let kind = match self.word(base + offset_of!(Crash, kind)) {
            CRASH_EXCEPTION => "exception",
            CRASH_PANIC => "panic",
            _ => "lockdown",
        };
        let mut text = format!("{kind} in boot {}", self.word(base + offset_of!(Crash, boot)));
        match self.word(base + offset_of!(Crash, pcpu)) {
            NONE => {}
            pcpu => _ = write!(text, " on pCPU {pcpu}"),
        }
        let length = self.word(base + offset_of!(Crash, message_length)) as usize;
        let length = length.min(bulkhead_abi::log::MESSAGE_LEN);
        let message = self.text(base + offset_of!(Crash, message), length);
        let _ = write!(text, "\n  {message}");
        if kind == "exception" {
            self.registers(base, &mut text);
        }
        let words = self.word(base + offset_of!(Crash, stack_words)) as usize;
        let sp = self.long(base + offset_of!(Crash, sp));
        let words = words.min(self.layout.stack_words);
        for row in 0..words.div_ceil(4) {
            let _ = write!(text, "\n  stack {:#x}:", sp.wrapping_add(row as u64 * 32));
            for word in row * 4..words.min(row * 4 + 4) {
                let _ = write!(
                    text,
                    " {:016x}",
                    self.long(base + offset_of!(Crash, stack) + 8 * word)
                );
            }
        }
        Some(text)
    }

    fn registers(&self, base: usize, text: &mut String) {
        let long = |field: usize| self.long(base + field);
        let (pc, load) = (long(offset_of!(Crash, pc)), long(offset_of!(Crash, base)));
        let _ = write!(
            text,
            "\n  pc {pc:#x}, in the class binary's ELF {:#x}; syndrome {:#x}, address {:#x}, state {:#x}",
            pc.wrapping_sub(load),
            long(offset_of!(Crash, syndrome)),
            long(offset_of!(Crash, address)),
            long(offset_of!(Crash, status)),
        );
        if self.layout == SMALL {
            // With this layout the registers are on the stack, at best.
            return;
        }
        for row in (0..31).step_by(4) {
            text.push_str("\n ");
            for number in row..31.min(row + 4) {
                let value = long(offset_of!(Crash, registers) + 8 * number);
                let _ = write!(text, " x{number:<2} {value:016x}");
            }
        }
    }

    /// Returns everything as text for people.
    #[must_use]
    pub fn text_of_all(&self) -> String {
        let board = self.board();
        let mut text = format!("log of board {board}, boot {}\n", self.boots());
        for line in self.lines() {
            let _ = writeln!(text, "{line}");
        }
        if let Some(crash) = self.crash() {
            let _ = writeln!(text, "\ncrash of the hypervisor: {crash}");
        }
        let _ = writeln!(text, "\n{}", self.counts().table());
        text
    }
}

impl Counts {
    /// Returns the counters as a table of 80 columns.
    #[must_use]
    pub fn table(&self) -> String {
        let share = |part: u64| 100.0 * part as f64 / self.time.max(1) as f64;
        let mut text = format!(
            "{:<16} {:<8} {:>6} {:>7} {:>8}",
            "partition", "state", "CPU", "starts", "exits"
        );
        for partition in &self.partitions {
            let _ = write!(
                text,
                "\n{:<16} {:<8} {:>5.1}%{}{:>7} {:>8}",
                shortened(&partition.name, 16),
                partition.state,
                share(partition.ran),
                mark(partition.waits_in_place),
                partition.starts,
                brief(partition.vcpus.iter().map(VcpuCounts::total).sum()),
            );
        }
        for (pcpu, idle) in self.idle.iter().enumerate() {
            let _ = write!(
                text,
                "\n{:<25} {:>5.1}%{}",
                format!("pCPU {pcpu} idle"),
                share(*idle),
                mark(self.waits_in_place.get(pcpu) == Some(&true)).trim_end()
            );
        }
        if self.waits_in_place.contains(&true) {
            text.push_str("\n* alone on its pCPU, a vCPU waits without an exit: its waiting counts as CPU");
        }
        self.exits(&mut text);
        for partition in self
            .partitions
            .iter()
            .filter(|partition| !partition.events.is_empty())
        {
            let events: Vec<String> = partition
                .events
                .iter()
                .map(|(class, count)| format!("{count} {class}"))
                .collect();
            let _ = write!(
                text,
                "\nhealth events of {}: {}",
                partition.name,
                events.join(", ")
            );
        }
        for partition in &self.partitions {
            if let Some(counts) = partition.prompt.text() {
                let _ = write!(text, "\ninterrupts of {}: {counts}", partition.name);
            }
        }
        text
    }
}

impl Counts {
    /// Returns the partitions that were started and whose first vCPU never ran. That one is ready from the
    /// start on, because it also loads its partition; another one waits until the guest starts it. `since`
    /// tells when a partition was loaded, in nanoseconds after boot.
    #[must_use]
    pub fn never_ran(&self, since: impl Fn(&str) -> Option<u64>) -> Vec<NeverRan> {
        let is_started = |partition: &&PartitionCounts| partition.starts != 0;
        let waiting = |partition: &PartitionCounts| {
            let first = partition.vcpus.iter().find(|vcpu| vcpu.index == 0)?;
            let since = since(&partition.name);
            // A vCPU that has just started may be about to run.
            let is_new = since.is_some_and(|since| self.time.saturating_sub(since) < MOMENT_NS);
            if first.ran != 0 || first.total() != 0 || is_new {
                return None;
            }
            let pcpu = first.pcpu;
            let idle = self.idle.get(pcpu as usize).copied().unwrap_or(0);
            let had = self.owners(pcpu).chain([("nobody".to_owned(), idle)]).collect();
            Some(NeverRan::new(partition.name.clone(), since, pcpu, had, self.time))
        };
        self.partitions
            .iter()
            .filter(is_started)
            .filter_map(waiting)
            .collect()
    }

    /// Returns the partitions with a vCPU on a pCPU, and how long they had it.
    fn owners(&self, pcpu: u32) -> impl Iterator<Item = (String, u64)> {
        self.partitions.iter().map(move |partition| {
            let there = partition.vcpus.iter().filter(|vcpu| vcpu.pcpu == pcpu);
            (partition.name.clone(), there.map(|vcpu| vcpu.ran).sum())
        })
    }

    /// Adds the exits of each vCPU by cause, in 80 columns.
    fn exits(&self, text: &mut String) {
        text.push('\n');
        exits::head(text);
        for partition in &self.partitions {
            for vcpu in &partition.vcpus {
                let name = match partition.vcpus.len() {
                    1 => partition.name.clone(),
                    _ => format!("{}/{}", shortened(&partition.name, 12), vcpu.index),
                };
                exits::row(text, &name, &vcpu.exits);
            }
        }
        for (pcpu, exits) in self.nobody.iter().enumerate() {
            if exits.iter().any(|count| *count != 0) {
                exits::row(text, &format!("pCPU {pcpu}"), exits);
            }
        }
        text.pop();
    }
}

/// Returns the mark for a figure that the last line of the table explains.
fn mark(needed: bool) -> &'static str {
    if needed { "*" } else { " " }
}

/// Returns the lines of entries.
fn lines_of(entries: Vec<Option<Entry>>, names: PartitionNames) -> Vec<String> {
    let mut names = names;
    let mut lines = Vec::new();
    let mut line: Option<Vec<u8>> = None;
    for entry in entries {
        let Some(entry) = entry else {
            line = None;
            continue;
        };
        names.learn(&entry);
        let text = line.get_or_insert_with(|| {
            let mut time = [0; STAMP_LEN];
            [b"[", stamp(entry.time, &mut time), b"] "].concat()
        });
        text.extend(names.text(&entry));
        if !entry.has_more() {
            lines.extend(line.take().map(|text| printable(&String::from_utf8_lossy(&text))));
        }
    }
    lines
}

/// Replaces characters that could control a terminal.
fn printable(text: &str) -> String {
    let replace = |c: char| {
        if changes_others(c) {
            char::REPLACEMENT_CHARACTER
        } else {
            c
        }
    };
    text.chars().map(replace).collect()
}

fn shortened(text: &str, length: usize) -> String {
    text.chars().take(length).collect()
}

#[cfg(test)]
mod tests;
