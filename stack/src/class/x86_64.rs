// SPDX-License-Identifier: Apache-2.0
//! Class `x86_64`. Exceptions of the hypervisor's own come on the emergency stack. Interrupts are taken on
//! the ordinary one, by stubs that push nothing more.

use super::{Registers, Room, Step, Traps, Way, number, unknown};
use capstone::arch::BuildsCapstone;
use capstone::{Capstone, arch::x86::ArchMode};

pub(super) struct X86;

/// Bytes of an address that a call pushes.
const RETURN: u32 = 8;
/// Bytes of a page. A function touches each page of a large frame in turn.
const PAGE: u32 = 4096;
/// Bytes that the CPU pushes for an interrupt in 64-bit mode, and at most for its alignment (AMD64 manual 2,
/// 8.9.3).
const FRAME: u32 = 40 + 8;

impl Way for X86 {
    fn name(&self) -> &'static str {
        "x86_64"
    }

    fn disassembler(&self) -> capstone::CsResult<Capstone> {
        Capstone::new().x86().mode(ArchMode::Mode64).build()
    }

    fn shortest(&self) -> usize {
        1
    }

    fn word(&self) -> usize {
        8
    }

    fn is_no_code(&self, function: &str, _bytes: &[u8]) -> bool {
        // The first instructions run in modes of 16 and 32 bits.
        matches!(function, "_start" | "__trampoline_start" | "__trampoline_end")
    }

    fn step(&self, registers: &mut Registers, mnemonic: &str, operands: &str) -> Result<Step, String> {
        let mut step = Step {
            takes: taken_by(mnemonic, operands)?,
            ..Step::default()
        };
        let is_branch = mnemonic.starts_with('j') || mnemonic == "call" || mnemonic.starts_with("loop");
        if is_branch {
            step.to = number(operands);
        }
        let parts: Vec<&str> = operands.split(',').map(str::trim).collect();
        step.by_address = match mnemonic {
            "call" => step.to.is_none(),
            // A table of branches has an index, or is added to a place in the code.
            "jmp" if step.to.is_none() => {
                !operands.contains('*') && registers.writer.get(operands).is_none_or(|last| last != "add")
            }
            _ => false,
        };
        let beyond = operands
            .split_once("[rip ")
            .and_then(|(_, rest)| number(&rest.trim_end_matches(']').replace("+ ", "").replace("- ", "-")));
        let place = beyond.map(|beyond| registers.next.wrapping_add(beyond));
        if is_branch {
            step.place = place;
        } else {
            step.makes.extend(parts.last().and_then(|last| number(last)));
            step.makes.extend(place);
        }
        if let Some(first) = parts.first() {
            registers.writer.insert((*first).to_owned(), mnemonic.to_owned());
        }
        Ok(step)
    }

    fn firsts(&self) -> &'static [&'static str] {
        &["primary_main", "secondary_main"]
    }

    fn is_uncalled(&self, function: &str) -> bool {
        // The table of interrupts has the addresses of the stubs.
        matches!(function, "__stubs" | "__trampoline_start" | "__trampoline_end")
    }

    fn traps(&self) -> Traps {
        Traps::Functions(&[])
    }

    fn frame(&self) -> u32 {
        // An interrupt, and one that cannot be masked on top of it.
        RETURN + 2 * FRAME
    }

    fn stack(&self) -> Room {
        Room::OfPcpu("arch/x86_64/src/stacks.rs")
    }

    fn crash(&self) -> (&'static str, u32, Option<Room>) {
        let own = Room::Constant("arch/x86_64/src/stacks.rs", "EMERGENCY_SIZE");
        ("bulkhead_exception", FRAME + 2 * RETURN, Some(own))
    }
}

/// Returns the bytes by which an instruction lowers the stack pointer. A call's are the bytes of the address
/// to return to.
fn taken_by(mnemonic: &str, operands: &str) -> Result<u32, String> {
    let unknown = || unknown(mnemonic, operands);
    match mnemonic {
        "push" | "pushfq" => Ok(8),
        "sub" if operands.starts_with("rsp,") => {
            let by = operands
                .split_once(',')
                .and_then(|(_, by)| number(by))
                .ok_or_else(unknown)?;
            Ok(if by > i32::MAX as u32 { 0 } else { by })
        }
        // A frame of several pages is taken page by page, in a loop that ends at the address in r11.
        "sub" if operands.starts_with("r11,") => {
            let by = operands.split_once(',').and_then(|(_, by)| number(by));
            Ok(by.filter(|by| by.is_multiple_of(PAGE)).unwrap_or(0))
        }
        "lea" if operands.starts_with("r11, [rsp - ") => {
            let by = operands
                .strip_prefix("r11, [rsp - ")
                .map(|by| by.trim_end_matches(']'));
            by.and_then(number).ok_or_else(unknown)
        }
        // 128 have a shorter instruction as a negative number.
        "add" if operands.starts_with("rsp,") => {
            let by = operands
                .split_once(',')
                .and_then(|(_, by)| number(by))
                .ok_or_else(unknown)?;
            Ok(if by > i32::MAX as u32 {
                by.wrapping_neg()
            } else {
                0
            })
        }
        // Alignment.
        "and" if operands.starts_with("rsp,") => {
            let mask = operands.split_once(',').and_then(|(_, by)| number(by));
            mask.map(u32::wrapping_neg).ok_or_else(unknown)
        }
        // Where the stack begins, and where it is left.
        _ => Ok(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_takes_what_the_manual_says() {
        assert_eq!(taken_by("sub", "r11, 0x10000"), Ok(0x10000));
        assert_eq!(taken_by("lea", "r11, [rsp - 0x3000]"), Ok(0x3000));
        assert_eq!(taken_by("sub", "r11, 0x18"), Ok(0));
        assert_eq!(taken_by("push", "rbx"), Ok(8));
        assert_eq!(taken_by("sub", "rsp, 0x58"), Ok(88));
        assert_eq!(taken_by("sub", "rax, 0x58"), Ok(0));
        assert_eq!(taken_by("and", "rsp, 0xfffffffffffffff0"), Ok(16));
        assert_eq!(taken_by("add", "rsp, 0x58"), Ok(0));
        assert_eq!(taken_by("add", "rsp, -0x80"), Ok(128));
        assert_eq!(taken_by("sub", "rsp, -0x80"), Ok(0));
        assert!(taken_by("sub", "rsp, rax").is_err());
    }

    #[test]
    fn a_table_of_branches_is_no_call_by_an_address() {
        let mut registers = Registers {
            next: 0x1000,
            ..Registers::default()
        };
        let mut step = |mnemonic, operands| X86.step(&mut registers, mnemonic, operands).unwrap();
        assert_eq!(step("call", "0x201000").to, Some(0x0020_1000));
        assert!(step("call", "qword ptr [rax + 0x18]").by_address);
        assert!(step("call", "rax").by_address);
        let linked = step("jmp", "qword ptr [rip + 0x26d03]");
        assert!(linked.by_address);
        assert_eq!(linked.place, Some(0x1000 + 0x26d03));
        assert!(!step("jmp", "qword ptr [rax*8 + 0x238000]").by_address);
        step("add", "rcx, rdx");
        assert!(!step("jmp", "rcx").by_address);
        step("mov", "rcx, qword ptr [rdx]");
        assert!(step("jmp", "rcx").by_address);
        assert_eq!(step("mov", "edi, 0x203000").makes, [0x0020_3000]);
        assert_eq!(step("lea", "rax, [rip + 0x202000]").makes, [0x0020_3000]);
    }
}
