// SPDX-License-Identifier: Apache-2.0
//! The power management registers of ACPI (ACPI 6.4, 4.8) at [`PM_BASE`], and the reset register of a PC.

use bulkhead_arch_api::class::x86_64::PM_BASE;

/// PM1a event block: status, enable.
const EVENT: u64 = PM_BASE;
/// PM1a control.
const CONTROL: u64 = PM_BASE + 4;
/// PM timer.
const TIMER: u64 = PM_BASE + 8;
/// First port after.
const END: u64 = PM_BASE + 0x10;
/// Reset control register of the ICH9.
const RESET: u64 = 0xCF9;
/// Command register of the keyboard controller.
const KEYBOARD: u64 = 0x64;
/// Its command to reset the processor.
const KEYBOARD_RESET: u64 = 0xFE;
/// SCI_EN: ACPI is on.
const ACPI_ON: u16 = 1;
const SLEEP: u16 = 1 << 13;
const SLEEP_TYPE: u16 = 7 << 10;

/// The request of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Nothing.
    Nothing,
    /// To switch the machine off.
    Off,
    /// To reset it.
    Reset,
}

/// The registers of a VM.
#[derive(Clone, Copy, Debug, Default)]
pub struct Power {
    enable: u16,
    control: u16,
}

impl Power {
    /// Returns the state after a reset.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            enable: 0,
            control: ACPI_ON,
        }
    }

    /// Answers a load from a port, if it is one of these. `timer`: the count of the PM timer.
    #[must_use]
    pub const fn read(&self, port: u64, timer: u64) -> Option<u64> {
        Some(match port {
            EVENT => (self.enable as u64) << 16,
            0x602 => self.enable as u64,
            CONTROL => self.control as u64,
            // 32 bits, as the FADT says.
            TIMER => timer & 0xFFFF_FFFF,
            RESET => 0,
            _ if is_own(port) => 0,
            _ => return None,
        })
    }

    /// Takes a store to a port, if it is one of these.
    pub const fn write(&mut self, port: u64, value: u64) -> Option<Wish> {
        match port {
            0x602 => self.enable = value as u16,
            CONTROL => {
                let value = value as u16;
                self.control = value & !(SLEEP | SLEEP_TYPE) | ACPI_ON;
                // The type of S5 is 0 in the DSDT.
                if value & SLEEP != 0 && value & SLEEP_TYPE == 0 {
                    return Some(Wish::Off);
                }
            }
            RESET if value & 4 != 0 => return Some(Wish::Reset),
            KEYBOARD if value == KEYBOARD_RESET => return Some(Wish::Reset),
            RESET => {}
            _ if is_own(port) => {}
            _ => return None,
        }
        Some(Wish::Nothing)
    }
}

/// Tells whether the port is one of the power management registers.
const fn is_own(port: u64) -> bool {
    port >= PM_BASE && port < END
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_of_type_0_is_the_end() {
        let mut power = Power::new();
        assert_eq!(power.read(CONTROL, 0), Some(1));
        assert_eq!(power.write(CONTROL, 0x2001), Some(Wish::Off));
        assert_eq!(power.write(CONTROL, 0x2401), Some(Wish::Nothing), "another type");
        assert_eq!(power.read(CONTROL, 0), Some(1));
        assert_eq!(power.write(RESET, 6), Some(Wish::Reset));
        assert_eq!(power.write(KEYBOARD, 0xFE), Some(Wish::Reset));
        assert_eq!(power.write(KEYBOARD, 0xAA), None);
        assert_eq!(power.read(TIMER, 0x1_2345_6789), Some(0x2345_6789));
        assert_eq!((power.read(0x610, 0), power.write(0x5FF, 0)), (None, None));
    }
}
