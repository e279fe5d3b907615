// SPDX-License-Identifier: Apache-2.0
//! The VM's UART: NS 16550A at the first ports of a PC (TI SLLS597), polled for output.

use super::cpu::{read_port8, write_port8};

/// First port.
pub const BASE: u16 = 0x3F8;
const LINE_STATUS: u16 = BASE + 5;
const EMPTY: u8 = 1 << 5;
/// Attempts on a full FIFO before a byte is given up, so that a stuck UART cannot hang a guest.
const PATIENCE: u32 = 1_000_000;

/// Writes all of `bytes`.
pub fn write(bytes: &[u8]) {
    for byte in bytes {
        for _ in 0..PATIENCE {
            if read_port8(LINE_STATUS) & EMPTY != 0 {
                write_port8(BASE, *byte);
                break;
            }
            core::hint::spin_loop();
        }
    }
}
