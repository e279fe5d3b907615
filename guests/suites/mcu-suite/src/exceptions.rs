// SPDX-License-Identifier: Apache-2.0
//! Ways into and out of exceptions, one after the other, each with what its handlers see.
//!
//! Every handler is [`suite_exception`]. It prints which exception it is, EXC_RETURN, the frame and the stack
//! pointers, does what the scenario has prepared for it, mends what a fault came from, and returns.

use core::arch::asm;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::console::print;
use crate::cpu::{
    barrier, basepri, call, change_masks, control, exchange_float, faultmask, handler, load, main_stack,
    primask, process_stack, send_and_wait, set_basepri, set_control, set_faultmask, set_primask, store,
    undefined, wait_for_event,
};
use crate::entry::closed_code;
use crate::place::{CODE, NOWHERE, RAM};
use crate::system::{
    ALL_FAULTS, CCR, CFSR, CHANGED_FRAME, HFSR, ICSR, ISER, ISPR, MSTKERR, RIGHT_RETURN, RIGHT_STATE, SHCSR,
    mend, on_process_stack, priority, restore, system_priority,
};

const SCR: u32 = 0xE000_ED10;
const VTOR: u32 = 0xE000_ED08;
const MMFAR: u32 = 0xE000_ED34;
const BFAR: u32 = 0xE000_ED38;
const FPCAR: u32 = 0xE000_EF38;
const CPACR: u32 = 0xE000_ED88;
const STIR: u32 = 0xE000_EF00;
const MPU_CTRL: u32 = 0xE000_ED94;

/// The action of an exception's handler, done once; indexed by exception.
static ACTIONS: [AtomicU32; 48] = [const { AtomicU32::new(0) }; 48];
static OPERANDS: [AtomicU32; 48] = [const { AtomicU32::new(0) }; 48];
/// The address at which `stack_guard` goes on.
static BEHIND_GUARD: AtomicU32 = AtomicU32::new(0);

/// An action of a handler.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum Action {
    Nothing,
    /// Store the operand to ISPR.
    Pend,
    /// Store the operand to ICSR.
    PendSystem,
    Call,
    Undefined,
    /// Return with the operand.
    Return,
    /// Put the operand into IPSR of the frame.
    Number,
    Float,
    Faultmask,
    /// Make threads privileged again.
    Privilege,
}

impl Action {
    const ALL: [Self; 10] = [
        Self::Nothing,
        Self::Pend,
        Self::PendSystem,
        Self::Call,
        Self::Undefined,
        Self::Return,
        Self::Number,
        Self::Float,
        Self::Faultmask,
        Self::Privilege,
    ];
}

fn prepare(exception: usize, action: Action, operand: u32) {
    if let (Some(slot), Some(argument)) = (ACTIONS.get(exception), OPERANDS.get(exception)) {
        slot.store(action as u32, Relaxed);
        argument.store(operand, Relaxed);
    }
}

/// Handles all exceptions.
#[unsafe(no_mangle)]
extern "C" fn suite_exception(exc_return: u32, frame: u32) -> u32 {
    if crate::storm::running() {
        return crate::storm::exception(exc_return, frame);
    }
    if crate::transfers::running() {
        return crate::transfers::exception(exc_return, frame);
    }
    let number = handler();
    if matches!(number, 3 | 4) && load(CFSR) & MSTKERR != 0 {
        make_frame(frame);
    }
    if number == 3 {
        store(MPU_CTRL, 0);
    }
    print!(
        "  {}: lr={:08x} state={:08x}",
        number,
        exc_return,
        load(frame + 28)
    );
    print!(
        " control={} process={:08x} shcsr={:08x}",
        control(),
        process_stack(),
        load(SHCSR)
    );
    print!(" icsr={:08x} active={:08x}", load(ICSR), load(0xE000_E300));
    let synchronous = matches!(number, 3..=6 | 11);
    if synchronous {
        print!(
            " pc={:08x} lr={:08x} r0={:08x}",
            load(frame + 24),
            load(frame + 20),
            load(frame)
        );
    }
    print!("\n");
    let mut result = exc_return;
    if (3..=6).contains(&number) {
        print_fault();
        result = mend(exc_return, frame);
    }
    let slot = number as usize;
    let action = ACTIONS.get(slot).map_or(0, |action| action.swap(0, Relaxed));
    let operand = OPERANDS.get(slot).map_or(0, |operand| operand.load(Relaxed));
    match Action::ALL
        .get(action as usize)
        .copied()
        .unwrap_or(Action::Nothing)
    {
        Action::Nothing => {}
        Action::Pend => store(ISPR, operand),
        Action::PendSystem => store(ICSR, operand),
        Action::Call => call(),
        Action::Undefined => undefined(false),
        Action::Return => {
            RIGHT_RETURN.store(exc_return, Relaxed);
            result = operand;
        }
        Action::Number => {
            RIGHT_RETURN.store(exc_return, Relaxed);
            CHANGED_FRAME.store(frame, Relaxed);
            RIGHT_STATE.store(load(frame + 28), Relaxed);
            store(frame + 28, load(frame + 28) & !0x1FF | operand);
        }
        Action::Float => print!("  float={:08x}\n", exchange_float(operand)),
        Action::Faultmask => {
            set_faultmask(1);
            print!("  faultmask={}\n", faultmask());
        }
        Action::Privilege => set_control(control() & !1),
    }
    barrier();
    print!(
        "  {}: ends active={:08x} shcsr={:08x}\n",
        number,
        load(0xE000_E300),
        load(SHCSR)
    );
    result
}

/// Prints the fault status.
fn print_fault() {
    let status = load(CFSR);
    print!("  fault: cfsr={:08x} hfsr={:08x}", status, load(HFSR));
    if status & 1 << 7 != 0 {
        print!(" mmfar={:08x}", load(MMFAR));
    }
    if status & 1 << 15 != 0 {
        print!(" bfar={:08x}", load(BFAR));
    }
    print!("\n");
}

/// Writes a frame after the push of one failed. The memory there holds anything, so this makes it a frame
/// that leads to where `stack_guard` goes on.
fn make_frame(frame: u32) {
    store(MPU_CTRL, 0);
    barrier();
    for word in 0..6 {
        store(frame + word * 4, 0x1111_1111 * word);
    }
    store(frame + 24, BEHIND_GUARD.load(Relaxed));
    store(frame + 28, 1 << 24);
}

extern "C" fn calls() {
    call();
    undefined(true);
}

/// Makes an SVC with the stack not aligned to 8.
fn call_unaligned() {
    // SAFETY: the stack is as it was afterwards.
    unsafe { asm!("sub sp, sp, #4", "svc #1", "add sp, sp, #4") }
}

fn nesting() {
    store(ISER, 7 << 3);
    for (line, level) in [(3, 0x80), (4, 0x40), (5, 0xC0)] {
        priority(line, level);
    }
    prepare(19, Action::Pend, 3 << 4);
    store(ISPR, 1 << 3);
    barrier();
    // The same with groups: 4 does not interrupt 3 any more.
    store(0xE000_ED0C, 0x05FA_0700);
    prepare(19, Action::Pend, 3 << 4);
    store(STIR, 3);
    barrier();
    store(0xE000_ED0C, 0x05FA_0000);
}

fn masks() {
    system_priority(14, 0x80);
    store(ISER, 1);
    priority(0, 0x40);
    set_basepri(0x80);
    store(ICSR, 1 << 28);
    barrier();
    print!("  masked icsr={:08x}\n", load(ICSR));
    set_basepri(0x81);
    print!("  unmasked\n");
    set_primask(1);
    store(ISPR, 1);
    store(ICSR, 1 << 26);
    barrier();
    crate::cpu::wait();
    print!("  primask={} icsr={:08x}\n", primask(), load(ICSR));
    change_masks(false, false);
    barrier();
    change_masks(true, true);
    store(ISPR, 1);
    barrier();
    print!("  faultmask={} icsr={:08x}\n", faultmask(), load(ICSR));
    change_masks(false, true);
    barrier();
}

fn equal_priorities() {
    set_primask(1);
    store(ISER, 0x8000_0001);
    store(ISPR, 0x8000_0001);
    store(ICSR, 1 << 28 | 1 << 26);
    barrier();
    set_primask(0);
    barrier();
}

fn undefined_instructions() {
    undefined(false);
    undefined(true);
    // SAFETY: the handler goes on after it; the second one is skipped.
    unsafe { asm!("cmp r0, r0", "it eq", ".inst.n 0xde56") }
    // SAFETY: likewise.
    unsafe { asm!("cmp r0, r0", "it ne", ".inst.n 0xde57") }
    store(SHCSR, 0);
    undefined(false);
    store(SHCSR, ALL_FAULTS);
    set_primask(1);
    undefined(false);
    call();
}

fn bus_faults() {
    // SAFETY: nothing is there; the handler goes on after each.
    unsafe { asm!("ldr r2, [r0]", in("r0") NOWHERE, out("r2") _) }
    // SAFETY: likewise.
    unsafe { asm!("strb r0, [r0, #5]", in("r0") NOWHERE) }
    store(SHCSR, 0);
    // SAFETY: likewise.
    unsafe { asm!("ldrh r2, [r0, #2]", in("r0") NOWHERE, out("r2") _) }
}

fn arithmetic() {
    store(CCR, 0x210);
    // SAFETY: the handler goes on after it.
    unsafe { asm!("udiv r2, r0, r1", in("r0") 5, in("r1") 0, out("r2") _) }
    // CCR.UNALIGN_TRP is left out: QEMU 7.2 does not see it change between blocks of code it has linked
    // already.
    store(CCR, 0x200);
    let value: u32;
    // SAFETY: reads RAM of the suite's own.
    unsafe { asm!("ldrd r2, r3, [r0, #4]", in("r0") RAM + 0x8002, out("r2") _, out("r3") _) }
    // SAFETY: divides.
    unsafe { asm!("udiv r2, r0, r1", in("r0") 5, in("r1") 0, out("r2") value) }
    print!("  quotient={}\n", value);
}

fn coprocessors() {
    let access = load(CPACR);
    store(CPACR, 0);
    barrier();
    let _ = exchange_float(1);
    store(CPACR, access);
    barrier();
    // SAFETY: there is no coprocessor 14 to read; the handler goes on after it.
    unsafe { asm!(".inst.w 0xee110e10", out("r0") _) }
}

fn branches() {
    // SAFETY: each comes back through the handler, to the address in LR.
    unsafe { asm!("blx {}", in(reg) CODE, out("lr") _) }
    // SAFETY: likewise.
    unsafe { asm!("blx {}", in(reg) 0xFFFF_FFFD_u32, out("lr") _) }
    // SAFETY: likewise.
    unsafe { asm!("blx {}", in(reg) 0x4000_4001_u32, out("lr") _) }
}

fn wrong_returns() {
    store(ISER, 1);
    for value in [0xFFFF_FFF1_u32, 0xFFFF_FFF5, 0xFFFF_FFF3, 0xFFFF_FFFF] {
        prepare(16, Action::Return, value);
        store(ISPR, 1);
        barrier();
    }
    prepare(16, Action::Number, 17);
    store(ISPR, 1);
    barrier();
    // From a nested handler to a thread.
    store(ISER, 3);
    priority(0, 0x80);
    prepare(16, Action::Pend, 2);
    prepare(17, Action::Return, 0xFFFF_FFF9);
    store(ISPR, 1);
    barrier();
}

fn float() {
    let _ = exchange_float(0x1234_5678);
    prepare(11, Action::Float, 0x1111_2222);
    call();
    print!("  after={:08x} control={}\n", exchange_float(0), control());
    set_control(control() & !4);
    call();
    let _ = exchange_float(0x0102_0304);
    store(ISER, 3);
    priority(0, 0x80);
    prepare(16, Action::Float, 5);
    prepare(17, Action::Float, 6);
    set_primask(1);
    store(ISPR, 3);
    barrier();
    set_primask(0);
    barrier();
    print!("  after={:08x} fpcar={:08x}\n", exchange_float(0), load(FPCAR));
}

/// Loads two words at a time over the ends of the blocks of registers, and of the system control space.
fn ends_of_blocks() {
    for address in [
        0xE000_DFFC_u32,
        0xE000_ECFC,
        0xE000_ED8C,
        0xE000_EFF8,
        0xE000_EFFC,
    ] {
        let (low, high): (u32, u32);
        // SAFETY: reading registers there changes nothing.
        unsafe { asm!("ldrd {}, {}, [{}]", out(reg) low, out(reg) high, in(reg) address) }
        print!("  {:08x}: {:08x} {:08x}\n", address, low, high);
    }
}

/// Loads and stores with the rights of unprivileged code, by privileged code whose unit is on: where
/// everybody may read and write, only read, and where unprivileged code may nothing, or has no region.
fn rights_of_others() {
    let place = RAM + 0x7000;
    for (background, access) in [(1, 3), (1, 2), (1, 1), (0, 3)] {
        for word in 0..8 {
            store(place + word * 4, 0x8192_A3B4_u32.wrapping_mul(word + 1));
        }
        protect(place, 32, 1 << 28 | access << 24);
        if background == 0 {
            store(MPU_CTRL + 8, place + 64);
        }
        store(MPU_CTRL, 5);
        barrier();
        let (mut word, mut byte, mut half) = (1_u32, 2_u32, 3_u32);
        // SAFETY: the handler goes on after each. Nothing else is at these addresses.
        unsafe {
            asm!(
                "ldrt {word}, [{place}, #4]",
                "ldrsbt {byte}, [{place}, #9]",
                "ldrht {half}, [{place}, #13]",
                "strt {place}, [{place}, #16]",
                "strbt {place}, [{place}, #21]",
                "strht {place}, [{place}, #27]",
                word = inout(reg) word, byte = inout(reg) byte, half = inout(reg) half,
                place = in(reg) place,
            );
        }
        store(MPU_CTRL, 0);
        print!(
            "  rights {} {}: {:08x} {:08x} {:08x}",
            background, access, word, byte, half
        );
        for word in 4..9 {
            print!(" {:08x}", load(place + word * 4));
        }
        print!("\n");
    }
}

/// Switches the unit on without a region for the code that runs, then without one for its stack either. The
/// fault goes to HardFault, for which the unit is off.
extern "C" fn nothing_open() {
    let stack = process_stack() & !0x1FFF;
    store(SHCSR, 0);
    for (number, size) in [(0, 0), (1, 8192)] {
        if size == 0 {
            store(MPU_CTRL + 4, 0);
            store(MPU_CTRL + 12, 0);
        } else {
            protect(stack, size, 1 << 28 | 3 << 24);
        }
        print!("  regions: {}\n", number);
        // SAFETY: the handler goes on at 2, with the unit off.
        unsafe {
            asm!(
                "adr r0, 2f",
                "str r0, [{behind}]",
                "mov lr, r0",
                "orr lr, #1",
                "str {on}, [{control}]",
                "dsb",
                "isb",
                ".balign 4",
                "nop",
                "nop",
                "2:",
                "nop",
                behind = in(reg) BEHIND_GUARD.as_ptr(), on = in(reg) 1, control = in(reg) MPU_CTRL,
                out("r0") _, out("lr") _,
            );
        }
    }
    store(SHCSR, ALL_FAULTS);
}

fn most_urgent() {
    store(ISER, 1);
    set_primask(1);
    prepare(2, Action::Pend, 1);
    store(ICSR, 1 << 31);
    barrier();
    set_primask(0);
    barrier();
    prepare(16, Action::Faultmask, 0);
    store(ISPR, 1);
    barrier();
    print!("  faultmask={}\n", faultmask());
}

fn escalations() {
    system_priority(11, 0x80);
    system_priority(6, 0x80);
    store(ISER, 1);
    priority(0, 0x80);
    prepare(16, Action::Call, 0);
    store(ISPR, 1);
    barrier();
    prepare(16, Action::Undefined, 0);
    store(ISPR, 1);
    barrier();
    system_priority(11, 0x40);
    prepare(16, Action::Call, 0);
    store(ISPR, 1);
    barrier();
}

extern "C" fn unprivileged() {
    set_control(control() | 1);
    set_primask(1);
    set_basepri(0x40);
    print!(
        "  control={} primask={} msp={}\n",
        control(),
        primask(),
        main_stack()
    );
    // SAFETY: the handler goes on after each.
    unsafe { asm!("ldr r2, [r0]", in("r0") ICSR, out("r2") _) }
    // SAFETY: likewise.
    unsafe { asm!("str r0, [r0]", in("r0") ICSR) }
    // SAFETY: likewise.
    unsafe { asm!("str r1, [r0]", in("r0") STIR, in("r1") 0) }
    prepare(11, Action::Privilege, 0);
    call();
    print!("  control={} primask={}\n", control(), primask());
}

fn breakpoints() {
    // SAFETY: the handler goes on after each; the second one is what asks a debugger for a service.
    unsafe { asm!("bkpt #1", "bkpt #0xab") }
}

/// WFE after each kind of event: SEV, a handler, what becomes pending although it is not enabled.
fn events() {
    send_and_wait();
    wait_for_event();
    call();
    wait_for_event();
    store(SCR, 1 << 4);
    store(ISPR, 1 << 7);
    wait_for_event();
    print!("  scr={:08x} pending={:08x}\n", load(SCR), load(ISPR));
    store(SCR, 0);
}

/// Region 0 of the unit for memory protection: attributes but for the size.
fn protect(address: u32, size: u32, attributes: u32) {
    store(MPU_CTRL + 4, 0);
    store(MPU_CTRL + 8, address);
    store(MPU_CTRL + 12, attributes | (size.trailing_zeros() - 1) << 1 | 1);
}

/// Code where the program's own unit allows none: in RAM, and in the program itself.
fn no_execution() {
    for target in [RAM + 0x7000, closed_code as *const () as u32 & !1] {
        // Everybody may read and write.
        protect(target, 32, 1 << 28 | 3 << 24);
        store(MPU_CTRL, 5);
        // SAFETY: comes back through the handler, to the address in LR.
        unsafe { asm!("blx {}", in(reg) target | 1, out("lr") _) }
        store(MPU_CTRL, 0);
    }
    // SAFETY: it returns at once.
    unsafe { closed_code() }
}

/// Executes these instructions on the process stack, just above a region of it that is not writable.
macro_rules! at_guard {
    ($($instruction:literal),+) => {{
        let guard = RAM + 0x7000;
        // For reading by privileged code.
        protect(guard, 256, 1 << 28 | 5 << 24);
        // SAFETY: the stack in use is the one before at the end; the handlers restore everything else.
        unsafe {
            asm!(
                "adr r0, 2f",
                "str r0, [{behind}]",
                "mrs r4, psp",
                "msr psp, {stack}",
                "str {on}, [{control}]",
                "dsb",
                "movs r0, #2",
                "msr control, r0",
                "isb",
                "movs r0, #0",
                $($instruction,)+
                ".balign 4",
                "2:",
                "movs r0, #0",
                "msr control, r0",
                "isb",
                "msr psp, r4",
                behind = in(reg) BEHIND_GUARD.as_ptr(), stack = in(reg) guard + 0x80, on = in(reg) 5,
                control = in(reg) MPU_CTRL, out("r0") _, out("r1") _, out("r2") _, out("r3") _, out("r4") _,
                out("r12") _, out("lr") _,
            );
        }
        print!("  control={} mpu={:08x}\n", control(), load(MPU_CTRL));
    }};
}

/// CONTROL is told to use a stack that only the next instruction names.
fn stack_to_come() {
    set_primask(1);
    let pushed: u32;
    // SAFETY: the stack is RAM that nothing else uses; the one in use is the one before at the end.
    unsafe {
        asm!(
            "mrs r4, psp",
            "movs r0, #0",
            "msr psp, r0",
            "movs r0, #2",
            "msr control, r0",
            "isb",
            "msr psp, r1",
            "push {{r0}}",
            "movs r0, #0",
            "msr control, r0",
            "isb",
            "mrs r0, psp",
            "msr psp, r4",
            out("r0") pushed, in("r1") RAM + 0x7080, out("r4") _,
        );
    }
    print!("  control={} process={:08x}\n", control(), pushed);
}

/// Makes an SVC whose frame would lie in the guard.
fn stack_guard() {
    at_guard!("svc #9");
}

/// Unmasks an interrupt whose frame would lie in the guard.
fn guard_and_masks() {
    store(ISER, 1);
    priority(0, 0x80);
    set_primask(1);
    store(ISPR, 1);
    at_guard!("cpsie i", "isb");
    set_basepri(0x40);
    store(ISPR, 1);
    at_guard!("msr basepri, r0", "isb");
    print!("  primask={} basepri={}\n", primask(), basepri());
}

fn relocation() {
    let table = load(VTOR);
    let copy = RAM + 0x7000;
    for word in 0..48 {
        store(copy + word * 4, load(table + word * 4));
    }
    store(VTOR, copy);
    barrier();
    call();
    store(VTOR, table);
    barrier();
    print!("  vtor={:08x}\n", load(VTOR));
}

/// Runs all of it.
pub fn run() {
    let scenarios: [(&str, fn()); 26] = [
        ("call", call),
        ("process stack", || on_process_stack(calls)),
        ("unaligned stack", call_unaligned),
        ("nesting", nesting),
        ("masks", masks),
        ("equal priorities", equal_priorities),
        ("undefined", undefined_instructions),
        ("bus faults", bus_faults),
        ("arithmetic", arithmetic),
        ("coprocessors", coprocessors),
        ("branches", branches),
        ("wrong returns", wrong_returns),
        ("float", float),
        ("most urgent", most_urgent),
        ("escalations", escalations),
        ("unprivileged", || on_process_stack(unprivileged)),
        ("relocation", relocation),
        ("breakpoints", breakpoints),
        ("stack guard", stack_guard),
        ("guard and masks", guard_and_masks),
        ("no execution", no_execution),
        ("stack to come", stack_to_come),
        ("events", events),
        ("ends of blocks", ends_of_blocks),
        ("rights of others", rights_of_others),
        ("nothing open", || on_process_stack(nothing_open)),
    ];
    for (name, scenario) in scenarios {
        restore();
        print!("exceptions: {}\n", name);
        scenario();
        set_primask(0);
    }
    restore();
}
