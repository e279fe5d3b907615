// SPDX-License-Identifier: Apache-2.0
//! The owner of a pCPU's predictions of branches, which a partition must not make for another one
//! (CVE-2017-5715).

use bulkhead_arch_api::PartitionId;

/// The owner of the predictions of a pCPU.
#[derive(Clone, Copy, Debug)]
pub struct Predictions {
    /// The partition that ran last, if the CPU needs a barrier between partitions.
    taught: Option<PartitionId>,
}

impl Predictions {
    /// The predictions of a CPU that was not asked yet.
    pub const UNKNOWN: Self = Self::new(false);

    /// Makes the predictions of a CPU that needs a barrier or not. No partition has run there.
    #[must_use]
    pub const fn new(needs_barrier: bool) -> Self {
        let taught = if needs_barrier {
            Some(PartitionId(u8::MAX))
        } else {
            None
        };
        Self { taught }
    }

    /// Tells whether the CPU needs a barrier.
    #[must_use]
    pub const fn need_barrier(&self) -> bool {
        self.taught.is_some()
    }

    /// Has the CPU forget them by its `barrier` if another partition has taught them.
    pub fn belong_to(&mut self, partition: PartitionId, barrier: impl FnOnce()) {
        if let Some(taught) = &mut self.taught
            && *taught != partition
        {
            *taught = partition;
            barrier();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_partition_on_a_cpu_that_needs_it_comes_after_a_barrier() {
        let barriers = |mut predictions: Predictions| {
            let mut count = 0;
            for partition in [0, 0, 3, 3, 0] {
                predictions.belong_to(PartitionId(partition), || count += 1);
            }
            count
        };
        assert_eq!(barriers(Predictions::new(true)), 3);
        assert_eq!(barriers(Predictions::UNKNOWN), 0);
    }
}
