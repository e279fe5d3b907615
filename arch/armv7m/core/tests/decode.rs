// SPDX-License-Identifier: Apache-2.0
//! The decoder against a disassembler's reading of the same instructions.
//!
//! `data/thumb.txt` is what `objdump -b binary -marm -Mforce-thumb -D` of GNU binutils 2.40 says of
//! instructions drawn at random, most of them from the encodings of loads and stores: `halfwords | text` on
//! each line. A load or store must be decoded to exactly what the text says; everything else must be nothing.
//! Only what the manual calls UNPREDICTABLE is left open. `THUMB_CASES` names another file of that form, to
//! compare more of them.

use bulkhead_arch_armv7m_core::decode::{
    Direction, Registers, Transfer, is_wide, narrow_transfer, wide_transfer,
};

fn number(name: &str) -> u8 {
    match name.trim() {
        "sl" => 10,
        "fp" => 11,
        "ip" => 12,
        "sp" => 13,
        "lr" => 14,
        "pc" => 15,
        other => other
            .strip_prefix('r')
            .and_then(|n| n.parse().ok())
            .unwrap_or_else(|| panic!("register {other}")),
    }
}

fn immediate(text: &str) -> u32 {
    let digits = text.trim().trim_start_matches('#');
    digits
        .parse::<i64>()
        .unwrap_or_else(|_| panic!("immediate {text}")) as u32
}

/// Returns what the operand in brackets says: base, offset, index, change.
fn memory(operand: &str, mut transfer: Transfer) -> Transfer {
    let (inside, after) = operand.trim().strip_prefix('[').unwrap().split_once(']').unwrap();
    let mut parts = inside.split(',');
    transfer.base = number(parts.next().unwrap());
    let rest: Vec<&str> = parts.map(str::trim).collect();
    match rest[..] {
        [] => {}
        [offset] if offset.starts_with('#') => transfer.offset = immediate(offset),
        [index] => transfer.index = Some((number(index), 0)),
        [index, shift] => {
            transfer.index = Some((number(index), immediate(shift.trim_start_matches("lsl ")) as u8))
        }
        _ => panic!("{operand}"),
    }
    match after.trim() {
        "" => {}
        "!" => transfer.change = Some(transfer.offset),
        post => transfer.change = Some(immediate(post.trim_start_matches(','))),
    }
    transfer
}

fn list(text: &str) -> u16 {
    let names = text.trim().trim_start_matches('{').trim_end_matches('}');
    names
        .split(',')
        .filter(|name| !name.is_empty())
        .fold(0, |set, name| set | 1 << number(name))
}

/// Returns the size, sign and rights of a load or store of one register or two.
fn width(suffix: &str, mnemonic: &str) -> Option<(u8, bool, bool)> {
    Some(match suffix {
        "" => (4, false, false),
        "b" => (1, false, false),
        "h" => (2, false, false),
        "sb" => (1, true, false),
        "sh" => (2, true, false),
        "t" => (4, false, true),
        "bt" => (1, false, true),
        "ht" => (2, false, true),
        "sbt" => (1, true, true),
        "sht" => (2, true, true),
        "d" if !mnemonic.contains("ex") => (4, false, false),
        _ => return None,
    })
}

/// Returns the load or store that a line of text is.
fn transfer_of(text: &str) -> Option<Transfer> {
    let (mnemonic, operands) = text.split_once(' ')?;
    let mnemonic = mnemonic.trim_end_matches(".w");
    let direction = match mnemonic.get(..3)? {
        "ldr" | "ldm" | "pop" => Direction::Load,
        "str" | "stm" | "pus" => Direction::Store,
        _ => return None,
    };
    let blank = Transfer {
        direction,
        size: 4,
        signed: false,
        base: 13,
        offset: 0,
        index: None,
        change: None,
        registers: Registers::One(0),
        status: None,
        unprivileged: false,
    };
    if let Some(operands) = operands.strip_prefix('{') {
        let set = list(operands);
        let bytes = set.count_ones() * 4;
        let change = if direction == Direction::Store {
            bytes.wrapping_neg()
        } else {
            bytes
        };
        let offset = if direction == Direction::Store { change } else { 0 };
        return Some(Transfer {
            registers: Registers::List(set),
            offset,
            change: Some(change),
            ..blank
        });
    }
    let (first, rest) = operands.split_once(',')?;
    if matches!(mnemonic, "ldmia" | "stmia" | "ldmdb" | "stmdb") {
        let set = list(rest);
        let bytes = set.count_ones() * 4;
        let step = if mnemonic.ends_with("db") {
            bytes.wrapping_neg()
        } else {
            bytes
        };
        return Some(Transfer {
            base: number(first.trim_end_matches('!')),
            registers: Registers::List(set),
            offset: if mnemonic.ends_with("db") { step } else { 0 },
            change: first.ends_with('!').then_some(step),
            ..blank
        });
    }
    let (status, first, rest) = match mnemonic.strip_prefix("strex") {
        Some(_) => {
            let (second, rest) = rest.split_once(',')?;
            (Some(number(first)), second, rest)
        }
        None => (None, first, rest),
    };
    let suffix = mnemonic.get(3..)?.trim_start_matches("ex");
    let (size, signed, unprivileged) = width(suffix, mnemonic)?;
    let blank = Transfer {
        size,
        signed,
        unprivileged,
        status,
        ..blank
    };
    if suffix == "d" {
        let (second, rest) = rest.split_once(',')?;
        return Some(Transfer {
            registers: Registers::Two(number(first), number(second)),
            ..memory(rest, blank)
        });
    }
    Some(Transfer {
        registers: Registers::One(number(first)),
        ..memory(rest, blank)
    })
}

/// Tells whether the manual leaves open what this one does (A7.7, "UNPREDICTABLE" in the decoding of each).
fn open(transfer: &Transfer) -> bool {
    let store = transfer.direction == Direction::Store;
    let pc_base = transfer.base == 15;
    if transfer
        .index
        .is_some_and(|(register, _)| register == 13 || register == 15)
    {
        return true;
    }
    match transfer.registers {
        Registers::List(set) => {
            pc_base || set & 1 << 13 != 0 || store && set & 1 << 15 != 0 || set == 0 || set.count_ones() < 2
        }
        Registers::Two(one, two) => {
            one == 15 || two == 15 || pc_base && (store || transfer.change.is_some() || transfer.offset == 0)
        }
        Registers::Floats(..) => false,
        Registers::One(register) => {
            let hint = register == 15 && (store || transfer.size != 4 || transfer.unprivileged);
            let literal = pc_base
                && (store
                    || transfer.change.is_some()
                    || transfer.index.is_some()
                    || transfer.status.is_some());
            hint || literal || transfer.unprivileged && pc_base
        }
    }
}

/// Returns the transfer as the text shows it: a change by nothing is not always shown.
fn shown(transfer: Transfer) -> Transfer {
    Transfer {
        change: transfer.change.filter(|change| *change != 0),
        ..transfer
    }
}

fn exclusive(text: &str) -> bool {
    text.contains("ex")
}

#[test]
fn loads_and_stores_are_what_the_disassembler_says() {
    let cases = match std::env::var("THUMB_CASES") {
        Ok(path) => std::fs::read_to_string(path).unwrap(),
        Err(_) => include_str!("data/thumb.txt").to_owned(),
    };
    let (mut transfers, mut others) = (0, 0);
    for line in cases.lines().filter(|line| !line.starts_with('#')) {
        let (halfwords, text) = line.split_once('|').unwrap();
        let halfwords: Vec<u16> = halfwords
            .split_whitespace()
            .map(|word| u16::from_str_radix(word, 16).unwrap())
            .collect();
        let decoded = match halfwords[..] {
            [first] => narrow_transfer(first),
            [first, second] => wide_transfer(first, second),
            _ => panic!("{line}"),
        };
        let decoded = decoded.map(shown);
        assert_eq!(is_wide(halfwords[0]), halfwords.len() == 2);
        let text = text.trim();
        if text.contains("UNPREDICTABLE") {
            continue;
        }
        let impossible = text.contains('?') || text.contains('<');
        let expected = if impossible {
            None
        } else {
            transfer_of(text).map(shown)
        };
        match expected {
            Some(expected)
                if open(&expected)
                    || exclusive(text) && (expected.base == 15 || expected.single() == Some(15)) => {}
            Some(expected) => {
                assert_eq!(decoded, Some(expected), "{line}");
                transfers += 1;
            }
            None => {
                assert_eq!(decoded, None, "{line}");
                others += 1;
            }
        }
    }
    assert!(transfers > 800 && others > 100, "{transfers} and {others} cases");
}

#[test]
fn the_steps_of_a_transfer_are_its_registers_in_order() {
    // LDMDB r6!, {r0, r4, pc}
    let transfer = wide_transfer(0xE936, 0x8011).unwrap();
    let first = transfer.address(|register| if register == 6 { 0x2000_0100 } else { 0 });
    let steps: Vec<(u8, u32)> = transfer
        .steps(first)
        .map(|step| (step.register, step.address))
        .collect();
    assert_eq!(steps, [(0, 0x2000_00F4), (4, 0x2000_00F8), (15, 0x2000_00FC)]);
    assert_eq!(transfer.written_back(|_| 0x2000_0100), Some((6, 0x2000_00F4)));
    assert_eq!(
        (transfer.count(), transfer.bytes(), transfer.single()),
        (3, 12, None)
    );
    // LDRSH r1, [r2, r3, LSL #1] of 0x8001
    let transfer = wide_transfer(0xF932, 0x1013).unwrap();
    assert_eq!(transfer.address(|register| u32::from(register) * 0x10), 0x80);
    assert_eq!(transfer.extend(0x8001), 0xFFFF_8001);
}
