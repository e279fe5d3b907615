// SPDX-License-Identifier: Apache-2.0
//! Memory that others change: loads and stores by bus address.
//!
//! Partition memory and translation tables are read and written word by word with volatile accesses.
//! A partition may store to the same bytes at the same moment; it can then make us read any value, but
//! no more: no Rust reference ever exists, so the compiler assumes nothing about them.

const WORD: usize = size_of::<u64>();

/// Copies from memory into `bytes`.
///
/// # Safety
/// `bytes.len()` bytes from `source` on are mapped readable memory, and no Rust reference to them is
/// used for writing meanwhile.
pub unsafe fn read(source: usize, bytes: &mut [u8]) {
    if source.is_multiple_of(WORD) && (bytes.as_ptr() as usize).is_multiple_of(WORD) {
        let (words, rest) = bytes.as_chunks_mut::<WORD>();
        let done = words.len() * WORD;
        for (i, word) in words.iter_mut().enumerate() {
            let from = (source + i * WORD) as *const u64;
            // SAFETY: inside the caller's range; aligned by the test above.
            *word = unsafe { from.read_volatile() }.to_ne_bytes();
        }
        // SAFETY: the rest of the caller's range.
        unsafe { read_bytes(source + done, rest) }
    } else {
        // SAFETY: the caller's range.
        unsafe { read_bytes(source, bytes) }
    }
}

/// # Safety
/// As for [`read`].
unsafe fn read_bytes(source: usize, bytes: &mut [u8]) {
    for (i, byte) in bytes.iter_mut().enumerate() {
        let from = (source + i) as *const u8;
        // SAFETY: inside the caller's range.
        *byte = unsafe { from.read_volatile() };
    }
}

/// Copies `bytes` to memory.
///
/// # Safety
/// `bytes.len()` bytes from `destination` on are mapped writable memory to which no Rust reference exists.
pub unsafe fn write(destination: usize, bytes: &[u8]) {
    if destination.is_multiple_of(WORD) && (bytes.as_ptr() as usize).is_multiple_of(WORD) {
        let (words, rest) = bytes.as_chunks::<WORD>();
        let done = words.len() * WORD;
        let (groups, single) = words.as_chunks::<8>();
        for (i, group) in groups.iter().enumerate() {
            let to = destination + i * size_of_val(group);
            let put = |index: usize, word: &[u8; WORD]| {
                let to = (to + index * WORD) as *mut u64;
                // SAFETY: inside the caller's range; aligned by the test above.
                unsafe { to.write_volatile(u64::from_ne_bytes(*word)) }
            };
            // One after the other without a loop: payloads of tens of megabytes go through here.
            let [a, b, c, d, e, f, g, h] = group;
            put(0, a);
            put(1, b);
            put(2, c);
            put(3, d);
            put(4, e);
            put(5, f);
            put(6, g);
            put(7, h);
        }
        // SAFETY: the words after the last group.
        unsafe { write_words(destination + done - single.len() * WORD, single) }
        // SAFETY: the rest of the caller's range.
        unsafe { write_bytes(destination + done, rest) }
    } else {
        // SAFETY: the caller's range.
        unsafe { write_bytes(destination, bytes) }
    }
}

/// # Safety
/// As for [`write`]; `destination` is a multiple of 8.
#[inline]
unsafe fn write_words(destination: usize, words: &[[u8; WORD]]) {
    for (i, word) in words.iter().enumerate() {
        let to = (destination + i * WORD) as *mut u64;
        // SAFETY: inside the caller's range; aligned by the caller.
        unsafe { to.write_volatile(u64::from_ne_bytes(*word)) }
    }
}

/// # Safety
/// As for [`write`].
unsafe fn write_bytes(destination: usize, bytes: &[u8]) {
    for (i, byte) in bytes.iter().enumerate() {
        let to = (destination + i) as *mut u8;
        // SAFETY: inside the caller's range.
        unsafe { to.write_volatile(*byte) }
    }
}

/// Reads one word.
///
/// # Safety
/// `source` is a multiple of 8 and the word there is mapped readable memory.
#[must_use]
pub unsafe fn read_word(source: usize) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { (source as *const u64).read_volatile() }
}

/// Writes one word.
///
/// # Safety
/// `destination` is a multiple of 8 and the word there is mapped writable memory to which no Rust
/// reference exists.
pub unsafe fn write_word(destination: usize, value: u64) {
    // SAFETY: the caller's promise.
    unsafe { (destination as *mut u64).write_volatile(value) }
}

/// Reads one word of 32 bits.
///
/// # Safety
/// `source` is a multiple of 4 and the word there is mapped readable memory.
#[inline]
#[must_use]
pub unsafe fn read_word32(source: usize) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { (source as *const u32).read_volatile() }
}

/// Writes one word of 32 bits.
///
/// # Safety
/// `destination` is a multiple of 4 and the word there is mapped writable memory to which no Rust reference
/// exists.
#[inline]
pub unsafe fn write_word32(destination: usize, value: u32) {
    // SAFETY: the caller's promise.
    unsafe { (destination as *mut u32).write_volatile(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_exact_at_every_alignment() {
        for offset in 0..9 {
            for length in [0, 1, 7, 8, 9, 16, 23] {
                let mut memory = [0u8; 64];
                let source: [u8; 32] = core::array::from_fn(|i| i as u8 + 1);
                let base = memory.as_mut_ptr() as usize;
                // SAFETY: the range is inside `memory`, which is not used by name meanwhile.
                unsafe { write(base + offset, &source[..length]) }
                let mut back = [0u8; 32];
                // SAFETY: as above.
                unsafe { read(base + offset, &mut back[..length]) }
                assert_eq!(back[..length], source[..length]);
                assert_eq!(memory[offset + length], 0, "nothing beyond the end");
            }
        }
    }

    #[test]
    fn words() {
        let mut memory = [0u64; 2];
        let base = memory.as_mut_ptr() as usize;
        // SAFETY: inside the array.
        unsafe { write_word(base + 8, 7) }
        // SAFETY: inside the array.
        assert_eq!(unsafe { read_word(base + 8) }, 7);
        assert_eq!(memory, [0, 7]);
        // SAFETY: inside the array.
        unsafe { write_word32(base + 4, 9) }
        // SAFETY: inside the array.
        assert_eq!(unsafe { read_word32(base + 4) }, 9);
        assert_eq!(memory[1], 7);
    }
}
