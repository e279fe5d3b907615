// SPDX-License-Identifier: Apache-2.0
//! The changes of a guest's processor that the backend is told of, and faults that come late or where no
//! frame could be pushed.

use crate::machine::trapped::{Lent, Trapped};
use crate::machine::{MAIN_TOP, Memory, PROCESS_TOP, vector};
use bulkhead_arch_armv7m_core::decode::wide_replacement;
use bulkhead_arch_armv7m_core::{
    Changes, Fault, Guest, GuestAccess, Late, Next, Special, Trapped as Outcome, VirtualCore,
};

const ICSR: u32 = 0xE000_ED04;
const SHCSR: u32 = 0xE000_ED24;
const CFSR: u32 = 0xE000_ED28;
const HFSR: u32 = 0xE000_ED2C;
const CPACR: u32 = 0xE000_ED88;
const MPU_CTRL: u32 = 0xE000_ED94;
const MPU_RBAR: u32 = 0xE000_ED9C;
const MUNSTKERR: Fault = Fault::Memory {
    status: 1 << 3,
    address: None,
};
const MSTKERR: Fault = Fault::Memory {
    status: 1 << 4,
    address: None,
};

fn machine() -> Trapped {
    let mut machine = Trapped::new(Memory::new(), MAIN_TOP);
    write(&mut machine, SHCSR, 7 << 16);
    machine.core.take_changes();
    machine
}

fn write(machine: &mut Trapped, address: u32, value: u32) {
    machine.core.write(address, 4, value, 0).unwrap();
}

fn read(machine: &mut Trapped, address: u32) -> u32 {
    machine.core.read(address, 4, 0).unwrap()
}

fn special(machine: &mut Trapped, register: u8, value: u32) {
    let done = machine.trap(|core, guest| Ok(core.write_special(guest, Special(register), 2, value)));
    assert!(done.unwrap());
}

fn changes(machine: &mut Trapped) -> Changes {
    machine.core.take_changes()
}

#[test]
fn what_a_guest_no_longer_waits_for_is_told() {
    let mut machine = machine();
    write(&mut machine, 0xE000_E100, 1 << 3);
    assert!(changes(&mut machine).lines, "ISER");
    machine.core.pulse_line(3);
    assert!(!changes(&mut machine).lines, "a device");
    write(&mut machine, 0xE000_E280, 1 << 3);
    assert!(changes(&mut machine).lines, "ICPR");
    assert!(machine.core.line_is_idle(3));
}

#[test]
fn regions_change_with_everything_that_decides_whether_they_are_looked_at() {
    let mut machine = machine();
    // ENABLE and PRIVDEFENA: not in HardFault, NMI and with FAULTMASK.
    write(&mut machine, MPU_CTRL, 5);
    assert!(changes(&mut machine).regions, "enabled");
    special(&mut machine, 19, 1);
    assert!(changes(&mut machine).regions, "FAULTMASK set");
    assert!(machine.core.guest_regions().is_none());
    special(&mut machine, 19, 0);
    assert!(changes(&mut machine).regions, "FAULTMASK clear");
    assert!(machine.core.guest_regions().is_some());
    special(&mut machine, 20, 1);
    assert!(changes(&mut machine).regions, "unprivileged");
    machine.trap(|core, guest| core.supervisor_call(guest)).unwrap();
    assert!(changes(&mut machine).regions, "a handler is privileged");
    assert!(machine.core.guest_regions().unwrap().privileged);
    machine
        .trap(|core, guest| core.raise(guest, Fault::Hard { status: 1 << 31 }))
        .unwrap();
    assert_eq!(machine.core.handler(), 3);
    assert!(changes(&mut machine).regions, "HardFault");
    machine.registers.pc = machine.registers.lr & !1;
    machine.trap(|core, guest| core.exception_return(guest)).unwrap();
    assert!(changes(&mut machine).regions, "back from HardFault");
    // HFNMIENA: then it makes no difference.
    write(&mut machine, MPU_CTRL, 7);
    changes(&mut machine);
    special(&mut machine, 19, 1);
    assert!(!changes(&mut machine).regions);
}

#[test]
fn floating_point_for_privileged_code_alone_changes_with_privilege() {
    let mut machine = machine();
    write(&mut machine, CPACR, 5 << 20);
    assert!(changes(&mut machine).configuration);
    special(&mut machine, 20, 1);
    assert!(changes(&mut machine).configuration, "unprivileged");
    assert!(!machine.core.floating_point_access().1);
    machine.trap(|core, guest| core.supervisor_call(guest)).unwrap();
    assert!(changes(&mut machine).configuration, "in a handler");
    assert!(machine.core.floating_point_access().1);
}

#[test]
fn a_frame_that_a_guests_own_unit_refuses_is_its_own_fault() {
    let mut machine = machine();
    special(&mut machine, 9, PROCESS_TOP);
    special(&mut machine, 20, 2);
    let frame = PROCESS_TOP - 0x20;
    machine.core.call_waits();
    machine
        .trap(|core, guest| {
            let live = guest.frame();
            assert_eq!(live, frame);
            core.stacking_failed(guest, live, MSTKERR)
        })
        .unwrap();
    assert_eq!(machine.core.handler(), 4, "MemManage comes first");
    assert_eq!(read(&mut machine, CFSR), 1 << 4);
    assert_eq!(machine.registers.lr, 0xFFFF_FFFD);
    assert_eq!(machine.registers.pc, vector(4) & !1);
    let psp = machine.peek(|core, guest| core.read_special(guest, Special(9)));
    assert_eq!(psp, frame, "below the frame that is not there, as on a chip");
    assert_eq!(
        read(&mut machine, SHCSR) & 1 << 15,
        1 << 15,
        "the call still waits"
    );
}

/// Returns CFSR and MMFAR after a guest has switched its own unit on with these regions (RBAR, RASR), before
/// `code`, and the CPU could not pop the frame of that store.
fn switched_on(regions: &[[u32; 2]], code: &'static [u16]) -> [u32; 2] {
    let mut machine = machine();
    for (number, [base, attributes]) in (0_u32..).zip(regions) {
        write(&mut machine, MPU_RBAR, base | 1 << 4 | number);
        write(&mut machine, MPU_RBAR + 4, *attributes);
    }
    write(&mut machine, MPU_CTRL, 1);
    machine.code = [code[0], code[1]];
    machine.rest = code[2..].to_vec();
    machine.registers.general[0] = 0x2000_4000;
    let psp = machine.psp;
    machine
        .trap(|core, guest| {
            let live = guest.frame();
            core.unstacking_failed(guest, live, MUNSTKERR)
        })
        .unwrap();
    assert_eq!(machine.core.handler(), 4);
    assert_eq!(
        machine.peek(|core, _| core.vector_address(bulkhead_arch_armv7m_core::Exception(4))),
        0x2000_0010
    );
    assert_eq!(machine.psp, psp - 0x20, "below the frame that is not there");
    [read(&mut machine, CFSR), read(&mut machine, 0xE000_ED34)]
}

#[test]
fn a_unit_that_is_switched_on_without_the_stack_is_told_as_on_the_bare_chip() {
    // 1 MiB of code that all may read and execute. The reports of QEMU's bare board are recorded here.
    let code = [0x0010_0000, 0b110 << 24 | 19 << 1 | 1];
    assert_eq!(
        switched_on(&[], &[0xBF00, 0xBF00]),
        [0x11, 0],
        "neither code nor stack"
    );
    // PUSH {r0, r1}; after DSB and ISB as well.
    let below = MAIN_TOP - 8;
    assert_eq!(switched_on(&[code], &[0xB403, 0xBF00]), [0x92, below]);
    let barriers = &[0xF3BF, 0x8F4F, 0xF3BF, 0x8F6F, 0xB403, 0xBF00];
    assert_eq!(switched_on(&[code], barriers), [0x92, below]);
    assert_eq!(
        switched_on(&[code], &[0xBF00, 0xBF00, 0xB403]),
        [0x92, below],
        "NOP"
    );
    // LDR r1, [r0]
    assert_eq!(switched_on(&[code], &[0x6801, 0xBF00]), [0x92, 0x2000_4000]);
    // ADDS r0, #1: there is no access to refuse, and no room for a frame.
    assert_eq!(switched_on(&[code], &[0x3001, 0xBF00]), [0x10, 0]);
}

#[test]
fn a_frame_that_the_guest_returns_to_and_may_not_read_is_told_as_such() {
    let mut machine = machine();
    write(&mut machine, MPU_CTRL, 1);
    machine.trap(|core, guest| core.supervisor_call(guest)).unwrap();
    machine.registers.pc = machine.registers.lr & !1;
    machine.trap(|core, guest| core.exception_return(guest)).unwrap();
    machine
        .trap(|core, guest| {
            let live = guest.frame();
            core.unstacking_failed(guest, live, MUNSTKERR)
        })
        .unwrap();
    assert_eq!(read(&mut machine, CFSR), 1 << 3);
}

/// Runs a replaced instruction whose frame could not be pushed, with these masks, while line 3 waits with
/// this priority.
fn unmasked(primask: u32, basepri: u32, priority: u32) -> (u16, [u32; 2]) {
    let mut machine = machine();
    special(&mut machine, 16, primask);
    special(&mut machine, 17, basepri);
    write(&mut machine, 0xE000_E400, priority << 24);
    write(&mut machine, 0xE000_E100, 1 << 3);
    machine.core.pulse_line(3);
    machine
        .trap(|core, guest| {
            core.unmasks();
            core.stacking_failed(guest, MAIN_TOP - 0x100, MSTKERR)
        })
        .unwrap();
    let masks = machine.peek(|core, guest| [16, 17].map(|number| core.read_special(guest, Special(number))));
    (machine.core.handler(), masks)
}

#[test]
fn a_frame_that_is_missing_at_an_instruction_that_unmasks_is_that_of_what_waited() {
    assert_eq!(unmasked(1, 0, 0x40), (4, [0, 0]), "CPSIE");
    assert_eq!(unmasked(0, 0x40, 0x80), (4, [0, 0]), "MSR BASEPRI");
    assert_eq!(
        unmasked(1, 0x80, 0x40),
        (4, [0, 0x80]),
        "CPSIE; BASEPRI lets it through"
    );
    assert_eq!(
        unmasked(1, 0x40, 0x80),
        (3, [1, 0x40]),
        "no single instruction unmasks it"
    );
}

#[test]
fn on_the_main_stack_too_if_the_memory_is_the_partitions() {
    let mut machine = machine();
    let result = machine.trap(|core, guest| core.stacking_failed(guest, MAIN_TOP - 0x100, MSTKERR));
    assert!(result.is_ok());
    assert_eq!(machine.core.handler(), 4);
    let mut machine = self::machine();
    let result = machine.trap(|core, guest| core.stacking_failed(guest, 0x1000, MSTKERR));
    assert!(result.is_err(), "nothing to handle it on");
}

#[test]
fn a_late_bus_fault_waits_for_its_priority_and_escalates_if_it_is_not_enabled() {
    let mut machine = machine();
    special(&mut machine, 16, 1);
    machine.core.late_bus_fault();
    assert_eq!(read(&mut machine, CFSR), 1 << 10);
    machine.trap(|_, _| Ok(())).unwrap();
    assert_eq!(machine.core.handler(), 0, "PRIMASK");
    assert_eq!(read(&mut machine, ICSR) >> 12 & 0x1FF, 5);
    special(&mut machine, 16, 0);
    assert_eq!(machine.core.handler(), 5);
    let mut machine = self::machine();
    write(&mut machine, SHCSR, 0);
    machine.core.late_bus_fault();
    machine.trap(|_, _| Ok(())).unwrap();
    assert_eq!(machine.core.handler(), 3);
    assert_eq!(read(&mut machine, HFSR), 1 << 30);
}

/// A guest whose code lies in front of the PC.
struct Coded<'a, 'b> {
    guest: &'a mut Lent<'b>,
    start: u32,
    code: &'a [u16],
}

impl Guest for Coded<'_, '_> {
    fn register(&self, number: u8) -> u32 {
        self.guest.register(number)
    }
    fn set_register(&mut self, number: u8, value: u32) {
        self.guest.set_register(number, value);
    }
    fn xpsr(&self) -> u32 {
        self.guest.xpsr()
    }
    fn set_xpsr(&mut self, value: u32) {
        self.guest.set_xpsr(value);
    }
    fn frame(&self) -> u32 {
        self.guest.frame()
    }
    fn extended(&self) -> bool {
        self.guest.extended()
    }
    fn set_frame(&mut self, address: u32, extended: bool) {
        self.guest.set_frame(address, extended);
    }
    fn reaches(&self, address: u32, bytes: u32) -> bool {
        self.guest.reaches(address, bytes)
    }
    fn load(&self, address: u32) -> Option<u32> {
        self.guest.load(address)
    }
    fn store(&mut self, address: u32, value: u32) -> bool {
        self.guest.store(address, value)
    }
    fn fetch(&self, address: u32) -> Option<u16> {
        let index = address.wrapping_sub(self.start) / 2;
        self.code.get(index as usize).copied()
    }
    fn float(&self, _number: u8) -> u32 {
        0
    }
    fn set_float(&mut self, _number: u8, _value: u32) {}
    fn settle_floating_point(&mut self) {}
    fn drop_floating_point(&mut self) {}
}

fn late(machine: &mut Trapped, code: &[u16], registers: &[(usize, u32)]) -> Late {
    let start = 0x0010_0000;
    machine.registers.pc = start + 2 * code.len() as u32;
    for (number, value) in registers {
        machine.registers.general[*number] = *value;
    }
    machine
        .trap(|core: &mut VirtualCore, guest| {
            let mut coded = Coded { guest, start, code };
            Ok(core.store_refused_late(&mut coded, |address| address >> 28 == 4, 0))
        })
        .unwrap()
}

#[test]
fn a_store_to_the_private_bus_that_is_reported_late_is_done_late() {
    let mut machine = machine();
    // str r1,[r0,#4]; nop; adds r2,#1
    let pended = late(
        &mut machine,
        &[0x6041, 0xBF00, 0x3201],
        &[(0, ICSR - 4), (1, 1 << 28)],
    );
    assert_eq!(pended, Late::Done);
    assert_eq!(machine.core.handler(), 14, "PendSV");
    // stmia r0!,{r1,r2}: MPU_RBAR and MPU_RASR
    let code = [0xC006, 0xBF00];
    let registers = [(0, MPU_RBAR + 8), (1, 0x2000_0000), (2, 0x0300_0025)];
    assert_eq!(late(&mut machine, &code, &registers), Late::Done);
    assert_eq!(read(&mut machine, MPU_RBAR + 4), 0x0300_0025);
    // A thread without privilege may not: its own BusFault, as late.
    let mut machine = self::machine();
    special(&mut machine, 20, 1);
    assert_eq!(late(&mut machine, &[0x6001], &[(0, ICSR)]), Late::Done);
    assert_eq!(machine.core.handler(), 5);
    assert_eq!(read(&mut machine, CFSR), 1 << 10);
}

#[test]
fn a_store_elsewhere_that_is_reported_late_is_named_or_is_unknown() {
    let mut machine = machine();
    let code = [0x6001, 0xBF00];
    let found = late(&mut machine, &code, &[(0, 0x4000_1000)]);
    assert_eq!(
        found,
        Late::Elsewhere {
            at: 0x0010_0000,
            address: 0x4000_1000
        }
    );
    assert_eq!(late(&mut machine, &code, &[(0, 0x2000_1000)]), Late::Unknown);
    assert_eq!(
        late(&mut machine, &[0x6001, 0x6001], &[(0, 0x4000_1000)]),
        Late::Unknown
    );
    assert_eq!(machine.core.handler(), 0);
}

/// Executes what stands for LDRT, STRT or one of their like; the code that comes with it has the base r0 and
/// the register r1.
fn as_user(machine: &mut Trapped, (first, second): (u16, u16), address: u32, value: u32) -> Outcome {
    let (first, second) = wide_replacement(first, second).expect("must not stay");
    machine.code = [first, second];
    machine.registers.general[0] = address;
    machine.registers.general[1] = value;
    let done = machine.trap(|core, guest| core.access_unprivileged(guest).expect("one of them"));
    done.unwrap()
}

const LDRT: (u16, u16) = (0xF850, 0x1E00);
const STRT: (u16, u16) = (0xF840, 0x1E00);

#[test]
fn loads_and_stores_for_unprivileged_code_are_done_with_its_rights() {
    let (open, closed) = (0x2000_1000, 0x2000_1020);
    let mut machine = machine();
    machine.memory.set(open, 0x8182_8384);
    machine.memory.set(open + 4, 0x0506_0708);
    // Everybody may read and write 32 bytes; by the background, privileged code all.
    write(&mut machine, MPU_RBAR, open | 1 << 4);
    write(&mut machine, MPU_RBAR + 4, 1 << 28 | 3 << 24 | 4 << 1 | 1);
    write(&mut machine, MPU_CTRL, 5);
    let pc = machine.registers.pc;
    assert_eq!(as_user(&mut machine, LDRT, open, 0), Outcome::Done);
    assert_eq!(
        (machine.registers.general[1], machine.registers.pc),
        (0x8182_8384, pc + 4)
    );
    // LDRBT, LDRSBT, LDRHT and LDRSHT, the last ones not aligned.
    for (first, offset, expected) in [
        (0xF810, 1, 0x83),
        (0xF910, 1, 0xFFFF_FF83),
        (0xF830, 3, 0x0881),
        (0xF930, 1, 0xFFFF_8283),
    ] {
        as_user(&mut machine, (first, 0x1E00 | offset), open, 0);
        assert_eq!(machine.registers.general[1], expected, "{first:04x}");
    }
    // STRBT, STRHT and STRT, across a word.
    as_user(&mut machine, (0xF800, 0x1E02), open, 0x1234_5611);
    as_user(&mut machine, (0xF820, 0x1E03), open, 0x1234_2233);
    assert_eq!(
        (machine.memory.get(open), machine.memory.get(open + 4)),
        (0x3311_8384, 0x0506_0722)
    );
    as_user(&mut machine, STRT, open + 6, 0xA1A2_A3A4);
    assert_eq!(machine.memory.get(open + 4), 0xA3A4_0722);
    assert_eq!(machine.memory.get(open + 8) & 0xFFFF, 0xA1A2);
    assert_eq!(machine.core.handler(), 0, "no fault");
    // A refused access is the fault of the code that asks, with the address.
    for (code, address) in [
        (LDRT, closed),
        (STRT, closed),
        (LDRT, closed - 2),
        (STRT, open - 1),
    ] {
        let before = [machine.memory.get(open), machine.memory.get(closed)];
        machine.registers.pc = pc;
        assert_eq!(as_user(&mut machine, code, address, 0x5555), Outcome::Done);
        assert_eq!(machine.core.handler(), 4, "{address:08x}");
        assert_eq!(
            (read(&mut machine, CFSR), read(&mut machine, 0xE000_ED34)),
            (0x82, address)
        );
        assert_eq!(before, [machine.memory.get(open), machine.memory.get(closed)]);
        write(&mut machine, CFSR, 0x82);
        machine.registers.pc = machine.registers.lr & !1;
        machine.trap(|core, guest| core.exception_return(guest)).unwrap();
    }
    assert_eq!(as_user(&mut machine, LDRT, ICSR, 0), Outcome::Done);
    assert_eq!(
        (machine.core.handler(), read(&mut machine, CFSR)),
        (5, 0x8200),
        "the private bus"
    );
}

#[test]
fn loads_and_stores_for_unprivileged_code_go_elsewhere_without_a_unit() {
    let mut machine = machine();
    let elsewhere = GuestAccess {
        address: 0x4000_1000,
        size: 4,
        store: Some(7),
    };
    assert_eq!(
        as_user(&mut machine, STRT, 0x4000_1000, 7),
        Outcome::Elsewhere(elsewhere)
    );
    let pc = machine.registers.pc;
    assert!(matches!(
        as_user(&mut machine, LDRT, 0x4000_1000, 7),
        Outcome::Elsewhere(_)
    ));
    let done = machine.trap(|core, guest| Ok(core.complete_access(guest, 0x1234)));
    assert!(done.unwrap());
    assert_eq!(
        (machine.registers.general[1], machine.registers.pc),
        (0x1234, pc + 4)
    );
    // By the background alone nothing is open to unprivileged code.
    write(&mut machine, MPU_CTRL, 5);
    as_user(&mut machine, STRT, 0x4000_1000, 7);
    assert_eq!(machine.core.handler(), 4);
}

#[test]
fn a_guest_that_waits_is_told_to_sleep() {
    let mut machine = machine();
    assert_eq!(replaced(&mut machine, WFI), Next::Sleep);
}

const WFE: u16 = 0xDEA2;
const WFI: u16 = 0xDEA3;
const SEV: u16 = 0xDEA4;

/// Runs a hint that the host tool has replaced.
fn replaced(machine: &mut Trapped, hint: u16) -> Next {
    machine.code = [hint, 0];
    let next = machine.trap(|core, guest| core.replaced_instruction(guest).expect("a replaced one"));
    next.unwrap()
}

#[test]
fn a_guest_that_waits_for_an_event_sleeps_only_if_there_was_none() {
    let mut machine = machine();
    assert_eq!(replaced(&mut machine, WFE), Next::Sleep, "a reset clears it");
    assert_eq!(replaced(&mut machine, SEV), Next::Run);
    assert_eq!(replaced(&mut machine, SEV), Next::Run);
    assert_eq!(replaced(&mut machine, WFI), Next::Sleep, "no matter of WFI's");
    assert_eq!(replaced(&mut machine, WFE), Next::Run);
    assert_eq!(replaced(&mut machine, WFE), Next::Sleep, "it is one bit");
    machine.trap(|core, guest| core.supervisor_call(guest)).unwrap();
    assert_eq!(
        replaced(&mut machine, WFE),
        Next::Run,
        "the entry of an exception"
    );
    assert_eq!(replaced(&mut machine, WFE), Next::Sleep);
    machine.registers.pc = machine.registers.lr & !1;
    machine.trap(|core, guest| core.exception_return(guest)).unwrap();
    assert_eq!(replaced(&mut machine, WFE), Next::Run, "and its end");
    assert_eq!(replaced(&mut machine, WFE), Next::Sleep);
}

#[test]
fn what_becomes_pending_is_an_event_if_sevonpend_says_so() {
    let mut machine = machine();
    special(&mut machine, 16, 1);
    write(&mut machine, 0xE000_E200, 1 << 3);
    assert_eq!(replaced(&mut machine, WFE), Next::Sleep, "it does not say so");
    assert!(!machine.core.has_work() && !machine.core.line_enabled(4));
    write(&mut machine, 0xE000_ED10, 1 << 4);
    assert!(changes(&mut machine).lines && machine.core.line_enabled(4));
    // Of a device, of the program's own, and of a system exception; all masked, the first two not enabled
    // either.
    machine.core.pulse_line(4);
    assert_eq!(replaced(&mut machine, WFE), Next::Run, "a device");
    machine.core.pulse_line(4);
    assert_eq!(replaced(&mut machine, WFE), Next::Sleep, "it was pending");
    write(&mut machine, 0xE000_E200, 1 << 5);
    assert_eq!(replaced(&mut machine, WFE), Next::Run, "ISPR");
    write(&mut machine, ICSR, 1 << 28);
    assert_eq!(replaced(&mut machine, WFE), Next::Run, "PendSV");
    write(&mut machine, ICSR, 1 << 27);
    write(&mut machine, 0xE000_E280, 1 << 4);
    assert_eq!(replaced(&mut machine, WFE), Next::Sleep);
    machine.core.pulse_line(4);
    assert_eq!(replaced(&mut machine, WFE), Next::Run, "again");
}
