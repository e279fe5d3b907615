// SPDX-License-Identifier: Apache-2.0
//! The commands about secrets.

use bulkhead_abi::Error;
use bulkhead_abi::hypercall::SecretOperation;
use bulkhead_abi::measurement::Measurement;

/// A command about the secret or the measurement of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretCommand {
    /// Return the secret, and take the capability with this index away.
    Take(u64),
    /// Return a measurement.
    Measure(Measurement),
}

/// Returns the command that a hypercall is. `index` is the capability, `what` the argument after it.
///
/// # Errors
/// [`Error::InvalidArgument`] if there is no such measurement.
pub(crate) fn decode(operation: SecretOperation, index: u64, what: u64) -> Result<SecretCommand, Error> {
    match operation {
        SecretOperation::SecretTake => Ok(SecretCommand::Take(index)),
        SecretOperation::PartitionMeasure => Measurement::from_number(what)
            .map(SecretCommand::Measure)
            .ok_or(Error::InvalidArgument),
    }
}
