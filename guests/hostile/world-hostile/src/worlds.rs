// SPDX-License-Identifier: Apache-2.0
//! Attacks at the border of the two worlds. Each may fault at any instruction and never come back.

use core::arch::{asm, global_asm};

use crate::cpu::{barrier, change_masks, load, load_byte, store, store_byte, wait};
use crate::targets::{CODE, RAM, SCRATCH, SECURE, address, floating_point, return_value, victim};
use crate::{below, draw, instructions, print};

/// The address to which a VM branches for a hypercall.
const GATE: u32 = 0x1FFF_FB11;
/// Hypercalls (abi/include/bulkhead.h).
const FUNCTIONS: u32 = 0xC600_0000;
const PARTITION_STOP: u32 = FUNCTIONS | 0x0102;
const PARTITION_RESTART: u32 = FUNCTIONS | 0x0103;
const ICSR: u32 = 0xE000_ED04;
const SHCSR: u32 = 0xE000_ED24;
const PENDSVSET: u32 = 1 << 28;

global_asm!(
    ".section .text.hostile_handlers, \"ax\"",
    ".syntax unified",
    ".balign 8",
    // Handlers. The first makes itself pending again, the second asks the hypervisor from where it is, and
    // the third waits for ever.
    ".global hostile_storm",
    ".thumb_func",
    "hostile_storm:",
    "ldr r0, =0xE000ED04",
    "mov.w r1, #0x10000000",
    "str r1, [r0]",
    "bx lr",
    ".balign 8",
    ".global hostile_asking",
    ".thumb_func",
    "hostile_asking:",
    "push {{r4, lr}}",
    "ldr r4, =0x1FFFFB11",
    "blx r4",
    "udf #0xb1",
    "pop {{r4, pc}}",
    ".balign 8",
    ".global hostile_waiting",
    ".thumb_func",
    "hostile_waiting:",
    "wfi",
    "b hostile_waiting",
    ".ltorg",
);

unsafe extern "C" {
    fn hostile_storm();
    fn hostile_asking();
    fn hostile_waiting();
    static hostile_return: u32;
}

/// Draws a register that says to whom memory or a device belongs, or one of the other world.
fn authority() -> u32 {
    match below(7) {
        0 => 0xE002_E000 + below(0x1000),
        1 => 0x5008_0000 + below(0x4000),
        2 => [0x5800_7000, 0x5800_8000, 0x5800_9000, 0x4800_8000][below(4) as usize] + below(0x40),
        // The registers of the SAU, NVIC_ITNS, and SFSR.
        3 => 0xE000_EDD0 + below(0x18),
        4 => 0xE000_E380 + below(0x40),
        // The registers of a DMA controller, and NSMSCEXP, which would tell the controller's accesses apart.
        5 => [0x4011_0000, 0x5011_0000, 0x4008_00D0, 0x5008_00D0][below(4) as usize] + below(0x10),
        // The names of the security controller and of the FPGA's devices in the Non-secure world. A task may
        // have one of these UARTs.
        _ => {
            [0x4008_0000, 0x4020_0000, 0x4020_1000, 0x4030_2000, 0x4000_2000][below(5) as usize]
                + below(0x100)
        }
    }
}

/// Loads and stores at such registers, and at the Secure names of all memory.
fn authorities() {
    for _ in 0..3 {
        let at = if below(3) == 0 {
            victim() ^ SECURE
        } else {
            authority()
        };
        match below(5) {
            0 => store_byte(at, draw() as u8),
            1 | 2 => store(at & !3, draw()),
            3 => {
                let _ = load_byte(at);
            }
            _ => {
                let _ = load(at & !3);
            }
        }
    }
}

/// Calls code with a value in r0.
fn call_with(at: u32, value: u32) {
    // SAFETY: the handler copes.
    unsafe {
        asm!(
            "blx {at}", at = in(reg) at,
            inout("r0") value => _, out("r1") _, out("r2") _, out("r3") _, out("r12") _, out("lr") _,
        )
    }
}

/// Executes an instruction that changes worlds, or reads or writes a register of the other one.
fn other_world() {
    let value = if below(2) == 0 { return_value() } else { address() };
    call_with(instructions::at(below(instructions::count())), value);
}

/// Branches into the hypervisor, at any half-word, by its name and by the Secure one.
fn hypervisor() {
    let at = 0x003D_6000 + below(0x2_A000);
    call_with(at ^ if below(2) == 0 { SECURE } else { 0 }, draw());
}

/// Ends a handler with each value, or branches to it in a thread, with one in LR too.
fn returns() {
    for word in 0..32 {
        store(SCRATCH + word * 4, draw());
    }
    if below(2) == 0 {
        store((&raw const hostile_return) as u32, return_value());
        crate::cpu::call();
    }
    // SAFETY: the handler copes.
    unsafe {
        asm!("msr psp, {}", "mov lr, {}", "bx {}", in(reg) SCRATCH, in(reg) return_value(), in(reg) return_value(), out("lr") _)
    }
}

/// Probes an address with TT, TTT, TTA and TTAT. The first two must tell nothing of the Secure world:
/// SREGION, SRVALID, NSR, NSRW, S, IRVALID and IREGION are zero (D1.2.269). The others are undefined here.
fn probe() {
    const OTHERS: u32 = 0xFFF2_FF00;
    let at = address();
    let (plain, unprivileged): (u32, u32);
    // SAFETY: `tt r1, r0` and `ttt r2, r0` change nothing else.
    unsafe {
        asm!(".inst.w 0xe840f100", ".inst.w 0xe840f240", in("r0") at, out("r1") plain, out("r2") unprivileged)
    }
    if (plain | unprivileged) & OTHERS != 0 {
        print!("hostile: WRONG rights of {at:#x}: {plain:#x} {unprivileged:#x}\n");
    }
    if below(4) == 0 {
        // SAFETY: `tta r1, r0` and `ttat r1, r0`: the handler copes.
        unsafe { asm!(".inst.w 0xe840f180", ".inst.w 0xe840f1c0", in("r0") at, out("r1") _) }
    }
}

/// Has room of a frame filled at any address: now by an instruction here, or by the next exception.
fn lazy_room() {
    floating_point();
    store(0xE000_EF38, address() & !3);
    store(0xE000_EF34, 0xC000_0001 | draw() & 0x7F);
    match below(4) {
        // SAFETY: `vmov r1, s0`, which fills the room first.
        0 => unsafe { asm!(".inst.w 0xee101a10", out("r1") _) },
        1 => crate::cpu::call(),
        // The scheduler may take the world away with the room open.
        2 => spin(20_000),
        _ => crate::attacks::kick(),
    }
}

fn spin(turns: u32) {
    for turn in 0..turns {
        core::hint::black_box(turn);
    }
}

/// Keeps everything masked and does not end: the watchdog does.
fn masked_for_ever() {
    change_masks(true, below(2) == 0);
    store(0xE000_E010, 0);
    loop {
        if below(2) == 0 {
            wait();
        }
    }
}

/// Puts a copy of the vector table in force, with this handler for PendSV, SVCall and SysTick.
fn table(handler: unsafe extern "C" fn()) {
    for word in 0..48 {
        store(SCRATCH + word * 4, load(CODE + word * 4));
    }
    for exception in [11, 14, 15] {
        store(SCRATCH + exception * 4, handler as *const () as u32);
    }
    store(0xE000_ED08, SCRATCH);
}

/// Handlers that come again and again, that ask the hypervisor, or that wait, all at the highest priority.
fn handlers() {
    let which = below(32);
    table(match which {
        0 => hostile_waiting,
        1 => hostile_storm,
        _ => hostile_asking,
    });
    if below(2) == 0 {
        store(0xE000_ED1C, 0);
        store(0xE000_ED20, 0);
    }
    // The shortest periods that there are.
    store(0xE000_E014, 1 + below(3));
    store(0xE000_E018, 0);
    if below(2) == 0 {
        store(0xE000_E010, 7);
    }
    store(ICSR, PENDSVSET);
    // SAFETY: the handler may ask for anything but the end of this partition or its cold restart, which have
    // other numbers.
    unsafe {
        asm!("svc #9", inout("r0") FUNCTIONS | below(7) << 8 | (4 + below(4)) => _, inout("r1") below(4) => _, out("r2") _, out("r3") _, out("r12") _)
    }
}

/// Asks for a reset of everything, with every bit of the register that could do it.
fn reset() {
    store(
        0xE000_ED0C,
        0x05FA_0000 | draw() & 0xFFFF | [0, 1, 4, 5][below(4) as usize],
    );
}

/// Has a protection unit that denies everything, the stack included, and takes an exception then.
fn denied() {
    for region in 0..8 {
        store(0xE000_ED98, region);
        store(0xE000_ED9C, address() & !0x1F | draw() & 0x1F);
        store(0xE000_EDA0, if below(2) == 0 { 0 } else { address() | 1 });
    }
    store(0xE000_ED94, 1 | draw() & 7);
    crate::cpu::call();
}

/// Limits of the stacks anywhere, and a push then. The encodings are MSR of MSPLIM and PSPLIM, with r0.
fn limits() {
    let limit = if below(2) == 0 {
        RAM + below(0x1_0000)
    } else {
        address()
    };
    match below(3) {
        // SAFETY: a push may fault; the handler copes.
        0 => unsafe { asm!(".inst.w 0xf380880a", "push {{r4}}", "pop {{r4}}", in("r0") limit) },
        // SAFETY: likewise.
        1 => unsafe { asm!(".inst.w 0xf380880b", "svc #10", in("r0") limit) },
        // SAFETY: likewise.
        _ => unsafe { asm!(".inst.w 0xf380880a", "svc #11", in("r0") limit) },
    }
}

/// Hypercalls by the gate and by the instruction, from privileged and unprivileged code, with random
/// registers.
fn gates() {
    let function = match below(4) {
        0 => draw(),
        1 => FUNCTIONS | draw() & 0xFFFF,
        _ => FUNCTIONS | below(16) << 8 | below(9),
    };
    // One would be the end, and the other would forget the counts.
    if matches!(function, PARTITION_STOP | PARTITION_RESTART) {
        return;
    }
    if below(3) == 0 {
        crate::cpu::set_control(1);
    }
    let at = if below(8) == 0 {
        GATE ^ 1 << below(32)
    } else {
        GATE
    };
    // SAFETY: a hypercall changes r0 to r9 of this program and nothing else of it. Elsewhere the handler
    // copes.
    unsafe {
        asm!(
            "push {{r6, r7}}", "mov r6, r3", "mov r7, r2", "blx {at}", "pop {{r6, r7}}",
            at = in(reg) at,
            inout("r0") function => _, inout("r1") below(4) => _, inout("r2") address() => _, inout("r3") draw() >> below(32) => _,
            out("r4") _, out("r5") _, out("r8") _, out("r9") _, out("lr") _,
        );
    }
    crate::attacks::kick();
}

/// Exceptions that are active and are not, and lines that belong to others.
fn active() {
    store(SHCSR, draw());
    store(0xE000_E100 + below(4) * 4, draw());
    store(0xE000_E200 + below(4) * 4, draw());
    store(0xE000_E300 + below(4) * 4, draw());
    // STIR.
    store(0xE000_EF00, below(0x200));
    if below(4) == 0 {
        change_masks(true, true);
        spin(2_000);
        change_masks(false, true);
    }
    barrier();
}

/// Makes one attack.
pub fn one() {
    match below(64) {
        0..=13 => authorities(),
        14..=19 => other_world(),
        20..=24 => hypervisor(),
        25..=30 => returns(),
        31..=36 => probe(),
        37..=42 => lazy_room(),
        43..=46 => handlers(),
        47 | 48 => reset(),
        49..=51 => denied(),
        52..=54 => limits(),
        55..=59 => gates(),
        60..=62 => active(),
        _ => masked_for_ever(),
    }
}
