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

mod answer;
pub(crate) mod command;
mod derive;
pub(crate) mod hand_out;

use crate::parts::{Part, SECRETS, entries};
use crate::table::Table;
use bulkhead_abi::atomic::AtomicU64;
use bulkhead_arch_api::{MAX_PARTITIONS, PartitionId};
use core::hint::black_box;
use core::sync::atomic::Ordering;

/// The reason why a system with secrets does not start: no device secret was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoDeviceSecret;

/// Words of 32 bytes. A build without the part keeps none: its table of one unused entry takes no room.
const WORDS: usize = if SECRETS { 4 } else { 0 };

/// 32 bytes, as the results of a hypercall.
#[derive(Debug)]
struct Words([AtomicU64; WORDS]);

impl Words {
    const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; WORDS])
    }

    fn set(&self, bytes: &[u8; 32]) {
        for (place, word) in self.0.iter().zip(words(bytes)) {
            place.store(word, Ordering::Relaxed);
        }
    }

    fn get(&self) -> [u64; 4] {
        let mut words = [0; 4];
        for (word, place) in words.iter_mut().zip(&self.0) {
            *word = place.load(Ordering::Relaxed);
        }
        words
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

/// Overwrites bytes that are not needed any more. The compiler cannot tell that the zeros are not read. A
/// copy that the compiler has made elsewhere on the stack stays until the stack is used again.
fn forget<const LENGTH: usize>(bytes: &mut [u8; LENGTH]) {
    *bytes = [0; LENGTH];
    black_box(bytes);
}
