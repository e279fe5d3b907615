// SPDX-License-Identifier: Apache-2.0
//! Class `ppc405`. Its one stack has no unmapped page below, only marked words, so the computation is what
//! keeps it within bounds. An interrupt of a guest comes while `bulkhead_enter` is active. It pushes nothing.

use super::{Registers, Room, Step, Traps, Way, number, unknown};
use capstone::arch::{BuildsCapstone, BuildsCapstoneEndian};
use capstone::{Capstone, Endian, arch::ppc::ArchMode};

pub(super) struct Ppc405;

impl Way for Ppc405 {
    fn name(&self) -> &'static str {
        "ppc405"
    }

    fn disassembler(&self) -> capstone::CsResult<Capstone> {
        Capstone::new()
            .ppc()
            .mode(ArchMode::Mode32)
            .endian(Endian::Big)
            .build()
    }

    fn shortest(&self) -> usize {
        4
    }

    fn step(&self, registers: &mut Registers, mnemonic: &str, operands: &str) -> Result<Step, String> {
        let parts: Vec<&str> = operands.split(',').map(str::trim).collect();
        let mut step = Step {
            takes: taken_by(registers, mnemonic, operands)?,
            to: target(mnemonic, operands),
            ..Step::default()
        };
        match (mnemonic, parts.as_slice()) {
            ("lis", [to, upper]) => {
                let upper = number(upper).unwrap_or(0) << 16;
                registers.upper.entry((*to).to_owned()).or_default().insert(upper);
                registers.constant.insert((*to).to_owned(), upper);
            }
            ("li", [to, value]) => {
                registers
                    .constant
                    .insert((*to).to_owned(), number(value).unwrap_or(0));
            }
            ("addi" | "ori", [to, from, low]) => {
                let low = number(low).unwrap_or(0);
                let uppers = registers.upper.get(*from).into_iter().flatten();
                step.makes.extend(uppers.map(|upper| upper.wrapping_add(low)));
                match registers.constant.get(*from) {
                    Some(upper) => registers
                        .constant
                        .insert((*to).to_owned(), upper.wrapping_add(low)),
                    None => registers.constant.remove(*to),
                };
            }
            // The stack pointer's low bits are taken from the frame as well: the frame is aligned.
            ("clrlwi", [to, "r1", bits]) => {
                let low = u32::MAX.checked_shr(number(bits).unwrap_or(0)).unwrap_or(0);
                registers.constant.insert((*to).to_owned(), low);
            }
            ("rlwinm", [to, "r1", "0", from, "31" | "0x1f"]) => {
                let low = u32::MAX.checked_shr(number(from).unwrap_or(0)).unwrap_or(0);
                registers.constant.insert((*to).to_owned(), low);
            }
            ("subfic", [to, from, value]) => {
                let value = number(value).unwrap_or(0);
                match registers.constant.get(*from) {
                    Some(low) => registers
                        .constant
                        .insert((*to).to_owned(), value.wrapping_sub(*low)),
                    None => registers.constant.remove(*to),
                };
            }
            ("subf" | "subfc", [to, low, from]) => {
                let difference = registers.constant.get(*from).zip(registers.constant.get(*low));
                match difference.map(|(from, low)| from.wrapping_sub(*low)) {
                    Some(value) => registers.constant.insert((*to).to_owned(), value),
                    None => registers.constant.remove(*to),
                };
            }
            ("mtctr", [from]) => {
                let last = registers.writer.get(*from).cloned().unwrap_or_default();
                registers.writer.insert("ctr".into(), last);
            }
            ("bctrl", _) => step.by_address = true,
            // A table of branches is added to a place in the code.
            ("bctr", _) => step.by_address = registers.writer.get("ctr").is_none_or(|last| last != "add"),
            (_, [to, ..]) => {
                registers.constant.remove(*to);
            }
            _ => {}
        }
        if let Some(first) = parts.first() {
            registers.writer.insert((*first).to_owned(), mnemonic.to_owned());
        }
        Ok(step)
    }

    fn firsts(&self) -> &'static [&'static str] {
        &["bulkhead_start"]
    }

    fn is_uncalled(&self, function: &str) -> bool {
        // A register of the CPU has the address, and the vectors go on by a table.
        function == "bulkhead_vectors" || function.starts_with("short_")
    }

    fn traps(&self) -> Traps {
        Traps::Functions(&["bulkhead_stored"])
    }

    fn frame(&self) -> u32 {
        0
    }

    fn stack(&self) -> Room {
        Room::Symbols("__stack_bottom", "__stack_top")
    }

    fn crash(&self) -> (&'static str, u32, Option<Room>) {
        ("bulkhead_arch_ppc405::crash::interrupted", 0, None)
    }
}

/// Returns the bytes by which an instruction lowers the stack pointer, r1.
fn taken_by(registers: &Registers, mnemonic: &str, operands: &str) -> Result<u32, String> {
    let unknown = || unknown(mnemonic, operands);
    let parts: Vec<&str> = operands.split(',').map(str::trim).collect();
    match (mnemonic, parts.as_slice()) {
        ("stwu", [_, place]) => match place.strip_suffix("(r1)") {
            Some(offset) => number(offset).map(u32::wrapping_neg).ok_or_else(unknown),
            None => Ok(0),
        },
        ("stwux", [_, "r1", by]) => {
            let by = registers.constant.get(*by).ok_or_else(unknown)?;
            Ok(by.wrapping_neg())
        }
        ("subf" | "subfic" | "sub", ["r1", ..]) => Err(unknown()),
        // Where the stack begins, and where it is left.
        _ => Ok(0),
    }
}

/// Returns the address that an instruction branches to, if it is a constant.
fn target(mnemonic: &str, operands: &str) -> Option<u32> {
    let last = operands.rsplit(',').next()?;
    number(last).filter(|_| mnemonic.starts_with('b'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_takes_what_the_manual_says() {
        let mut registers = Registers::default();
        let mut takes = |mnemonic, operands| {
            Ppc405
                .step(&mut registers, mnemonic, operands)
                .map(|step| step.takes)
        };
        assert_eq!(takes("stwu", "r1, -0x20(r1)"), Ok(32));
        assert_eq!(takes("stwu", "r3, -16(r1)"), Ok(16));
        assert_eq!(takes("stwu", "r3, 4(r9)"), Ok(0));
        assert!(takes("stwux", "r1, r1, r0").is_err());
        assert_eq!(takes("lis", "r0, -1"), Ok(0));
        assert_eq!(takes("ori", "r0, r0, 0x6000"), Ok(0));
        assert_eq!(takes("stwux", "r1, r1, r0"), Ok(0xA000));
        assert_eq!(takes("clrlwi", "r0, r1, 0x1b"), Ok(0));
        assert_eq!(takes("subfic", "r0, r0, -0x43e0"), Ok(0));
        assert_eq!(takes("stwux", "r1, r1, r0"), Ok(0x43E0 + 31));
        assert_eq!(target("bl", "0x1010200"), Some(0x0101_0200));
        assert_eq!(target("beq", "cr1, 0x1010200"), Some(0x0101_0200));
        assert_eq!(target("blr", ""), None);
    }
}
