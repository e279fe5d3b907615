// SPDX-License-Identifier: Apache-2.0
//! The log area: the records that the hypervisor leaves in RAM for a later reader.
//!
//! [`AREA_SIZE`] bytes directly below the address at which the flashable file is loaded. Nothing clears them:
//! a warm reset keeps them, the next life of the hypervisor continues them, and the host tool finds them in a
//! memory dump by [`MAGIC`]. No UART is needed for any of it.
//!
//! | bytes from | what |
//! |---|---|
//! | 0 | [`Header`] |
//! | 0x100 | [`Crash`]: how the hypervisor itself ended, if it did |
//! | 0x800 | [`Pcpu`], one per pCPU |
//! | 0xa00 | [`Partition`], one per partition |
//! | 0x1a00 | [`Vcpu`], one per vCPU |
//! | 0x8000 | ring of the log: an [`Entry`] of 64 bytes for each thing that happened |
//!
//! On a microcontroller the area is smaller: the pCPU from 0x400 on, partitions from 0x440, vCPUs from 0x840,
//! the ring from 0xc00. [`Header::size`] tells.
//!
//! **Consistent at every store**, because the power can go at any: the magic number is stored last when the
//! area is made. The entries of a line are announced in `reserved`, stored, and then counted in `written`; so
//! the ring holds the entries from `reserved` - size (or 0) up to `written`. A crash record counts when its
//! `state` says so, which is stored last.
//!
//! An entry names a partition by its number. An entry of [`Kind::Partition`] for each partition, at the begin
//! of each life of the hypervisor, says how the partitions of that life are called.
//!
//! All fields are atomics: any bytes are a value of this type, and
//! readers on other CPUs see whole numbers. Numbers have the byte order of the CPU.

pub mod ending;
pub mod entry;
pub mod line;
#[cfg(any(test, feature = "read"))]
pub mod read;
pub mod record;
pub mod registers;
pub mod text;

pub use entry::{ENTRY_SIZE, ENTRY_WORDS, Entry, Kind, StoredEntry};
pub use registers::RegisterFile;
pub use text::{Names, PieceLine};

use crate::atomic::AtomicU64;
use crate::size::{TABLES, Tables, limit};
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// Bytes of the area.
pub const AREA_SIZE: usize = LAYOUT.size;
/// Bytes of the area on a microcontroller.
pub const SMALL_AREA_SIZE: usize = SMALL.size;
/// The layout of this build.
const LAYOUT: Layout = Layout::of(TABLES);
/// "BULKLOG1", as the bytes are in memory.
pub const MAGIC: u64 = u64::from_le_bytes(*b"BULKLOG1");
/// Revision of the layout.
pub const VERSION: u32 = 4;
/// Bytes of the ring.
pub const RING_SIZE: usize = LAYOUT.ring.1;
/// Entries of the ring.
pub const ENTRIES: usize = RING_SIZE / ENTRY_SIZE;
/// Entries that are announced together at most.
pub const LINE_ENTRIES: usize = 8;
/// Bytes of the ring that are announced at most.
pub const LINE_MAX: usize = LINE_ENTRIES * ENTRY_SIZE;
/// Bytes of a name.
pub const NAME_LEN: usize = 32;
/// Bytes of the message of a crash.
pub const MESSAGE_LEN: usize = 256;
/// Words of the stack in a crash record.
pub const STACK_WORDS: usize = LAYOUT.stack_words;
/// pCPUs that have a place.
pub const PCPUS: usize = LAYOUT.pcpus.1;
/// Partitions that have a place.
pub const PARTITIONS: usize = LAYOUT.partitions.1;
/// vCPUs that have a place.
pub const VCPUS: usize = LAYOUT.vcpus.1;
/// Unused bytes before the ring.
const UNUSED: usize = limit(0x180, 0x5600);
/// Unused bytes after a crash record.
const CRASH_UNUSED: usize = limit(16, 432);
/// Bytes of the device secret, and of each secret that follows from it.
pub const SECRET_LEN: usize = 32;
/// First bytes of what is handed over.
pub const HANDOVER_MAGIC: [u8; 8] = *b"BULKSEED";
/// Bytes that are handed over.
pub const HANDOVER_LEN: usize = HANDOVER_MAGIC.len() + SECRET_LEN;
/// The place of these bytes: bytes from the start of the area.
pub const HANDOVER: usize = core::mem::offset_of!(Header, handover);
/// "None" where a number is expected.
pub const NONE: u32 = u32::MAX;

/// Where things are in an area, for readers that serve all classes: offset, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of the area.
    pub size: usize,
    /// [`Pcpu`]s.
    pub pcpus: (usize, usize),
    /// [`Partition`]s.
    pub partitions: (usize, usize),
    /// [`Vcpu`]s.
    pub vcpus: (usize, usize),
    /// Bytes of the ring.
    pub ring: (usize, usize),
    /// Words of the stack in a crash record.
    pub stack_words: usize,
}

/// The layout on a microcontroller.
pub const SMALL: Layout = Layout {
    size: 0x1000,
    pcpus: (0x400, 2),
    partitions: (0x480, 8),
    vcpus: (0x880, 8),
    ring: (0xC00, 0x400),
    stack_words: 20,
};

/// The layout elsewhere.
pub const LARGE: Layout = Layout {
    size: 0x1_0000,
    pcpus: (0x800, 8),
    partitions: (0xA00, 32),
    vcpus: (0x1A00, 64),
    ring: (0x8000, 0x8000),
    stack_words: 96,
};

impl Layout {
    /// Returns the layout of a log that a class binary with tables of this size writes.
    #[must_use]
    pub const fn of(tables: Tables) -> Self {
        match tables {
            Tables::Small => SMALL,
            Tables::Large => LARGE,
        }
    }

    /// Returns the layout of an area that says it has this many bytes ([`Header::size`]).
    #[must_use]
    pub const fn of_size(size: usize) -> Option<Self> {
        if size == SMALL.size {
            Some(SMALL)
        } else if size == LARGE.size {
            Some(LARGE)
        } else {
            None
        }
    }
}

/// Start of the area.
#[derive(Debug)]
#[repr(C)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// [`VERSION`].
    pub version: AtomicU32,
    /// [`AREA_SIZE`].
    pub size: AtomicU32,
    /// Bytes ever stored in the ring, a multiple of [`ENTRY_SIZE`].
    pub written: AtomicU64,
    /// The same, with the line that is being stored.
    pub reserved: AtomicU64,
    /// Ticks of the board's counter per second.
    pub hertz: AtomicU64,
    /// The counter when this life began.
    pub booted: AtomicU64,
    /// Lives of the hypervisor since the area was made, this one included.
    pub boots: AtomicU32,
    /// pCPUs in use.
    pub pcpus: AtomicU32,
    /// Partitions in use.
    pub partitions: AtomicU32,
    /// vCPUs in use.
    pub vcpus: AtomicU32,
    /// Name of the board.
    pub board: [AtomicU8; NAME_LEN],
    /// The counter when the log or the life of a partition changed last.
    pub noted: AtomicU64,
    /// Bus address of the trace: the rings of all pCPUs, pCPU 0 first ([`crate::trace`]).
    pub trace_base: AtomicU64,
    /// Records of each ring, a power of two; 0 if nothing is traced.
    pub trace_records: AtomicU32,
    unused: [AtomicU8; 100],
    /// The place where the boot stage before the hypervisor leaves the device secret: [`HANDOVER_MAGIC`] and
    /// [`SECRET_LEN`] bytes. A hypervisor with secrets reads them once, and leaves zeros.
    pub handover: [AtomicU32; HANDOVER_LEN / 4],
}

/// No crash.
pub const CRASH_NONE: u32 = 0;
/// A crash that has not been reported yet.
pub const CRASH_NEW: u32 = 0x4352_5348;
/// A crash that the next life has shown on its console.
pub const CRASH_TOLD: u32 = 0x544F_4C44;

/// An exception of the hypervisor itself.
pub const CRASH_EXCEPTION: u32 = 1;
/// A panic.
pub const CRASH_PANIC: u32 = 2;
/// A lockdown: the hypervisor refused to start or to go on.
pub const CRASH_LOCKDOWN: u32 = 3;

/// The record of how the hypervisor ended.
#[derive(Debug)]
#[repr(C)]
pub struct Crash {
    /// `CRASH_NONE`, `CRASH_NEW` or `CRASH_TOLD`; anything else is none.
    pub state: AtomicU32,
    /// `CRASH_EXCEPTION`, `CRASH_PANIC` or `CRASH_LOCKDOWN`.
    pub kind: AtomicU32,
    /// In which life.
    pub boot: AtomicU32,
    /// On which pCPU.
    pub pcpu: AtomicU32,
    /// The counter then.
    pub time: AtomicU64,
    /// Syndrome of the exception (aarch64: ESR_EL2).
    pub syndrome: AtomicU64,
    /// Address of the exception (FAR_EL2).
    pub address: AtomicU64,
    /// Address of the instruction (ELR_EL2).
    pub pc: AtomicU64,
    /// Processor state (SPSR_EL2).
    pub status: AtomicU64,
    /// Stack pointer.
    pub sp: AtomicU64,
    /// Where the class binary runs: an address in its ELF file is `pc` less this.
    pub base: AtomicU64,
    /// Which vector.
    pub vector: AtomicU64,
    /// General registers.
    pub registers: [AtomicU64; 31],
    /// Words of the stack that follow.
    pub stack_words: AtomicU32,
    /// Bytes of the message that follows.
    pub message_length: AtomicU32,
    /// The text that was printed on the console.
    pub message: [AtomicU8; MESSAGE_LEN],
    /// The stack from `sp` on.
    pub stack: [AtomicU64; STACK_WORDS],
    unused: [AtomicU8; CRASH_UNUSED],
}

/// The ticks in which the times of [`Pcpu::due`] and [`Pcpu::late`] are counted.
pub const CLOCK_STEP: u64 = 1 << 10;

/// Returns a counter's value as [`Pcpu::due`] has it: in steps of [`CLOCK_STEP`], of which the lower 32 bits
/// are kept.
#[inline]
#[must_use]
pub const fn in_steps(ticks: u64) -> u32 {
    (ticks / CLOCK_STEP) as u32
}

/// The counters of a pCPU.
#[derive(Debug)]
#[repr(C)]
pub struct Pcpu {
    /// Ticks without a vCPU, up to `since`.
    pub idle: AtomicU64,
    /// The counter when the present decision was taken.
    pub since: AtomicU64,
    /// The vCPU that runs since, or [`NONE`].
    pub running: AtomicU32,
    /// The time at which its clock is to interrupt it, as [`in_steps`] returns it; 0 if never. Only where
    /// there are several pCPUs.
    pub due: AtomicU32,
    /// Records ever stored in its ring of the trace.
    pub traced: AtomicU64,
    /// Exceptions that came while no vCPU ran, and exceptions of interrupts whose latency is fixed, which are
    /// taken once more on their way.
    pub exits: Exits,
    /// The most steps of [`CLOCK_STEP`] by which its clock has interrupted it late. Only where there are
    /// several pCPUs.
    pub late: AtomicU32,
}

/// A partition.
#[derive(Debug)]
#[repr(C)]
pub struct Partition {
    /// Its name, NUL padded.
    pub name: [AtomicU8; NAME_LEN],
    /// Its state, a `PartitionState` as a number.
    pub state: AtomicU32,
    /// Restarts in this life.
    pub restarts: AtomicU32,
    /// Health events by class, a `HealthClass` as a number; 0 is not used.
    pub events: [AtomicU32; 8],
    /// Interrupts whose latency the manifest fixes.
    pub prompt: Prompt,
    /// Starts in this life of the board, for any reason: each time that the partition is loaded.
    pub starts: AtomicU32,
    unused: [AtomicU8; 36],
}

/// Counters of the interrupts whose latency is fixed; counters wrap.
#[derive(Debug)]
#[repr(C)]
pub struct Prompt {
    /// They reached the partition exactly in time.
    pub kept: AtomicU32,
    /// They reached it later.
    pub late: AtomicU32,
    /// Ticks of the board's counter by which the latest was late.
    pub latest: AtomicU32,
    /// They came while their line was masked, so the time of their arrival is not known.
    pub unknown: AtomicU32,
}

/// A vCPU. Its counters wrap.
#[derive(Debug)]
#[repr(C)]
pub struct Vcpu {
    /// Ticks it ran, up to its pCPU's `since`.
    pub ran: AtomicU64,
    /// Its partition.
    pub partition: AtomicU32,
    /// Its number in the partition.
    pub index: AtomicU32,
    /// Its pCPU.
    pub pcpu: AtomicU32,
    /// Its exits.
    pub exits: Exits,
    /// Ticks of those it ran in which it waited, on a pCPU where nothing else runs. Only of a class that sees
    /// it wait.
    pub waited: AtomicU64,
    /// The counter since which it waits so; 0 if it does not.
    pub waiting: AtomicU64,
}

/// Exits by cause: every exception that the hypervisor took while the vCPU ran, those included that the
/// backend answered by itself. The backend counts, where the exception comes in; counters wrap.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Exits {
    /// Physical interrupts, for any partition or for the hypervisor.
    pub interrupts: AtomicU32,
    /// Calls: HVC, SMC and SVC.
    pub calls: AtomicU32,
    /// Loads and stores that were refused.
    pub accesses: AtomicU32,
    /// Instructions that the hypervisor carries out: accesses to system registers, and on a microcontroller
    /// all instructions that an unprivileged program may not use.
    pub instructions: AtomicU32,
    /// Instructions that wait.
    pub idle: AtomicU32,
    /// First uses of the FP registers after another vCPU's.
    pub fp: AtomicU32,
    /// Anything else: refused fetches, undefined instructions, breakpoints, SErrors.
    pub other: AtomicU32,
}

/// The log area.
#[derive(Debug)]
#[repr(C)]
pub struct Area {
    /// Start.
    pub header: Header,
    /// The record of how the hypervisor ended, if it did.
    pub crash: Crash,
    /// pCPUs.
    pub pcpus: [Pcpu; PCPUS],
    /// Partitions.
    pub partitions: [Partition; PARTITIONS],
    /// vCPUs.
    pub vcpus: [Vcpu; VCPUS],
    unused: [AtomicU8; UNUSED],
    /// The log.
    pub ring: [StoredEntry; ENTRIES],
}

const _: () = assert!(
    core::mem::offset_of!(Area, crash) == 0x100
        && core::mem::offset_of!(Area, pcpus) == LAYOUT.pcpus.0
        && core::mem::offset_of!(Area, partitions) == LAYOUT.partitions.0
        && core::mem::offset_of!(Area, vcpus) == LAYOUT.vcpus.0
        && core::mem::offset_of!(Area, ring) == LAYOUT.ring.0
        && size_of::<Area>() == AREA_SIZE
);

impl Area {
    /// Makes an area of zeros, which is no valid one.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            header: Header::new(),
            crash: Crash::new(),
            pcpus: [const { Pcpu::new() }; PCPUS],
            partitions: [const { Partition::new() }; PARTITIONS],
            vcpus: [const { Vcpu::new() }; VCPUS],
            unused: [const { AtomicU8::new(0) }; UNUSED],
            ring: [const { [const { AtomicU64::new(0) }; ENTRY_WORDS] }; ENTRIES],
        }
    }

    /// Makes an empty area out of what RAM happens to hold; leaves one that is there as it is.
    pub fn make_if_invalid(&self) {
        let header = &self.header;
        if header.is_valid() {
            return;
        }
        header.magic.store(0, Ordering::SeqCst);
        header.version.store(VERSION, Ordering::Relaxed);
        header.size.store(AREA_SIZE as u32, Ordering::Relaxed);
        header.written.store(0, Ordering::Relaxed);
        header.reserved.store(0, Ordering::Relaxed);
        for counter in [&header.boots, &header.pcpus, &header.partitions, &header.vcpus] {
            counter.store(0, Ordering::Relaxed);
        }
        self.crash.state.store(CRASH_NONE, Ordering::Relaxed);
        header.magic.store(MAGIC, Ordering::SeqCst);
    }
}

impl Default for Area {
    fn default() -> Self {
        Self::new()
    }
}

impl Header {
    const fn new() -> Self {
        Self {
            magic: AtomicU64::new(0),
            version: AtomicU32::new(0),
            size: AtomicU32::new(0),
            written: AtomicU64::new(0),
            reserved: AtomicU64::new(0),
            hertz: AtomicU64::new(0),
            booted: AtomicU64::new(0),
            boots: AtomicU32::new(0),
            pcpus: AtomicU32::new(0),
            partitions: AtomicU32::new(0),
            vcpus: AtomicU32::new(0),
            board: [const { AtomicU8::new(0) }; NAME_LEN],
            noted: AtomicU64::new(0),
            trace_base: AtomicU64::new(0),
            trace_records: AtomicU32::new(0),
            unused: [const { AtomicU8::new(0) }; 100],
            handover: [const { AtomicU32::new(0) }; HANDOVER_LEN / 4],
        }
    }

    /// Tells whether this is the start of a log area, and not what RAM happens to hold after power-on.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let (written, reserved) = (
            self.written.load(Ordering::Relaxed),
            self.reserved.load(Ordering::Relaxed),
        );
        self.magic.load(Ordering::Relaxed) == MAGIC
            && self.version.load(Ordering::Relaxed) == VERSION
            && self.size.load(Ordering::Relaxed) == AREA_SIZE as u32
            && are_positions(written, reserved)
    }
}

/// Tells whether these can be the positions of a ring ([`Header::written`], [`Header::reserved`]).
#[must_use]
pub const fn are_positions(written: u64, reserved: u64) -> bool {
    let is_whole = written.is_multiple_of(ENTRY_SIZE as u64) && reserved.is_multiple_of(ENTRY_SIZE as u64);
    match reserved.checked_sub(written) {
        Some(rest) => is_whole && rest <= LINE_MAX as u64,
        None => false,
    }
}

/// The names of an area's partitions, and the registers that a report may be about.
#[derive(Clone, Copy, Debug)]
pub struct AreaNames<'a>(pub &'a Area, pub &'static [&'static RegisterFile]);

impl Names for AreaNames<'_> {
    fn add_name(&self, partition: u8, to: &mut PieceLine) {
        let Self(area, _) = self;
        let bytes = area
            .partitions
            .get(usize::from(partition))
            .map(|place| &place.name);
        for byte in bytes
            .into_iter()
            .flatten()
            .map(|byte| byte.load(Ordering::Relaxed))
        {
            if byte == 0 {
                break;
            }
            to.bytes(&[byte]);
        }
    }

    fn files(&self) -> &[&RegisterFile] {
        self.1
    }
}

impl Crash {
    const fn new() -> Self {
        Self {
            state: AtomicU32::new(CRASH_NONE),
            kind: AtomicU32::new(0),
            boot: AtomicU32::new(0),
            pcpu: AtomicU32::new(0),
            time: AtomicU64::new(0),
            syndrome: AtomicU64::new(0),
            address: AtomicU64::new(0),
            pc: AtomicU64::new(0),
            status: AtomicU64::new(0),
            sp: AtomicU64::new(0),
            base: AtomicU64::new(0),
            vector: AtomicU64::new(0),
            registers: [const { AtomicU64::new(0) }; 31],
            stack_words: AtomicU32::new(0),
            message_length: AtomicU32::new(0),
            message: [const { AtomicU8::new(0) }; MESSAGE_LEN],
            stack: [const { AtomicU64::new(0) }; STACK_WORDS],
            unused: [const { AtomicU8::new(0) }; CRASH_UNUSED],
        }
    }

    /// Begins a record: there is none until [`Crash::complete`].
    #[inline(never)]
    pub fn begin(&self, kind: u32, pcpu: u32, time: u64, message: &[u8]) {
        self.state.store(CRASH_NONE, Ordering::SeqCst);
        self.kind.store(kind, Ordering::Relaxed);
        self.pcpu.store(pcpu, Ordering::Relaxed);
        self.time.store(time, Ordering::Relaxed);
        let message = message.get(..MESSAGE_LEN).unwrap_or(message);
        store_bytes(&self.message, message);
        self.message_length.store(message.len() as u32, Ordering::Relaxed);
        self.stack_words.store(0, Ordering::Relaxed);
        let words = [
            &self.syndrome,
            &self.address,
            &self.pc,
            &self.status,
            &self.sp,
            &self.base,
            &self.vector,
        ];
        for word in words.into_iter().chain(&self.registers) {
            word.store(0, Ordering::Relaxed);
        }
    }

    /// Marks the record as complete: it counts from now on.
    pub fn complete(&self, boot: u32) {
        self.boot.store(boot, Ordering::Relaxed);
        self.state.store(CRASH_NEW, Ordering::SeqCst);
    }
}

impl Pcpu {
    const fn new() -> Self {
        Self {
            idle: AtomicU64::new(0),
            since: AtomicU64::new(0),
            running: AtomicU32::new(0),
            due: AtomicU32::new(0),
            traced: AtomicU64::new(0),
            exits: Exits::new(),
            late: AtomicU32::new(0),
        }
    }
}

impl Partition {
    const fn new() -> Self {
        Self {
            name: [const { AtomicU8::new(0) }; NAME_LEN],
            state: AtomicU32::new(0),
            restarts: AtomicU32::new(0),
            events: [const { AtomicU32::new(0) }; 8],
            prompt: Prompt {
                kept: AtomicU32::new(0),
                late: AtomicU32::new(0),
                latest: AtomicU32::new(0),
                unknown: AtomicU32::new(0),
            },
            starts: AtomicU32::new(0),
            unused: [const { AtomicU8::new(0) }; 36],
        }
    }
}

impl Vcpu {
    /// Makes a record of zeros.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            ran: AtomicU64::new(0),
            partition: AtomicU32::new(0),
            index: AtomicU32::new(0),
            pcpu: AtomicU32::new(0),
            exits: Exits::new(),
            waited: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
        }
    }
}

impl Exits {
    /// Makes counters of zeros.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            interrupts: AtomicU32::new(0),
            calls: AtomicU32::new(0),
            accesses: AtomicU32::new(0),
            instructions: AtomicU32::new(0),
            idle: AtomicU32::new(0),
            fp: AtomicU32::new(0),
            other: AtomicU32::new(0),
        }
    }

    /// Returns all counters.
    #[must_use]
    pub const fn all(&self) -> [&AtomicU32; 7] {
        [
            &self.interrupts,
            &self.calls,
            &self.accesses,
            &self.instructions,
            &self.idle,
            &self.fp,
            &self.other,
        ]
    }
}

impl Default for Vcpu {
    fn default() -> Self {
        Self::new()
    }
}

/// Adds one to a counter that one pCPU alone writes.
#[inline(always)]
pub fn count(counter: &AtomicU32) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

/// Stores `bytes` from the start of `place` on, and zeros after them.
pub fn store_bytes(place: &[AtomicU8], bytes: &[u8]) {
    let padded = bytes.iter().copied().chain(core::iter::repeat(0));
    for (to, from) in place.iter().zip(padded) {
        to.store(from, Ordering::Relaxed);
    }
}
