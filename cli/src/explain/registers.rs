// SPDX-License-Identifier: Apache-2.0
//! The registers after a health report. They come in several lines, each with some of them. The last register
//! of a report is the processor state, which can have a line of its own.

use bulkhead_abi::log::Kind;
use bulkhead_abi::log::read::Told;
use bulkhead_abi::log::registers::COMMON;
use std::collections::BTreeMap;

/// The register that comes last.
const LAST: &str = COMMON[COMMON.len() - 1];

/// The registers of one vCPU that have come so far.
#[derive(Clone, Debug, Default)]
pub struct Registers {
    of: (String, u32),
    values: BTreeMap<String, u64>,
}

impl Registers {
    /// Reads a line of the hypervisor's. Returns whether that was the last one of a vCPU's registers.
    pub fn line(&mut self, text: &str) -> bool {
        let Some(told) = Told::read(text).filter(|told| told.kind() == Kind::Registers) else {
            return false;
        };
        let of = (told.partition().to_owned(), u32::from(told.entry().vcpu));
        // A report that comes in between is another one's.
        if self.of != of || self.values.contains_key(LAST) {
            *self = Self {
                of,
                values: BTreeMap::new(),
            };
        }
        let values = told.registers().map(|(name, value)| (name.to_owned(), value));
        self.values.extend(values);
        self.values.contains_key(LAST)
    }

    /// Returns the value of a register.
    pub fn value(&self, name: &str) -> Option<u64> {
        self.values.get(name).copied()
    }

    /// Returns the name of the partition.
    pub fn partition(&self) -> &str {
        &self.of.0
    }

    /// Returns the number of the vCPU in its partition.
    pub fn vcpu(&self) -> u32 {
        self.of.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registers_of_two_vcpus_do_not_mix() {
        let mut registers = Registers::default();
        assert!(!registers.line("registers: partition=a vcpu=1 r30=0x1 far=0x0 elr=0x40000008"));
        assert!(registers.line("registers: partition=a vcpu=1 sp=0x0 pc=0x200 state=0x3c5"));
        assert_eq!((registers.partition(), registers.vcpu()), ("a", 1));
        assert_eq!(registers.value("elr"), Some(0x4000_0008));
        assert!(!registers.line("registers: partition=b vcpu=0 left out, others are being written"));
        assert!(registers.line("registers: partition=b vcpu=0 sp=0x0 pc=0x300 state=0x3c5"));
        assert_eq!(
            (registers.value("elr"), registers.value("pc")),
            (None, Some(0x300))
        );
        assert!(!registers.line("health: partition=a vcpu=1 class=memory"));
    }

    /// Checks a report whose last line has the processor state alone, as on a microcontroller.
    #[test]
    fn a_report_ends_with_the_processor_state() {
        let mut registers = Registers::default();
        assert!(!registers.line("registers: partition=a vcpu=0 from=0x22 cfsr=0x0 sp=0x20 pc=0x0"));
        assert!(registers.line("registers: partition=a vcpu=0 state=0x6000000b"));
        assert_eq!(
            (registers.value("pc"), registers.value("state")),
            (Some(0), Some(0x6000_000B))
        );
        assert!(!registers.line("registers: partition=a vcpu=0 from=0x24 cfsr=0x0 sp=0x20 pc=0x0"));
        assert_eq!(registers.value("state"), None, "that was of the report before");
    }
}
