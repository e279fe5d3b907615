// SPDX-License-Identifier: Apache-2.0
//! Class `aarch64`. Exceptions of the hypervisor's own come on the emergency stack, exceptions of a guest
//! while `bulkhead_enter` is active.

use super::{Registers, Room, Step, Traps, Way, number, unknown};
use capstone::arch::BuildsCapstone;
use capstone::{Capstone, arch::arm64::ArchMode};

pub(super) struct Aarch64;

impl Way for Aarch64 {
    fn name(&self) -> &'static str {
        "aarch64"
    }

    fn disassembler(&self) -> capstone::CsResult<Capstone> {
        Capstone::new().arm64().mode(ArchMode::Arm).build()
    }

    fn shortest(&self) -> usize {
        4
    }

    fn word(&self) -> usize {
        8
    }

    fn has_addresses(&self, section: &str) -> bool {
        // The binary runs anywhere, so addresses are where relocations are.
        matches!(section, ".data.rel.ro" | ".data" | ".got")
    }

    fn step(&self, registers: &mut Registers, mnemonic: &str, operands: &str) -> Result<Step, String> {
        let mut step = Step {
            takes: taken_by(mnemonic, operands)?,
            to: target(mnemonic, operands),
            ..Step::default()
        };
        let parts: Vec<&str> = operands.split(',').map(str::trim).collect();
        match (mnemonic, parts.as_slice()) {
            // A large frame is taken page by page, down to an address that is computed first.
            ("sub", [to, "sp", ..]) if *to != "sp" => {
                registers.constant.insert(PROBED.to_owned(), step.takes);
            }
            ("sub", ["sp", "sp", "#1", "lsl #12"]) if registers.constant.remove(PROBED).is_some() => {
                step.takes = 0
            }
            ("adrp", [to, page]) => {
                let pages = registers.upper.entry((*to).to_owned()).or_default();
                pages.extend(number(page));
            }
            ("adr", [_, address]) => step.makes.extend(number(address)),
            ("add", [_, from, low]) if low.starts_with('#') => {
                let pages = registers.upper.get(*from).into_iter().flatten();
                let low = number(low).unwrap_or(0);
                step.makes.extend(pages.map(|page| page.wrapping_add(low)));
            }
            ("blr", _) => step.by_address = true,
            // A table of branches is added to a place in the code.
            ("br", [to]) => step.by_address = registers.writer.get(*to).is_none_or(|last| last != "add"),
            _ => {}
        }
        if let Some(first) = parts.first() {
            registers.writer.insert((*first).to_owned(), mnemonic.to_owned());
        }
        Ok(step)
    }

    fn firsts(&self) -> &'static [&'static str] {
        &["_start", "bulkhead_secondary_start"]
    }

    fn traps(&self) -> Traps {
        Traps::Functions(&["bulkhead_tracing_vectors"])
    }

    fn frame(&self) -> u32 {
        0
    }

    fn stack(&self) -> Room {
        Room::OfPcpu("arch/aarch64/src/stacks.rs")
    }

    fn crash(&self) -> (&'static str, u32, Option<Room>) {
        // The registers are below.
        let own = Room::Constant("arch/aarch64/src/stacks.rs", "EMERGENCY_SIZE");
        ("bulkhead_arch_aarch64::crash::crash", 256, Some(own))
    }
}

/// The name under which the bytes of a large frame are remembered.
const PROBED: &str = "probed";

/// Returns the bytes by which an instruction lowers the stack pointer.
fn taken_by(mnemonic: &str, operands: &str) -> Result<u32, String> {
    let unknown = || unknown(mnemonic, operands);
    if let Some((_, offset)) = operands.split_once("[sp, #-").filter(|_| operands.ends_with('!')) {
        return number(offset.trim_end_matches("]!")).ok_or_else(unknown);
    }
    if operands.contains("[sp, ") && operands.ends_with('!') && !operands.contains("[sp, #") {
        return Err(unknown());
    }
    let parts: Vec<&str> = operands.split(',').map(str::trim).collect();
    match (mnemonic, parts.as_slice()) {
        ("sub", ["sp", _, low] | [_, "sp", low]) => number(low).ok_or_else(unknown),
        ("sub", ["sp", _, low, "lsl #12"] | [_, "sp", low, "lsl #12"]) => {
            number(low).map(|low| low << 12).ok_or_else(unknown)
        }
        ("sub", ["sp", ..]) | ("and", ["sp", ..]) => Err(unknown()),
        // Where the stack begins, and where another takes its place.
        _ => Ok(0),
    }
}

/// Returns the address that an instruction branches to, if it is a constant.
pub(crate) fn target(mnemonic: &str, operands: &str) -> Option<u32> {
    let is_branch =
        matches!(mnemonic, "b" | "bl" | "cbz" | "cbnz" | "tbz" | "tbnz") || mnemonic.starts_with("b.");
    let last = operands.rsplit(',').next()?;
    number(last).filter(|_| is_branch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_takes_what_the_manual_says() {
        assert_eq!(taken_by("stp", "x29, x30, [sp, #-0x60]!"), Ok(96));
        assert_eq!(taken_by("str", "x30, [sp, #-0x10]!"), Ok(16));
        assert_eq!(taken_by("stp", "x29, x30, [sp, #0x60]"), Ok(0));
        assert_eq!(taken_by("ldp", "x29, x30, [sp], #0x60"), Ok(0));
        assert_eq!(taken_by("sub", "sp, sp, #0x150"), Ok(336));
        assert_eq!(taken_by("sub", "sp, sp, #1, lsl #12"), Ok(4096));
        assert_eq!(taken_by("sub", "x9, sp, #6, lsl #12"), Ok(0x6000));
        assert_eq!(taken_by("sub", "x9, x8, #0x20"), Ok(0));
        assert!(taken_by("sub", "sp, sp, x9").is_err());
        assert_eq!(target("bl", "#0x1234"), Some(0x1234));
        assert_eq!(target("tbnz", "w0, #3, #0x1234"), Some(0x1234));
        assert_eq!(target("b.eq", "#0x1234"), Some(0x1234));
        assert_eq!(target("bic", "x0, x0, #1"), None);
    }

    #[test]
    fn a_frame_of_many_pages_counts_once() {
        let mut registers = Registers::default();
        let mut takes = |operands| Aarch64.step(&mut registers, "sub", operands).unwrap().takes;
        assert_eq!(takes("x9, sp, #6, lsl #12"), 0x6000);
        assert_eq!(takes("sp, sp, #1, lsl #12"), 0);
        assert_eq!(takes("sp, sp, #0x150"), 336);
        assert_eq!(takes("sp, sp, #1, lsl #12"), 4096);
    }

    #[test]
    fn an_address_is_made_of_its_page_and_the_rest() {
        let mut registers = Registers::default();
        let mut step = |mnemonic, operands| Aarch64.step(&mut registers, mnemonic, operands).unwrap();
        step("adrp", "x8, #0x12000");
        assert_eq!(step("add", "x0, x8, #0x345").makes, [0x12345]);
        assert!(!step("add", "x8, x8, w9, uxtb #2").by_address);
        assert!(!step("br", "x8").by_address);
        step("ldr", "x1, [x0, #0x18]");
        assert!(step("br", "x1").by_address);
        assert!(step("blr", "x2").by_address);
    }
}
