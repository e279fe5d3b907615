// SPDX-License-Identifier: Apache-2.0
//! The question whether a CPU needs a barrier for its predictions of branches.

/// ID_AA64PFR0_EL1.CSV2 (Arm DDI 0487 D19.2.65): code of one context does not train the branches of another.
const CSV2: u32 = 56;
/// Version 1.1 of the calls, which is the first with the other two.
const SMCCC_1_1: i32 = 1 << 16 | 1;

/// The answers of a CPU and of its firmware, which are asked for one after the other.
#[derive(Debug)]
pub struct Answers<A, B, C> {
    /// ID_AA64PFR0_EL1.
    pub processor: u64,
    /// PSCI_FEATURES of SMCCC_VERSION.
    pub has_version: A,
    /// SMCCC_VERSION.
    pub version: B,
    /// SMCCC_ARCH_FEATURES of SMCCC_ARCH_WORKAROUND_1: 0 says that the barrier is there and needed, 1 that it
    /// is not needed, and a negative number that it is not there (Arm DEN 0028F 7.5).
    pub has_barrier: C,
}

/// Tells whether the CPU needs the barrier, and the firmware has one.
pub fn needs_barrier(answers: &Answers<impl Fn() -> i32, impl Fn() -> i32, impl Fn() -> i32>) -> bool {
    answers.processor >> CSV2 & 0xF == 0
        && (answers.has_version)() == 0
        && (answers.version)() >= SMCCC_1_1
        && (answers.has_barrier)() == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(csv2: u64, [has_version, version, has_barrier]: [i32; 3]) -> bool {
        needs_barrier(&Answers {
            processor: csv2 << CSV2 | 0x1122,
            has_version: || has_version,
            version: || version,
            has_barrier: || has_barrier,
        })
    }

    #[test]
    fn only_a_cpu_that_mixes_contexts_and_firmware_with_a_barrier_have_one() {
        assert!(asked(0, [0, SMCCC_1_1, 0]));
        assert!(!asked(1, [0, SMCCC_1_1, 0]), "the CPU keeps contexts apart");
        assert!(!asked(0, [-1, SMCCC_1_1, 0]), "firmware of PSCI 0.2");
        assert!(!asked(0, [0, 1 << 16, 0]), "SMCCC 1.0");
        assert!(!asked(0, [0, SMCCC_1_1, 1]), "this CPU is not affected");
        assert!(!asked(0, [0, SMCCC_1_1, -1]), "no barrier");
    }
}
