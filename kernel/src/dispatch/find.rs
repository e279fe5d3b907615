// SPDX-License-Identifier: Apache-2.0
//! Looks capabilities up by the names of the manifest.
//!
//! The records of the system image are in the order of the partitions, so the caller's records are found by
//! halving the table. The rest is a step per record of the caller, and constant work for each step.

use super::Pcpu;
use crate::cap::Spaces;
use bulkhead_abi::hypercall::{CAPABILITY_NAME, SELF_CAPABILITY, SELF_NAME};
use bulkhead_abi::{Error, ObjectKind};
use bulkhead_arch_api::{Arch, Drivers, PartitionId};
use bulkhead_image::layout::{CapabilityRecord, NAME_LEN};
use bulkhead_sched::PcpuPolicy;
use spin::RelaxStrategy;

const _: () = assert!(
    NAME_LEN == CAPABILITY_NAME,
    "a name of the image is a name of a call"
);

impl<A: Arch, D: Drivers, P: PcpuPolicy> Pcpu<'_, '_, A, D, P> {
    /// Returns the index, and the kind and rights, of the caller's capability with this name.
    #[inline(never)]
    pub(crate) fn find(
        &mut self,
        caller: PartitionId,
        name: &[u8; CAPABILITY_NAME],
    ) -> Result<[u64; 4], Error> {
        let records = self.system.image.capabilities();
        find(records, &self.shared.capabilities, caller, name)
    }
}

fn find<R: RelaxStrategy>(
    records: &[CapabilityRecord],
    spaces: &Spaces<R>,
    caller: PartitionId,
    name: &[u8; CAPABILITY_NAME],
) -> Result<[u64; 4], Error> {
    let (text, padding) = name.split_at_checked(SELF_NAME.len()).unwrap_or_default();
    let (kind, index, object) = if text == SELF_NAME.as_bytes() && padding.iter().all(|byte| *byte == 0) {
        (ObjectKind::Partition as u32, SELF_CAPABILITY, u32::from(caller.0))
    } else {
        let number = u32::from(caller.0);
        let first = records.partition_point(|record| record.partition.get() < number);
        let own = records.iter().skip(first);
        let mut own = own.take_while(|record| record.partition.get() == number);
        let found = own
            .find(|record| record.name.bytes == *name)
            .ok_or(Error::NoCapability)?;
        (found.kind.get(), found.index.get(), found.object.get())
    };
    let held = spaces.peek(caller, index.into())?;
    if (held.kind as u32, u32::from(held.object)) != (kind, object) {
        return Err(Error::NoCapability);
    }
    let what = u64::from(kind).rotate_left(32) | u64::from(held.rights.0);
    Ok([index.into(), what, 0, 0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cap::Capability;
    use bulkhead_abi::Rights;
    use bulkhead_arch_api::MAX_PARTITIONS;
    use bulkhead_image::layout::Name;
    use spin::relax::Spin;
    use std::boxed::Box;
    use std::format;
    use std::vec::Vec;

    fn padded(text: &str) -> [u8; CAPABILITY_NAME] {
        Name::new(text).expect("a name").bytes
    }

    fn record(partition: u8, index: u32, name: &str) -> CapabilityRecord {
        CapabilityRecord {
            partition: u32::from(partition).into(),
            index: index.into(),
            kind: u32::from(ObjectKind::EventGate as u8).into(),
            object: (index % 7).into(),
            rights: u32::from(Rights::READ.0).into(),
            detail: 0.into(),
            name: Name::new(name).expect("a name"),
        }
    }

    #[test]
    fn each_partition_finds_its_own_capabilities_and_no_others() {
        let spaces: Box<Spaces<Spin>> = Box::default();
        let mut records = Vec::new();
        // Every second partition has capabilities, some of them the same names.
        for partition in (0..MAX_PARTITIONS as u8).step_by(2) {
            let own = Capability {
                kind: ObjectKind::Partition,
                object: partition,
                rights: Rights::ALL,
            };
            spaces.endow(PartitionId(partition), 0, own).expect("room");
            for index in 1..8 {
                records.push(record(partition, index, &format!("name-{index}")));
                let capability = Capability {
                    kind: ObjectKind::EventGate,
                    object: (index % 7) as u8,
                    rights: Rights::READ,
                };
                spaces
                    .endow(PartitionId(partition), index, capability)
                    .expect("room");
            }
        }
        let find = |partition, name: &str| find(&records, &spaces, PartitionId(partition), &padded(name));
        for partition in 0..MAX_PARTITIONS as u8 {
            for index in 1..8 {
                let expected = match partition % 2 {
                    0 => Ok([index, 2 << 32 | 1, 0, 0]),
                    _ => Err(Error::NoCapability),
                };
                assert_eq!(find(partition, &format!("name-{index}")), expected);
            }
            assert_eq!(find(partition, "name"), Err(Error::NoCapability));
            assert_eq!(find(partition, "selfish"), Err(Error::NoCapability));
        }
        assert_eq!(find(4, "self"), Ok([0, 1 << 32 | 15, 0, 0]));
        // A slot that the holder has emptied, or filled anew, is no longer what the name says.
        let holder = PartitionId(4);
        assert_eq!(spaces.revoke(holder, 3, true).map(|(done, _)| done), Ok(true));
        assert_eq!(find(4, "name-3"), Err(Error::NoCapability));
        assert_eq!(spaces.derive(holder, 1, holder, Rights::READ), Ok(3));
        assert_eq!(find(4, "name-3"), Err(Error::NoCapability));
    }

    #[test]
    fn bytes_that_are_no_name_find_nothing() {
        let spaces: Box<Spaces<Spin>> = Box::default();
        for name in [[0; CAPABILITY_NAME], [0xFF; CAPABILITY_NAME]] {
            assert_eq!(
                find(&[], &spaces, PartitionId(0), &name),
                Err(Error::NoCapability)
            );
        }
    }
}
