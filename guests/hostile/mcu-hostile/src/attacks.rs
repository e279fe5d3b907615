// SPDX-License-Identifier: Apache-2.0
//! The attacks. Each may fault at any instruction and never come back.

use core::arch::{asm, global_asm};

use crate::cpu::{barrier, call, change_masks, load, load_byte, store, store_byte, store_half};
use crate::targets::{CODE, RAM, SCRATCH, address, floating_point, private, return_value, victim};
use crate::{below, draw, edges};

/// Hypercalls (abi/include/bulkhead.h).
const FUNCTIONS: u32 = 0xC600_0000;
const PARTITION_STOP: u32 = 0x0102;
const PARTITION_KICK: u32 = 0x0104;
// Undefined instructions: every one of 16 bits, with a return after it, and some of 32 bits. Among them are
// those that the host tool puts in the place of others.
global_asm!(
    ".section .text.hostile_undefined, \"ax\"",
    ".balign 4",
    ".global hostile_undefined",
    ".thumb_func",
    "hostile_undefined:",
    ".set immediate, 0",
    ".rept 256",
    ".inst.n 0xde00 + immediate",
    "bx lr",
    ".set immediate, immediate + 1",
    ".endr",
    ".global hostile_undefined_wide",
    ".thumb_func",
    "hostile_undefined_wide:",
    ".set immediate, 0",
    ".rept 64",
    ".inst.w 0xf7f0a000 + immediate * 0x00010083",
    "bx lr",
    ".inst.n 0xbf00",
    ".set immediate, immediate + 1",
    ".endr",
);

unsafe extern "C" {
    fn hostile_undefined();
    fn hostile_undefined_wide();
}

fn privates() {
    for _ in 0..4 {
        let (at, value) = (private(), draw());
        // A reset asked for ends this life, and VTOR has an attack of its own.
        if matches!(at & !3, 0xE000_ED08 | 0xE000_ED0C) {
            continue;
        }
        match below(8) {
            0 => store_byte(at, value as u8),
            1 => store_half(at & !1, value as u16),
            2 | 3 => store(at & !3, value),
            4 => {
                let _ = load_byte(at);
            }
            5 => {
                let _ = load(at & !3);
            }
            6 => several(at & !3),
            _ => single_bits(at & !3),
        }
    }
}

fn several(at: u32) {
    // SAFETY: what is stored are registers of the processor; the handler copes with what follows.
    unsafe {
        asm!("stmia {0}!, {{r4, r5}}", "ldrd r4, r5, [{0}, #-8]", inout(reg) at => _, out("r4") _, out("r5") _)
    }
}

fn single_bits(at: u32) {
    store(at, 1 << below(32));
}

fn memory() {
    let at = victim();
    match below(5) {
        0 => store_byte(at, draw() as u8),
        1 => store(at & !3, draw()),
        2 => several(at & !3),
        3 => {
            let _ = load_byte(at);
        }
        _ => {
            let _ = load(at & !3);
        }
    }
}

/// Puts the stack pointer of a thread anywhere, then causes a push of a frame there.
fn process_stack() {
    let (at, kind) = (address(), below(4));
    if below(2) == 0 {
        floating_point();
    }
    // SAFETY: the stack may be lost; the handler leaves it.
    unsafe {
        asm!(
            "msr psp, {at}",
            "movs r4, #2",
            "msr control, r4",
            "isb",
            "cmp {kind}, #1",
            "beq 3f",
            "cmp {kind}, #2",
            "beq 4f",
            "bhi 6f",
            "svc #3",
            "b 5f",
            "3: udf #0x55",
            "6: bkpt #1",
            "b 5f",
            "4: push {{r4}}",
            "5: movs r4, #0",
            "msr control, r4",
            "isb",
            at = in(reg) at, kind = in(reg) kind, out("r4") _,
        );
    }
}

/// Puts the main stack pointer anywhere, so that the processor can hardly go on.
fn main_stack() {
    if below(2) == 0 {
        floating_point();
    }
    // SAFETY: this ends in the handler, or in a restart.
    unsafe {
        asm!(
            "mov r4, sp",
            "msr msp, {at}",
            "cmp {kind}, #0",
            "beq 2f",
            "svc #4",
            "b 3f",
            "2: bkpt #2",
            "3: msr msp, r4",
            at = in(reg) address(), kind = in(reg) below(2), out("r4") _,
        );
    }
}

/// Makes an exception return of garbage, from a thread or from wherever this runs, with garbage on the
/// stacks.
fn exception_return() {
    let value = 0xF000_0000 | draw() | if below(2) == 0 { 0x0FFF_FFE0 } else { 0 };
    for word in 0..32 {
        store(SCRATCH + word * 4, draw());
    }
    // SAFETY: the handler copes.
    unsafe { asm!("msr psp, {}", "bx {}", in(reg) SCRATCH, in(reg) value | 1, out("lr") _) }
}

// A handler that returns with the value that it finds in r0.
global_asm!(
    ".section .text.hostile_handler, \"ax\"",
    ".balign 4",
    ".global hostile_handler",
    ".thumb_func",
    "hostile_handler:",
    "bx r0",
);

unsafe extern "C" {
    fn hostile_handler();
}

/// Makes an exception return of garbage from a handler, to a frame of garbage, with and without floating
/// point. A valid one may lead into this program, into others', or into data, with any state.
fn return_from_handler() {
    let frame = SCRATCH + 0x400 + below(8) * 4;
    for word in 0..48 {
        store(SCRATCH + word * 4, load(CODE + word * 4));
        store(frame + word * 4, draw());
    }
    store(SCRATCH + 11 * 4, hostile_handler as *const () as u32);
    if below(2) == 0 {
        store(frame + 6 * 4, address());
    }
    store(
        frame + 7 * 4,
        draw() & if below(2) == 0 { 0xFF00_01FF } else { 0x0100_0000 },
    );
    if below(2) == 0 {
        floating_point();
    }
    // No floating point, privileged code's, everybody's.
    store(0xE000_ED88, [0, 0x50_0000, 0xF0_0000][below(3) as usize]);
    store(0xE000_ED08, SCRATCH);
    let value = return_value();
    let stack = if below(8) == 0 { address() } else { frame };
    // SAFETY: the handler copes.
    unsafe {
        asm!("msr psp, {}", "svc #5", in(reg) stack, inout("r0") value => _, out("r1") _, out("r2") _, out("r3") _, out("r12") _, out("lr") _)
    }
}

/// Takes an exception with a vector table of garbage.
fn vectors() {
    for word in 0..48 {
        let value = if below(2) == 0 {
            address()
        } else {
            load(CODE + word * 4)
        };
        store(SCRATCH + word * 4, value);
    }
    store(0xE000_ED08, if below(8) == 0 { address() } else { SCRATCH });
    if below(2) == 0 {
        call();
    } else {
        store(0xE000_ED04, 1 << 28);
    }
}

/// Regions of the guest's own that open and close anything.
fn protection() {
    for region in 0..8 {
        store(0xE000_ED98, region);
        store(0xE000_ED9C, address() & !0x1F);
        store(
            0xE000_EDA0,
            draw() & !0x10 | if below(2) == 0 { 0x0300_0001 } else { 0 },
        );
    }
    // A processor whose handlers cannot push anything locks up for good: its own memory stays open.
    for (region, base, attributes) in [(6, CODE, 0x0600_001F), (7, RAM, 0x1300_001F)] {
        store(0xE000_ED98, region);
        store(0xE000_ED9C, base);
        store(0xE000_EDA0, attributes);
    }
    // Mostly with the background region: without it this program hardly goes on.
    store(0xE000_ED94, if below(8) == 0 { draw() & 7 } else { 5 });
    for _ in 0..4 {
        memory();
    }
}

/// Regions, as (MPU_RBAR, MPU_RASR), whose combination with this partition's takes the hypervisor longest. A
/// search found them: they cut each other in pieces, and there are more pieces than a unit has regions.
const CROWDS: [[(u32, u32); 8]; 2] = [
    [
        (RAM + 0x1000, 0x047C_98D7),
        (RAM + 0x1C00, 0x14F9_3717),
        (RAM + 0xDBA0, 0x0045_F71F),
        (RAM + 0x5300, 0x03C4_7FDF),
        (RAM + 0x5E80, 0x0081_FD9F),
        (RAM + 0x9D80, 0x0E40_BFDF),
        (RAM - 0xF6C0, 0x0649_B7A1),
        (RAM + 0x04E0, 0x12BE_EBDF),
    ],
    [
        (CODE + 0x92E0, 0x138D_BF95),
        (CODE + 0x97A0, 0x0FD4_0A97),
        (CODE + 0x9160, 0x06C0_7917),
        (CODE + 0x3C00, 0x1A67_FDDF),
        (CODE + 0x3CE0, 0x08DE_7EDF),
        (CODE + 0xB2E0, 0x0049_2D61),
        (CODE + 0x25C0, 0x1C80_DF1F),
        (CODE + 0xFFA0, 0x1145_BF5F),
    ],
];

/// Regions that cut each other, or others as small, for a moment.
fn crowd() {
    let (set, is_drawn) = (below(2) as usize, below(2) == 0);
    for (region, (base, attributes)) in (0..).zip(CROWDS[set]) {
        store(0xE000_ED98, region);
        store(0xE000_ED9C, base & !0x1F);
        // Sizes of 256 bytes to 32 KiB.
        let drawn = draw() & 0x173F_FF00 | (7 + below(8)) << 1 | 1;
        store(0xE000_EDA0, if is_drawn { drawn } else { attributes });
    }
    store(0xE000_ED94, 5);
    store(0xE000_ED94, 0);
}

/// Code that is changed, made, or another partition's.
fn foreign_code() {
    let at = match below(4) {
        0 => {
            // MSR BASEPRI, r0; BX LR: in RAM, where the host tool has not been.
            store(SCRATCH, 0x8811_F380);
            store(SCRATCH + 4, 0x4770_4770);
            SCRATCH
        }
        1 => {
            store(CODE + 0x400 + below(0x1000) * 4, draw());
            CODE
        }
        _ => address(),
    };
    // SAFETY: the handler copes.
    unsafe {
        asm!("blx {}", in(reg) at | below(2), out("r0") _, out("r1") _, out("r2") _, out("r3") _, out("r12") _, out("lr") _)
    }
}

fn undefined() {
    let at = if below(2) == 0 {
        hostile_undefined as *const () as u32 + below(256) * 4
    } else {
        hostile_undefined_wide as *const () as u32 + below(64) * 8
    };
    // SAFETY: the handler copes; if the instruction does nothing, a return follows.
    unsafe {
        asm!("blx {}", in(reg) at | 1, out("r0") _, out("r1") _, out("r2") _, out("r3") _, out("r12") _, out("lr") _)
    }
}

/// Exceptions of every kind at once, masked and not.
fn exceptions() {
    store(0xE000_E100, draw());
    for line in 0..8 {
        store(0xE000_E400 + line * 4, draw());
    }
    for _ in 0..6 {
        match below(7) {
            0 => store(0xE000_E200, draw()),
            1 => store(0xE000_ED04, 1 << (25 + below(7))),
            2 => store(0xE000_ED24, draw()),
            3 => change_masks(below(2) == 0, below(2) == 0),
            4 => crate::cpu::set_basepri(draw()),
            5 => call(),
            _ => crate::cpu::set_control(draw() & 1),
        }
    }
    barrier();
}

// Code whose replaced instructions are jumped into. It has MSR, MRS and CPS in and outside of IT blocks,
// and branch tables beside them. A jump to any half-word of it runs halves of instructions and data.
global_asm!(
    ".section .text.hostile_middle, \"ax\"",
    ".syntax unified",
    ".balign 4",
    ".global hostile_middle",
    ".thumb_func",
    "hostile_middle:",
    "mrs r0, basepri",
    "msr basepri, r0",
    "and r1, r0, #1",
    "tbb [pc, r1]",
    ".byte 1, 1",
    "mrs r2, psp",
    "cmp r1, #0",
    "itte eq",
    "mrseq r3, primask",
    "msreq basepri_max, r0",
    "mrsne r3, ipsr",
    "tbh [pc, r1, lsl #1]",
    ".hword 2, 2",
    "cpsie i",
    "ldr r0, 2f",
    "mrs r12, control",
    "bx lr",
    ".balign 4",
    "2: .word 0x8811f380",
    ".global hostile_middle_end",
    "hostile_middle_end:",
);

unsafe extern "C" {
    fn hostile_middle();
    static hostile_middle_end: u8;
}

/// Into the middle of instructions that the host tool has replaced.
fn middle() {
    let start = hostile_middle as *const () as u32 & !1;
    let halves = ((&raw const hostile_middle_end) as u32 - start) / 2;
    let at = start + 2 * below(halves);
    // SAFETY: the handler copes; code that ends returns.
    unsafe {
        asm!("blx {}", in(reg) at | 1, out("r0") _, out("r1") _, out("r2") _, out("r3") _, out("r12") _, out("lr") _)
    }
}

/// Makes loads and stores with the rights of unprivileged code, and exclusive ones, whose monitor does not
/// survive a switch.
fn unusual_accesses() {
    let at = if below(2) == 0 { private() } else { victim() } & !3;
    let value = draw();
    match below(5) {
        // SAFETY: a load changes nothing; the handler copes.
        0 => unsafe { asm!("ldrt {}, [{}]", out(reg) _, in(reg) at) },
        // SAFETY: what is stored to is not this program's, or its scratch area.
        1 => unsafe { asm!("strt {}, [{}]", in(reg) value, in(reg) at) },
        // SAFETY: likewise.
        2 => unsafe { asm!("strbt {}, [{}, #1]", in(reg) value, in(reg) at) },
        // SAFETY: as for the first load.
        3 => unsafe { asm!("ldrsht {}, [{}]", out(reg) _, in(reg) at) },
        // SAFETY: as for the stores.
        _ => unsafe {
            asm!(
                "ldrex {old}, [{at}]", "sev", "wfe", "strex {failed}, {value}, [{at}]", "clrex",
                old = out(reg) _, failed = out(reg) _, value = in(reg) value, at = in(reg) at,
            )
        },
    }
}

/// Uses the aliases of single bits of others' memory and devices, the registers of debug and trace, and wrong
/// keys.
fn aliases_and_keys() {
    let at = match below(5) {
        0 => 0x2200_0000 + (below(0x40_0000) << 2),
        1 => 0x4200_0000 + (below(0x10_0000) << 2),
        // ITM, DWT, FPB; TPIU; the debug registers of the core.
        2 => 0xE000_0000 + (below(0xC00) << 2),
        3 => 0xE004_0000 + (below(0x400) << 2),
        _ => 0xE000_EDF0 + (below(4) << 2),
    };
    match below(4) {
        0 => store(at, draw()),
        1 => {
            let _ = load(at);
        }
        // AIRCR with another key: nothing may happen, with any other bits. SysTick's calibration cannot
        // be written.
        2 => store(0xE000_ED0C, draw() & 0xFFFF | 0x05FB_0000),
        _ => store(0xE000_E01C, draw()),
    }
}

/// Events and waiting, with interrupts masked and an interrupt that wakes all the same.
fn waiting() {
    let masked = below(2) == 0;
    change_masks(masked, false);
    // SEVONPEND: without it nothing that is masked ends WFE.
    let pend = if masked { 0x10 } else { 0 };
    store(0xE000_ED10, draw() & 0x14 | pend);
    store(0xE000_E010, 7);
    match below(3) {
        // SAFETY: SysTick ends waiting.
        0 => unsafe { asm!("sev", "wfe", "wfe") },
        // SAFETY: likewise.
        1 => unsafe { asm!("wfi") },
        // SAFETY: likewise.
        _ => unsafe { asm!("it eq", "wfieq", "it ne", "wfene") },
    }
    store(0xE000_ED10, 0);
}

/// Makes a call of a debugger with any number but those that end the program, about anything. Or it continues
/// a call that is under way. A call that waits for input waits for the watchdog.
fn ask_debugger() {
    let operation = match below(8) {
        0 => draw(),
        1 => (draw() & 0x7FFF_FF00) | (1 << 31) | (3 + below(3)),
        _ => below(0x34),
    };
    let operation = if matches!(operation, 0x18 | 0x20) {
        4
    } else {
        operation
    };
    let block = [1 + below(4), address(), draw() >> below(32)];
    let parameter = if below(2) == 0 {
        address()
    } else {
        block.as_ptr() as u32
    };
    // SAFETY: what it stores goes to the program's own memory, whose damage it survives.
    unsafe { asm!("bkpt #0xab", inout("r0") operation => _, inout("r1") parameter => _) }
}

/// MSR to what cannot be written, from a thread and from wherever this runs, and stacks exchanged under it.
fn special() {
    let value = draw();
    match below(5) {
        4 => ask_debugger(),
        // SAFETY: none of these can be written.
        0 => unsafe { asm!("msr ipsr, {0}", "msr epsr, {0}", "msr iepsr, {0}", in(reg) value) },
        // SAFETY: masks change nothing but when handlers run.
        1 => unsafe {
            asm!("msr apsr_nzcvq, {0}", "msr basepri_max, {0}", "cpsid f", "cpsie f", in(reg) value)
        },
        // SAFETY: both stack pointers are the same meanwhile.
        2 => unsafe {
            asm!(
                "mov r4, sp", "msr psp, r4", "movs r4, #2", "msr control, r4", "isb", "mrs r4, control", "movs r4, #0",
                "msr control, r4", "isb", out("r4") _,
            )
        },
        // SAFETY: reading changes nothing.
        _ => unsafe { asm!("mrs {0}, epsr", "mrs {0}, iepsr", "mrs {0}, msp", out(reg) _) },
    }
}

/// Makes a hypercall: three registers that mean something, and random ones.
fn hypercall(function: u32, capability: u32, argument: u32) {
    // SAFETY: a hypercall changes r0 to r9 of this program and nothing else of it.
    unsafe {
        asm!(
            "push {{r6, r7}}", "mov r6, r3", "mov r7, r2", "udf #0xb1", "pop {{r6, r7}}",
            inout("r0") function => _, inout("r1") capability => _, inout("r2") argument => _, inout("r3") 0 => _,
            out("r4") _, out("r5") _, out("r8") _, out("r9") _,
        );
    }
}

/// Makes the watchdog wait longer.
pub fn kick() {
    hypercall(FUNCTIONS | PARTITION_KICK, 0, 0);
}

/// Hypercalls of any number, but the one that would end everything.
fn hypercalls() {
    let function = match below(8) {
        0 => draw(),
        1 => FUNCTIONS | draw() & 0xFFFF,
        _ => FUNCTIONS | below(7) << 8 | below(8),
    };
    let argument = match below(4) {
        0 => address(),
        1 => 1 << below(32),
        2 => below(70),
        _ => draw(),
    };
    if function != FUNCTIONS | PARTITION_STOP {
        hypercall(function, below(4), argument);
    }
}

/// Makes one attack.
pub fn one() {
    match below(83) {
        56..=65 => edges::transfers(),
        66..=69 => edges::conditions(),
        70 | 71 => edges::push_and_pop(),
        72..=74 => edges::ends(),
        75 | 76 => edges::jumps(),
        77 => edges::moving_table(),
        78 | 79 => edges::ticks(),
        80..=82 => crowd(),
        50 | 51 => hypercalls(),
        52..=55 => return_from_handler(),
        40 | 41 => middle(),
        42 | 43 => unusual_accesses(),
        44 | 45 => aliases_and_keys(),
        46 | 47 => waiting(),
        48 | 49 => special(),
        0..=8 => privates(),
        9..=14 => memory(),
        15..=18 => process_stack(),
        19..=22 => exception_return(),
        23..=25 => protection(),
        26..=29 => foreign_code(),
        30..=33 => undefined(),
        34..=37 => exceptions(),
        38 => vectors(),
        _ => main_stack(),
    }
}
