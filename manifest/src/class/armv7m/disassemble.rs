// SPDX-License-Identifier: Apache-2.0
//! The meaning of instructions, by a disassembler that is not ours.
//!
//! Everything else that reads code here was written from one manual by the same people. Capstone shares
//! nothing with that code: neither tables nor authors. Capstone reads a program before and after the program
//! was rewritten, and both readings have to fit.

use capstone::arch::arm::{ArchExtraMode, ArchMode};
use capstone::prelude::{BuildsCapstone, BuildsCapstoneExtraMode};
use capstone::{Capstone, CsResult};

/// The disassembler of T32 code for CPUs of the M profile.
pub(crate) struct Disassembler(Capstone);

/// One instruction, as assembly language: mnemonic and operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assembly {
    mnemonic: String,
    operands: String,
}

impl Disassembler {
    pub(crate) fn new() -> CsResult<Self> {
        Capstone::new()
            .arm()
            .mode(ArchMode::Thumb)
            .extra_mode([ArchExtraMode::MClass].into_iter())
            .build()
            .map(Self)
    }

    /// Returns the instruction in `bytes`, if there is one and it takes all of `bytes`.
    pub(crate) fn read(&self, bytes: &[u8]) -> Option<Assembly> {
        let found = self.0.disasm_count(bytes, 0, 1).ok()?;
        let instruction = found.first().filter(|found| found.len() == bytes.len())?;
        Some(Assembly {
            mnemonic: instruction.mnemonic()?.to_owned(),
            operands: instruction.op_str().unwrap_or_default().to_owned(),
        })
    }

    /// Returns the instructions in `bytes`, which begin at `address`, as assembly language. `None` if they do
    /// not take all of `bytes`.
    pub(crate) fn listing(&self, bytes: &[u8], address: u32) -> Option<Vec<String>> {
        let found = self.0.disasm_all(bytes, address.into()).ok()?;
        let length: usize = found.iter().map(|instruction| instruction.len()).sum();
        let text = |instruction: &capstone::Insn<'_>| {
            let operands = instruction.op_str().unwrap_or_default();
            format!("{} {operands}", instruction.mnemonic().unwrap_or_default())
        };
        (length == bytes.len()).then(|| found.iter().map(text).collect())
    }
}

impl Assembly {
    /// Tells whether unprivileged code must execute a stand-in instead of this instruction. APSR belongs to
    /// everybody (Arm DDI 0403E, B5.2.2 and B5.2.3): MRS may read nothing beside APSR, and MSR may write
    /// nothing else of the register that APSR is a part of.
    pub(crate) fn is_sensitive(&self) -> bool {
        const FLAGS: [&str; 4] = ["apsr_", "iapsr_", "eapsr_", "xpsr_"];
        // With the rights of unprivileged code (A7.7): the CPU would check nothing but the hypervisor's plan.
        const UNPRIVILEGED: [&str; 8] = [
            "ldrt", "ldrbt", "ldrht", "ldrsbt", "ldrsht", "strt", "strbt", "strht",
        ];
        let named = |name: &str| self.mnemonic.starts_with(name);
        if named("mrs") {
            !self.operands.ends_with(", apsr")
        } else if named("msr") {
            !FLAGS.iter().any(|flags| self.operands.starts_with(flags))
        } else {
            ["cps", "wfi", "wfe", "sev"].into_iter().any(named)
                || UNPRIVILEGED.contains(&self.mnemonic.as_str())
        }
    }

    /// Returns the immediate, if this is an undefined instruction.
    pub(crate) fn undefined(&self) -> Option<u16> {
        if !self.mnemonic.starts_with("udf") {
            return None;
        }
        let digits = self.operands.strip_prefix('#')?;
        match digits.strip_prefix("0x") {
            Some(digits) => u16::from_str_radix(digits, 16).ok(),
            None => digits.parse().ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(halves: &[u16]) -> Option<String> {
        let bytes: Vec<u8> = halves.iter().flat_map(|half| half.to_le_bytes()).collect();
        let assembly = Disassembler::new().expect("made").read(&bytes)?;
        let undefined = assembly
            .undefined()
            .map_or(String::new(), |of| format!(" = {of}"));
        Some(format!("{} {}{undefined}", assembly.mnemonic, assembly.operands))
    }

    #[test]
    fn it_reads_the_m_profile() {
        assert_eq!(read(&[0xf3ef, 0x8010]).as_deref(), Some("mrs r0, primask"));
        assert_eq!(read(&[0xf381, 0x8811]).as_deref(), Some("msr basepri, r1"));
        assert_eq!(read(&[0xb672]).as_deref(), Some("cpsid i"));
        assert_eq!(read(&[0xde80]).as_deref(), Some("udf #0x80 = 128"));
        assert_eq!(read(&[0xf7f8, 0xa109]).as_deref(), Some("udf.w #0x8109 = 33033"));
        assert_eq!(read(&[0xbf00, 0xbf00]), None, "two instructions");
        assert_eq!(read(&[0xf852, 0x1e04]).as_deref(), Some("ldrt r1, [r2, #4]"));
        assert_eq!(read(&[0xf9f2, 0x1604]), None, "what stands for it");
    }
}
