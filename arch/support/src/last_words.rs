// SPDX-License-Identifier: Apache-2.0
//! The last words of a CPU on the console before it stops.

use bulkhead_abi::framing::{HYPERVISOR_CONSOLE, RS, US};

/// Fruitless tries in a row after which a transmitter is given up: a byte at 9600 baud takes a millisecond.
const PATIENCE: u32 = 10_000_000;

/// Writes a line of the hypervisor's console, waiting for each byte, but not for ever: a wrong address need
/// not be a UART.
///
/// `send` is given bytes and says how many of them the transmitter took. `stamp` is the line's time in the
/// form of the framing, or nothing.
pub fn last_words(mut send: impl FnMut(&[u8]) -> usize, stamp: &str, text: &str) {
    let mut patience = PATIENCE;
    let mut put = |mut rest: &[u8]| {
        while !rest.is_empty() && patience != 0 {
            let taken = send(rest);
            rest = rest.get(taken..).unwrap_or(&[]);
            patience = if taken == 0 { patience - 1 } else { PATIENCE };
            crate::relax();
        }
    };
    let parts: [&[u8]; 8] = [
        &[RS],
        b"\r\n",
        stamp.as_bytes(),
        HYPERVISOR_CONSOLE.as_bytes(),
        b": ",
        &[US],
        text.as_bytes(),
        b"\r\n",
    ];
    parts.into_iter().for_each(&mut put);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transmitter_that_takes_nothing_any_more_is_given_up() {
        let mut tries = 0;
        let send = |bytes: &[u8]| {
            tries += 1;
            bytes.len().min(usize::from(tries == 1))
        };
        last_words(send, "", "LOCKDOWN");
        assert_eq!(tries, PATIENCE + 1);
    }

    #[test]
    fn a_slow_transmitter_gets_every_byte_once_and_in_order() {
        let mut sent = Vec::new();
        let mut turn = 0;
        let send = |bytes: &[u8]| {
            turn += 1;
            let taken = bytes.len().min(turn % 3);
            sent.extend_from_slice(&bytes[..taken]);
            taken
        };
        last_words(send, "[1.000002] ", "LOCKDOWN");
        assert_eq!(sent, b"\x1E\r\n[1.000002] bulkhead: \x1FLOCKDOWN\r\n");
    }
}
