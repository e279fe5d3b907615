// SPDX-License-Identifier: Apache-2.0
//! The guest's universal interrupt controller: 32 lines, reached through device control registers (PPC405EP
//! User's Manual, chapter "Interrupt Controller Operations").
//!
//! Line 0 is the most significant bit of each register. A line is active when the device asserts it: the
//! polarity register is kept and has no other effect, because a virtual device has no electrical level.

/// The first of its device control registers.
pub const FIRST_DCR: u16 = 0xC0;
/// The last one.
pub const LAST_DCR: u16 = 0xC8;
/// Lines.
pub const LINES: u32 = 32;

/// The bytes between two vectors.
const VECTOR_DISTANCE: u32 = 512;

/// The state of the controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uic {
    /// UIC0_SR.
    status: u32,
    /// UIC0_ER.
    enabled: u32,
    /// UIC0_CR: lines whose interrupts are critical.
    critical: u32,
    /// UIC0_PR.
    polarity: u32,
    /// UIC0_TR: lines that are edge-triggered.
    edge: u32,
    /// UIC0_VCR.
    vector: u32,
    /// Lines that devices assert.
    levels: u32,
}

/// Returns the bit of a line; none for a line that does not exist.
const fn bit(line: u32) -> u32 {
    if line < LINES { 0x8000_0000 >> line } else { 0 }
}

impl Uic {
    /// Returns the controller after a reset.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            status: 0,
            enabled: 0,
            critical: 0,
            polarity: 0,
            edge: 0,
            vector: 0,
            levels: 0,
        }
    }

    /// Sets the level of a line. A level-triggered line that is no longer asserted is no longer pending.
    pub const fn set_line(&mut self, line: u32, level: bool) {
        let bit = bit(line);
        let was = self.levels & bit != 0;
        if level {
            self.levels |= bit;
            if self.edge & bit == 0 || !was {
                self.status |= bit;
            }
        } else {
            self.levels &= !bit;
            if self.edge & bit == 0 {
                self.status &= !bit;
            }
        }
    }

    /// Makes a line pending once, for a physical line that has interrupted.
    pub const fn pulse_line(&mut self, line: u32) {
        self.status |= bit(line);
    }

    /// Tells whether the line is pending.
    #[must_use]
    pub const fn is_pending(&self, line: u32) -> bool {
        self.status & bit(line) != 0
    }

    /// Tells whether the external interrupt is asserted.
    #[must_use]
    pub const fn external(&self) -> bool {
        self.status & self.enabled & !self.critical != 0
    }

    /// Tells whether the critical interrupt is asserted.
    #[must_use]
    pub const fn critical(&self) -> bool {
        self.status & self.enabled & self.critical != 0
    }

    /// Returns the vector of the first critical line: VCR says at which end the first line is.
    const fn vector(&self) -> u32 {
        let active = self.status & self.enabled & self.critical;
        if active == 0 {
            return 0;
        }
        let position = if self.vector & 1 == 0 {
            active.trailing_zeros()
        } else {
            active.leading_zeros()
        };
        let base = self.vector & !3;
        base.wrapping_add(position.wrapping_mul(VECTOR_DISTANCE))
    }

    /// Reads a register.
    #[must_use]
    pub const fn read(&self, dcr: u16) -> u32 {
        match dcr.wrapping_sub(FIRST_DCR) {
            0 => self.status,
            2 => self.enabled,
            3 => self.critical,
            4 => self.polarity,
            5 => self.edge,
            6 => self.status & self.enabled,
            7 => self.vector(),
            // UIC0_VCR is written only.
            _ => 0,
        }
    }

    /// Writes a register.
    pub const fn write(&mut self, dcr: u16, value: u32) {
        match dcr.wrapping_sub(FIRST_DCR) {
            // A bit is cleared by a one. A level that is still there is pending again at once.
            0 => self.status = self.status & !value | self.levels & !self.edge,
            2 => self.enabled = value,
            3 => self.critical = value,
            4 => self.polarity = value,
            5 => self.edge = value,
            8 => self.vector = value & !2,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_stays_pending_until_it_ends_and_an_edge_until_it_is_cleared() {
        let mut uic = Uic::new();
        uic.write(0xC2, u32::MAX);
        uic.write(0xC5, bit(1));
        uic.set_line(0, true);
        uic.set_line(1, true);
        assert!(uic.external() && uic.read(0xC6) == 0xC000_0000);
        uic.write(0xC0, u32::MAX);
        assert_eq!(uic.read(0xC0), 0x8000_0000, "the level is still there");
        uic.set_line(0, false);
        assert!(!uic.external());
        uic.set_line(1, true);
        assert!(!uic.external(), "no new edge");
        uic.set_line(1, false);
        uic.set_line(1, true);
        assert_eq!(uic.read(0xC0), bit(1));
        uic.set_line(32, true);
        assert_eq!(uic.read(0xC0), bit(1), "there is no such line");
    }

    #[test]
    fn a_critical_line_has_a_vector_at_either_end() {
        let mut uic = Uic::new();
        uic.write(0xC2, u32::MAX);
        uic.write(0xC3, bit(3) | bit(30));
        uic.write(0xC8, 0x1_0000);
        assert_eq!(uic.read(0xC7), 0);
        uic.set_line(3, true);
        uic.set_line(30, true);
        assert!(uic.critical() && !uic.external());
        assert_eq!(uic.read(0xC7), 0x1_0000 + 512);
        uic.write(0xC8, 0x1_0001);
        assert_eq!(uic.read(0xC7), 0x1_0001 - 1 + 3 * 512);
    }
}
