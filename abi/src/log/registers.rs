// SPDX-License-Identifier: Apache-2.0
//! The registers in a report of a vCPU, by register file. A backend names its files, and no others are part
//! of its class binary.

/// The registers of a report, in their order. Stack pointer, program counter and processor state follow them
/// in every report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterFile {
    /// The number of the file in entries of the log.
    pub number: u8,
    /// The number of registers at the beginning that are called `r` and their number.
    pub numbered: u8,
    /// The names of the registers after these.
    pub names: &'static [&'static str],
}

/// The registers that follow the registers of every file.
pub const COMMON: [&str; 3] = ["sp", "pc", "state"];

/// x0 to x30, and the registers of EL1 that say which exception the vCPU took last.
pub const A64: RegisterFile = RegisterFile {
    number: 1,
    numbered: 31,
    names: &["far", "elr", "esr", "vbar"],
};
/// x0 to x30 as AArch32 names them (Arm ARM, D1.20.1). The 16th is of Hyp mode, which no guest has.
pub const A32: RegisterFile = RegisterFile {
    number: 2,
    numbered: 0,
    names: &[
        "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "sp_usr", "lr_usr",
        "sp_hyp", "lr_irq", "sp_irq", "lr_svc", "sp_svc", "lr_abt", "sp_abt", "lr_und", "sp_und", "r8_fiq",
        "r9_fiq", "r10_fiq", "r11_fiq", "r12_fiq", "sp_fiq", "lr_fiq",
    ],
};
/// r0 to r12, LR, the place of the last exception, and CFSR.
pub const M_PROFILE: RegisterFile = RegisterFile {
    number: 3,
    numbered: 13,
    names: &["lr", "from", "cfsr"],
};
/// The general registers without the stack pointer r1, SRR0, ESR, EVPR.
pub const POWER: RegisterFile = RegisterFile {
    number: 4,
    numbered: 1,
    names: &[
        "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "r16",
        "r17", "r18", "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r26", "r27", "r28", "r29", "r30",
        "r31", "srr0", "esr", "evpr",
    ],
};
/// The general registers without RSP, control and segment registers, and the last exit (AMD APM volume 2,
/// appendix B).
pub const AMD64: RegisterFile = RegisterFile {
    number: 5,
    numbered: 0,
    names: &[
        "rax", "rcx", "rdx", "rbx", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
        "r15", "cr0", "cr2", "cr3", "cr4", "efer", "cs", "cs-base", "ss", "ds", "gdt", "idt", "tr", "event",
        "info1", "info2", "exit",
    ],
};
/// The registers of the simulated CPU.
pub const SIMULATED: RegisterFile = RegisterFile {
    number: 6,
    numbered: 35,
    names: &[],
};
/// All files, for readers of every class.
pub const ALL: [&RegisterFile; 6] = [&A64, &A32, &M_PROFILE, &POWER, &AMD64, &SIMULATED];

impl RegisterFile {
    /// Returns the number of registers in the file, without those that follow in every report.
    #[must_use]
    pub const fn count(&self) -> usize {
        (self.numbered as usize).wrapping_add(self.names.len())
    }

    /// Returns the number of registers in a report.
    #[must_use]
    pub const fn total(&self) -> usize {
        self.count().wrapping_add(COMMON.len())
    }

    /// Returns the name of a register that is not called by its number.
    #[must_use]
    pub fn name(&self, number: usize) -> Option<&'static str> {
        let named = number.checked_sub(self.numbered.into())?;
        match named.checked_sub(self.names.len()) {
            None => self.names.get(named).copied(),
            Some(common) => COMMON.get(common).copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_has_a_number_of_its_own_and_ends_alike() {
        for (file, number) in ALL.iter().zip(1..) {
            assert_eq!(file.number, number);
            assert_eq!(file.name(file.total() - 1), Some("state"));
            assert_eq!(file.name(file.count()), Some("sp"));
            assert_eq!(file.name(file.total()), None);
            assert!(file.names.iter().all(|name| name.len() <= 8), "{file:?}");
        }
        assert_eq!(A64.name(30), None, "r30");
        assert_eq!(A64.name(31), Some("far"));
        assert_eq!(POWER.name(0), None, "r0");
        assert_eq!(POWER.name(1), Some("r2"));
    }
}
