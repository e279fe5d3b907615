// SPDX-License-Identifier: Apache-2.0
//! Secrets: what follows from the secret of the device, for each partition that the manifest gives one.
//!
//! The boot stage before the hypervisor leaves the secret of the device in the log area
//! (`bulkhead_abi::log::Header::handover`). The kernel takes it over before it does anything else, and leaves
//! zeros. At boot it derives the secret of each partition (`derive`), and forgets the rest. From then on a
//! secret is 32 bytes that one hypercall copies into registers of their owner, once in each life of the
//! partition. No key is used after boot.
//!
//! The secrets stay in the memory of the hypervisor, which no partition can have. A partition that starts
//! anew has its capability again, and takes the same secret.

pub(crate) mod command;
mod derive;

use crate::boot::BootError;
use crate::dispatch::Pcpu;
use crate::parts::{Part, SECRETS, decoded, entries};
use crate::shared::Shared;
use crate::system::System;
use crate::table::Table;
use bulkhead_abi::atomic::AtomicU64;
use bulkhead_abi::log::{HANDOVER_LEN, HANDOVER_MAGIC, SECRET_LEN};
use bulkhead_abi::measurement::Measurement;
use bulkhead_abi::{Error, ObjectKind};
use bulkhead_arch_api::{Arch, Drivers, MAX_PARTITIONS, PartitionId};
use bulkhead_image::Sha256;
use bulkhead_image::layout::CapabilityRecord;
use bulkhead_sched::PcpuPolicy;
use command::SecretCommand;
use core::hint::black_box;
use core::sync::atomic::Ordering;
use derive::{Layers, Owner};
use spin::RelaxStrategy;

/// The secret of the device, as it was handed over.
pub(crate) type Device = [u8; SECRET_LEN];

/// The reason why a system with secrets does not start: no device secret was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoDeviceSecret;

/// 32 bytes, as the results of a hypercall.
#[derive(Debug)]
struct Words([AtomicU64; 4]);

impl Words {
    const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; 4])
    }

    fn set(&self, bytes: &[u8; 32]) {
        for (place, word) in self.0.iter().zip(words(bytes)) {
            place.store(word, Ordering::Relaxed);
        }
    }

    fn get(&self) -> [u64; 4] {
        let [a, b, c, d] = &self.0;
        [a, b, c, d].map(|word| word.load(Ordering::Relaxed))
    }
}

/// Returns 32 bytes as the results of a hypercall.
fn words(bytes: &[u8; 32]) -> [u64; 4] {
    let mut words = [0; 4];
    let (chunks, _) = bytes.as_chunks::<8>();
    for (word, chunk) in words.iter_mut().zip(chunks) {
        *word = u64::from_le_bytes(*chunk);
    }
    words
}

/// The secret of a partition, and the measurement of what the partition is started with.
#[derive(Debug)]
pub(crate) struct Secret {
    own: Words,
    measurement: Words,
}

/// The secrets of all partitions. They are constant after boot.
pub(crate) type Secrets = Table<PartitionId, Secret, { entries(Part::Secrets, MAX_PARTITIONS) }>;

/// Makes the secrets before boot.
pub(crate) const fn none() -> Secrets {
    Table::new(
        [const {
            Secret {
                own: Words::new(),
                measurement: Words::new(),
            }
        }; entries(Part::Secrets, MAX_PARTITIONS)],
    )
}

/// Takes the secret of the device over, if one was handed over, and leaves zeros in its place. The log is
/// opened afterwards, which writes the zeros back to the memory itself, out of any cache.
#[inline(always)]
pub(crate) fn take_over<A: Arch>(machine: &A) -> Option<Device> {
    if !SECRETS {
        return None;
    }
    let mut bytes = [0; HANDOVER_LEN];
    let (words, _) = bytes.as_chunks_mut::<4>();
    for (word, place) in words.iter_mut().zip(&machine.log_area().header.handover) {
        *word = place.swap(0, Ordering::Relaxed).to_ne_bytes();
    }
    let found = bytes.strip_prefix(&HANDOVER_MAGIC);
    let device = found.and_then(|secret| secret.first_chunk().copied());
    forget(&mut bytes);
    device.filter(|device| device.iter().any(|byte| *byte != 0))
}

/// Overwrites bytes that nobody needs any more. The compiler cannot tell that nobody reads the zeros. A copy
/// that the compiler has made elsewhere on the stack stays until the stack is used again.
fn forget<const LENGTH: usize>(bytes: &mut [u8; LENGTH]) {
    *bytes = [0; LENGTH];
    black_box(bytes);
}

/// Measures all partitions, and derives the secrets of those that have one.
///
/// # Errors
/// [`BootError::NoDeviceSecret`] if a partition has a secret, and no device secret was handed over.
#[inline(always)]
pub(crate) fn hand_out<R: RelaxStrategy, S: Sha256>(
    shared: &Shared<'_, R>,
    system: &System<'_>,
    device: Option<Device>,
    digest: &S,
) -> Result<(), BootError> {
    // A build without the part has no such error, and nothing to do.
    decoded::<SECRETS, _>(|| Ok(NoDeviceSecret)).map_or(Ok(()), |none| {
        let is_complete = derive_all(shared, system, device, digest);
        is_complete.then_some(()).ok_or(BootError::NoDeviceSecret(none))
    })
}

/// Measures and derives. Returns false if a secret cannot be derived, because there is no device secret. The
/// function is not inlined, so that its stack is free again afterwards.
#[inline(never)]
fn derive_all<R: RelaxStrategy, S: Sha256>(
    shared: &Shared<'_, R>,
    system: &System<'_>,
    mut device: Option<Device>,
    digest: &S,
) -> bool {
    let image = &system.image;
    let (class_binary, tables) = (image.class_binary_digest(), image.system_digest());
    let mut layers = device.map(|device| Layers::of(digest, &device, class_binary, tables));
    device.iter_mut().for_each(forget);
    let mut is_complete = true;
    for (record, partition) in image.partitions().iter().zip(system.partitions()) {
        let number = u32::from(partition.0);
        let measurement = image.measure(number, digest);
        let place = shared.secrets.of(partition);
        place.measurement.set(&measurement);
        let is_own = |capability: &&CapabilityRecord| {
            capability.kind.get() == ObjectKind::Secret as u32 && capability.partition.get() == number
        };
        let Some(capability) = image.capabilities().iter().find(is_own) else {
            continue;
        };
        is_complete &= layers.is_some();
        if let Some(layers) = &layers {
            let owner = Owner {
                uuid: &record.uuid,
                measurement: &measurement,
            };
            let mut secret = layers.secret(digest, capability.detail.get(), &owner);
            place.own.set(&secret);
            forget(&mut secret);
        }
    }
    layers.iter_mut().for_each(Layers::forget);
    is_complete
}

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
