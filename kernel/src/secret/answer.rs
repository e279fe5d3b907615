// SPDX-License-Identifier: Apache-2.0
//! Answers calls about secrets and measurements.

use super::command::SecretCommand;
use super::words;
use crate::dispatch::Pcpu;
use bulkhead_abi::Error;
use bulkhead_abi::measurement::Measurement;
use bulkhead_arch_api::{Arch, Drivers, PartitionId};
use bulkhead_sched::PcpuPolicy;

impl<A: Arch, D: Drivers, P: PcpuPolicy> Pcpu<'_, '_, A, D, P> {
    /// Carries out a command about a secret, or about a measurement.
    #[inline(never)]
    pub(crate) fn secret(
        &mut self,
        caller: PartitionId,
        object: PartitionId,
        command: SecretCommand,
    ) -> Result<[u64; 4], Error> {
        let shared = self.shared;
        match command {
            SecretCommand::Take(index) => {
                // Nothing is derived from the capability, so it is gone at once. If another vCPU of the
                // partition has been faster, there is nothing to revoke.
                shared.capabilities.revoke(caller, index, true)?;
                Ok(shared.secrets.of(object).own.get())
            }
            SecretCommand::Measure(Measurement::Partition) => Ok(shared.secrets.of(object).measurement.get()),
            SecretCommand::Measure(Measurement::System) => Ok(words(self.system.image.system_digest())),
            SecretCommand::Measure(Measurement::ClassBinary) => {
                Ok(words(self.system.image.class_binary_digest()))
            }
        }
    }
}
