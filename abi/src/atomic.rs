// SPDX-License-Identifier: Apache-2.0
//! 64-bit words that several contexts use, on every class.
//!
//! Where the CPU has 64-bit atomic accesses this is `core`'s own type. Armv7-M has none; but it has one pCPU,
//! and the hypervisor there never uses such a word in a context that interrupts another one (it runs with
//! interrupts masked, and what a partition's exception may interrupt is the partition). So two halves do. On
//! a microcontroller with two pCPUs a lock guards the halves.

#[cfg(target_has_atomic = "64")]
pub use core::sync::atomic::AtomicU64;

#[cfg(all(not(target_has_atomic = "64"), feature = "second-pcpu"))]
pub use guarded::AtomicU64;
#[cfg(all(not(target_has_atomic = "64"), not(feature = "second-pcpu")))]
pub use halves::AtomicU64;

#[cfg(all(not(target_has_atomic = "64"), feature = "second-pcpu"))]
mod guarded;
#[cfg(any(test, not(target_has_atomic = "64")))]
mod halves;

#[cfg(test)]
mod tests {
    use super::halves::AtomicU64;
    use core::sync::atomic::Ordering::Relaxed;

    #[test]
    fn halves_make_a_word() {
        let word = AtomicU64::new(0x1122_3344_5566_7788);
        assert_eq!(word.load(Relaxed), 0x1122_3344_5566_7788);
        assert_eq!(word.swap(u64::MAX - 1, Relaxed), 0x1122_3344_5566_7788);
        assert_eq!(word.fetch_and(0xFFFF_0000_FFFF_0000, Relaxed), u64::MAX - 1);
        assert_eq!(word.fetch_or(1 << 63 | 1, Relaxed), 0xFFFF_0000_FFFF_0000);
        assert_eq!(word.load(Relaxed), 0xFFFF_0000_FFFF_0001);
        word.store(5, Relaxed);
        assert_eq!(word.load(Relaxed), 5);
    }
}
