// SPDX-License-Identifier: Apache-2.0
//! A health report, read back from its line ([`bulkhead_abi::log::read`]).

use bulkhead_abi::HealthAction;
use bulkhead_abi::log::Kind;
use bulkhead_abi::log::entry::{HAS_ADDRESS, HAS_VIRTUAL};
use bulkhead_abi::log::read::Told;

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
    /// Reads a line of the hypervisor's. Returns `None` if the line is no health report.
    #[must_use]
    pub fn read(line: &str) -> Option<Self> {
        let told = Told::read(line)?;
        let class = told.class()?;
        let flags = told.entry().flags;
        let fact = |number: u8, is_there: bool| is_there.then(|| told.fact(number));
        let (is_fault, is_refused) = (told.kind() == Kind::Fault, told.kind() == Kind::Refused);
        Some(Self {
            partition: told.partition().to_owned(),
            vcpu: told.entry().vcpu.into(),
            class: class.name().to_owned(),
            action: told.action().map_or("?", HealthAction::name).to_owned(),
            address: fact(0, is_fault && flags & HAS_ADDRESS != 0),
            virtual_address: fact(1, is_fault && flags & HAS_VIRTUAL != 0),
            pc: fact(2, is_fault),
            syndrome: fact(3, is_fault),
            operation: fact(0, is_refused),
            capability: fact(1, is_refused),
            error: told.error().map(str::to_owned),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_the_facts_of_its_line() {
        let line = "health: partition=a vcpu=1 class=memory address=0x80000000 pc=0x400814c4 \
                    syndrome=0x93890005 line=2 event=1 action=stop";
        let event = Event::read(line).unwrap();
        assert_eq!((event.partition.as_str(), event.vcpu), ("a", 1));
        assert_eq!(event.address, Some(0x8000_0000));
        assert_eq!(event.virtual_address, None);
        assert_eq!(event.action, "stop");
        assert_eq!((event.operation, event.error), (None, None));
        let refused = "health: partition=a vcpu=0 class=hypercall operation=0xc6000001 capability=0x3 \
                       error=no-right line=2 event=1 action=log";
        let event = Event::read(refused).unwrap();
        assert_eq!((event.operation, event.capability), (Some(0xC600_0001), Some(3)));
        assert_eq!((event.error.as_deref(), event.pc), (Some("no-right"), None));
        assert_eq!(Event::read("partition a: running"), None);
        assert_eq!(Event::read(&line[..line.len() - 12]), None, "cut off");
    }
}
