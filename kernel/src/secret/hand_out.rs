// SPDX-License-Identifier: Apache-2.0
//! The way of the device secret at boot: it is taken over, the secrets of partitions are derived, and it is
//! forgotten.

use super::derive::{Layers, Owner};
use super::{NoDeviceSecret, forget};
use crate::parts::{If, SECRETS, decoded};
use crate::shared::Shared;
use crate::system::System;
use bulkhead_abi::ObjectKind;
use bulkhead_abi::log::{HANDOVER_LEN, HANDOVER_MAGIC, SECRET_LEN};
use bulkhead_arch_api::Arch;
use bulkhead_image::Sha256;
use bulkhead_image::layout::CapabilityRecord;
use core::sync::atomic::Ordering;
use spin::RelaxStrategy;

/// The secret of the device, as it was handed over.
pub(crate) type Device = [u8; SECRET_LEN];

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

/// Measures all partitions, and derives the secrets of those that have one.
///
/// # Errors
/// [`NoDeviceSecret`] if a partition has a secret, and no device secret was handed over.
#[inline(always)]
pub(crate) fn hand_out<R: RelaxStrategy, S: Sha256>(
    shared: &Shared<'_, R>,
    system: &System<'_>,
    device: Option<Device>,
    digest: &S,
) -> Result<(), If<SECRETS, NoDeviceSecret>> {
    // A build without the part has no such error, and nothing to do.
    decoded::<SECRETS, _>(|| Ok(NoDeviceSecret)).map_or(Ok(()), |none| {
        let is_complete = derive_all(shared, system, device, digest);
        is_complete.then_some(()).ok_or(none)
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
