// SPDX-License-Identifier: Apache-2.0
//! The checks. Code that needs registers of its own is in `start.s`. The answer of a probe names the step
//! that failed.

use core::arch::{asm, global_asm};
use core::fmt::{self, Debug, Write};

use crate::words::strange_word;

global_asm!(include_str!("start.s"), options(raw));

/// Devices of the default machine.
const UART: usize = 0x0900_0000;
const DISTRIBUTOR: usize = 0x0800_0000;
const REDISTRIBUTOR: usize = 0x080A_0000;
/// CPU interface of a GICv2.
const INTERFACE: usize = 0x0801_0000;
/// A register of the distributor that keeps what it is given in its odd bits: the triggers of lines 64 to 79.
const PLAIN_REGISTER: usize = DISTRIBUTOR + 0xC10;
/// An address where nothing is.
const NOWHERE: usize = 0x0010_0000;

const PSCI_VERSION: u32 = 0x8400_0000;
const CPU_ON: u32 = 0x8400_0003;
const AFFINITY_INFO: u32 = 0x8400_0004;
const NULL_CALL: u32 = 0xC600_0000;
const NOT_SUPPORTED: u32 = -1i32 as u32;
const INVALID_ADDRESS: u32 = -9i32 as u32;
const VIRTUAL_TIMER: u32 = 27;
/// SCTLR: translation, high vectors, exceptions big-endian, exceptions in T32.
const SCTLR_M: u32 = 1;
const SCTLR_V: u32 = 1 << 13;
const SCTLR_EE: u32 = 1 << 25;
const SCTLR_TE: u32 = 1 << 30;
/// Rounds of a loop of two instructions, and exits: longer than a turn of a vCPU among its equals.
const ROUNDS: u32 = 70_000;
const EXITS: u32 = 700;
/// Random instructions.
const WORDS: u32 = 20_000;

unsafe extern "C" {
    fn probe_supervisor(register: usize) -> u32;
    fn probe_abort(register: usize) -> u32;
    fn probe_undefined(register: usize) -> u32;
    fn probe_irq(register: usize) -> u32;
    fn probe_system(register: usize) -> u32;
    fn probe_fiq(register: usize) -> u32;
    fn probe_status(rounds: u32, value: u32) -> u32;
    fn probe_thumb(register: usize) -> u32;
    fn probe_condition() -> u32;
    fn probe_word(word: u32, scratch: *mut [u32; 64]);
    fn probe_fp(pattern: u32, exits: u32) -> u32;
    fn probe_fetch(address: usize);
    fn second_start();
    static vectors: u32;
    static thumb_vectors: u32;
    static high_vectors: [u32; 16];
    static mut gic_interface: u32;
    static handler_state: u32;
    static mut translation_table: [u32; 4096];
    static boot_registers: [u32; 3];
    static undefined_count: u32;
    static data_abort_seen: [u32; 3];
    static fetch_abort_seen: [u32; 3];
    static irq_seen: [u32; 2];
    static second_argument: u32;
}

/// Reads what the assembly writes.
macro_rules! seen {
    ($name:ident) => {
        // SAFETY: a static of `start.s`, which handlers may have changed since: hence volatile.
        unsafe { (&raw const $name).read_volatile() }
    };
}

fn write_word(address: usize, value: u32) {
    // SAFETY: a device register of the default machine.
    unsafe { (address as *mut u32).write_volatile(value) }
}

fn read_word(address: usize) -> u32 {
    // SAFETY: a device register of the default machine, or an address that the caller wants to fail.
    unsafe { (address as *const u32).read_volatile() }
}

/// Tells whether the interrupt controller is a GICv2. It reads GICD_ICPIDR2, where a GICv3 has nothing.
fn is_version2() -> bool {
    read_word(DISTRIBUTOR + 0xFE8) >> 4 & 0xF == 2
}

/// CNTPCT, the low half.
fn counter() -> u32 {
    let low: u32;
    // SAFETY: reads CNTPCT.
    unsafe { asm!("mrrc p15, 0, {}, {}, c14", out(reg) low, out(reg) _, options(nostack)) }
    low
}

struct Console;

impl Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            write_word(UART, u32::from(byte));
        }
        Ok(())
    }
}

/// Counts and prints the checks.
struct Report {
    passed: u32,
    failed: u32,
}

impl Report {
    fn equal<T: PartialEq + Debug>(&mut self, name: &str, got: T, want: T) {
        let line = if got == want {
            self.passed += 1;
            writeln!(Console, "PASS {name}")
        } else {
            self.failed += 1;
            writeln!(Console, "FAIL {name}: got {got:x?} want {want:x?}")
        };
        line.unwrap_or(());
    }
}

/// Reads a register of CP15.
macro_rules! coprocessor {
    ($registers:literal) => {{
        let value: u32;
        // SAFETY: reading a system register changes no memory.
        unsafe { asm!(concat!("mrc p15, ", $registers), out(reg) value, options(nostack)) }
        value
    }};
    ($registers:literal, $value:expr) => {{
        let value: u32 = $value;
        // SAFETY: interrupt controller, timer and FP access registers: they change no memory.
        unsafe { asm!(concat!("mcr p15, ", $registers), in(reg) value, options(nostack)) }
    }};
}

/// A call to the hypervisor: by HVC, or by SMC.
macro_rules! call {
    ($instruction:literal, $function:expr $(, $argument:expr)*) => {{
        let mut arguments = [0u32; 3];
        for (slot, value) in arguments.iter_mut().zip([0u32 $(, $argument)*].into_iter().skip(1)) {
            *slot = value;
        }
        let [r1, r2, r3] = arguments;
        let result: u32;
        // SAFETY: SMCCC: the call changes no other registers and no memory of ours.
        unsafe {
            asm!(".arch_extension virt", ".arch_extension sec", concat!($instruction, " #0"),
                inout("r0") $function => result, inout("r1") r1 => _, inout("r2") r2 => _, inout("r3") r3 => _,
                out("r4") _, out("r5") _, out("r12") _);
        }
        result
    }};
}

#[unsafe(no_mangle)]
extern "C" fn main() {
    let mut report = Report { passed: 0, failed: 0 };
    boot(&mut report);
    modes(&mut report);
    calls(&mut report);
    registers(&mut report);
    faults(&mut report);
    handlers(&mut report);
    words(&mut report);
    interrupts(&mut report);
    floating_point(&mut report);
    second_cpu(&mut report);
    writeln!(Console, "{} passed, {} failed", report.passed, report.failed).unwrap_or(());
}

fn boot(report: &mut Report) {
    let [r0, r1, r2] = seen!(boot_registers);
    report.equal("r0 and r1 at boot", [r0, r1], [r2, u32::MAX]);
    report.equal(
        "r2 is the device tree at boot",
        u32::from_be(read_word(r2 as usize)),
        0xD00D_FEED,
    );
}

fn modes(report: &mut Report) {
    const PROBES: [unsafe extern "C" fn(usize) -> u32; 5] = [
        probe_supervisor,
        probe_abort,
        probe_undefined,
        probe_irq,
        probe_system,
    ];
    let results = PROBES.map(|probe| {
        // SAFETY: probes change registers of their own and the device register they are given.
        unsafe { probe(PLAIN_REGISTER) }
    });
    report.equal("sp and lr of each mode at exits", results, [0; 5]);
    // SAFETY: as above.
    let fiq = unsafe { probe_fiq(PLAIN_REGISTER) };
    report.equal("r8 to r12 of FIQ mode at exits", fiq, 0);
    // SAFETY: as above. The handlers for aborts, undefined instructions and the rest are not entered with a
    // status that was not stored first.
    let status = unsafe { probe_status(ROUNDS, counter() << 28 | 0x110) };
    report.equal("SPSR of each mode while others have their turn", status, 0);
    // SAFETY: as above.
    let thumb = unsafe { probe_thumb(PLAIN_REGISTER) };
    report.equal("exits in T32, in IT blocks", thumb, 0);
    // SAFETY: as above.
    let condition = unsafe { probe_condition() };
    report.equal(
        "a conditional access is skipped",
        (condition, seen!(undefined_count)),
        (0, 0),
    );
}

fn calls(report: &mut Report) {
    report.equal("hvc PSCI_VERSION", call!("hvc", PSCI_VERSION), 0x1_0001);
    report.equal("smc PSCI_VERSION", call!("smc", PSCI_VERSION), 0x1_0001);
    report.equal(
        "a 64-bit function is not supported",
        call!("hvc", PSCI_VERSION | 1 << 30),
        NOT_SUPPORTED,
    );
    report.equal("hypercall `null`", call!("hvc", NULL_CALL), 0);
}

fn registers(report: &mut Report) {
    report.equal(
        "MPIDR",
        coprocessor!("0, {}, c0, c0, 5") & 0x80FF_FFFF,
        0x8000_0000,
    );
    let features = coprocessor!("0, {}, c0, c1, 1");
    report.equal(
        "ID_PFR1: timer and GIC, no EL2",
        (features >> 12 & 0xF, features >> 16 & 0xF),
        (0, 1),
    );
    let expected = u32::from(!is_version2());
    report.equal("ID_PFR1: GIC registers", features >> 28, expected);
    report.equal("ID_DFR0: no PMU", coprocessor!("0, {}, c0, c1, 2") >> 24, 0);
    let identity: u32;
    // SAFETY: reads DBGDIDR.
    unsafe { asm!("mrc p14, 0, {}, c0, c0, 0", out(reg) identity, options(nostack)) }
    report.equal("DBGDIDR: no debug registers", identity, 0);
    let kept: u32;
    // SAFETY: writes DBGOSLAR and DBGDSCRext, which change no memory and have no listener.
    unsafe {
        asm!("mcr p14, 0, {0}, c1, c0, 4", "mcr p14, 0, {0}, c0, c2, 2", inout(reg) 0x1234_5678 => kept, options(nostack));
    }
    report.equal(
        "a register that is written to CP14 keeps its value",
        kept,
        0x1234_5678,
    );
    big_endian(report);
    let first = counter();
    let mut later = first;
    for _ in 0..1000 {
        later = counter();
    }
    report.equal("CNTPCT counts", later > first, true);
}

/// One access between `SETEND BE` and `SETEND LE`.
macro_rules! big_endian {
    ($instruction:literal, $address:expr, $value:expr) => {{
        let value: u32;
        // SAFETY: an access to a device register. Nothing else is between the two changes, and interrupts are
        // masked.
        unsafe {
            asm!("setend be", concat!($instruction, " {0}, [{1}]"), "setend le",
                inout(reg) $value => value, in(reg) $address, options(nostack));
        }
        value
    }};
}

/// Device registers while data accesses are big-endian: of the UART, and of the interrupt controller.
fn big_endian(report: &mut Report) {
    const CELL: usize = UART + 0xFFC;
    const MASK: usize = UART + 0x38;
    const ENABLED: usize = DISTRIBUTOR + 0x104;
    const DISABLED: usize = DISTRIBUTOR + 0x184;
    report.equal(
        "SETEND: loads from a device",
        (
            big_endian!("ldr", CELL, 0),
            big_endian!("ldrh", CELL, 0),
            big_endian!("ldrsh", CELL, 0),
            big_endian!("ldrb", CELL, 0),
        ),
        (0xB100_0000, 0xB100, 0xFFFF_B100, 0xB1),
    );
    let before = read_word(MASK);
    big_endian!("strh", MASK, 0x5006);
    report.equal("SETEND: a store to a device", read_word(MASK), 0x650);
    write_word(MASK, before);
    big_endian!("str", ENABLED, 0x40);
    let seen = (read_word(ENABLED), big_endian!("ldr", ENABLED, 0));
    report.equal(
        "SETEND: a word of the interrupt controller",
        seen,
        (1 << 30, 0x40),
    );
    write_word(DISABLED, 1 << 30);
}

fn faults(report: &mut Report) {
    let before = seen!(undefined_count);
    let _ = coprocessor!("0, {}, c9, c12, 0");
    report.equal("the PMU is undefined", seen!(undefined_count) - before, 1);
    read_word(NOWHERE);
    let [status, address, _] = seen!(data_abort_seen);
    report.equal(
        "external abort of a load",
        (status & 0x1E0F, address),
        (0x8, NOWHERE as u32),
    );
    write_word(NOWHERE + 4, 0);
    let [status, address, _] = seen!(data_abort_seen);
    report.equal(
        "external abort of a store",
        (status & 0x1E0F, address),
        (0x808, NOWHERE as u32 + 4),
    );
    // SAFETY: returns by way of the handler.
    unsafe { probe_fetch(NOWHERE) }
    let nowhere = NOWHERE as u32;
    let [status, address, link] = seen!(fetch_abort_seen);
    report.equal(
        "external abort of a fetch",
        (status & 0x60F, address, link),
        (0x8, nowhere, nowhere),
    );
}

/// Touches the PMU, which is undefined, with these bits of SCTLR set and these vectors; how many faults came.
fn fault_with(control: u32, vectors_at: usize) -> u32 {
    let before = seen!(undefined_count);
    let kept = coprocessor!("0, {}, c1, c0, 0");
    // SAFETY: after the probe VBAR and SCTLR are as before, and the handlers change r0 and r1 at most. The
    // code and data that the probe and the handlers reach are mapped as they are without translation.
    unsafe {
        asm!(
            "mcr p15, 0, {vbar}, c12, c0, 0", "mcr p15, 0, {new}, c1, c0, 0", "isb",
            "mrc p15, 0, {scratch}, c9, c12, 0",
            "mcr p15, 0, {kept}, c1, c0, 0", "isb",
            "mcr p15, 0, {usual}, c12, c0, 0", "isb",
            vbar = in(reg) vectors_at, new = in(reg) kept | control, kept = in(reg) kept,
            usual = in(reg) (&raw const vectors) as usize, scratch = out(reg) _, out("r0") _, out("r1") _,
        );
    }
    seen!(undefined_count) - before
}

/// Checks that a handler starts in the state that SCTLR says.
fn handlers(report: &mut Report) {
    // PSTATE.E and the mode; T reads as zero, but nothing else than T32 could have come through.
    const STATE: u32 = 1 << 9 | 0x1F;
    let thumb = (&raw const thumb_vectors) as usize & !1;
    let count = fault_with(SCTLR_TE, thumb);
    report.equal(
        "SCTLR.TE: the handler is entered in T32",
        (count, seen!(handler_state) & STATE),
        (1, 0x1B),
    );
    let count = fault_with(SCTLR_TE | SCTLR_EE, thumb);
    report.equal(
        "SCTLR.EE: the handler is entered big-endian",
        (count, seen!(handler_state) & STATE),
        (1, 1 << 9 | 0x1B),
    );
    translate();
    let nowhere = (&raw const high_vectors) as usize;
    report.equal(
        "SCTLR.V: the vectors are the high ones",
        fault_with(SCTLR_V | SCTLR_M, nowhere),
        1,
    );
}

/// Prepares a translation in which everything is where it is without, and the high vectors are ours.
fn translate() {
    // Sections, full access; device memory that is not executed, and normal memory that is not cached.
    const DEVICE: u32 = 0xC12;
    const NORMAL: u32 = 0x1C02;
    const RAM: core::ops::Range<u32> = 0x400..0x404;
    for section in 0..4096u32 {
        let (to, attributes) = match section {
            0xFFF => (RAM.end - 1, NORMAL),
            own if RAM.contains(&own) => (own, NORMAL),
            other => (other, DEVICE),
        };
        // SAFETY: the table is in use only while no code writes it.
        unsafe {
            (&raw mut translation_table)
                .cast::<u32>()
                .add(section as usize)
                .write_volatile(to << 20 | attributes)
        }
    }
    for (index, word) in seen!(high_vectors).into_iter().enumerate() {
        write_word(((RAM.end as usize) << 20) - 0x1_0000 + 4 * index, word);
    }
    coprocessor!("0, {}, c2, c0, 2", 0);
    coprocessor!("0, {}, c2, c0, 0", (&raw const translation_table) as u32);
    coprocessor!("0, {}, c3, c0, 0", 1);
    coprocessor!("0, {}, c8, c7, 0", 0);
    // SAFETY: what was written is seen by what comes later.
    unsafe { asm!("dsb", "isb", options(nostack)) }
}

/// Runs random accesses to coprocessors. An undefined access arrives as undefined, and nothing else happens
/// to anyone.
fn words(report: &mut Report) {
    let mut scratch = [0u32; 64];
    let before = seen!(undefined_count);
    let (mut random, mut tried) = (u64::from(counter()) | 1, 0);
    for _ in 0..WORDS {
        // The multiplier of PCG's generator; its high bits are the good ones.
        random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        if let Some(word) = strange_word(random >> 32) {
            tried += 1;
            // SAFETY: the word names r0 to r3 only, which hold the address of the scratch memory.
            unsafe { probe_word(word, &raw mut scratch) }
        }
    }
    let undefined = seen!(undefined_count) - before;
    report.equal(
        "random coprocessor instructions, of which many are undefined",
        (undefined > tried / 4, undefined < tried),
        (true, true),
    );
}

/// Waits until this many interrupts were taken, with a limit that is far beyond.
fn wait_for_interrupts(count: u32) {
    for _ in 0..1_000_000 {
        if seen!(irq_seen)[1] == count {
            return;
        }
    }
}

/// Sleeps for 1000 ticks of the virtual timer, whose interrupt is enabled.
fn nap() {
    coprocessor!("0, {}, c14, c3, 0", 1000);
    coprocessor!("0, {}, c14, c3, 1", 1);
    // SAFETY: the vectors and the stack of IRQ mode are set up; waits for an interrupt.
    unsafe { asm!("cpsie i", "isb", "wfi", "cpsid i", options(nostack)) }
}

fn interrupts(report: &mut Report) {
    if is_version2() {
        // Group 0, as all lines are.
        write_word(DISTRIBUTOR, 1);
        write_word(DISTRIBUTOR + 0x100, 1 << VIRTUAL_TIMER | 1 << 5);
        write_word(INTERFACE + 4, 0xFF);
        write_word(INTERFACE, 1);
        // SAFETY: the handler reads it, and no interrupt comes before it is unmasked.
        unsafe { (&raw mut gic_interface).write_volatile(INTERFACE as u32) }
    } else {
        // Group 1 of the distributor, with affinity routing; lines 0 to 31 in group 1 and enabled.
        write_word(DISTRIBUTOR, 0x12);
        write_word(REDISTRIBUTOR + 0x14, 0);
        write_word(REDISTRIBUTOR + 0x1_0080, u32::MAX);
        write_word(REDISTRIBUTOR + 0x1_0100, 1 << VIRTUAL_TIMER | 1 << 5);
        coprocessor!("0, {}, c12, c12, 5", 1);
        coprocessor!("0, {}, c4, c6, 0", 0xFF);
        coprocessor!("0, {}, c12, c12, 7", 1);
    }
    // SAFETY: the vectors and the stack of IRQ mode are set up.
    unsafe { asm!("isb", "cpsie i", options(nostack)) }
    if is_version2() {
        // GICD_SGIR: to CPU 0.
        write_word(DISTRIBUTOR + 0xF00, 1 << 16 | 5);
    } else {
        // SAFETY: ICC_SGI1R: interrupt 5 to the CPU with affinity 0.
        unsafe { asm!("mcrr p15, 0, {}, {}, c12", "isb", in(reg) 5 << 24 | 1, in(reg) 0, options(nostack)) }
    }
    wait_for_interrupts(1);
    report.equal("software-generated interrupt", seen!(irq_seen), [5, 1]);
    nap();
    wait_for_interrupts(2);
    report.equal("virtual timer", seen!(irq_seen), [VIRTUAL_TIMER, 2]);
}

fn floating_point(report: &mut Report) {
    coprocessor!("0, {}, c1, c0, 2", 0xF << 20);
    // SAFETY: FPEXC.EN; nothing here uses FP but the probe.
    unsafe { asm!(".fpu vfpv3", "isb", "vmsr fpexc, {}", in(reg) 1 << 30, options(nostack)) }
    // SAFETY: the probe changes FP registers only.
    let kept = unsafe { probe_fp(counter(), EXITS) };
    report.equal("FP and NEON registers over exits", kept, 0);
    let control: u32;
    // SAFETY: reads FPEXC.
    unsafe { asm!("vmrs {}, fpexc", out(reg) control, options(nostack)) }
    report.equal("FPEXC", control >> 30, 1);
}

fn second_cpu(report: &mut Report) {
    let entry = second_start as *const () as u32;
    report.equal("second_start is T32", entry & 1, 1);
    report.equal(
        "CPU_ON where no memory is",
        call!("hvc", CPU_ON, 1, NOWHERE as u32, 0),
        INVALID_ADDRESS,
    );
    report.equal("CPU_ON in T32", call!("hvc", CPU_ON, 1, entry, 0x89AB_CDEF), 0);
    let mut off = 0;
    for _ in 0..1000 {
        // Sleeps, because a machine that counts instructions may let the other CPU run no earlier.
        nap();
        off = call!("hvc", AFFINITY_INFO, 1, 0);
        if seen!(second_argument) != 0 && off == 1 {
            break;
        }
    }
    report.equal(
        "its argument, and it is off again",
        (seen!(second_argument), off),
        (0x89AB_CDEF, 1),
    );
}
