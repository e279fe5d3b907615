// SPDX-License-Identifier: Apache-2.0
//! Arm GICv3 as a guest uses it: distributor and redistributors in memory, the CPU interface in system
//! registers (Arm IHI 0069). Group 1 only, affinity routing, one security state, as on QEMU's `virt` board.
//! If the CPU has no such registers, the controller is a GICv2 (IHI 0048B). It does the same operations by
//! other registers, in group 0. Features that only a GICv3 has must not be used then.
//!
//! The module is thin on purpose, because its main user is a test of exactly these operations: one function
//! per architectural operation, and no state of its own but the sender of an interrupt (GICv2).

use core::arch::asm;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

use super::register::Register;
use super::{bus, cpu};

/// Distributor of the default machine.
pub const DISTRIBUTOR: u64 = 0x0800_0000;
/// CPU interface of a GICv2.
pub const INTERFACE: u64 = 0x0801_0000;
/// Redistributor of CPU 0 of the default machine; the next ones follow.
pub const REDISTRIBUTORS: u64 = 0x080A_0000;
/// Bytes of a redistributor: the frame of its control registers and the frame of SGIs and PPIs.
pub const REDISTRIBUTOR_SIZE: u64 = 0x2_0000;
/// Offset of the SGI and PPI frame.
pub const SGI_FRAME: u64 = 0x1_0000;

/// First interrupt that is not private to a CPU.
pub const FIRST_SHARED: u32 = 32;
/// Interrupt numbers from here on mean "no interrupt" (IHI 0069 section 2.2.1).
pub const FIRST_SPECIAL: u32 = 1020;

/// Register offsets, the same in the distributor and in the SGI frame where both have the register (IHI 0069
/// sections 12.8-12.11).
pub mod offset {
    /// `GICD_CTLR`
    pub const CONTROL: u64 = 0x0000;
    /// `GICD_TYPER`
    pub const TYPE: u64 = 0x0004;
    /// `GICD_IIDR`
    pub const IMPLEMENTER: u64 = 0x0008;
    /// `IGROUPR`
    pub const GROUP: u64 = 0x0080;
    /// `ISENABLER`
    pub const SET_ENABLE: u64 = 0x0100;
    /// `ICENABLER`
    pub const CLEAR_ENABLE: u64 = 0x0180;
    /// `ISPENDR`
    pub const SET_PENDING: u64 = 0x0200;
    /// `ICPENDR`
    pub const CLEAR_PENDING: u64 = 0x0280;
    /// `ISACTIVER`
    pub const SET_ACTIVE: u64 = 0x0300;
    /// `ICACTIVER`
    pub const CLEAR_ACTIVE: u64 = 0x0380;
    /// `IPRIORITYR`
    pub const PRIORITY: u64 = 0x0400;
    /// `ICFGR`
    pub const CONFIGURATION: u64 = 0x0C00;
    /// `GICD_IROUTER`
    pub const ROUTE: u64 = 0x6000;
    /// `PIDR2`, at the end of each 64 KiB frame.
    pub const PERIPHERAL_ID2: u64 = 0xFFE8;
    /// `GICR_TYPER`
    pub const REDISTRIBUTOR_TYPE: u64 = 0x0008;
    /// `GICR_WAKER`
    pub const WAKER: u64 = 0x0014;
}

/// `GICD_CTLR`: group 1 enabled, affinity routing.
const CONTROL_ENABLED: u32 = 1 << 1 | 1 << 4;
/// `GICD_CTLR.RWP`, `GICR_CTLR.RWP` (bit 3 there).
const DISTRIBUTOR_BUSY: u32 = 1 << 31;
/// `GICR_WAKER.ProcessorSleep`, `.ChildrenAsleep`.
const PROCESSOR_SLEEP: u32 = 1 << 1;
const CHILDREN_ASLEEP: u32 = 1 << 2;
/// Turns to wait for a write to take effect.
const PATIENCE: u32 = 1_000_000;

/// Priority given to every interrupt by [`init_distributor`] and [`init_cpu`].
pub const DEFAULT_PRIORITY: u8 = 0xA0;

/// The finding of [`is_version2`]: 0 = not asked yet, 1 = no, 2 = yes. Identification registers trap under a
/// hypervisor, and sending an interrupt is not to pay for that each time.
static VERSION2: AtomicU8 = AtomicU8::new(0);

/// Tells whether it is a GICv2: ID_AA64PFR0_EL1.GIC says that there are no registers of a GICv3's CPU
/// interface.
#[must_use]
#[inline]
pub fn is_version2() -> bool {
    match VERSION2.load(Relaxed) {
        0 => {
            let found = Register::PFR0.read() >> 24 & 0xF == 0;
            VERSION2.store(1 + u8::from(found), Relaxed);
            found
        }
        known => known == 2,
    }
}

/// The memory-mapped CPU interface of a GICv2, and what else is different there.
mod v2 {
    use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

    use super::{DISTRIBUTOR, INTERFACE, bus, cpu};

    /// `GICC_CTLR`, `GICC_PMR`, `GICC_BPR`, `GICC_EOIR`, `GICC_RPR`, `GICC_HPPIR`, `GICC_APR0`, `GICC_DIR`
    /// (IHI 0048B section 4.4).
    pub(super) const CONTROL: u64 = 0;
    pub(super) const PRIORITY_MASK: u64 = 4;
    pub(super) const BINARY_POINT: u64 = 8;
    const ACKNOWLEDGE: u64 = 0xC;
    pub(super) const END: u64 = 0x10;
    pub(super) const RUNNING: u64 = 0x14;
    pub(super) const HIGHEST_PENDING: u64 = 0x18;
    pub(super) const ACTIVE_PRIORITIES: u64 = 0xD0;
    pub(super) const DEACTIVATE: u64 = 0x1000;
    /// `GICC_CTLR.EnableGrp0`, `.EOImode`.
    pub(super) const ENABLE: u32 = 1;
    pub(super) const SPLIT_END: u32 = 1 << 9;
    /// `GICD_ITARGETSR`, `GICD_SGIR`
    pub(super) const TARGETS: u64 = DISTRIBUTOR + 0x800;
    pub(super) const SEND: u64 = DISTRIBUTOR + 0xF00;
    /// `GICD_CPENDSGIR`, `GICD_SPENDSGIR`
    pub(super) const CLEAR_SENT: u64 = DISTRIBUTOR + 0xF10;
    pub(super) const SET_SENT: u64 = DISTRIBUTOR + 0xF20;

    pub(super) const SGIS: u32 = 16;
    const CPUS: usize = 8;
    /// The sender of the software-generated interrupt of each number that was acknowledged last, per CPU. The
    /// end of the interrupt must name the sender.
    static SENDERS: [[AtomicU8; SGIS as usize]; CPUS] =
        [const { [const { AtomicU8::new(0) }; SGIS as usize] }; CPUS];

    pub(super) fn sender(interrupt: u32) -> Option<&'static AtomicU8> {
        SENDERS.get(cpu::index())?.get(interrupt as usize)
    }

    pub(super) fn control(bit: u32, on: bool) -> u32 {
        let others = bus::read_u32(INTERFACE + CONTROL) & !bit;
        if on { others | bit } else { others }
    }

    pub(super) fn acknowledge() -> u32 {
        let value = bus::read_u32(INTERFACE + ACKNOWLEDGE);
        cpu::synchronize();
        let interrupt = value & 0x3FF;
        if let Some(sender) = sender(interrupt) {
            sender.store((value >> 10 & 7) as u8, Relaxed);
        }
        interrupt
    }

    pub(super) fn with_sender(interrupt: u32) -> u32 {
        let sender = sender(interrupt).map_or(0, |sender| sender.load(Relaxed));
        u32::from(sender) << 10 | interrupt
    }
}

/// Returns the CPU that sent the software-generated `interrupt` that the calling CPU acknowledged last, on a
/// GICv2.
#[must_use]
pub fn sender(interrupt: u32) -> u8 {
    v2::sender(interrupt).map_or(0, |sender| sender.load(Relaxed))
}

/// Returns the registers of `interrupt` that start at `offset`, one bit each: the word's address and the bit.
fn bit_register(offset: u64, interrupt: u32) -> (u64, u32) {
    let word = u64::from(interrupt / 32) * 4;
    (frame(interrupt) + offset + word, 1 << (interrupt % 32))
}

/// Returns where the registers of `interrupt` are, for the calling CPU.
fn frame(interrupt: u32) -> u64 {
    if interrupt < FIRST_SHARED && !is_version2() {
        redistributor(cpu::index()) + SGI_FRAME
    } else {
        DISTRIBUTOR
    }
}

/// Returns where the registers of the calling CPU's private interrupts are.
#[must_use]
pub fn private_registers() -> u64 {
    frame(0)
}

/// Returns the redistributor of a CPU.
#[must_use]
pub fn redistributor(index: usize) -> u64 {
    REDISTRIBUTORS + index as u64 * REDISTRIBUTOR_SIZE
}

fn set_bit(offset: u64, interrupt: u32) {
    let (address, bit) = bit_register(offset, interrupt);
    bus::write_u32(address, bit);
}

fn test_bit(offset: u64, interrupt: u32) -> bool {
    let (address, bit) = bit_register(offset, interrupt);
    bus::read_u32(address) & bit != 0
}

/// Returns the number of interrupt lines of the distributor, private ones included.
#[must_use]
pub fn lines() -> u32 {
    ((bus::read_u32(DISTRIBUTOR + offset::TYPE) & 0x1F) + 1) * 32
}

/// Waits until the distributor has taken the last write.
pub fn wait_for_distributor() {
    cpu::spin_until(PATIENCE, || {
        bus::read_u32(DISTRIBUTOR + offset::CONTROL) & DISTRIBUTOR_BUSY == 0
    });
}

/// Puts the distributor into a known state: everything disabled, idle, group 1, level, default priority,
/// routed to CPU 0; then switches it on. Assumes nothing about what was before.
pub fn init_distributor() {
    bus::write_u32(DISTRIBUTOR + offset::CONTROL, 0);
    wait_for_distributor();
    let lines = lines();
    for word in 1..u64::from(lines / 32) {
        clear_word(DISTRIBUTOR, word);
    }
    for interrupt in FIRST_SHARED..lines.min(FIRST_SPECIAL) {
        set_priority(interrupt, DEFAULT_PRIORITY);
        route(interrupt, 0);
    }
    for word in 2..u64::from(lines / 16) {
        bus::write_u32(DISTRIBUTOR + offset::CONFIGURATION + word * 4, 0);
    }
    enable_distributor();
    wait_for_distributor();
}

/// Switches the distributor on, for the group in use.
pub fn enable_distributor() {
    let enabled = if is_version2() { 1 } else { CONTROL_ENABLED };
    bus::write_u32(DISTRIBUTOR + offset::CONTROL, enabled);
}

/// Puts the calling CPU's interface into a known state, from any state, and lets all priorities in.
pub fn rearm_interface() {
    if is_version2() {
        bus::write_u32(INTERFACE + v2::CONTROL, 0);
    } else {
        set_system_registers(true);
    }
    set_end_mode(false);
    set_active_priorities(0);
    set_mask(0xFF);
    set_group_enable(true);
}

/// Disables the calling CPU's private interrupts and ends their active states; they are in the group in use
/// afterwards.
pub fn rearm_private() {
    let group = if is_version2() { 0 } else { u32::MAX };
    for (register, value) in [
        (offset::CLEAR_ENABLE, u32::MAX),
        (offset::CLEAR_ACTIVE, u32::MAX),
        (offset::GROUP, group),
    ] {
        bus::write_u32(frame(0) + register, value);
    }
}

/// Disables the 32 interrupts of a word and clears their state; the group in use.
fn clear_word(frame: u64, word: u64) {
    let group = if is_version2() { 0 } else { u32::MAX };
    for (register, value) in [
        (offset::CLEAR_ENABLE, u32::MAX),
        (offset::CLEAR_PENDING, u32::MAX),
        (offset::CLEAR_ACTIVE, u32::MAX),
        (offset::GROUP, group),
    ] {
        bus::write_u32(frame + register + word * 4, value);
    }
}

/// Puts the calling CPU's redistributor and CPU interface into a known state and lets all priorities in.
pub fn init_cpu() {
    if is_version2() {
        clear_word(DISTRIBUTOR, 0);
    } else {
        wake_redistributor();
    }
    for interrupt in 0..FIRST_SHARED {
        set_priority(interrupt, DEFAULT_PRIORITY);
    }
    set_end_mode(false);
    set_binary_point(0);
    set_mask(0xFF);
    set_group_enable(true);
}

fn wake_redistributor() {
    let redistributor = redistributor(cpu::index());
    let waker = bus::read_u32(redistributor + offset::WAKER) & !PROCESSOR_SLEEP;
    bus::write_u32(redistributor + offset::WAKER, waker);
    cpu::spin_until(PATIENCE, || {
        bus::read_u32(redistributor + offset::WAKER) & CHILDREN_ASLEEP == 0
    });
    clear_word(redistributor + SGI_FRAME, 0);
    set_system_registers(true);
}

/// Lets `interrupt` through.
pub fn enable(interrupt: u32) {
    set_bit(offset::SET_ENABLE, interrupt);
}

/// Stops `interrupt`.
pub fn disable(interrupt: u32) {
    set_bit(offset::CLEAR_ENABLE, interrupt);
    if interrupt >= FIRST_SHARED {
        wait_for_distributor();
    }
}

/// Tells whether `interrupt` is let through.
#[must_use]
pub fn is_enabled(interrupt: u32) -> bool {
    test_bit(offset::SET_ENABLE, interrupt)
}

/// Makes `interrupt` pending; a software-generated one of a GICv2 as if the calling CPU had sent it.
pub fn set_pending(interrupt: u32) {
    if interrupt < v2::SGIS && is_version2() {
        return bus::write_u8(v2::SET_SENT + u64::from(interrupt), 1 << (cpu::index() & 7));
    }
    set_bit(offset::SET_PENDING, interrupt);
}

/// Takes the pending state of `interrupt` back.
pub fn clear_pending(interrupt: u32) {
    if interrupt < v2::SGIS && is_version2() {
        return bus::write_u8(v2::CLEAR_SENT + u64::from(interrupt), u8::MAX);
    }
    set_bit(offset::CLEAR_PENDING, interrupt);
}

/// Tells whether `interrupt` is pending.
#[must_use]
pub fn is_pending(interrupt: u32) -> bool {
    test_bit(offset::SET_PENDING, interrupt)
}

/// Makes `interrupt` active.
pub fn set_active(interrupt: u32) {
    set_bit(offset::SET_ACTIVE, interrupt);
}

/// Takes the active state of `interrupt` back.
pub fn clear_active(interrupt: u32) {
    set_bit(offset::CLEAR_ACTIVE, interrupt);
}

/// Tells whether `interrupt` is active.
#[must_use]
pub fn is_active(interrupt: u32) -> bool {
    test_bit(offset::SET_ACTIVE, interrupt)
}

/// Puts `interrupt` into group 1 (else group 0).
pub fn set_group(interrupt: u32, group_one: bool) {
    let (address, bit) = bit_register(offset::GROUP, interrupt);
    let word = bus::read_u32(address);
    bus::write_u32(address, if group_one { word | bit } else { word & !bit });
}

/// Sets the priority of `interrupt`; 0 is the highest.
pub fn set_priority(interrupt: u32, priority: u8) {
    bus::write_u8(
        frame(interrupt) + offset::PRIORITY + u64::from(interrupt),
        priority,
    );
}

/// Returns the priority of `interrupt`, as far as it is implemented.
#[must_use]
pub fn priority(interrupt: u32) -> u8 {
    bus::read_u8(frame(interrupt) + offset::PRIORITY + u64::from(interrupt))
}

/// Makes `interrupt` edge-triggered (else level-sensitive).
pub fn set_edge(interrupt: u32, edge: bool) {
    let address = frame(interrupt) + offset::CONFIGURATION + u64::from(interrupt / 16) * 4;
    let bit = 2 << (interrupt % 16 * 2);
    let word = bus::read_u32(address);
    bus::write_u32(address, if edge { word | bit } else { word & !bit });
}

/// Tells whether `interrupt` is edge-triggered.
#[must_use]
pub fn is_edge(interrupt: u32) -> bool {
    let address = frame(interrupt) + offset::CONFIGURATION + u64::from(interrupt / 16) * 4;
    bus::read_u32(address) >> (interrupt % 16 * 2) & 2 != 0
}

/// Sends the shared `interrupt` to CPU `index`.
pub fn route(interrupt: u32, index: u64) {
    if is_version2() {
        return bus::write_u8(v2::TARGETS + u64::from(interrupt), 1 << (index & 7));
    }
    bus::write_u64(DISTRIBUTOR + offset::ROUTE + u64::from(interrupt) * 8, index);
}

/// Returns the CPU the shared `interrupt` is sent to.
#[must_use]
pub fn routed(interrupt: u32) -> u64 {
    if is_version2() {
        // With one CPU there is nothing to read.
        let targets = bus::read_u8(v2::TARGETS + u64::from(interrupt));
        return u64::from(targets.max(1).trailing_zeros());
    }
    bus::read_u64(DISTRIBUTOR + offset::ROUTE + u64::from(interrupt) * 8)
}

macro_rules! interface {
    ($($(#[$meta:meta])* write $write:ident $register:literal ($value:ident: $type:ty) $expression:expr $(, $mapped:expr)?;)*) => {
        $(
            $(#[$meta])*
            pub fn $write($value: $type) {
                $(
                    if is_version2() {
                        let (offset, value): (u64, u32) = $mapped;
                        return bus::write_u32(INTERFACE + offset, value);
                    }
                )?
                let value: u64 = $expression;
                // SAFETY: changes only which interrupts arrive; handlers may run at any time (`exception`).
                unsafe { asm!(concat!("msr ", $register, ", {}"), "isb", in(reg) value, options(nostack)) }
            }
        )*
    };
}

macro_rules! interface_read {
    ($($(#[$meta:meta])* $read:ident $register:literal $type:ty $(, $mapped:expr)?;)*) => {
        $(
            $(#[$meta])*
            #[must_use]
            pub fn $read() -> $type {
                $(
                    if is_version2() {
                        return $mapped as $type;
                    }
                )?
                let value: u64;
                // SAFETY: changes at most which interrupt is acknowledged.
                unsafe { asm!(concat!("mrs {}, ", $register), "dsb sy", out(reg) value, options(nostack)) }
                value as $type
            }
        )*
    };
}

// Encodings instead of names, which assemblers know only for CPUs with the extension (IHI 0069 section 12.2).
interface! {
    /// `ICC_SRE_EL1`: switches the system register interface on.
    write set_system_registers "S3_0_C12_C12_5" (on: bool) u64::from(on) * 7;
    /// `ICC_CTLR_EL1.EOImode`: end of interrupt drops the priority only.
    write set_end_mode "S3_0_C12_C12_4" (split: bool) u64::from(split) << 1, (v2::CONTROL, v2::control(v2::SPLIT_END, split));
    /// `ICC_PMR_EL1`: only interrupts of a higher priority (a lower number) come in.
    write set_mask "S3_0_C4_C6_0" (priority: u8) u64::from(priority), (v2::PRIORITY_MASK, priority.into());
    /// `ICC_BPR1_EL1`
    write set_binary_point "S3_0_C12_C12_3" (point: u8) u64::from(point), (v2::BINARY_POINT, point.into());
    /// `ICC_IGRPEN1_EL1`
    write set_group_enable "S3_0_C12_C12_7" (on: bool) u64::from(on), (v2::CONTROL, v2::control(v2::ENABLE, on));
    /// `ICC_EOIR1_EL1`: ends `interrupt` (or drops its priority).
    write end "S3_0_C12_C12_1" (interrupt: u32) u64::from(interrupt), (v2::END, v2::with_sender(interrupt));
    /// `ICC_DIR_EL1`: ends `interrupt` after its priority was dropped.
    write deactivate "S3_0_C12_C11_1" (interrupt: u32) u64::from(interrupt), (v2::DEACTIVATE, v2::with_sender(interrupt));
    /// `ICC_AP1R0_EL1`: the priorities that are being served.
    write set_active_priorities "S3_0_C12_C9_0" (priorities: u64) priorities, (v2::ACTIVE_PRIORITIES, priorities as u32);
    /// `ICC_SGI1R_EL1`, as it is.
    write write_sgi_register "S3_0_C12_C11_5" (value: u64) value;
    /// `ICC_ASGI1R_EL1`, as it is; a GICv3 only.
    write write_other_sgi_register "S3_0_C12_C11_6" (value: u64) value;
    /// `ICC_SGI0R_EL1`, as it is; a GICv3 only.
    write write_sgi0_register "S3_0_C12_C11_7" (value: u64) value;
    /// `ICC_IGRPEN0_EL1`; a GICv3 only.
    write set_group0_enable "S3_0_C12_C12_6" (on: bool) u64::from(on);
    /// `ICC_BPR0_EL1`; a GICv3 only.
    write set_group0_binary_point "S3_0_C12_C8_3" (point: u8) u64::from(point);
    /// `ICC_EOIR0_EL1`; a GICv3 only.
    write end_group0 "S3_0_C12_C8_1" (interrupt: u32) u64::from(interrupt);
    /// `ICC_AP0R0_EL1`; a GICv3 only.
    write set_active_priorities0 "S3_0_C12_C8_4" (priorities: u64) priorities;
}

interface_read! {
    /// `ICC_IAR1_EL1`: takes the highest pending interrupt; [`FIRST_SPECIAL`] or more means none.
    acknowledge "S3_0_C12_C12_0" u32, v2::acknowledge();
    /// `ICC_IAR0_EL1`: takes the highest pending interrupt of group 0; a GICv3 only.
    acknowledge_group0 "S3_0_C12_C8_0" u32;
    /// `ICC_HPPIR1_EL1`: the highest pending interrupt.
    highest_pending "S3_0_C12_C12_2" u32, bus::read_u32(INTERFACE + v2::HIGHEST_PENDING) & 0x3FF;
    /// `ICC_HPPIR0_EL1`: the highest pending interrupt of group 0; a GICv3 only.
    highest_pending0 "S3_0_C12_C8_2" u32;
    /// `ICC_RPR_EL1`: the priority that is being served, 0xFF if none.
    running_priority "S3_0_C12_C11_3" u8, bus::read_u32(INTERFACE + v2::RUNNING);
    /// `ICC_PMR_EL1`
    mask "S3_0_C4_C6_0" u8, bus::read_u32(INTERFACE + v2::PRIORITY_MASK);
    /// `ICC_BPR1_EL1`
    binary_point "S3_0_C12_C12_3" u8, bus::read_u32(INTERFACE + v2::BINARY_POINT);
    /// `ICC_CTLR_EL1`
    interface_control "S3_0_C12_C12_4" u64;
    /// `ICC_SRE_EL1`
    system_registers "S3_0_C12_C12_5" u64;
    /// `ICC_IGRPEN1_EL1`
    group_enable "S3_0_C12_C12_7" u64;
    /// `ICC_AP1R0_EL1`; a GICv3 only.
    active_priorities "S3_0_C12_C9_0" u64;
    /// `ICC_BPR0_EL1`; a GICv3 only.
    group0_binary_point "S3_0_C12_C8_3" u8;
    /// `ICC_IGRPEN0_EL1`; a GICv3 only.
    group0_enable "S3_0_C12_C12_6" u64;
    /// `ICC_AP0R0_EL1`; a GICv3 only.
    active_priorities0 "S3_0_C12_C8_4" u64;
}

/// Sends the software-generated `interrupt` to the CPUs of `targets` (bit = index).
pub fn send(interrupt: u32, targets: u16) {
    cpu::synchronize();
    if is_version2() {
        return bus::write_u32(v2::SEND, u32::from(targets & 0xFF) << 16 | interrupt & 15);
    }
    write_sgi_register(u64::from(interrupt & 15) << 24 | u64::from(targets));
}

/// Sends what `value` says to the register that sends: `ICC_SGI1R_EL1`, or `GICD_SGIR` of a GICv2.
pub fn send_as(value: u64) {
    if is_version2() {
        return bus::write_u32(v2::SEND, value as u32);
    }
    write_sgi_register(value);
}

/// Sends the software-generated `interrupt` to all CPUs but the calling one.
pub fn send_to_others(interrupt: u32) {
    cpu::synchronize();
    if is_version2() {
        return bus::write_u32(v2::SEND, 1 << 24 | interrupt & 15);
    }
    write_sgi_register(u64::from(interrupt & 15) << 24 | 1 << 40);
}
