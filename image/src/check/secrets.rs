// SPDX-License-Identifier: Apache-2.0
//! Checks the capabilities for secrets: each is for the holder's own, which is its only one.

use super::{earlier, require, uses};
use crate::error::Fault;
use crate::layout::{CapabilityRecord, SECRET_OF_SYSTEM};
use crate::reader::Image;
use bulkhead_abi::parts::Part;
use bulkhead_abi::{ObjectKind, Rights};

/// Checks the record with this index, whose kind is a secret.
#[inline(always)]
pub(super) fn secret(image: &Image<'_>, record: &CapabilityRecord, index: u16) -> Result<(), Fault> {
    require(uses(image, Part::Secrets), Fault::UnknownKind)?;
    require(record.detail.get() <= SECRET_OF_SYSTEM, Fault::OutOfRange)?;
    require(record.object == record.partition, Fault::OutOfRange)?;
    require(record.rights.get() == u32::from(Rights::READ.0), Fault::BadRights)?;
    for (other, other_index) in earlier(image.capabilities(), index) {
        let is_secret = other.kind.get() == ObjectKind::Secret as u32;
        require(
            !is_secret || other.partition != record.partition,
            Fault::SameAs(other_index),
        )?;
    }
    Ok(())
}
