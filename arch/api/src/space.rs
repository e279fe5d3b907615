// SPDX-License-Identifier: Apache-2.0
//! Address spaces of a guest beside memory, and the filter of numbered registers.

use crate::AccessKind;

/// An address space in which a guest can reach a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressSpace {
    /// Guest-physical memory.
    Memory,
    /// I/O ports (x86: IN and OUT).
    Ports,
    /// Registers with numbers that instructions of their own reach (x86: MSRs; PowerPC 4xx: DCRs).
    Registers,
}

/// The answer of a backend to an access to a numbered register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// The register is the guest's own: the hardware, or the backend's copy of it, answers.
    Own,
    /// A load reads this value, a store does nothing.
    Constant(u64),
    /// It is an [`crate::Exit::Access`]: of a virtual device, or of no device.
    Exit,
}

/// Registers that are treated alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterRule {
    /// The first number.
    pub first: u32,
    /// The last one.
    pub last: u32,
    /// The treatment of loads.
    pub load: Treatment,
    /// The treatment of stores.
    pub store: Treatment,
}

/// Returns the treatment of an access to the register with this number, by the first rule for it. A
/// register without a rule is no register of the guest's. Bounded by the number of rules.
#[must_use]
pub fn treatment(rules: &[RegisterRule], number: u64, kind: AccessKind) -> Treatment {
    let found = rules
        .iter()
        .find(|rule| (u64::from(rule.first)..=u64::from(rule.last)).contains(&number));
    match (found, kind) {
        (None, _) => Treatment::Exit,
        (Some(rule), AccessKind::Read) => rule.load,
        (Some(rule), AccessKind::Write(_)) => rule.store,
    }
}

#[cfg(test)]
mod tests {
    use super::{RegisterRule, Treatment, treatment};
    use crate::AccessKind::{Read, Write};

    const RULES: &[RegisterRule] = &[
        RegisterRule {
            first: 0x10,
            last: 0x10,
            load: Treatment::Constant(7),
            store: Treatment::Exit,
        },
        RegisterRule {
            first: 0,
            last: 0x1F,
            load: Treatment::Own,
            store: Treatment::Own,
        },
    ];

    #[test]
    fn the_first_rule_decides_and_no_rule_is_an_exit() {
        assert_eq!(treatment(RULES, 0x10, Read), Treatment::Constant(7));
        assert_eq!(treatment(RULES, 0x10, Write(1)), Treatment::Exit);
        assert_eq!(treatment(RULES, 0xF, Read), Treatment::Own);
        assert_eq!(treatment(RULES, 0x1F, Write(1)), Treatment::Own);
        assert_eq!(treatment(RULES, 0x20, Read), Treatment::Exit);
        assert_eq!(treatment(&[], 0, Read), Treatment::Exit);
        assert_eq!(treatment(RULES, 1 << 32, Read), Treatment::Exit, "not cut off");
    }
}
