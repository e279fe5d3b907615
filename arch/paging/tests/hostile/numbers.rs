// SPDX-License-Identifier: Apache-2.0
//! The numbers by which TLBs keep spaces apart (VMID, ASID), and when the entries of one are forgotten. A TLB
//! here keeps all that it ever got, until it is told to forget.
//!
//! The two rules are in `Machine::forget_sibling` and `Machine::reset` (class `aarch64`), and in
//! `Context::blank` and `Machine::load_rare` (class `x86_64`). They are written down once more here, because
//! the backends have them between instructions of their CPUs.

use proptest::prelude::*;
use std::collections::BTreeSet;

const PCPUS: usize = 2;
/// vCPUs: two of each partition, one after the other.
const VCPUS: usize = 8;
/// No index of a vCPU.
const NONE: usize = usize::MAX;

/// Returns the pCPU that a vCPU is bound to: both vCPUs of the first two partitions share one.
fn pcpu_of(vcpu: usize) -> usize {
    match vcpu {
        0..4 => 0,
        _ => vcpu % PCPUS,
    }
}

/// A rule for the numbers.
trait Numbers {
    /// Returns the number of a vCPU.
    fn number(&self, vcpu: usize) -> usize;
    /// Tells whether the entries of the number are forgotten when the vCPU comes to its pCPU.
    fn forgets(&mut self, vcpu: usize) -> bool;
    /// Notes that the vCPU starts anew.
    fn reset(&mut self, vcpu: usize);
}

/// Class `aarch64`: a VMID for each partition.
struct ByPartition {
    /// The vCPU of each partition that was last on each pCPU.
    last: [[usize; VCPUS / 2]; PCPUS],
    has_siblings: bool,
    resets: bool,
}

impl Numbers for ByPartition {
    fn number(&self, vcpu: usize) -> usize {
        vcpu / 2 + 1
    }

    fn forgets(&mut self, vcpu: usize) -> bool {
        let last = &mut self.last[pcpu_of(vcpu)][vcpu / 2];
        let is_other = *last != vcpu % 2;
        *last = vcpu % 2;
        is_other && self.has_siblings
    }

    fn reset(&mut self, vcpu: usize) {
        if self.resets {
            self.last[pcpu_of(vcpu)][vcpu / 2] = NONE;
        }
    }
}

/// Class `x86_64`: an ASID for each vCPU, as far as they go. The other vCPUs share the last one.
struct ByVcpu {
    /// The number of identifiers of the processor.
    spaces: usize,
    /// The vCPUs that have started anew since they ran.
    anew: BTreeSet<usize>,
    shares: bool,
}

impl Numbers for ByVcpu {
    fn number(&self, vcpu: usize) -> usize {
        (vcpu + 1).min(self.spaces - 1)
    }

    fn forgets(&mut self, vcpu: usize) -> bool {
        let is_shared = vcpu + 1 >= self.spaces - 1;
        self.anew.remove(&vcpu) || is_shared && self.shares
    }

    fn reset(&mut self, vcpu: usize) {
        self.anew.insert(vcpu);
    }
}

/// A step of a run: a vCPU comes to its pCPU, or starts anew if the second is true.
type Step = (usize, bool);

/// Tells whether no vCPU ever finds an entry of another one, or of an earlier life.
fn is_safe(numbers: &mut dyn Numbers, steps: &[Step]) -> bool {
    let mut buffers: [BTreeSet<(usize, (usize, usize))>; PCPUS] = Default::default();
    let mut lives = [0; VCPUS];
    (0..VCPUS).for_each(|vcpu| numbers.reset(vcpu));
    steps.iter().all(|(vcpu, is_anew)| {
        if *is_anew {
            lives[*vcpu] += 1;
            numbers.reset(*vcpu);
            return true;
        }
        let (number, owner) = (numbers.number(*vcpu), (*vcpu, lives[*vcpu]));
        let buffer = &mut buffers[pcpu_of(*vcpu)];
        if numbers.forgets(*vcpu) {
            buffer.retain(|(other, _)| *other != number);
        }
        buffer.insert((number, owner));
        buffer.iter().all(|(other, of)| *other != number || *of == owner)
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec((0..VCPUS, proptest::bool::weighted(0.2)), 1..40)
}

fn by_partition() -> ByPartition {
    ByPartition {
        last: [[NONE; VCPUS / 2]; PCPUS],
        has_siblings: true,
        resets: true,
    }
}

fn by_vcpu(spaces: usize) -> ByVcpu {
    ByVcpu {
        spaces,
        anew: BTreeSet::new(),
        shares: true,
    }
}

proptest! {
    #[test]
    fn no_vcpu_uses_the_entries_of_another(steps in steps(), spaces in 3_usize..12) {
        prop_assert!(is_safe(&mut by_partition(), &steps));
        prop_assert!(is_safe(&mut by_vcpu(spaces), &steps));
    }
}

#[test]
fn a_number_that_is_used_anew_is_found() {
    const SIBLINGS: [Step; 3] = [(0, false), (1, false), (0, false)];
    const LIVES: [Step; 3] = [(0, false), (0, true), (0, false)];
    const SHARERS: [Step; 3] = [(6, false), (4, false), (6, false)];
    let mut without = by_partition();
    without.has_siblings = false;
    assert!(!is_safe(&mut without, &SIBLINGS));
    let mut without = by_partition();
    without.resets = false;
    assert!(!is_safe(&mut without, &LIVES));
    let mut without = by_vcpu(3);
    without.shares = false;
    assert!(!is_safe(&mut without, &SHARERS));
}
