// SPDX-License-Identifier: Apache-2.0
//! The registers after a health report. They come in several lines, each with some of them:
//! `registers: partition=NAME vcpu=0 r0=0x1 r1=0x2 ...`. The last line has the program counter.

use std::collections::BTreeMap;

/// The registers of one vCPU that have come so far.
#[derive(Clone, Debug, Default)]
pub struct Registers {
    of: (String, u32),
    values: BTreeMap<String, u64>,
}

impl Registers {
    /// Reads a line. Returns whether that was the last one of a vCPU's registers.
    pub fn line(&mut self, text: &str) -> bool {
        let Some((_, fields)) = text.split_once("registers: partition=") else {
            return false;
        };
        let mut words = fields.split_ascii_whitespace();
        let partition = words.next().unwrap_or_default().to_owned();
        let vcpu = words
            .next()
            .and_then(|word| word.strip_prefix("vcpu=")?.parse().ok())
            .unwrap_or(0);
        // A report that comes in between is another one's.
        if self.of != (partition.clone(), vcpu) || self.values.contains_key("pc") {
            *self = Self {
                of: (partition, vcpu),
                values: BTreeMap::new(),
            };
        }
        for (name, value) in words.filter_map(|word| word.split_once("=0x")) {
            if let Ok(value) = u64::from_str_radix(value, 16) {
                self.values.insert(name.to_owned(), value);
            }
        }
        self.values.contains_key("pc")
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
        assert!(!registers.line("0.1 bulkhead | registers: partition=a vcpu=1 r0=0x1 elr=0x40000008"));
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
}
