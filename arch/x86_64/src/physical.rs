// SPDX-License-Identifier: Apache-2.0
//! The board's own interrupt controllers: the local APIC of this pCPU (AMD APM volume 2, chapter 16) and the
//! I/O APIC (Intel 82093AA).
//!
//! The local APIC is used by memory, because the emulator's has no x2APIC. The 8259 pair is masked for good.

use crate::board::BOARD;
use crate::note;
use crate::sysreg::{self, write_port8};
use bulkhead_arch_support::Mmio;

/// Vector of I/O APIC pin 0.
pub(crate) const FIRST_LINE: u8 = 0x30;
/// Lines of the I/O APIC.
pub(crate) const LINES: u32 = 24;
/// Vectors of the hypervisor's own, above all lines.
pub(crate) const TIMER: u8 = 0xF0;
/// Another pCPU's signal for the kernel.
pub(crate) const SIGNAL: u8 = 0xF1;
/// Another pCPU's wish that this one looks at its vCPU's interrupts.
pub(crate) const KICK: u8 = 0xF2;
const SPURIOUS: u8 = 0xFF;

/// APIC_BASE (AMD APM volume 2, 16.3.1): this is the boot CPU, x2APIC mode, enable.
const APIC_BASE: u32 = 0x1B;
const BOOT_CPU: u64 = 1 << 8;
const EXTENDED: u64 = 1 << 10;
const GLOBAL_ENABLE: u64 = 1 << 11;

const TASK_PRIORITY: usize = 0x80;
const END: usize = 0xB0;
const SPURIOUS_VECTOR: usize = 0xF0;
const COMMAND: usize = 0x300;
const COMMAND_HIGH: usize = 0x310;
const LOCAL_TIMER: usize = 0x320;
const LINT0: usize = 0x350;
const LINT1: usize = 0x360;
const LOCAL_ERROR: usize = 0x370;
const INITIAL_COUNT: usize = 0x380;
const CURRENT_COUNT: usize = 0x390;
const DIVIDE: usize = 0x3E0;
const WINDOW: usize = 0x400;

/// Registers of the I/O APIC (82093AA, 3.1 and 3.2): two of its window, and the first entry of a line.
const IO_WINDOW: usize = 0x20;
const IO_SELECT: usize = 0;
const IO_DATA: usize = 0x10;
const IO_ENTRIES: u32 = 0x10;

const MASKED: u32 = 1 << 16;
const ENABLED: u32 = 1 << 8;
/// An entry of the I/O APIC: the line has a level.
const LEVEL: u32 = 1 << 15;
/// ICR (AMD APM volume 2, 16.5): the interrupt is asserted, and its delivery mode. A fixed one has a vector.
const FIXED: u32 = 1 << 14;
const NON_MASKABLE: u32 = FIXED | 4 << 8;
const INIT: u32 = FIXED | 5 << 8;
const START_UP: u32 = FIXED | 6 << 8;
/// ICR.DSH: all pCPUs but this one.
const ALL_OTHERS: u32 = 3 << 18;
/// ICR.DS: the last command is still on its way.
const PENDING: u32 = 1 << 12;
const BY_ONE: u32 = 0xB;
/// Polls of the command's status: it is clear after the first on every board.
const COMMAND_POLLS: u32 = 100_000;

/// Returns the local APIC of the pCPU that runs this.
fn local() -> Option<Mmio> {
    let [local, _] = BOARD.get()?.apics;
    // SAFETY: `bring_up` has mapped the window as device memory, and the image check has shown that it is no
    // memory of anybody's.
    Some(unsafe { Mmio::new(local as usize, WINDOW) })
}

/// Writes a register of the local APIC.
#[inline(always)]
fn write(register: usize, value: u32) {
    if let Some(local) = local() {
        local.write32(register, value);
    }
}

/// Makes the local APIC of this pCPU one that is used by memory at `base`. Firmware may have left the APIC in
/// x2APIC mode, and only an APIC that is off comes back from there (16.9).
pub(crate) fn use_by_memory(base: u64) {
    let old = sysreg::read_msr(APIC_BASE);
    if old & EXTENDED != 0 {
        sysreg::write_msr(APIC_BASE, old & BOOT_CPU);
    }
    sysreg::write_msr(APIC_BASE, base | old & BOOT_CPU | GLOBAL_ENABLE);
}

/// Brings up the local APIC of this pCPU.
pub(crate) fn init_local() {
    write(TASK_PRIORITY, 0);
    write(SPURIOUS_VECTOR, ENABLED | u32::from(SPURIOUS));
    for register in [LINT0, LINT1, LOCAL_ERROR] {
        write(register, MASKED);
    }
    write(DIVIDE, BY_ONE);
    write(INITIAL_COUNT, 0);
    write(LOCAL_TIMER, TIMER.into());
}

/// Masks the 8259 pair, and every pin of the I/O APIC. On the boot pCPU.
pub(crate) fn init_board() {
    write_port8(0x21, 0xFF);
    write_port8(0xA1, 0xFF);
    for line in 0..LINES {
        write_entry(line, MASKED, 0);
    }
}

/// The timer of the local APIC during a measurement, before the board is known.
pub(crate) struct Stopwatch(Mmio);

impl Stopwatch {
    /// Lets the timer of the local APIC at this address count.
    pub(crate) fn start(base: u64) -> Self {
        // SAFETY: `bring_up` has mapped the window as device memory, and the image check has shown that it is
        // no memory of anybody's.
        let local = unsafe { Mmio::new(base as usize, WINDOW) };
        local.write32(DIVIDE, BY_ONE);
        local.write32(LOCAL_TIMER, MASKED | u32::from(TIMER));
        local.write32(INITIAL_COUNT, u32::MAX);
        Self(local)
    }

    /// Returns how far it has counted.
    pub(crate) fn read(&self) -> u32 {
        u32::MAX - self.0.read32(CURRENT_COUNT)
    }
}

/// Starts the timer, or stops it with 0.
#[inline(always)]
pub(crate) fn start_timer(count: u32) {
    write(INITIAL_COUNT, count);
}

/// Ends the interrupt that is in service.
#[inline(always)]
pub(crate) fn end() {
    write(END, 0);
}

/// Returns the APIC id of this pCPU before the board is known.
pub(crate) fn own_initial_id() -> u64 {
    let [_, features, ..] = crate::sysreg::cpuid(1, 0);
    u64::from(features >> 24)
}

fn send(target: u64, command: u32) {
    let Some(local) = local() else { return };
    for _ in 0..COMMAND_POLLS {
        if local.read32(COMMAND) & PENDING == 0 {
            break;
        }
    }
    local.write32(COMMAND_HIGH, (target as u32) << 24);
    local.write32(COMMAND, command);
}

/// Interrupts another pCPU. One whose vCPU takes interrupts itself gets a non-maskable interrupt, which
/// leaves every guest.
pub(crate) fn interrupt(target: u64, vector: u8) {
    let piece = if vector == SIGNAL {
        note::SIGNALLED
    } else {
        note::KICKED
    };
    if note::leave(target, piece) {
        return send(target, NON_MASKABLE);
    }
    send(target, FIXED | u32::from(vector));
}

/// Lets the 8259 interrupt this pCPU.
pub(crate) fn open_external() {
    /// Delivery mode ExtINT.
    const EXTERNAL: u32 = 7 << 8;
    write(LINT0, EXTERNAL);
}

/// Resets another pCPU.
pub(crate) fn reset(target: u64) {
    send(target, INIT);
}

/// Starts another pCPU in real mode at a page below 1 MiB.
pub(crate) fn start(target: u64, page: u64) {
    send(target, START_UP | (page >> 12) as u32 & 0xFF);
}

/// Stops all other pCPUs by a non-maskable interrupt, after which they find that a pCPU has crashed.
pub(crate) fn stop_others() {
    send(0, ALL_OTHERS | NON_MASKABLE);
}

/// Returns the two registers of the I/O APIC: select, data.
fn io() -> Option<Mmio> {
    let [_, io] = BOARD.get()?.apics;
    // SAFETY: as for `local`.
    Some(unsafe { Mmio::new(io as usize, IO_WINDOW) })
}

/// Writes the entry of a line.
///
/// Nothing keeps another pCPU from a select between this one's select and data, and nothing has to: the only
/// line of a board that is ever enabled is the console's, because no partition can own a device of a board of
/// this class. The boot pCPU enables it before it starts the other pCPUs. A class whose partitions own lines
/// needs a lock here.
fn write_entry(line: u32, low: u32, high: u32) {
    let Some(io) = io() else { return };
    let entry = IO_ENTRIES + 2 * line;
    for (register, value) in [(entry + 1, high), (entry, low)] {
        io.write32(IO_SELECT, register);
        io.write32(IO_DATA, value);
    }
}

/// Lets a line interrupt a pCPU. Levels are active high, as on a virtual machine's board and at
/// the UART.
pub(crate) fn enable(line: u32, is_edge: bool, target: u64) {
    if line < LINES {
        let level = if is_edge { 0 } else { LEVEL };
        write_entry(
            line,
            level | (u32::from(FIRST_LINE) + line),
            (target as u32) << 24,
        );
    }
}

/// Keeps a line from interrupting.
pub(crate) fn disable(line: u32) {
    if line < LINES {
        write_entry(line, MASKED, 0);
    }
}

/// Returns the line with this vector.
#[inline]
pub(crate) fn line_of(vector: u8) -> Option<u32> {
    let line = u32::from(vector.checked_sub(FIRST_LINE)?);
    (line < LINES).then_some(line)
}
