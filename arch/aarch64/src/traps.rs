// SPDX-License-Identifier: Apache-2.0
//! Exceptions from a guest: what is answered here, and what becomes an exit.
//!
//! A handler runs on the stack of its pCPU with x0..x18 and x30 of the guest in the context, everything else
//! still in the hardware (ELR_EL2 and SPSR_EL2 too: nothing that a handler does takes an exception). It returns
//! [`RESUME`] to go on in the guest, [`ALL_REGISTERS`] to be called again with x19..x29 in the context as well, or
//! the reason with which `run` returns.
//!
//! What comes again and again is looked at first and is finished in a function that calls nothing, so that the
//! compiler saves no register for it; everything else is a call in tail position. docs/paths.md counts.

use crate::entry::{ALL_REGISTERS, RESUME};
use crate::irq;
use crate::machine::Machine;
use crate::sysreg::{instruction, instruction_with, read_register, write_guest_register};
use crate::vcpu::{Context, LEAVE_EXIT, LEAVE_HYPERCALL, LEAVE_IDLE, Load, Pending, RARE_RAS, RARE_SERROR};
use crate::{aarch32, inject, psci, status, system, timer};
use bulkhead_abi::HealthClass;
use bulkhead_abi::hypercall::FUNCTION_BASE;
use bulkhead_arch_api::{Access, AccessKind, Exit, FaultReport, GuestPhys, VcpuSet};

/// Exception classes, ESR_EL2.EC (Arm DDI 0487 D19.2.37).
const EC_UNKNOWN: u64 = 0x00;
const EC_WFX: u64 = 0x01;
const EC_COPROCESSOR_FIRST: u64 = 0x03;
const EC_CP15: u64 = 0x03;
const EC_CP15_PAIR: u64 = 0x04;
const EC_CP14: u64 = 0x05;
const EC_COPROCESSOR_LAST: u64 = 0x06;
const EC_FP: u64 = 0x07;
const EC_VMRS: u64 = 0x08;
const EC_COPROCESSOR_64: u64 = 0x0C;
const EC_HVC32: u64 = 0x12;
const EC_SMC32: u64 = 0x13;
const EC_SVC64: u64 = 0x15;
const EC_HVC64: u64 = 0x16;
const EC_SMC64: u64 = 0x17;
const EC_SYSTEM: u64 = 0x18;
const EC_SVE: u64 = 0x19;
const EC_INSTRUCTION_ABORT: u64 = 0x20;
const EC_DATA_ABORT: u64 = 0x24;
const EC_SERROR: u64 = 0x2F;

/// ESR.IL: a 32-bit instruction.
const ESR_IL: u64 = 1 << 25;
/// ESR.IL and ESR.ISS.
const ESR_DETAILS: u64 = 0x3FF_FFFF;
/// ISS of WFI and WFE: TI, 0 = WFI.
const ISS_WFX_TI: u64 = 3;
/// The syndrome of the usual WFI: 32 bits long, always executed (in AArch64 state COND says so), TI 0.
const WFI: u64 = EC_WFX << 26 | ESR_IL | 1 << 24 | 0xE << 20;
/// ISS of aborts (D19.2.37, "ISS encoding for an exception from a Data Abort").
const ISS_VALID: u64 = 1 << 24;
const ISS_SIZE: u64 = 3 << 22;
const ISS_SIZE_WORD: u64 = 2 << 22;
const ISS_SIGN_EXTEND: u64 = 1 << 21;
const ISS_SIXTY_FOUR: u64 = 1 << 15;
const ISS_FNV: u64 = 1 << 10;
const ISS_CACHE_MAINTENANCE: u64 = 1 << 8;
const ISS_S1PTW: u64 = 1 << 7;
const ISS_WRITE: u64 = 1 << 6;
/// ISS.Direction of MCR, MRC, MCRR and MRRC: a read.
const ISS_COPROCESSOR_READ: u64 = 1;
/// Fault status without the level.
const FSC_TYPE: u64 = 0x3C;
const FSC_TRANSLATION: u64 = 0x04;
const FSC_PERMISSION: u64 = 0x0C;
/// PSTATE.SS and SPSR bits of AArch32's IT state.
const SPSR_SS: u64 = 1 << 21;
const SPSR_AARCH32: u64 = 1 << 4;
/// SPSR.M: the level, and EL1.
const SPSR_LEVEL: u64 = 3 << 2;
const SPSR_EL1: u64 = 1 << 2;
const SPSR_IT: u64 = 0xFC00 | 3 << 25;
/// SPSR.E of AArch32 state: data accesses are big-endian.
const SPSR_BIG_ENDIAN: u64 = 1 << 9;
/// SCTLR_EL1.E0E and EE: those of EL0 and EL1 in AArch64 state are (Arm DDI 0487 B2.6.2).
const SCTLR_BIG_ENDIAN_EL0: u64 = 1 << 24;
const SCTLR_BIG_ENDIAN_EL1: u64 = 1 << 25;

/// A synchronous exception.
#[derive(Clone, Copy)]
pub(crate) struct Trap {
    /// ESR_EL2.
    pub(crate) syndrome: u64,
    /// Whether x19..x29 are in the context too.
    pub(crate) complete: bool,
}

impl Trap {
    /// Whether general register `number` is not in the context.
    #[inline(always)]
    pub(crate) const fn misses(self, number: u8) -> bool {
        number.wrapping_sub(19) < 11 && !self.complete
    }
}

/// A handler's arguments, as `entry` passes them.
///
/// # Safety
/// Called by `entry` only: `context` is the current vCPU's, `machine` is this pCPU's and was lent by `run`,
/// which uses neither until the handler has returned.
pub(crate) unsafe extern "C" fn on_synchronous(
    context: *mut Context,
    machine: *mut Machine,
    complete: u64,
) -> u64 {
    // SAFETY: see above; a context is never inside a machine, so the references do not overlap.
    let context = unsafe { &mut *context };
    // SAFETY: see above.
    let machine = unsafe { &mut *machine };
    let trap = Trap {
        syndrome: read_register!("esr_el2"),
        complete: complete != 0,
    };
    match trap.syndrome >> 26 & 0x3F {
        EC_HVC64 => psci::call(context, trap.syndrome & 0xFFFF),
        EC_DATA_ABORT => data_abort::<false>(machine, context, trap),
        EC_WFX => wait_for(context, trap.syndrome),
        EC_SYSTEM => system::access(machine, context, trap),
        EC_SMC64 => {
            advance_in_place(context, trap.syndrome);
            psci::call(context, trap.syndrome & 0xFFFF)
        }
        _ if read_register!("spsr_el2") & SPSR_AARCH32 != 0 => narrow(machine, context, trap),
        _ => seldom(machine, context, trap.syndrome),
    }
}

/// The same of a VM with a 32-bit kernel. It has a vector of its own, so that other VMs pay nothing for the registers' names.
///
/// # Safety
/// As for [`on_synchronous`].
pub(crate) unsafe extern "C" fn on_synchronous_narrow(
    context: *mut Context,
    machine: *mut Machine,
    complete: u64,
) -> u64 {
    // SAFETY: as in `on_synchronous`.
    let context = unsafe { &mut *context };
    // SAFETY: as in `on_synchronous`.
    let machine = unsafe { &mut *machine };
    let syndrome = read_register!("esr_el2");
    let trap = |syndrome| Trap {
        syndrome,
        complete: complete != 0,
    };
    match syndrome >> 26 & 0x3F {
        EC_HVC32 if syndrome & 0xFFFF == status::VISIT && status::is_visit() => LEAVE_EXIT,
        EC_HVC32 => psci::call_narrow(context, syndrome & 0xFFFF),
        EC_DATA_ABORT => data_abort::<true>(machine, context, trap(aarch32::with_view(syndrome, 16))),
        EC_VMRS => narrow(machine, context, trap(aarch32::with_view(syndrome, 5))),
        _ => narrow(machine, context, trap(syndrome)),
    }
}

/// What else comes from AArch32 state: of a VM with a 32-bit kernel, or of a 32-bit program.
#[inline(never)]
fn narrow(machine: &mut Machine, context: &mut Context, trap: Trap) -> u64 {
    // Any register may be named, and an exception is taken in the banked ones.
    if !trap.complete {
        return ALL_REGISTERS;
    }
    let syndrome = trap.syndrome;
    let class = syndrome >> 26 & 0x3F;
    let conditional = matches!(class, EC_WFX | EC_COPROCESSOR_FIRST..=EC_SMC32) && class != EC_HVC32;
    if conditional && !aarch32::passes(syndrome, read_register!("spsr_el2")) {
        advance(context, syndrome);
        return RESUME;
    }
    match class {
        EC_WFX => wait_for(context, syndrome),
        EC_HVC32 => psci::call_narrow(context, syndrome & 0xFFFF),
        EC_SMC32 => {
            advance(context, syndrome);
            psci::call_narrow(context, 0)
        }
        EC_CP15 => system::access_narrow(machine, context, syndrome),
        EC_CP15_PAIR => system::access_pair(machine, context, syndrome),
        EC_CP14 | EC_COPROCESSOR_64 if is_privileged() => {
            // The debug registers of a CPU without debug: they read as zero, and nobody listens to what is written.
            if syndrome & ISS_COPROCESSOR_READ != 0 {
                context.write_general((syndrome >> 5 & 31) as u8, 0);
                if class == EC_COPROCESSOR_64 {
                    context.write_general((syndrome >> 10 & 31) as u8, 0);
                }
            }
            advance(context, syndrome);
            RESUME
        }
        EC_VMRS => {
            let value = system::media_features(syndrome >> 10 & 0xF);
            context.write_general((syndrome >> 5 & 31) as u8, value);
            advance(context, syndrome);
            RESUME
        }
        _ => seldom(machine, context, syndrome),
    }
}

/// Whether the guest is not in AArch32's User mode.
fn is_privileged() -> bool {
    const MODE_USER: u64 = 0x10;
    read_register!("spsr_el2") & 0x1F != MODE_USER
}

/// The other exception classes.
#[inline(never)]
fn seldom(machine: &mut Machine, context: &mut Context, syndrome: u64) -> u64 {
    let reason = match syndrome >> 26 & 0x3F {
        EC_FP => {
            machine.fp_take(context);
            RESUME
        }
        EC_SVC64 => return task_call(context, syndrome),
        EC_INSTRUCTION_ABORT => memory_fault(context, syndrome, abort_address(syndrome)),
        EC_UNKNOWN | EC_SVE => undefined(machine, context, syndrome),
        EC_COPROCESSOR_FIRST..=EC_COPROCESSOR_LAST | EC_COPROCESSOR_64 => {
            undefined(machine, context, syndrome)
        }
        _ => fault(context, other_class(context), syndrome, None),
    };
    if reason == RESUME {
        return resume(machine, context);
    }
    reason
}

/// Goes on in the guest, whose interrupts may have to be looked at.
#[inline(always)]
pub(crate) fn resume(machine: &mut Machine, context: &mut Context) -> u64 {
    if irq::is_settled(&context.irq) {
        return RESUME;
    }
    settle(machine, context)
}

#[inline(never)]
fn settle(machine: &mut Machine, context: &mut Context) -> u64 {
    let wake = irq::settle(&mut machine.irq, &mut context.irq);
    if wake.is_empty() {
        RESUME
    } else {
        leave(context, Exit::Wake(wake))
    }
}

/// See [`on_synchronous`].
///
/// # Safety
/// As for [`on_synchronous`].
pub(crate) unsafe extern "C" fn on_interrupt(context: *mut Context, machine: *mut Machine) -> u64 {
    // SAFETY: as in `on_synchronous`.
    let context = unsafe { &mut *context };
    // SAFETY: as in `on_synchronous`.
    let machine = unsafe { &mut *machine };
    let line = irq::acknowledge();
    if irq::deliver_timer(&machine.irq, &mut context.irq, line) {
        return RESUME;
    }
    if irq::take_kick(&machine.irq, &context.irq, line) {
        return resume(machine, context);
    }
    interrupted(machine, context, line)
}

/// Any other acknowledged interrupt.
#[inline(never)]
fn interrupted(machine: &mut Machine, context: &mut Context, line: u32) -> u64 {
    match irq::interrupt(&mut machine.irq, &mut context.irq, line) {
        None => resume(machine, context),
        Some(exit) => leave(context, exit),
    }
}

/// An SError that became pending while the guest ran: its device or memory access is the cause.
///
/// # Safety
/// As for [`on_synchronous`].
pub(crate) unsafe extern "C" fn on_serror(context: *mut Context, _machine: *mut Machine) -> u64 {
    // SAFETY: as in `on_synchronous`.
    let context = unsafe { &mut *context };
    let syndrome = read_register!("esr_el2") & ESR_DETAILS | EC_SERROR << 26;
    fault(context, HealthClass::Memory, syndrome, None)
}

/// Leaves the guest with this exit.
#[inline]
pub(crate) fn leave(context: &mut Context, exit: Exit) -> u64 {
    context.exit = exit;
    LEAVE_EXIT
}

/// Bytes of the instruction that trapped.
#[inline]
pub(crate) const fn length(syndrome: u64) -> u64 {
    if syndrome & ESR_IL != 0 { 4 } else { 2 }
}

/// Steps over the instruction that trapped.
#[inline(never)]
pub(crate) fn advance(context: &Context, syndrome: u64) {
    advance_in_place(context, syndrome);
}

/// The same without a call, for what is frequent: a handler without calls needs no frame.
#[inline(always)]
pub(crate) fn advance_in_place(context: &Context, syndrome: u64) {
    write_guest_register!(
        "elr_el2",
        read_register!("elr_el2").wrapping_add(length(syndrome))
    );
    let pstate = read_register!("spsr_el2");
    if pstate & SPSR_AARCH32 != 0 || context.debug.stepping() {
        write_guest_register!("spsr_el2", stepped(pstate));
    }
}

/// PSTATE behind a completed instruction: no single step pending over it, IT state advanced (F1.3.x).
#[inline(always)]
pub(crate) const fn stepped(pstate: u64) -> u64 {
    let pstate = pstate & !SPSR_SS;
    if pstate & SPSR_AARCH32 == 0 {
        return pstate;
    }
    let it = pstate >> 8 & 0xFC | pstate >> 25 & 3;
    let it = if it & 7 == 0 {
        0
    } else {
        it & 0xE0 | it << 1 & 0x1F
    };
    pstate & !SPSR_IT | (it & 0xFC) << 8 | (it & 3) << 25
}

/// A report of the guest's present instruction.
fn report(class: HealthClass, syndrome: u64, address: Option<GuestPhys>) -> FaultReport {
    let abort = matches!(syndrome >> 26 & 0x3F, EC_DATA_ABORT | EC_INSTRUCTION_ABORT);
    let virtual_address = (abort && syndrome & ISS_FNV == 0).then(|| read_register!("far_el2"));
    FaultReport {
        class,
        syndrome,
        pc: read_register!("elr_el2"),
        address,
        virtual_address,
    }
}

/// Leaves the guest with a fault.
pub(crate) fn fault(
    context: &mut Context,
    class: HealthClass,
    syndrome: u64,
    address: Option<GuestPhys>,
) -> u64 {
    context.pending = Pending::Nothing;
    leave(context, Exit::Fault(report(class, syndrome, address)))
}

/// The class of what is neither memory nor a known trap.
fn other_class(context: &Context) -> HealthClass {
    if context.is_task() {
        HealthClass::Task
    } else {
        HealthClass::System
    }
}

/// An instruction that a machine without the feature would not know. Its use is a fault of the partition, unless
/// it comes from EL0 of a VM: a program is no reason to end the machine whose kernel lets it run.
pub(crate) fn undefined(machine: &mut Machine, context: &mut Context, syndrome: u64) -> u64 {
    if context.is_task() {
        return fault(context, HealthClass::Task, syndrome, None);
    }
    let pstate = read_register!("spsr_el2");
    if context.plan.aarch32 {
        if is_privileged() {
            return fault(context, HealthClass::System, syndrome, None);
        }
        aarch32::undefined_now(machine, context);
        return RESUME;
    }
    if pstate & (SPSR_AARCH32 | SPSR_LEVEL) != SPSR_EL1 {
        inject::undefined_now();
        return RESUME;
    }
    fault(context, HealthClass::System, syndrome, None)
}

/// Finishes an instruction that may have given this vCPU or others something to do.
#[inline]
pub(crate) fn resume_or_wake(machine: &mut Machine, context: &mut Context, wake: VcpuSet) -> u64 {
    if wake.is_empty() {
        resume(machine, context)
    } else {
        leave(context, Exit::Wake(wake))
    }
}

/// SVC of a task: the hypercall, or nothing else.
fn task_call(context: &mut Context, syndrome: u64) -> u64 {
    let function = context.read_general(0);
    if syndrome & 0xFFFF == 0 && function & 0xFFFF_0000 == u64::from(FUNCTION_BASE) {
        return LEAVE_HYPERCALL;
    }
    context.write_general(0, bulkhead_abi::Error::NotSupported as i64 as u64);
    RESUME
}

/// WFI; WFE does not trap (HCR_EL2.TWE is 0). The usual one is that of a VM with nothing unusual: without a call.
#[inline(always)]
fn wait_for(context: &mut Context, syndrome: u64) -> u64 {
    if context.rare != 0 || !irq::is_vm(&context.irq) || syndrome != WFI {
        return wait_otherwise(context, syndrome);
    }
    wait_plainly(context)
}

#[inline(always)]
fn wait_plainly(context: &mut Context) -> u64 {
    write_guest_register!("elr_el2", read_register!("elr_el2").wrapping_add(4));
    idle_if(context, |context| irq::is_quiet(&context.irq))
}

/// Any other: also that of a 32-bit program, which can be 16 bits long, in an IT block, or conditional and trap nevertheless
/// (G1.18.1). An idle task waits by hypercall, so its WFI is over at once.
#[inline(never)]
fn wait_otherwise(context: &mut Context, syndrome: u64) -> u64 {
    // What the CPU has besides is no concern of a wait.
    if context.rare == RARE_RAS && irq::is_vm(&context.irq) && syndrome == WFI {
        return wait_plainly(context);
    }
    let pstate = read_register!("spsr_el2");
    advance(context, syndrome);
    if pstate & SPSR_AARCH32 != 0 && !aarch32::passes(syndrome, pstate) {
        return RESUME;
    }
    // A pending SError ends a wait, masked or not (D1.6.2).
    let has_error = context.rare & RARE_SERROR != 0 && inject::serror_is_pending();
    if has_error || context.is_task() || syndrome & ISS_WFX_TI != 0 {
        return RESUME;
    }
    idle(context)
}

/// The vCPU waits for an interrupt.
#[inline(always)]
pub(crate) fn idle(context: &mut Context) -> u64 {
    idle_if(context, |context| irq::is_idle(&context.irq))
}

#[inline(always)]
fn idle_if(context: &mut Context, is_idle: impl FnOnce(&Context) -> bool) -> u64 {
    let until = timer::next_expiry(&context.timers);
    if until.0 <= read_register!("cntpct_el0") {
        return RESUME;
    }
    if !is_idle(context) {
        return idle_without_work(context, until);
    }
    context.timers.idle(until);
    LEAVE_IDLE
}

/// [`idle`], if there is really nothing: what another pCPU has done meanwhile may not be in the list registers yet.
#[inline(never)]
fn idle_without_work(context: &mut Context, until: bulkhead_arch_api::Ticks) -> u64 {
    if irq::has_work(&context.irq) {
        return RESUME;
    }
    context.timers.idle(until);
    LEAVE_IDLE
}

/// A load or store that stage 2 refused, of a VM whose kernel is 32-bit, or not.
#[inline(always)]
fn data_abort<const NARROW: bool>(machine: &mut Machine, context: &mut Context, trap: Trap) -> u64 {
    const WHAT: u64 = ISS_VALID | ISS_SIZE | ISS_SIGN_EXTEND | ISS_S1PTW | FSC_TYPE;
    let register = (trap.syndrome >> 16 & 31) as u8;
    // A word of the interrupt controller.
    if trap.syndrome & WHAT == ISS_VALID | ISS_SIZE_WORD | FSC_TRANSLATION
        && !trap.misses(register)
        && let pstate = read_register!("spsr_el2")
        && is_little_endian::<NARROW>(pstate)
    {
        let address = faulting_address();
        if trap.syndrome & ISS_WRITE == 0 {
            if let Some(value) = irq::read_word(&context.irq, address) {
                context.write_general(register, u64::from(value));
                step_over::<NARROW>(context, trap.syndrome, pstate);
                return resume(machine, context);
            }
        } else {
            let value = context.read_general(register) as u32;
            if let Some(sent) = irq::sent_by_word(&context.irq, address, value) {
                return send_by_word(machine, context, trap.syndrome, sent);
            }
            if let Some(changed) = irq::write_word(&context.irq, address, value) {
                step_over::<NARROW>(context, trap.syndrome, pstate);
                if changed == 0 {
                    return resume(machine, context);
                }
                return enable_changed(machine, context, address, changed);
            }
        }
    }
    emulate(machine, context, trap)
}

/// A word that sends a software-generated interrupt to one vCPU, by its index.
#[inline(never)]
fn send_by_word(
    machine: &mut Machine,
    context: &mut Context,
    syndrome: u64,
    (target, line): (usize, u32),
) -> u64 {
    if !irq::send_to_self(&mut context.irq, target, line) {
        return system::send_to_one(machine, context, syndrome, (target, line));
    }
    advance_in_place(context, syndrome);
    resume(machine, context)
}

#[inline(never)]
fn enable_changed(machine: &mut Machine, context: &mut Context, address: GuestPhys, changed: u32) -> u64 {
    let wake = irq::enable_changed(&mut machine.irq, &context.irq, address, changed);
    resume_or_wake(machine, context, wake)
}

/// HPFAR_EL2 is valid for a translation fault (D19.2.65); the offset in the page is FAR's.
#[inline(always)]
fn faulting_address() -> GuestPhys {
    let page = (read_register!("hpfar_el2") & 0xFFF_FFFF_FFF0) << 8;
    GuestPhys(page | read_register!("far_el2") & 0xFFF)
}

#[inline(never)]
fn emulate(machine: &mut Machine, context: &mut Context, trap: Trap) -> u64 {
    let syndrome = trap.syndrome;
    let emulable = syndrome & (ISS_VALID | ISS_S1PTW) == ISS_VALID && syndrome & FSC_TYPE == FSC_TRANSLATION;
    if !emulable {
        if syndrome & (ISS_CACHE_MAINTENANCE | ISS_S1PTW) == ISS_CACHE_MAINTENANCE
            && syndrome & FSC_TYPE == FSC_TRANSLATION
        {
            // No memory is there that could be cached.
            advance(context, syndrome);
            return RESUME;
        }
        return memory_fault(context, syndrome, abort_address(syndrome));
    }
    let at = Location {
        address: faulting_address(),
        size: 1u8 << (syndrome >> 22 & 3),
        register: (syndrome >> 16 & 31) as u8,
        big_endian: is_big_endian(),
    };
    if at.address.0 & (u64::from(at.size) - 1) != 0 {
        return misaligned(context, syndrome, at.address);
    }
    if trap.misses(at.register) {
        return ALL_REGISTERS;
    }
    if syndrome & ISS_WRITE == 0 {
        load(machine, context, syndrome, at)
    } else {
        store(machine, context, syndrome, at)
    }
}

/// Registers are device memory, where a CPU gives what is not aligned to EL1 (B2.7.2, "Device memory"), unless the
/// guest's own translation says that it is normal memory; or the CPU is an emulator that does not look.
#[cold]
fn misaligned(context: &mut Context, syndrome: u64, address: GuestPhys) -> u64 {
    if context.is_task() || context.plan.aarch32 {
        return memory_fault(context, syndrome, Some(address));
    }
    inject::alignment_now(syndrome);
    RESUME
}

/// Which bytes and which register an access is about, and in which order the bytes are in the register.
struct Location {
    address: GuestPhys,
    size: u8,
    register: u8,
    big_endian: bool,
}

/// Whether [`is_big_endian`] is surely false, in two looks. A 32-bit program under a 64-bit kernel is not looked at so closely.
#[inline(always)]
fn is_little_endian<const NARROW: bool>(pstate: u64) -> bool {
    if NARROW {
        return pstate & SPSR_BIG_ENDIAN == 0;
    }
    pstate & SPSR_AARCH32 == 0
        && read_register!("sctlr_el1") & (SCTLR_BIG_ENDIAN_EL0 | SCTLR_BIG_ENDIAN_EL1) == 0
}

/// [`advance_in_place`] where it is known whether the guest is in AArch32 state.
#[inline(always)]
fn step_over<const NARROW: bool>(context: &Context, syndrome: u64, pstate: u64) {
    write_guest_register!(
        "elr_el2",
        read_register!("elr_el2").wrapping_add(length(syndrome))
    );
    if NARROW || context.debug.stepping() {
        write_guest_register!("spsr_el2", stepped(pstate));
    }
}

/// Whether the guest's present data accesses are big-endian: what is a register's least significant byte to the device is the
/// most significant one to the guest.
fn is_big_endian() -> bool {
    let pstate = read_register!("spsr_el2");
    if pstate & SPSR_AARCH32 != 0 {
        return pstate & SPSR_BIG_ENDIAN != 0;
    }
    let control = if pstate & SPSR_LEVEL == SPSR_EL1 {
        SCTLR_BIG_ENDIAN_EL1
    } else {
        SCTLR_BIG_ENDIAN_EL0
    };
    read_register!("sctlr_el1") & control != 0
}

#[inline]
fn load(machine: &mut Machine, context: &mut Context, syndrome: u64, at: Location) -> u64 {
    let load = Load {
        register: at.register,
        size: at.size,
        sign_extend: syndrome & ISS_SIGN_EXTEND != 0,
        wide: syndrome & ISS_SIXTY_FOUR != 0,
        big_endian: at.big_endian,
    };
    if let Some(answer) = irq::mmio_read(&mut machine.irq, &mut context.irq, at.address, at.size) {
        context.finish_load(load, answer.value);
        advance(context, syndrome);
        return resume_or_wake(machine, context, answer.wake);
    }
    context.pending = Pending::Load {
        load,
        length: length(syndrome),
    };
    access(context, syndrome, &at, AccessKind::Read)
}

#[inline]
fn store(machine: &mut Machine, context: &mut Context, syndrome: u64, at: Location) -> u64 {
    let value = store_value(context, &at);
    if let Some(answer) = irq::mmio_write(&mut machine.irq, &mut context.irq, at.address, at.size, value) {
        advance(context, syndrome);
        return resume_or_wake(machine, context, answer.wake);
    }
    context.pending = Pending::Store {
        length: length(syndrome),
    };
    access(context, syndrome, &at, AccessKind::Write(value))
}

/// An access the kernel decides about; its answer completes the instruction.
fn access(context: &mut Context, syndrome: u64, at: &Location, kind: AccessKind) -> u64 {
    let report = report(HealthClass::Memory, syndrome, Some(at.address));
    leave(
        context,
        Exit::Access(Access {
            address: at.address,
            size: at.size,
            kind,
            report,
        }),
    )
}

/// What a store of the low `size` bytes of a register gives the device.
#[inline]
fn store_value(context: &Context, at: &Location) -> u64 {
    let shift = 64 - 8 * u32::from(at.size);
    let value = context.read_general(at.register) << shift;
    if at.big_endian {
        value.swap_bytes()
    } else {
        value >> shift
    }
}

/// The guest-physical address of an abort, if the hardware or a translation by it can tell.
fn abort_address(syndrome: u64) -> Option<GuestPhys> {
    let address = read_register!("far_el2");
    let from_walk = syndrome & ISS_S1PTW != 0;
    let kind = syndrome & FSC_TYPE;
    if from_walk || kind < FSC_PERMISSION {
        return Some(GuestPhys(
            (read_register!("hpfar_el2") & 0xFFF_FFFF_FFF0) << 8 | address & 0xFFF,
        ));
    }
    if kind != FSC_PERMISSION || syndrome & ISS_FNV != 0 {
        return None;
    }
    // Not valid for a permission fault that is not on a walk; translate again, keeping the guest's PAR_EL1.
    let kept = read_register!("par_el1");
    instruction_with!("at s1e1r", address);
    instruction!("isb");
    let result = read_register!("par_el1");
    write_guest_register!("par_el1", kept);
    (result & 1 == 0).then_some(GuestPhys(result & 0xF_FFFF_FFFF_F000 | address & 0xFFF))
}

/// An access that cannot be emulated or hits memory the partition may not use that way.
fn memory_fault(context: &mut Context, syndrome: u64, address: Option<GuestPhys>) -> u64 {
    fault(context, HealthClass::Memory, syndrome, address)
}
