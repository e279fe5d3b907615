// SPDX-License-Identifier: Apache-2.0
//! A health report, read back from its line: `health: partition=NAME vcpu=0 class=CLASS key=value ...`.

/// The contents of the line. Keys that are not there are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// Partition.
    pub partition: String,
    /// vCPU, by its number in the partition.
    pub vcpu: u32,
    /// Class of the event.
    pub class: String,
    /// Health action.
    pub action: String,
    /// Guest-physical address.
    pub address: Option<u64>,
    /// Virtual address.
    pub virtual_address: Option<u64>,
    /// Program counter.
    pub pc: Option<u64>,
    /// Syndrome as the CPU reports it.
    pub syndrome: Option<u64>,
    /// Number of the hypercall.
    pub operation: Option<u64>,
    /// The capability that the partition named.
    pub capability: Option<u64>,
    /// The reason why the hypercall was refused.
    pub error: Option<String>,
}

impl Event {
    /// Reads a line. Returns `None` if the line is no health report.
    #[must_use]
    pub fn read(line: &str) -> Option<Self> {
        let fields = &line[line.find("health: partition=")? + "health: ".len()..];
        let field = |name: &str| {
            fields
                .split_ascii_whitespace()
                .find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
        };
        let number = |name: &str| {
            let text = field(name)?;
            match text.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok(),
                None => text.parse().ok(),
            }
        };
        Some(Self {
            partition: field("partition")?.to_owned(),
            vcpu: number("vcpu").unwrap_or(0) as u32,
            class: field("class")?.to_owned(),
            action: field("action").unwrap_or("?").to_owned(),
            address: number("address"),
            virtual_address: number("virtual"),
            pc: number("pc"),
            syndrome: number("syndrome"),
            operation: number("operation"),
            capability: number("capability"),
            error: field("error").map(str::to_owned),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_wherever_it_stands_in_the_line() {
        let line = "0.000338 bulkhead | health: partition=a vcpu=1 class=memory address=0x80000000 pc=0x400814c4 syndrome=0x93890005 line=2 action=stop";
        let event = Event::read(line).unwrap();
        assert_eq!((event.partition.as_str(), event.vcpu), ("a", 1));
        assert_eq!(event.address, Some(0x8000_0000));
        assert_eq!(event.virtual_address, None);
        assert_eq!(event.action, "stop");
        assert_eq!(Event::read("registers: partition=a"), None);
        assert_eq!(Event::read("health: partition=a"), None, "no class");
    }
}
