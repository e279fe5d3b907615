// SPDX-License-Identifier: Apache-2.0
//! The secret of a partition, and the measurements of what runs.

use bulkhead_abi::measurement::Measurement;
use bulkhead_abi::{Error, Operation};

use crate::hypercall::{Handle, call};

/// Takes the secret of the caller. The capability is gone afterwards, until the partition starts anew.
///
/// # Errors
/// `NoCapability` if the secret was taken in this life; else as all calls.
pub fn take(secret: Handle) -> Result<[u8; 32], Error> {
    call(Operation::SecretTake, [u64::from(secret.0), 0, 0, 0, 0, 0]).map(bytes)
}

/// Returns a measurement: of what a partition is started with, or of what runs it.
///
/// # Errors
/// As all calls.
pub fn measure(partition: Handle, what: Measurement) -> Result<[u8; 32], Error> {
    let arguments = [u64::from(partition.0), what as u64, 0, 0, 0, 0];
    call(Operation::PartitionMeasure, arguments).map(bytes)
}

/// Returns the bytes of four results.
fn bytes(words: [u64; 4]) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (chunk, word) in bytes.chunks_exact_mut(8).zip(words) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}
