// SPDX-License-Identifier: Apache-2.0
//! A ring of bytes between one writer and one reader that never wait for each other.
//!
//! The writer is the holder of the console's writer lock. The reader is the holder of the transmitter.
//! Positions only grow (they wrap as 32-bit numbers). Only one side stores a position. That side stores it
//! after it has written or read the bytes that the position counts. So the other side sees either the old
//! ring or the new ring.

use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};

#[derive(Debug)]
struct Positions {
    /// The number of bytes ever put in.
    written: AtomicU32,
    /// The number of bytes ever taken out.
    read: AtomicU32,
    /// The number of line ends ever put in. This number is stored after `written`.
    lines_written: AtomicU32,
    /// The number of line ends ever taken out.
    lines_read: AtomicU32,
    /// The time at which the piece of a line at the end was begun, in microseconds.
    since: AtomicU32,
}

/// A ring with its memory.
#[derive(Debug)]
pub(super) struct Ring<const N: usize> {
    bytes: [AtomicU8; N],
    positions: Positions,
}

impl<const N: usize> Ring<N> {
    pub(super) const fn new() -> Self {
        const {
            assert!(
                N.is_power_of_two() && N <= 1 << 31,
                "positions wrap at a multiple of the size"
            )
        };
        Self {
            bytes: [const { AtomicU8::new(0) }; N],
            positions: Positions {
                written: AtomicU32::new(0),
                read: AtomicU32::new(0),
                lines_written: AtomicU32::new(0),
                lines_read: AtomicU32::new(0),
                since: AtomicU32::new(0),
            },
        }
    }

    pub(super) const fn view(&self) -> View<'_> {
        View {
            bytes: &self.bytes,
            positions: &self.positions,
        }
    }
}

/// A ring of any size.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'r> {
    bytes: &'r [AtomicU8],
    positions: &'r Positions,
}

impl View<'_> {
    /// Returns the number of bytes in the ring.
    pub(super) fn length(self) -> usize {
        let read = self.positions.read.load(Ordering::Acquire);
        self.positions.written.load(Ordering::Acquire).wrapping_sub(read) as usize
    }

    /// Returns the number of line ends in the ring.
    pub(super) fn lines(self) -> u32 {
        let written = self.positions.lines_written.load(Ordering::Acquire);
        let lines = written.wrapping_sub(self.positions.lines_read.load(Ordering::Relaxed));
        // The reader may have taken a line end that the writer has not counted yet.
        if lines > u32::MAX / 2 { 0 } else { lines }
    }

    /// Returns the time that the piece of a line at the end has been waiting.
    pub(super) fn age(self, now: u32) -> u32 {
        let age = now.wrapping_sub(self.positions.since.load(Ordering::Relaxed));
        // Another pCPU may have read the clock later than this one.
        if age > u32::MAX / 2 { 0 } else { age }
    }

    /// Puts in as many bytes as there is room for. Returns the number of these bytes. Only the writer calls
    /// this.
    pub(super) fn push(self, bytes: &[u8], now: u32) -> usize {
        let used = self.length();
        let room = self.bytes.len().saturating_sub(used);
        let bytes = bytes.get(..room).unwrap_or(bytes);
        let last = self.positions.written.load(Ordering::Relaxed).wrapping_sub(1);
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
        // No caller needs the age of a ring in which all lines are whole.
        if lines != 0 || used == 0 || self.at(last) == b'\n' {
            self.positions.since.store(now, Ordering::Relaxed);
        }
        self.append(bytes);
        let counted = self.positions.lines_written.load(Ordering::Relaxed);
        self.positions
            .lines_written
            .store(counted.wrapping_add(lines as u32), Ordering::Release);
        bytes.len()
    }

    /// Puts in bytes that there is room for. Only the writer calls this.
    #[inline(never)]
    fn append(self, bytes: &[u8]) {
        let start = self.positions.written.load(Ordering::Relaxed);
        store_in_ring(self.bytes, self.index(start), bytes);
        let end = start.wrapping_add(bytes.len() as u32);
        self.positions.written.store(end, Ordering::Release);
    }

    /// Takes up to `limit` bytes out, but none after a line end, and hands the bytes to `sink`. Returns the
    /// number of bytes and whether the last byte is a line end. Only the reader calls this.
    pub(super) fn take_line(self, limit: usize, mut sink: impl FnMut(u8)) -> (u32, bool) {
        let start = self.positions.read.load(Ordering::Relaxed);
        let available = self.positions.written.load(Ordering::Acquire).wrapping_sub(start);
        let limit = available.min(u32::try_from(limit).unwrap_or(u32::MAX));
        let (before, behind) = self.bytes.split_at_checked(self.index(start)).unwrap_or_default();
        let mut taken = 0_u32;
        let mut ended = false;
        for places in [behind, before] {
            let rest = limit.saturating_sub(taken) as usize;
            let rest = if ended { 0 } else { rest.min(places.len()) };
            for place in places.get(..rest).unwrap_or(&[]) {
                let byte = place.load(Ordering::Relaxed);
                sink(byte);
                taken = taken.wrapping_add(1);
                ended = byte == b'\n';
                if ended {
                    break;
                }
            }
        }
        if ended {
            let counted = self.positions.lines_read.load(Ordering::Relaxed);
            self.positions
                .lines_read
                .store(counted.wrapping_add(1), Ordering::Relaxed);
        }
        self.positions
            .read
            .store(start.wrapping_add(taken), Ordering::Release);
        (taken, ended)
    }

    fn at(self, position: u32) -> u8 {
        self.bytes
            .get(self.index(position))
            .map_or(0, |place| place.load(Ordering::Relaxed))
    }

    const fn index(self, position: u32) -> usize {
        position as usize & self.bytes.len().wrapping_sub(1)
    }
}

/// Stores `bytes` in a ring, from `start` on and at most once round. The bytes of a ring are atomics, because
/// that is Rust's word for memory that two CPUs touch. A relaxed access costs as much as a plain access.
fn store_in_ring(ring: &[AtomicU8], start: usize, bytes: &[u8]) {
    let (before, behind) = ring.split_at_checked(start).unwrap_or((&[], ring));
    let (first, rest) = bytes.split_at_checked(behind.len()).unwrap_or((bytes, &[]));
    for (places, bytes) in [(behind, first), (before, rest)] {
        for (place, byte) in places.iter().zip(bytes) {
            place.store(*byte, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn take(view: View<'_>, limit: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let (taken, ended) = view.take_line(limit, |byte| bytes.push(byte));
        assert_eq!(taken as usize, bytes.len());
        assert_eq!(ended, bytes.last() == Some(&b'\n'));
        bytes
    }

    #[test]
    fn takes_what_fits_and_gives_it_back_in_order() {
        let ring = Ring::<8>::new();
        let view = ring.view();
        assert_eq!(view.push(b"0123456789", 0), 8);
        assert_eq!(view.length(), 8);
        assert_eq!(view.push(b"x", 0), 0);
        assert_eq!(take(view, 1), b"0");
        assert_eq!(view.push(b"ab", 0), 1);
        assert_eq!(take(view, 100), b"1234567a");
        assert_eq!(view.length(), 0);
    }

    #[test]
    fn counts_line_ends_across_the_wrap_of_its_positions() {
        let ring = Ring::<8>::new();
        for position in [&ring.positions.written, &ring.positions.read] {
            position.store(u32::MAX - 2, Ordering::Relaxed);
        }
        for position in [&ring.positions.lines_written, &ring.positions.lines_read] {
            position.store(u32::MAX, Ordering::Relaxed);
        }
        let view = ring.view();
        assert_eq!(view.push(b"a\nb\nc", 0), 5);
        assert_eq!((view.length(), view.lines()), (5, 2));
        for (bytes, left) in [(&b"a\n"[..], 1), (b"b\n", 0), (b"c", 0), (b"", 0)] {
            assert_eq!(take(view, 100), bytes);
            assert_eq!(view.lines(), left);
        }
    }

    #[test]
    fn a_line_end_taken_before_it_was_counted_does_no_harm() {
        let ring = Ring::<8>::new();
        ring.positions.lines_read.store(1, Ordering::Relaxed);
        assert_eq!(ring.view().lines(), 0);
    }

    #[test]
    fn age_is_that_of_the_piece_at_the_end() {
        let ring = Ring::<64>::new();
        let view = ring.view();
        view.push(b"a", 10);
        view.push(b"b", 20);
        assert_eq!(view.age(110), 100);
        view.push(b"\n", 30);
        view.push(b"c", 40);
        assert_eq!(view.age(110), 70);
        assert_eq!(view.age(39), 0, "a clock that is read earlier");
        while !take(view, 100).is_empty() {}
        view.push(b"d", 50);
        assert_eq!(view.age(110), 60);
    }

    #[test]
    fn a_ring_is_filled_across_its_end_and_once_round() {
        let ring = [const { AtomicU8::new(b'-') }; 8];
        let text = || ring.each_ref().map(|place| place.load(Ordering::Relaxed));
        store_in_ring(&ring, 2, b"abc");
        assert_eq!(text(), *b"--abc---");
        store_in_ring(&ring, 6, b"1234");
        assert_eq!(text(), *b"34abc-12");
        store_in_ring(&ring, 8, b"x");
        assert_eq!(text(), *b"x4abc-12", "the end is the beginning");
        store_in_ring(&ring, 7, b"0123456789");
        assert_eq!(text(), *b"12345670");
    }
}
