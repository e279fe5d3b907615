// SPDX-License-Identifier: Apache-2.0
//! Loads and stores of floating-point registers: what they are, and what they do on the private peripheral
//! bus.
//!
//! `data/float.txt` is of the form of `data/thumb.txt` (see `decode.rs`), drawn from these encodings and
//! their neighbours.

use crate::machine::trapped::Trapped;
use crate::machine::{MAIN_TOP, Memory};
use bulkhead_arch_armv7m_core::decode::{Direction, FLOATS, Registers, Transfer, wide_transfer};
use bulkhead_arch_armv7m_core::{Fault, Special, Trapped as Outcome};

const ISER: u32 = 0xE000_E100;
const IPR: u32 = 0xE000_E400;
const CPACR: u32 = 0xE000_ED88;
const CFSR: u32 = 0xE000_ED28;
const FPCAR: u32 = 0xE000_EF38;

fn number(name: &str) -> u8 {
    let named = ["sl", "fp", "ip", "sp", "lr", "pc"];
    match named.iter().position(|known| *known == name) {
        Some(index) => 10 + index as u8,
        None => name[1..].parse().unwrap(),
    }
}

/// Returns the first word and the number of words of `s3`, `d4`, `{s3-s5}`, if these exist.
fn words(text: &str) -> Option<(u8, u8)> {
    let text = text.trim_matches(['{', '}']);
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let scale = if first.starts_with('d') { 2 } else { 1 };
    let place = |name: &str| name[1..].parse::<u32>().ok().map(|number| number * scale);
    let (first, end) = (place(first)?, place(last)? + scale);
    (first < end && end <= 32).then_some((first as u8, (end - first) as u8))
}

fn transfer_of(text: &str) -> Option<Transfer> {
    let (mnemonic, operands) = text.split_once(' ')?;
    let direction = match mnemonic {
        "vldr" | "vldmia" | "vldmdb" | "vpop" => Direction::Load,
        "vstr" | "vstmia" | "vstmdb" | "vpush" => Direction::Store,
        _ => return None,
    };
    let (left, right) = match mnemonic {
        "vpush" | "vpop" => ("sp!", operands),
        _ => operands.split_once(", ")?,
    };
    let mut transfer = Transfer {
        direction,
        size: 4,
        signed: false,
        base: 0,
        offset: 0,
        index: None,
        change: None,
        registers: Registers::One(0),
        status: None,
        unprivileged: false,
    };
    if matches!(mnemonic, "vldr" | "vstr") {
        let (first, count) = words(left)?;
        transfer.registers = Registers::Floats(first, count);
        let mut inside = right.trim_matches(['[', ']']).split(", #");
        transfer.base = number(inside.next()?);
        transfer.offset = inside
            .next()
            .map_or(0, |offset| offset.parse::<i32>().unwrap() as u32);
        return (transfer.base != 15 || direction == Direction::Load).then_some(transfer);
    }
    let (first, count) = words(right)?;
    transfer.registers = Registers::Floats(first, count);
    transfer.base = number(left.trim_end_matches('!'));
    let down = matches!(mnemonic, "vldmdb" | "vstmdb" | "vpush");
    let bytes = u32::from(count) * 4;
    let step = if down { bytes.wrapping_neg() } else { bytes };
    transfer.offset = if down { step } else { 0 };
    transfer.change = left.ends_with('!').then_some(step);
    (transfer.base != 15).then_some(transfer)
}

#[test]
fn they_are_what_the_disassembler_says() {
    let (mut transfers, mut others) = (0, 0);
    for line in include_str!("../data/float.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
    {
        let (halfwords, text) = line.split_once(" | ").unwrap();
        let (first, second) = halfwords.split_once(' ').unwrap();
        let halfword = |text| u16::from_str_radix(text, 16).unwrap();
        let expected = transfer_of(text);
        assert_eq!(
            wide_transfer(halfword(first), halfword(second)),
            expected,
            "{line}"
        );
        *if expected.is_some() {
            &mut transfers
        } else {
            &mut others
        } += 1;
    }
    assert!(transfers > 100 && others > 60, "{transfers} and {others} cases");
}

#[test]
fn the_steps_are_the_words_in_order() {
    // VLDMDB r6!, {d7, d8}
    let transfer = wide_transfer(0xED36, 0x7B04).unwrap();
    let first = transfer.address(|_| 0x2000_0100);
    let steps: Vec<_> = transfer
        .steps(first)
        .map(|step| (step.register - FLOATS, step.address))
        .collect();
    let expected = [
        (14, 0x2000_00F0),
        (15, 0x2000_00F4),
        (16, 0x2000_00F8),
        (17, 0x2000_00FC),
    ];
    assert_eq!(steps, expected);
    assert_eq!(transfer.written_back(|_| 0x2000_0100), Some((6, 0x2000_00F0)));
}

/// Returns a machine that may use floating point and has just done so.
fn machine() -> Trapped {
    let mut machine = Trapped::new(Memory::new(), MAIN_TOP);
    machine.core.write(CPACR, 4, 0xF << 20, 0).unwrap();
    machine.fpca = true;
    machine
}

fn access(machine: &mut Trapped, code: [u16; 2]) -> Outcome {
    machine.code = code;
    machine.trap(|core, guest| core.access_trapped(guest, 0)).unwrap()
}

#[test]
fn a_load_and_a_store_reach_the_private_bus_with_and_without_a_frame_of_floats() {
    for extended in [true, false] {
        let mut machine = machine();
        machine.fpca = extended;
        machine.registers.float[3] = 0x0000_0110;
        machine.registers.high[4] = 0x8040_2010;
        machine.registers.general[1] = ISER - 8;
        // VSTR s3, [r1, #8]
        assert_eq!(access(&mut machine, [0xEDC1, 0x1A02]), Outcome::Done);
        assert_eq!(machine.core.read(ISER, 4, 0), Ok(0x110), "{extended}");
        // VSTMIA r1!, {s20} of priorities
        machine.registers.general[1] = IPR + 4;
        assert_eq!(access(&mut machine, [0xECA1, 0xAA01]), Outcome::Done);
        assert_eq!(machine.core.read(IPR + 4, 4, 0), Ok(0x8040_2010), "{extended}");
        assert_eq!(machine.registers.general[1], IPR + 8);
        // VLDMDB r1!, {s15, s16}
        machine.core.write(IPR, 4, 0x1020_3040, 0).unwrap();
        assert_eq!(access(&mut machine, [0xED71, 0x7A02]), Outcome::Done);
        assert_eq!(machine.registers.float[15], 0x1020_3040, "{extended}");
        assert_eq!(machine.registers.high[0], 0x8040_2010, "{extended}");
        assert_eq!(machine.registers.general[1], IPR);
        assert_eq!(machine.registers.pc, 0x0010_0000 + 12);
    }
}

#[test]
fn all_words_at_once_and_what_the_bus_refuses() {
    let mut machine = machine();
    machine.registers.general[2] = IPR;
    for word in 0..8 {
        machine
            .core
            .write(IPR + 4 * word, 4, 0x1000_0000 * word, 0)
            .unwrap();
    }
    // VLDMIA r2!, {s0-s31}
    assert_eq!(access(&mut machine, [0xECB2, 0x0A20]), Outcome::Done);
    assert_eq!(machine.registers.float[7], 0x7000_0000);
    assert_eq!(machine.registers.high[15], 0);
    assert_eq!(machine.registers.general[2], IPR + 128);
    // Code that is not privileged gets a bus fault: VLDR s0, [r2].
    machine.registers.general[2] = IPR;
    machine.code = [0xED92, 0x0A00];
    let refused = machine.trap(|core, guest| {
        core.write_special(guest, Special(20), 0, 1 | 4);
        core.access_trapped(guest, 0)
    });
    assert_eq!(refused, Ok(Outcome::Done));
    assert_eq!(machine.core.handler(), 3, "not enabled, so it is a HardFault");
    assert_eq!(machine.core.read(CFSR, 4, 0), Ok(0x8200));
    assert_eq!(machine.registers.general[2], IPR);
}

#[test]
fn one_register_of_a_device_is_answered_by_somebody_else() {
    let mut machine = machine();
    machine.registers.float[6] = 0xCAFE;
    machine.registers.general[0] = 0x4020_0000;
    // VSTR s6, [r0, #4], then VLDR s6, [r0]
    machine.code = [0xED80, 0x3A01];
    machine
        .trap(|core, guest| {
            match core.access_trapped(guest, 0)? {
                Outcome::Elsewhere(access) => {
                    assert_eq!((access.address, access.store), (0x4020_0004, Some(0xCAFE)));
                }
                other => panic!("{other:?}"),
            }
            assert!(core.complete_access(guest, 0));
            Ok(())
        })
        .unwrap();
    machine.code = [0xED90, 0x3A00];
    machine
        .trap(|core, guest| {
            assert!(matches!(core.access_trapped(guest, 0)?, Outcome::Elsewhere(_)));
            assert!(core.complete_access(guest, 0x1234_5678));
            Ok(())
        })
        .unwrap();
    assert_eq!(machine.registers.float[6], 0x1234_5678);
    assert_eq!(machine.registers.pc, 0x0010_0000 + 8);
}

#[test]
fn an_exception_notes_where_floating_point_registers_are() {
    let mut machine = machine();
    assert_eq!(machine.core.read(FPCAR, 4, 0), Ok(0));
    let frame = machine.psp - 0x68;
    machine
        .trap(|core, guest| core.raise(guest, Fault::NO_EXECUTE))
        .unwrap();
    assert_eq!(machine.core.read(FPCAR, 4, 0), Ok(frame + 0x20));
    machine.core.write(FPCAR, 4, 0x2000_1237, 0).unwrap();
    assert_eq!(machine.core.read(FPCAR, 4, 0), Ok(0x2000_1230));
}

#[test]
fn the_identification_is_the_chips() {
    let mut machine = machine();
    // LDRD r2, r3, [r1]: the last word of the system control space, and one after it.
    machine.registers.general[1] = 0xE000_EFFC;
    assert_eq!(access(&mut machine, [0xE9D1, 0x2300]), Outcome::Done);
    assert_eq!(machine.registers.general[2..4], [0xB1, 0]);
    assert_eq!(machine.core.read(0xE000_EFD0, 4, 0), Ok(4));
}
