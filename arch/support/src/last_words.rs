// SPDX-License-Identifier: Apache-2.0
//! The last words of a CPU on the console before it stops.

use bulkhead_abi::framing::{HYPERVISOR_CONSOLE, RS, US};
use bulkhead_abi::log::Header;
use bulkhead_abi::log::ending::PANIC;
use bulkhead_abi::log::line::{Line, STAMP_LEN, stamp};
use core::panic::PanicInfo;
use core::sync::atomic::Ordering;

/// Fruitless tries in a row after which a transmitter is given up: a byte at 9600 baud takes a millisecond.
const PATIENCE: u32 = 10_000_000;

/// Writes a line of the hypervisor's console, waiting for each byte, but not for ever: a wrong address need
/// not be a UART.
///
/// `send` is given bytes and says how many of them the transmitter took. `time` is the line's, in nanoseconds
/// since boot, if that is known.
pub fn last_words(mut send: impl FnMut(&[u8]) -> usize, time: Option<u64>, text: &[u8]) {
    let mut patience = PATIENCE;
    let mut put = |mut rest: &[u8]| {
        while !rest.is_empty() && patience != 0 {
            let taken = send(rest);
            rest = rest.get(taken..).unwrap_or(&[]);
            patience = if taken == 0 { patience - 1 } else { PATIENCE };
            crate::relax();
        }
    };
    put(&[RS, b'\r', b'\n']);
    if let Some(time) = time {
        put(b"[");
        put(stamp(time, &mut [0; STAMP_LEN]));
        put(b"] ");
    }
    put(HYPERVISOR_CONSOLE.as_bytes());
    put(&[b':', b' ', US]);
    put(text);
    put(b"\r\n");
}

/// Returns the nanoseconds since the log began this life, at a reading of the board's counter.
#[must_use]
pub fn since_boot(header: &Header, counter: u64) -> u64 {
    let hertz = header.hertz.load(Ordering::Relaxed);
    let ticks = counter.saturating_sub(header.booted.load(Ordering::Relaxed));
    let (Some(seconds), Some(rest)) = (ticks.checked_div(hertz), ticks.checked_rem(hertz)) else {
        return 0;
    };
    seconds * 1_000_000_000 + rest.saturating_mul(1_000_000) / hertz * 1000
}

/// Tells of a panic in a line.
pub fn tell_panic<const ROOM: usize>(line: &mut Line<ROOM>, info: &PanicInfo<'_>) {
    line.text(PANIC);
    if let Some(location) = info.location() {
        line.text(" at ").text(location.file());
        line.text(" line ").decimal(location.line().into());
    }
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
        last_words(send, None, b"LOCKDOWN");
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
        last_words(send, Some(1_000_002_000), b"LOCKDOWN");
        assert_eq!(sent, b"\x1E\r\n[1.000002] bulkhead: \x1FLOCKDOWN\r\n");
    }
}
