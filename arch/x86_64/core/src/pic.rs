// SPDX-License-Identifier: Apache-2.0
//! A pair of 8259A interrupt controllers as in a PC (Intel 231468-003): the second one is on input 2 of
//! the first.
//!
//! Rotation of priorities and polling are not there: no system for a PC with an APIC uses them.

/// First port of the first controller, and of the second.
pub const PORTS: [u64; 2] = [0x20, 0xA0];
/// First port of the registers that say which lines are levels (ELCR of the ICH9).
pub const LEVEL_PORTS: u64 = 0x4D0;

const CASCADE: u8 = 1 << 2;

/// One controller.
#[derive(Clone, Copy, Debug, Default)]
struct Chip {
    request: u8,
    mask: u8,
    in_service: u8,
    /// Levels of the inputs.
    high: u8,
    level: u8,
    base: u8,
    /// The next initialization word, 2 to 4; 0: none is expected.
    step: u8,
    needs_fourth: bool,
    ends_itself: bool,
    reads_in_service: bool,
}

impl Chip {
    const fn set(&mut self, bit: u8, is_high: bool) {
        if is_high {
            if self.level & bit != 0 || self.high & bit == 0 {
                self.request |= bit;
            }
            self.high |= bit;
        } else {
            self.high &= !bit;
            if self.level & bit != 0 {
                self.request &= !bit;
            }
        }
    }

    /// Returns the input to be serviced next.
    const fn pending(&self) -> Option<u8> {
        let ready = self.request & !self.mask;
        if ready == 0 {
            return None;
        }
        let input = ready.trailing_zeros() as u8;
        // Only what is more urgent than all that is serviced.
        if self.in_service != 0 && self.in_service.trailing_zeros() as u8 <= input {
            return None;
        }
        Some(input)
    }

    const fn take(&mut self, input: u8) -> u8 {
        let bit = 1 << (input & 7);
        if self.level & bit == 0 {
            self.request &= !bit;
        }
        if !self.ends_itself {
            self.in_service |= bit;
        }
        self.base | input
    }

    fn command(&mut self, value: u8) {
        if value & 0x10 != 0 {
            *self = Self {
                high: self.high,
                level: self.level,
                step: 2,
                needs_fourth: value & 1 != 0,
                ..Self::default()
            };
        } else if value & 8 != 0 {
            match value & 3 {
                2 => self.reads_in_service = false,
                3 => self.reads_in_service = true,
                _ => {}
            }
        } else {
            match value >> 5 {
                // The end of the most urgent one, or of a certain one; with rotation as without.
                1 | 5 => self.in_service &= self.in_service.wrapping_sub(1),
                3 | 7 => self.in_service &= !(1 << (value & 7)),
                _ => {}
            }
        }
    }

    const fn data(&mut self, value: u8) {
        match self.step {
            2 => {
                self.base = value & 0xF8;
                self.step = 3;
            }
            3 => self.step = if self.needs_fourth { 4 } else { 0 },
            4 => {
                self.ends_itself = value & 2 != 0;
                self.step = 0;
            }
            _ => self.mask = value,
        }
    }
}

/// The pair.
#[derive(Clone, Debug, Default)]
pub struct Pic {
    first: Chip,
    second: Chip,
}

impl Pic {
    /// Returns the state after a reset: every input is masked, as firmware leaves it.
    #[must_use]
    pub const fn new() -> Self {
        const CHIP: Chip = Chip {
            request: 0,
            mask: 0xFF,
            in_service: 0,
            high: 0,
            level: 0,
            base: 0,
            step: 0,
            needs_fourth: false,
            ends_itself: false,
            reads_in_service: false,
        };
        Self {
            first: Chip { base: 8, ..CHIP },
            second: Chip { base: 0x70, ..CHIP },
        }
    }

    /// Changes the level of line 0 to 15.
    pub fn set(&mut self, line: u32, is_high: bool) {
        match line {
            0..8 => self.first.set(1_u8.wrapping_shl(line), is_high),
            8..16 => self.second.set(1_u8.wrapping_shl(line & 7), is_high),
            _ => {}
        }
        self.cascade();
    }

    const fn cascade(&mut self) {
        let asks = self.second.pending().is_some();
        self.first.high &= !CASCADE;
        self.first.request &= !CASCADE;
        if asks {
            self.first.request |= CASCADE;
        }
    }

    /// Tells whether the processor is interrupted.
    #[must_use]
    pub const fn asks(&self) -> bool {
        self.first.pending().is_some()
    }

    /// Returns the vector of the interrupt that the processor takes. If there is none any more it is the
    /// spurious one.
    pub fn take(&mut self) -> u8 {
        let Some(input) = self.first.pending() else {
            return self.first.base | 7;
        };
        let vector = self.first.take(input);
        let vector = match (input, self.second.pending()) {
            (2, Some(input)) => self.second.take(input),
            (2, None) => self.second.base | 7,
            _ => vector,
        };
        self.cascade();
        vector
    }

    /// Answers a load from a port, if it is one of the pair's.
    #[must_use]
    pub const fn read(&self, port: u64) -> Option<u8> {
        let chip = match port {
            0x20 | 0x21 | LEVEL_PORTS => &self.first,
            0xA0 | 0xA1 | 0x4D1 => &self.second,
            _ => return None,
        };
        Some(match port {
            0x21 | 0xA1 => chip.mask,
            0x20 | 0xA0 if chip.reads_in_service => chip.in_service,
            0x20 | 0xA0 => chip.request,
            _ => chip.level,
        })
    }

    /// Takes a store to a port; false if it is none of the pair's.
    pub fn write(&mut self, port: u64, value: u8) -> bool {
        match port {
            0x20 => self.first.command(value),
            0x21 => self.first.data(value),
            0xA0 => self.second.command(value),
            0xA1 => self.second.data(value),
            LEVEL_PORTS => self.first.level = value & 0xF8,
            0x4D1 => self.second.level = value & 0xDE,
            _ => return false,
        }
        self.cascade();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn initialized() -> Pic {
        let mut pic = Pic::new();
        for (port, base, third) in [(0x20, 0x30, 4), (0xA0, 0x38, 2)] {
            pic.write(port, 0x11);
            pic.write(port + 1, base);
            pic.write(port + 1, third);
            pic.write(port + 1, 1);
            pic.write(port + 1, 0);
        }
        pic
    }

    #[test]
    fn nothing_comes_through_after_a_reset() {
        let mut pic = Pic::new();
        pic.set(0, true);
        assert!(!pic.asks());
        assert_eq!(pic.read(0x21), Some(0xFF));
    }

    #[test]
    fn lines_come_by_priority_and_end_by_command() {
        let mut pic = initialized();
        pic.set(4, true);
        pic.set(0, true);
        assert_eq!(pic.take(), 0x30);
        assert!(!pic.asks(), "line 0 is serviced");
        pic.write(0x20, 0x20);
        assert_eq!(pic.take(), 0x34);
        pic.write(0x20, 0x64);
        assert!(!pic.asks());
        pic.set(0, false);
        pic.set(0, true);
        assert!(pic.asks());
    }

    #[test]
    fn the_second_one_comes_through_the_first() {
        let mut pic = initialized();
        pic.set(8, true);
        assert_eq!(pic.take(), 0x38);
        pic.write(0x20, 0x0B);
        assert_eq!(pic.read(0x20), Some(4));
        pic.write(0xA0, 0x20);
        pic.write(0x20, 0x20);
        assert!(!pic.asks());
        assert_eq!(pic.take(), 0x37, "spurious");
    }

    #[test]
    fn a_level_stays_until_it_is_low() {
        let mut pic = initialized();
        assert!(pic.write(0x4D1, 0x0C));
        pic.set(10, true);
        assert_eq!(pic.take(), 0x3A);
        pic.write(0xA0, 0x20);
        pic.write(0x20, 0x20);
        assert!(pic.asks());
        pic.set(10, false);
        assert!(!pic.asks());
        assert!(!pic.write(0x22, 0) && pic.read(0x22).is_none());
    }
}
