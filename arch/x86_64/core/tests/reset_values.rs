// SPDX-License-Identifier: Apache-2.0
//! The power management registers of a VM after a reset, against ACPI 6.4. On the bare PC the firmware has
//! written to them before a program can read them.

use bulkhead_arch_x86_64_core::pm::{Power, Wish};

/// Offsets of the registers from the beginning of the block (the FADT of a VM).
const EVENT: u64 = 0x600;
const CONTROL: u64 = 0x604;
const TIMER: u64 = 0x608;

/// Checks that no event has come and none is enabled (4.8.3.1). ACPI is on, nothing else (4.8.3.2.1): there
/// is no command port that switches ACPI on.
#[test]
fn no_event_is_there_and_none_is_enabled() {
    let power = Power::new();
    assert_eq!(power.read(EVENT, 0), Some(0));
    assert_eq!(power.read(EVENT + 2, 0), Some(0));
    assert_eq!(power.read(CONTROL, 0), Some(1));
    assert_eq!(power.read(CONTROL + 2, 0), Some(0));
}

/// Checks that the timer counts in 32 bits and begins again at 0, and that no write changes it (4.8.3.3).
#[test]
fn the_timer_has_32_bits_and_only_counts() {
    let mut power = Power::new();
    for (count, value) in [(0, 0), (0xFFFF_FFFF, 0xFFFF_FFFF), (0x1_0000_0002, 2)] {
        assert_eq!(power.read(TIMER, count), Some(value));
        assert_eq!(power.write(TIMER, 7), Some(Wish::Nothing));
        assert_eq!(power.read(TIMER, count), Some(value));
    }
}
