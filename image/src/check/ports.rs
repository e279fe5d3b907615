// SPDX-License-Identifier: Apache-2.0
//! Ports, and the memory for the messages that wait in them. Locks.

use super::{at, earlier, named, require};
use crate::error::Fault;
use crate::layout::{PORT_IDENTIFIES, PortRecord};
use crate::limits::{MAX_PORT_DEPTH, MESSAGE_HEADER_WORDS, MESSAGE_WORDS};
use crate::reader::Image;
use bulkhead_abi::hypercall::MAX_MESSAGE;

pub(super) fn port(image: &Image<'_>, index: u16) -> Result<(), Fault> {
    let record = at(image.ports(), index)?;
    named(&record.name)?;
    require(record.reserved.get() == 0, Fault::Reserved)?;
    require(record.flags.get() & !PORT_IDENTIFIES == 0, Fault::BadFlags)?;
    let size = record.message_size.get();
    require(size != 0, Fault::Empty)?;
    require(
        size as usize <= MAX_MESSAGE && record.depth.get() <= MAX_PORT_DEPTH,
        Fault::OutOfRange,
    )?;
    let mut words = record.words();
    for (other, other_index) in earlier(image.ports(), index) {
        require(other.name != record.name, Fault::SameAs(other_index))?;
        words = words.saturating_add(other.words());
    }
    require(words as usize <= MESSAGE_WORDS, Fault::OutOfRange)
}

pub(super) fn lock(image: &Image<'_>, index: u16) -> Result<(), Fault> {
    let record = at(image.locks(), index)?;
    named(&record.name)?;
    for (other, other_index) in earlier(image.locks(), index) {
        require(other.name != record.name, Fault::SameAs(other_index))?;
    }
    Ok(())
}

impl PortRecord {
    /// Returns the words of 8 bytes for a message that waits. Requires: the check has passed, or bounds it.
    #[must_use]
    pub const fn words_of_message(&self) -> u32 {
        self.message_size
            .get()
            .div_ceil(8)
            .saturating_add(MESSAGE_HEADER_WORDS)
    }

    /// Returns the words of 8 bytes for all messages that wait.
    #[must_use]
    pub const fn words(&self) -> u32 {
        self.words_of_message().saturating_mul(self.depth.get())
    }
}
