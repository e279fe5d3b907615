// SPDX-License-Identifier: Apache-2.0
//! Classes `armv7m` and `armv8m`: the same stack, and nearly the same instructions. The exceptions of a guest
//! come while `bulkhead_enter` is active, on top of it. A fault of the hypervisor's own may come anywhere,
//! and on class `armv7m` a prompt line as well.

use super::{Registers, Room, Step, Traps, Way, unknown};
use capstone::Capstone;
use capstone::arch::arm::{ArchExtraMode, ArchMode};
use capstone::arch::{BuildsCapstone, BuildsCapstoneExtraMode};

/// A Cortex-M processor.
pub(super) struct CortexM {
    /// The class.
    pub(super) name: &'static str,
    /// True if it has the instructions of the Security Extension.
    pub(super) has_worlds: bool,
}

/// Class `armv7m`.
pub(super) const ARMV7M: CortexM = CortexM {
    name: "armv7m",
    has_worlds: false,
};

/// Class `armv8m`.
pub(super) const ARMV8M: CortexM = CortexM {
    name: "armv8m",
    has_worlds: true,
};

/// The linker's filling between functions.
const FILL: [u8; 2] = [0xD4; 2];

impl Way for CortexM {
    fn name(&self) -> &'static str {
        self.name
    }

    fn disassembler(&self) -> capstone::CsResult<Capstone> {
        let worlds = self.has_worlds.then_some(ArchExtraMode::V8);
        let extra = [ArchExtraMode::MClass].into_iter().chain(worlds);
        Capstone::new()
            .arm()
            .mode(ArchMode::Thumb)
            .extra_mode(extra)
            .build()
    }

    fn shortest(&self) -> usize {
        2
    }

    fn pointed(&self, word: u32) -> Option<u32> {
        (word & 1 == 1).then_some(word & !1)
    }

    fn has_untyped(&self) -> bool {
        false
    }

    fn is_no_code(&self, _function: &str, bytes: &[u8]) -> bool {
        bytes.starts_with(&FILL)
    }

    fn step(&self, _registers: &mut Registers, mnemonic: &str, operands: &str) -> Result<Step, String> {
        let is_register = !operands.starts_with('#') && operands != "lr";
        Ok(Step {
            takes: taken_by(mnemonic, operands)?,
            to: target(mnemonic, operands),
            by_address: matches!(mnemonic, "bx" | "blx") && is_register,
            place: None,
            makes: Vec::new(),
        })
    }

    fn firsts(&self) -> &'static [&'static str] {
        &["bulkhead_first"]
    }

    fn traps(&self) -> Traps {
        Traps::Table {
            name: "bulkhead_vectors",
            // The CPU's exceptions, and the first lines, which are all alike.
            bytes: 17 * 4,
            // Handlers that run on an empty stack, or never beside a guest.
            except: &["bulkhead_start", "bulkhead_first", "bulkhead_crash"],
        }
    }

    fn frame(&self) -> u32 {
        // Arm DDI 0403E.e, B1.5.7: the hypervisor uses no floating-point registers. Its stack pointer may
        // have to be aligned.
        36
    }

    fn stack(&self) -> Room {
        Room::Symbols("__stack_bottom", "__stack_top")
    }

    fn crash(&self) -> (&'static str, u32, Option<Room>) {
        ("bulkhead_crash", 0, None)
    }
}

/// Returns the bytes by which an instruction lowers the stack pointer.
fn taken_by(mnemonic: &str, operands: &str) -> Result<u32, String> {
    let unknown = || unknown(mnemonic, operands);
    let base = mnemonic.trim_end_matches(".w");
    let immediate = || {
        let digits = operands
            .rsplit_once('#')
            .map(|(_, digits)| digits.trim_end_matches(['!', ']']));
        let digits = digits.map(|digits| digits.trim_start_matches('-'));
        let value = digits.and_then(|digits| match digits.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => digits.parse().ok(),
        });
        value.ok_or_else(unknown)
    };
    let count = operands
        .split('{')
        .nth(1)
        .map_or(0, |list| list.split(',').count() as u32);
    match base {
        "push" => Ok(4 * count),
        "stmdb" if operands.starts_with("sp!") => Ok(4 * count),
        "vpush" | "vstmdb" if base == "vpush" || operands.starts_with("sp!") => {
            Ok(if operands.contains("{d") { 8 } else { 4 } * count)
        }
        "sub" | "subw" if operands.starts_with("sp,") => immediate(),
        "str" | "strd" if operands.contains("[sp, #-") && operands.ends_with('!') => immediate(),
        // Where the stack begins, and where another takes its place.
        _ => Ok(0),
    }
}

/// Returns the address that an instruction branches to, if it is a constant.
fn target(mnemonic: &str, operands: &str) -> Option<u32> {
    let is_branch =
        mnemonic.starts_with('b') && !matches!(mnemonic, "bx" | "blx" | "bic" | "bics" | "bfi" | "bfc");
    let digits = operands.strip_prefix("#0x").filter(|_| is_branch)?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_takes_what_the_manual_says() {
        let taken = |mnemonic, operands| taken_by(mnemonic, operands);
        assert_eq!(taken("push", "{r4, r5, lr}"), Ok(12));
        assert_eq!(taken("push.w", "{r4, r5, r6, r7, r8, sb, sl, fp, lr}"), Ok(36));
        assert_eq!(taken("stmdb", "sp!, {r4, lr}"), Ok(8));
        assert_eq!(taken("stmdb", "r0!, {r4, lr}"), Ok(0));
        assert_eq!(taken("vpush", "{d8, d9}"), Ok(16));
        assert_eq!(taken("sub", "sp, #0x18"), Ok(24));
        assert_eq!(taken("sub.w", "sp, sp, #0x1100"), Ok(4352));
        assert_eq!(taken("subw", "sp, sp, #1028"), Ok(1028));
        assert_eq!(taken("sub", "r0, #4"), Ok(0));
        assert_eq!(taken("str", "lr, [sp, #-4]!"), Ok(4));
        assert_eq!(taken("str", "r0, [sp, #4]"), Ok(0));
        assert!(taken("sub.w", "sp, sp, r0").is_err());
        assert_eq!(target("bl", "#0x3d8400"), Some(0x3D_8400));
        assert_eq!(target("bne.w", "#0x3d8400"), Some(0x3D_8400));
        assert_eq!(target("blx", "r3"), None);
    }
}
