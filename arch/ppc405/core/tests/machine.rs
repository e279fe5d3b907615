// SPDX-License-Identifier: Apache-2.0
//! The guest's processor: registers, interrupts, the memory management unit, and what it becomes of the real
//! translation buffer.

use bulkhead_abi::{Error, Operation as Call, function_id};
use bulkhead_arch_ppc405_core::decode::{Fields, Operation};
use bulkhead_arch_ppc405_core::emulate::Effect;
use bulkhead_arch_ppc405_core::exception::vector;
use bulkhead_arch_ppc405_core::fill::{self, Stretch};
use bulkhead_arch_ppc405_core::hypercall;
use bulkhead_arch_ppc405_core::mmu::{Kind, Mode, Refused, zone_field};
use bulkhead_arch_ppc405_core::registers::{Cpu, Frame, PVR, esr, msr};
use bulkhead_arch_ppc405_core::timers::tcr;
use bulkhead_arch_ppc405_core::tlb::{EXECUTE, VALID, WRITE};
use proptest::prelude::*;

fn machine() -> (Cpu, Frame) {
    let mut cpu = Cpu::new(0);
    cpu.take_changes();
    (cpu, Frame::ZERO)
}

fn write_spr(cpu: &mut Cpu, frame: &mut Frame, spr: u16, value: u32) -> Effect {
    frame.general[3] = value;
    cpu.execute(frame, Operation::MoveToSpr(3, spr), 0)
}

fn read_spr(cpu: &mut Cpu, frame: &mut Frame, spr: u16) -> u32 {
    assert_eq!(
        cpu.execute(frame, Operation::MoveFromSpr(4, spr), 0),
        Effect::Done
    );
    frame.general[4]
}

/// Writes an entry as `tlbwe` does.
fn enter(cpu: &mut Cpu, frame: &mut Frame, number: u32, (high, low): (u32, u32)) {
    let fields = Fields {
        target: 3,
        first: 4,
        second: 0,
    };
    frame.general[4] = number;
    frame.general[3] = low;
    cpu.execute(frame, Operation::WriteEntry(fields, true), 0);
    frame.general[3] = high;
    cpu.execute(frame, Operation::WriteEntry(fields, false), 0);
}

#[test]
fn registers_keep_what_they_can_hold() {
    let (mut cpu, mut frame) = machine();
    for (spr, kept) in [
        // As the short path, and as the emulated board; a return leaves the low bits out.
        (26, u32::MAX),
        (27, u32::MAX),
        (990, 0xFFFF_FFFC),
        (991, u32::MAX),
        (272, u32::MAX),
        (279, u32::MAX),
        (944, u32::MAX),
        (945, 0xFF),
        (947, u32::MAX),
        (980, u32::MAX),
        (981, u32::MAX),
        (982, 0xFFFF_0000),
        (1018, u32::MAX),
        (256, u32::MAX),
    ] {
        assert_eq!(
            write_spr(&mut cpu, &mut frame, spr, u32::MAX),
            Effect::Done,
            "{spr}"
        );
        assert_eq!(read_spr(&mut cpu, &mut frame, spr), kept, "{spr}");
    }
    write_spr(&mut cpu, &mut frame, 287, 7);
    assert_eq!(read_spr(&mut cpu, &mut frame, 287), PVR);
    assert_eq!(write_spr(&mut cpu, &mut frame, 500, 0), Effect::Illegal);
    assert_eq!(
        cpu.execute(&mut frame, Operation::MoveFromSpr(4, 500), 0),
        Effect::Illegal
    );
}

/// Checks registers whose value after a reset is not 0, and two whose value is.
#[test]
fn after_a_reset_registers_have_the_values_of_the_board() {
    let (mut cpu, mut frame) = machine();
    for (spr, value) in [
        (947, 0x0070_0000),
        (953, u32::MAX),
        (1008, 0x300),
        (954, 0),
        (987, 0),
    ] {
        assert_eq!(read_spr(&mut cpu, &mut frame, spr), value, "{spr}");
    }
    // Ones clear bits of DBSR, as of TSR.
    assert_eq!(write_spr(&mut cpu, &mut frame, 1008, 0x100), Effect::Done);
    assert_eq!(read_spr(&mut cpu, &mut frame, 1008), 0x200);
}

#[test]
fn a_reset_by_the_debug_control_register_is_told() {
    let (mut cpu, mut frame) = machine();
    assert_eq!(write_spr(&mut cpu, &mut frame, 1010, 0x3000_0000), Effect::Reset);
    assert_eq!(write_spr(&mut cpu, &mut frame, 1010, 0x4000_0000), Effect::Done);
}

#[test]
fn an_interrupt_and_its_return() {
    let (mut cpu, mut frame) = machine();
    cpu.vectors = 0x10_0000;
    cpu.set_msr(msr::EE | msr::CE | msr::PR | msr::IR | msr::DR | msr::ME | msr::WE);
    frame.pc = 0x1000;
    cpu.take(&mut frame, vector::SYSTEM_CALL);
    assert_eq!(frame.pc, 0x10_0C00);
    assert_eq!(cpu.msr, msr::CE | msr::ME);
    assert_eq!(cpu.saved[0], 0x1000);
    assert!(cpu.take_changes().mode);
    cpu.saved[1] &= !msr::WE;
    assert_eq!(
        cpu.execute(&mut frame, Operation::ReturnFromInterrupt, 0),
        Effect::Done
    );
    assert_eq!(
        (frame.pc, cpu.mode(), cpu.is_user()),
        (0x1000, Mode::Translated, true)
    );
    cpu.take_critical(&mut frame, vector::CRITICAL);
    assert_eq!((frame.pc, cpu.msr), (0x10_0100, msr::ME));
    assert_eq!(
        cpu.execute(&mut frame, Operation::ReturnFromCritical, 0),
        Effect::Done
    );
    assert!(cpu.is_user());
}

#[test]
fn the_most_urgent_interrupt_comes_first_and_only_if_it_may() {
    let (mut cpu, mut frame) = machine();
    cpu.uic.write(0xC2, u32::MAX);
    cpu.uic.write(0xC3, 1);
    cpu.uic.set_line(31, true);
    cpu.uic.set_line(0, true);
    cpu.timers.set_control(tcr::PIE | tcr::FIE | tcr::WIE);
    cpu.timers.load(1, 0);
    cpu.timers.advance(1 << 20);
    assert!(!cpu.has_interrupt() && !cpu.deliver(&mut frame));
    cpu.set_msr(msr::EE | msr::CE);
    let mut order = Vec::new();
    for _ in 0..5 {
        assert!(cpu.has_interrupt() && cpu.deliver(&mut frame));
        order.push(frame.pc);
        match frame.pc {
            vector::CRITICAL => cpu.uic.set_line(31, false),
            vector::EXTERNAL => cpu.uic.set_line(0, false),
            vector::WATCHDOG => cpu.timers.clear_status(0x4000_0000),
            vector::FIXED_TIMER => cpu.timers.clear_status(0x0400_0000),
            _ => cpu.timers.clear_status(0x0800_0000),
        }
        cpu.set_msr(msr::EE | msr::CE);
    }
    assert_eq!(order, [0x100, 0x1020, 0x500, 0x1010, 0x1000]);
    assert!(!cpu.has_interrupt());
}

#[test]
fn an_instruction_that_waits_says_so() {
    let (mut cpu, mut frame) = machine();
    frame.general[5] = msr::WE | msr::EE;
    assert_eq!(cpu.execute(&mut frame, Operation::MoveToMsr(5), 0), Effect::Wait);
    assert_eq!(frame.pc, 4);
    frame.general[5] = !msr::WE;
    assert_eq!(cpu.execute(&mut frame, Operation::MoveToMsr(5), 0), Effect::Done);
    assert_eq!(cpu.msr, msr::ALL & !msr::WE);
    cpu.execute(&mut frame, Operation::WriteEnableImmediate(false), 0);
    assert_eq!(cpu.msr & msr::EE, 0);
}

#[test]
fn entries_belong_to_the_process_that_writes_them() {
    let (mut cpu, mut frame) = machine();
    let fields = Fields {
        target: 6,
        first: 7,
        second: 8,
    };
    cpu.process = 9;
    enter(
        &mut cpu,
        &mut frame,
        5,
        (0x4000_0000 | 1 << 7 | VALID, 0x0010_0000 | WRITE),
    );
    assert_eq!(cpu.take_changes().entries, 1 << 5);
    frame.general[7] = 0x4000_0000;
    frame.general[8] = 0x123;
    frame.xer = 0x8000_0000;
    cpu.execute(&mut frame, Operation::SearchEntry(fields, true), 0);
    assert_eq!((frame.general[6], frame.condition), (5, 0x3000_0000));
    cpu.process = 1;
    cpu.execute(&mut frame, Operation::SearchEntry(fields, true), 0);
    assert_eq!((frame.general[6], frame.condition), (5, 0x1000_0000), "not found");
    frame.general[7] = 5;
    cpu.execute(&mut frame, Operation::ReadEntry(fields, false), 0);
    assert_eq!((frame.general[6], cpu.process), (0x4000_0000 | 1 << 7 | VALID, 9));
    assert!(cpu.take_changes().mode, "tlbre loads PID");
    cpu.execute(&mut frame, Operation::InvalidateEntries, 0);
    assert!(cpu.take_changes().all);
    assert_eq!(cpu.tlb.find(0x4000_0000, 9), None);
}

#[test]
fn zones_decide_as_in_the_table() {
    let (mut cpu, mut frame) = machine();
    enter(&mut cpu, &mut frame, 0, (0x2000_0000 | 1 << 7 | VALID, 3 << 4));
    let outcome = |cpu: &Cpu| {
        [Kind::Load, Kind::Store, Kind::Fetch].map(|kind| cpu.translate(0x2000_0000, kind).map(|_| ()))
    };
    let protected = [Ok(()), Err(Refused::Protected), Err(Refused::Protected)];
    for (field, user, system) in [
        (0, [Err(Refused::Zone); 3], protected),
        (1, protected, protected),
        (2, protected, [Ok(()); 3]),
        (3, [Ok(()); 3], [Ok(()); 3]),
    ] {
        cpu.zones = field << (30 - 6);
        cpu.set_msr(msr::IR | msr::DR | msr::PR);
        assert_eq!(outcome(&cpu), user, "{field}");
        cpu.set_msr(msr::IR | msr::DR);
        assert_eq!(outcome(&cpu), system, "{field}");
    }
    cpu.set_msr(msr::DR);
    assert_eq!(
        cpu.translate(0x9000_0000, Kind::Fetch).unwrap().physical,
        0x9000_0000
    );
    assert_eq!(cpu.translate(0x9000_0000, Kind::Load), Err(Refused::Miss));
    assert_eq!(cpu.mode(), Mode::Mixed);
}

#[test]
fn a_refused_access_is_an_interrupt_with_its_facts() {
    for (kind, why, offset, syndrome) in [
        (Kind::Fetch, Refused::Miss, 0x1200, 0),
        (Kind::Fetch, Refused::Zone, 0x400, esr::DIZ),
        (Kind::Load, Refused::Miss, 0x1100, 0),
        (Kind::Store, Refused::Miss, 0x1100, esr::DST),
        (Kind::Store, Refused::Protected, 0x300, esr::DST),
        (Kind::Load, Refused::Zone, 0x300, esr::DIZ),
    ] {
        let (mut cpu, mut frame) = machine();
        frame.pc = 0x40;
        cpu.refuse(&mut frame, 0x5000, kind, why);
        let address = if kind == Kind::Fetch { 0 } else { 0x5000 };
        assert_eq!(
            (frame.pc, cpu.syndrome, cpu.data_address, cpu.saved[0]),
            (offset, syndrome, address, 0x40)
        );
    }
}

#[test]
fn a_hypercall_is_read_and_answered() {
    let (_, mut frame) = machine();
    frame.general[0] = 20;
    assert!(!hypercall::is_hypercall(&frame), "a system call of Linux");
    frame.general[0] = function_id(Call::Version);
    assert!(hypercall::is_hypercall(&frame));
    frame.general[3] = 7;
    for (number, register) in frame.general.iter_mut().enumerate().skip(4) {
        *register = number as u32;
    }
    let call = hypercall::read(&frame);
    assert_eq!((call.operation, call.arguments[0]), (1, 7));
    assert_eq!(
        call.arguments[1..],
        [
            0x4_0000_0005,
            0x6_0000_0007,
            0x8_0000_0009,
            0xA_0000_000B,
            0xC_0000_000D
        ]
    );
    hypercall::answer(&mut frame, Ok([0x1_0000_0003, 1, 2, 3]));
    assert_eq!(
        (
            frame.general[3],
            frame.general[4],
            frame.general[5],
            frame.general[6]
        ),
        (0, 1, 3, 6)
    );
    hypercall::answer(&mut frame, Err(Error::NotSupported));
    assert_eq!(frame.general[3].cast_signed() as i64, Error::NotSupported as i64);
}

/// Makes a stretch of RAM of 64M from guest address 0 on.
fn ram(host: u32) -> Stretch {
    Stretch {
        guest: 0,
        host,
        last: (64 << 20) - 1,
        read: true,
        write: true,
        execute: true,
        is_device: false,
    }
}

#[test]
fn real_mode_gets_the_largest_pages_that_fit() {
    let (cpu, _) = machine();
    let found = cpu.translate(0x123_4567, Kind::Load).unwrap();
    let size = |host| fill::entry(0x123_4567, &found, &ram(host), 24).unwrap().size;
    assert_eq!(size(0x0300_0000), 24);
    assert_eq!(size(0x0320_0000), 20);
    assert_eq!(size(0x0300_1000), 12);
    let entry = fill::entry(0x123_4567, &found, &ram(0x0300_0000), 24).unwrap();
    assert_eq!(
        (entry.address(), entry.low),
        (0x100_0000, 0x0400_0000 | EXECUTE | WRITE | 0xF0)
    );
    let read_only = Stretch {
        write: false,
        ..ram(0x0300_0000)
    };
    assert_eq!(
        fill::entry(0x123_4567, &found, &read_only, 24).unwrap().low & WRITE,
        0
    );
}

#[test]
fn a_small_page_never_becomes_an_entry() {
    let (mut cpu, mut frame) = machine();
    enter(&mut cpu, &mut frame, 0, (0x2000_0400 | VALID, 0x400 | WRITE));
    cpu.set_msr(msr::IR | msr::DR);
    let found = cpu.translate(0x2000_0400, Kind::Load).unwrap();
    assert_eq!(found.physical, 0x400);
    assert_eq!(fill::entry(0x2000_0400, &found, &ram(0), 24), None);
}

proptest! {
    /// Checks, with anything in a guest's buffer: an entry covers the address that missed, leads to the
    /// guest's own memory only, where the guest's translation leads, with no more rights in either mode than
    /// both allow.
    #[test]
    fn no_entry_leads_elsewhere(
        size in 0_u32..8, ea in any::<u32>(), rpn in 0_u32..(96 << 20), bits in any::<u32>(), zones in any::<u32>(),
        host in 0_u32..0x1000, base in 0_u32..0x1000, user in any::<bool>(), rights in 0_u32..8, inside in any::<u32>(),
    ) {
        let (mut cpu, mut frame) = machine();
        let (number, page) = (bits & 63, 1024_u32 << (2 * size));
        let low = rpn & !0x3FF | bits & 0x3FF;
        enter(&mut cpu, &mut frame, number, (ea & !(page - 1) & !0x3FF | size << 7 | VALID, low));
        cpu.zones = zones;
        cpu.set_msr(msr::IR | msr::DR | if user { msr::PR } else { 0 });
        let stretch = Stretch {
            guest: base << 12, host: host << 12, last: (32 << 20) - 1,
            read: rights & 1 != 0, write: rights & 2 != 0, execute: rights & 4 != 0, is_device: false,
        };
        let address = ea & !(page - 1) | inside & (page - 1);
        let Ok(found) = cpu.translate(address, Kind::Load) else { return Ok(()) };
        prop_assume!(stretch.contains(found.physical));
        let Some(entry) = fill::entry(address, &found, &stretch, 24) else {
            prop_assert!(size == 0 || !stretch.read);
            return Ok(());
        };
        let bytes = 1_u64 << entry.size;
        prop_assert!((12..=24).contains(&entry.size) && entry.size <= (2 * size + 10).max(12));
        let first = entry.address();
        prop_assert!(first <= address && u64::from(address) < u64::from(first) + bytes);
        let real = entry.low & !((bytes - 1) as u32) & 0xFFFF_FC00;
        prop_assert!(real >= stretch.host && u64::from(real) + bytes <= u64::from(stretch.host) + (32 << 20));
        prop_assert_eq!(real | address & (bytes - 1) as u32, stretch.host(found.physical));
        // The rights that the real ZPR gives, for the mode and for the other one.
        let zone = entry.low >> 4 & 15;
        for is_user in if entry.is_of_mode { vec![user] } else { vec![false, true] } {
            cpu.set_msr(msr::IR | msr::DR | if is_user { msr::PR } else { 0 });
            let open = zone_field(fill::real_zones(zones, is_user), zone);
            prop_assert!(zone != fill::OWN_ZONE || open == 1);
            for (kind, bit, allowed) in [(Kind::Store, WRITE, stretch.write), (Kind::Fetch, EXECUTE, stretch.execute)] {
                let real = open == 3 || open != 0 && entry.low & bit != 0;
                let wanted = cpu.translate(address, kind).is_ok() && allowed;
                prop_assert_eq!(real, wanted, "{:?} user {}", kind, is_user);
            }
        }
    }
}
