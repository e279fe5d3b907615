// SPDX-License-Identifier: Apache-2.0
//! What a CPU says on the console before it stops.

use bulkhead_abi::framing::{HYPERVISOR_CONSOLE, RS, US};

/// Writes a line of the hypervisor's console, waiting for each byte.
///
/// `send` is given bytes and says how many of them the transmitter took. `stamp` is the line's time in the form of the
/// framing, or nothing.
pub fn last_words(mut send: impl FnMut(&[u8]) -> usize, stamp: &str, text: &str) {
    let mut put = |mut rest: &[u8]| {
        while !rest.is_empty() {
            rest = rest.get(send(rest)..).unwrap_or(&[]);
            crate::relax();
        }
    };
    put(&[RS]);
    put(b"\r\n");
    put(stamp.as_bytes());
    put(HYPERVISOR_CONSOLE.as_bytes());
    put(b": ");
    put(&[US]);
    put(text.as_bytes());
    put(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

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
