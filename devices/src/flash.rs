// SPDX-License-Identifier: Apache-2.0
//! A bank of parallel NOR flash with the Intel command set (CFI 01), as QEMU's `virt` board has two: two
//! chips of 16 bits side by side on a bus of 32 bits, sectors of 256 KiB.
//!
//! Sources: JEDEC JEP137 (vendor command set 1), JESD68.01 (the query structure), Intel StrataFlash P30
//! datasheet, order number 306666 (command codes, status register), QEMU 7.2 hw/block/pflash_cfi01.c (the
//! identification and the query of the board's own banks).
//!
//! Both chips always get the same command, so the bank is one state machine. The bytes themselves are not
//! here: a bank in *array mode* is memory that the guest reads without the device. Every store comes here,
//! and every load in another mode. The device answers with the [`Work`] that its owner has to do with the
//! bytes.
//!
//! An erased sector is work of many steps. The guest waits for it by reading the status, as with a chip. Each
//! read of the status is answered `busy` and leads to one step, so the guest pays for its own erasure and no
//! step takes long. Time is not modelled otherwise: everything else is done when the next access comes.

/// Bytes of a sector: 128 KiB of each chip.
pub const SECTOR: u32 = 256 * 1024;
/// Bytes of the write buffer: 64 of each chip (P30 datasheet, "Buffered Programming").
pub const BUFFER: usize = 128;
/// Bytes that one step of an erasure erases.
pub const ERASE_STEP: u32 = 4096;

/// Status register (P30 datasheet, "Status Register Description"): the chip is ready.
const READY: u8 = 1 << 7;
/// The erasure has failed; with [`PROGRAM_FAILED`], the sequence of commands was wrong.
const ERASE_FAILED: u8 = 1 << 5;
/// Programming has failed.
const PROGRAM_FAILED: u8 = 1 << 4;

/// The state between two accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Loads read the bytes.
    Array,
    /// Loads read the status.
    Status,
    /// Loads read the identification.
    Identification,
    /// Loads read the query structure.
    Query,
    /// The next store is the data to program.
    Program,
    /// The next store confirms the erasure.
    Erase,
    /// The next store says what is to be locked or unlocked. Nothing can be locked.
    Lock,
    /// The next store is the number of words for the buffer, less one.
    Count,
    /// So many stores to the buffer follow.
    Fill(u8),
    /// The next store confirms programming from the buffer.
    Confirm,
    /// The sector is being erased; so many bytes from its start are done.
    Erasing(u32),
}

/// Work with the bytes of the bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// None.
    Nothing,
    /// Clear the bits that are 0 in [`Bank::data`] in the bytes from `offset` on, as many as there are.
    Program {
        /// The first byte in the bank.
        offset: u32,
    },
    /// Set all bits of these bytes.
    Erase {
        /// The first byte in the bank.
        offset: u32,
        /// The number of bytes.
        length: u32,
    },
}

/// The answer to a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// The bytes of the bank.
    Array,
    /// This value, and work.
    Value(u64, Work),
}

/// A bank.
#[derive(Clone, Debug)]
pub struct Bank {
    mode: Mode,
    status: u8,
    /// The sector of the erasure, or the place of the write buffer.
    at: u32,
    /// The number of bytes of the buffer that are used.
    used: u8,
    buffer: [u8; BUFFER],
}

impl Default for Bank {
    fn default() -> Self {
        Self::new()
    }
}

impl Bank {
    /// Returns the state after a reset.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            mode: Mode::Array,
            status: READY,
            at: 0,
            used: 0,
            buffer: [0xFF; BUFFER],
        }
    }

    /// Resets the bank. An erasure that is under way ends where it is.
    pub fn reset(&mut self) {
        *self = Self::new();
    }

    /// Tells whether loads read the bytes of the bank.
    #[must_use]
    pub const fn is_array(&self) -> bool {
        matches!(self.mode, Mode::Array)
    }

    /// Returns the bytes of [`Work::Program`].
    #[must_use]
    pub fn data(&self) -> &[u8] {
        self.buffer.get(..usize::from(self.used)).unwrap_or(&[])
    }

    /// Answers a load of `size` bytes at `offset` of a bank of `length` bytes.
    pub fn load(&mut self, offset: u64, size: u8, length: u32) -> Loaded {
        let (value, work) = match self.mode {
            Mode::Array => return Loaded::Array,
            Mode::Identification => (identification(offset), Work::Nothing),
            Mode::Query => (query(offset, length), Work::Nothing),
            Mode::Erasing(done) => (0, self.erase_on(done)),
            _ => (self.status, Work::Nothing),
        };
        Loaded::Value(on_bus(value, offset, size), work)
    }

    /// Takes a store of `size` bytes at `offset` of a bank of `length` bytes. Offset and size lie in it.
    pub fn store(&mut self, offset: u64, size: u8, value: u64, length: u32) -> Work {
        let command = value as u8;
        let offset = u32::try_from(offset).unwrap_or(0);
        match self.mode {
            Mode::Program => return self.program(offset, size, value),
            Mode::Erase => self.confirm_erase(offset, command, length),
            Mode::Lock => self.lock(command),
            Mode::Count => self.count(offset, command),
            Mode::Fill(left) => self.fill(offset, size, value, left),
            Mode::Confirm => return self.confirm_buffer(command),
            // A chip that erases takes no other command than to suspend, which this one does not know.
            Mode::Erasing(_) => {}
            Mode::Array | Mode::Status | Mode::Identification | Mode::Query => self.command(command),
        }
        Work::Nothing
    }

    fn command(&mut self, command: u8) {
        self.mode = match command {
            0x10 | 0x40 => Mode::Program,
            0x20 => Mode::Erase,
            0x50 => {
                self.status = READY;
                Mode::Array
            }
            0x60 => Mode::Lock,
            0x70 => Mode::Status,
            0x90 => Mode::Identification,
            0x98 => Mode::Query,
            0xE8 => Mode::Count,
            // Read array (0xFF), the reset of another command set (0xF0), and unknown commands.
            _ => Mode::Array,
        };
    }

    fn program(&mut self, offset: u32, size: u8, value: u64) -> Work {
        self.used = 0;
        self.at = offset;
        self.put(0, size, value);
        self.mode = Mode::Status;
        Work::Program { offset }
    }

    fn confirm_erase(&mut self, offset: u32, command: u8, length: u32) {
        let sector = offset & !SECTOR.wrapping_sub(1);
        if command == 0xD0 && sector.saturating_add(SECTOR) <= length {
            self.at = sector;
            self.mode = Mode::Erasing(0);
        } else {
            self.fail();
        }
    }

    /// Returns the next step of an erasure of which `done` bytes are done.
    fn erase_on(&mut self, done: u32) -> Work {
        let next = done.saturating_add(ERASE_STEP);
        self.mode = if next >= SECTOR {
            Mode::Status
        } else {
            Mode::Erasing(next)
        };
        Work::Erase {
            offset: self.at.saturating_add(done),
            length: ERASE_STEP,
        }
    }

    /// Takes the second command of locking. It succeeds: no sector is ever locked.
    const fn lock(&mut self, command: u8) {
        match command {
            0x01 | 0xD0 | 0x2F => self.mode = Mode::Status,
            0xFF => self.mode = Mode::Array,
            _ => self.fail(),
        }
    }

    /// Takes the number of words of a chip, less one, that go to the buffer at `offset`.
    fn count(&mut self, offset: u32, words: u8) {
        let bytes = usize::from(words).saturating_add(1).saturating_mul(4);
        if bytes > BUFFER {
            return self.fail();
        }
        self.at = offset & !(BUFFER as u32).wrapping_sub(1);
        self.used = 0;
        self.buffer = [0xFF; BUFFER];
        self.mode = Mode::Fill(words);
    }

    fn fill(&mut self, offset: u32, size: u8, value: u64, left: u8) {
        let place = offset.wrapping_sub(self.at) as usize;
        if place.saturating_add(usize::from(size)) > BUFFER {
            return self.fail();
        }
        self.put(place, size, value);
        self.mode = match left.checked_sub(1) {
            Some(left) => Mode::Fill(left),
            None => Mode::Confirm,
        };
    }

    fn confirm_buffer(&mut self, command: u8) -> Work {
        if command != 0xD0 {
            self.fail();
            return Work::Nothing;
        }
        self.mode = Mode::Status;
        Work::Program { offset: self.at }
    }

    /// Puts a value into the buffer.
    fn put(&mut self, place: usize, size: u8, value: u64) {
        let end = place.saturating_add(usize::from(size)).min(BUFFER);
        let bytes = self.buffer.get_mut(place..end).unwrap_or_default();
        for (to, from) in bytes.iter_mut().zip(value.to_le_bytes()) {
            *to = from;
        }
        self.used = self.used.max(end as u8);
    }

    /// Reports a wrong sequence of commands.
    const fn fail(&mut self) {
        self.status |= ERASE_FAILED | PROGRAM_FAILED;
        self.mode = Mode::Status;
    }
}

/// Returns what both chips put on the bus, each in the low byte of its half: `size` bytes from `offset` on.
const fn on_bus(value: u8, offset: u64, size: u8) -> u64 {
    let word = value as u64 | (value as u64) << 16;
    let both = word | word << 32;
    let from = both >> ((offset & 3) << 3);
    match size {
        1 => from & 0xFF,
        2 => from & 0xFFFF,
        4 => from & 0xFFFF_FFFF,
        _ => from,
    }
}

/// Returns the identification at `offset`: manufacturer 0x89, device 0x18, and that the sector is not locked.
const fn identification(offset: u64) -> u8 {
    match offset >> 2 & 0xFF {
        0 => 0x89,
        1 => 0x18,
        _ => 0,
    }
}

/// Returns the byte of the query structure at `offset`, for a bank of `length` bytes (JESD68.01, 2).
fn query(offset: u64, length: u32) -> u8 {
    let chip = length >> 1;
    let last = (length / SECTOR).saturating_sub(1);
    let [size_low, size_high, ..] = (SECTOR >> 9).to_le_bytes();
    match offset >> 2 & 0xFF {
        0x10 => b'Q',
        0x11 => b'R',
        0x12 => b'Y',
        // Command set 1, with its table at 0x31; no other command set.
        0x13 => 0x01,
        0x15 => 0x31,
        // Supply from 4.5 to 5.5 V.
        0x1B => 0x45,
        0x1C => 0x55,
        // Times of a word, a buffer and a sector: powers of two of 1 us and 1 ms, then their maxima.
        0x1F | 0x20 => 0x07,
        0x21 => 0x0A,
        0x23..=0x25 => 0x04,
        // Bytes of the chip, as a power of two.
        0x27 => chip.trailing_zeros() as u8,
        // Width of 8 and 16 bits.
        0x28 => 0x02,
        // Bytes of the buffer of the chip, as a power of two.
        0x2A => (BUFFER / 2).trailing_zeros() as u8,
        // One region: sectors less one, then bytes of the chip's sector in units of 256.
        0x2C => 1,
        0x2D => last as u8,
        0x2E => (last >> 8) as u8,
        0x2F => size_low,
        0x30 => size_high,
        0x31 => b'P',
        0x32 => b'R',
        0x33 => b'I',
        0x34 => b'1',
        0x35 => b'0',
        // One field of protection registers.
        0x3F => 0x01,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    const LENGTH: u32 = 2 << 20;

    /// A bank with its bytes.
    struct Flash {
        bank: Bank,
        bytes: Vec<u8>,
    }

    impl Flash {
        fn new() -> Self {
            Self {
                bank: Bank::new(),
                bytes: vec![0xFF; LENGTH as usize],
            }
        }

        fn work(&mut self, work: Work) {
            match work {
                Work::Nothing => {}
                Work::Program { offset } => {
                    for (to, from) in self.bytes[offset as usize..].iter_mut().zip(self.bank.data()) {
                        *to &= from;
                    }
                }
                Work::Erase { offset, length } => self.bytes[offset as usize..][..length as usize].fill(0xFF),
            }
        }

        fn store(&mut self, offset: u64, value: u64) {
            let work = self.bank.store(offset, 4, value, LENGTH);
            self.work(work);
        }

        fn load(&mut self, offset: u64) -> u64 {
            match self.bank.load(offset, 4, LENGTH) {
                Loaded::Array => {
                    let bytes = self.bytes[offset as usize..][..4].try_into().unwrap();
                    u64::from(u32::from_le_bytes(bytes))
                }
                Loaded::Value(value, work) => {
                    self.work(work);
                    value
                }
            }
        }
    }

    #[test]
    fn a_word_is_programmed_and_only_clears_bits() {
        let mut flash = Flash::new();
        for (data, expected) in [(0x1234_5678, 0x1234_5678), (0xFFFF_0000, 0x1234_0000)] {
            flash.store(0x100, 0x0040_0040);
            flash.store(0x100, data);
            assert_eq!(flash.load(0x100), 0x0080_0080);
            flash.store(0, 0x00FF_00FF);
            assert_eq!(flash.load(0x100), expected);
        }
    }

    #[test]
    fn a_sector_is_erased_while_the_guest_waits() {
        let mut flash = Flash::new();
        flash.bytes.fill(0);
        flash.store(0x4_1000, 0x0020_0020);
        flash.store(0x4_1000, 0x00D0_00D0);
        let polls = (0..).take_while(|_| flash.load(0x4_0000) != 0x0080_0080).count();
        assert_eq!(polls as u32, SECTOR / ERASE_STEP);
        flash.store(0, 0x00FF_00FF);
        assert_eq!(flash.load(0x3_FFFC), 0);
        assert_eq!(flash.load(0x4_0000), 0xFFFF_FFFF);
        assert_eq!(flash.load(0x7_FFFC), 0xFFFF_FFFF);
        assert_eq!(flash.load(0x8_0000), 0);
    }

    #[test]
    fn the_buffer_is_programmed_once_it_is_confirmed() {
        let mut flash = Flash::new();
        flash.store(0x1080, 0x00E8_00E8);
        assert_eq!(flash.load(0x1080), 0x0080_0080);
        flash.store(0x1080, 0x001F_001F);
        for word in 0..32_u64 {
            flash.store(0x1080 + word * 4, word);
            assert_eq!(flash.bytes[0x1080], 0xFF);
        }
        flash.store(0x1080, 0x00D0_00D0);
        assert_eq!(flash.load(0x1080), 0x0080_0080);
        flash.store(0, 0x00FF_00FF);
        assert_eq!((flash.load(0x10FC), flash.load(0x1100)), (31, 0xFFFF_FFFF));
    }

    #[test]
    fn a_wrong_sequence_sets_the_status_until_it_is_cleared() {
        let mut flash = Flash::new();
        flash.store(0, 0x20);
        flash.store(0, 0x55);
        assert_eq!(flash.load(0), 0x00B0_00B0);
        flash.store(0, 0x50);
        flash.store(0, 0x70);
        assert_eq!(flash.load(0), 0x0080_0080);
        // More words than the buffer has.
        flash.store(0, 0xE8);
        flash.store(0, 0x20);
        assert_eq!(flash.load(0), 0x00B0_00B0);
    }

    #[test]
    fn the_query_describes_two_chips_of_sixteen_bits() {
        let mut flash = Flash::new();
        flash.store(0x55 * 4, 0x0098_0098);
        let text: Vec<u64> = (0x10..0x13).map(|word| flash.load(word * 4)).collect();
        assert_eq!(text, [0x0051_0051, 0x0052_0052, 0x0059_0059]);
        let byte = |flash: &mut Flash, word: u64| flash.load(word * 4) & 0xFF;
        // 1 MiB a chip; 8 sectors of 128 KiB a chip.
        assert_eq!(byte(&mut flash, 0x27), 20);
        assert_eq!((byte(&mut flash, 0x2D), byte(&mut flash, 0x30)), (7, 2));
        flash.store(0, 0x90);
        assert_eq!((flash.load(0), flash.load(4)), (0x0089_0089, 0x0018_0018));
        assert_eq!(flash.bank.load(1, 1, LENGTH), Loaded::Value(0, Work::Nothing));
    }
}
