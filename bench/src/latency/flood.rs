// SPDX-License-Identifier: Apache-2.0
//! A ping flood: echo requests (RFC 792) to the RTOS's address through the board's Ethernet controller, as
//! `ping -f` makes them.
//!
//! The emulator's end of the cable is a UDP socket, a datagram a frame. A few requests are always under way.
//! Each answer is followed by another request at once. If no answer comes for a while, a request is sent all
//! the same. So the RTOS gets as many requests as it can answer, at any speed of the emulator.

use bulkhead::problem::Problem;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The RTOS's MAC address. The RTOS makes its IP address from this address
/// (`guests/stock/mcu-rtos/network.c`).
pub(super) const MAC: &str = "02:00:00:00:00:10";
const MAC_BYTES: [u8; 6] = [2, 0, 0, 0, 0, 0x10];
const ADDRESS: [u8; 4] = [10, 0, 2, 116];
/// Our address. The RTOS need not ask for this address: it answers to the sender of a request.
const OWN_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
const OWN_ADDRESS: [u8; 4] = [10, 0, 2, 2];
/// Requests under way.
const WINDOW: usize = 4;
/// The time after which a request is taken for lost.
const LOST: Duration = Duration::from_millis(20);
/// Data of a request: 56 bytes, as everybody's `ping` sends.
const DATA: u8 = 56;
const HEAD: usize = 14 + 20;

/// Our end of the cable.
pub(super) struct Cable {
    socket: UdpSocket,
    emulator: SocketAddr,
}

impl Cable {
    pub(super) fn new() -> Result<Self, Problem> {
        let failed = |why| Problem::io("a local port")(why);
        let local = || UdpSocket::bind(("127.0.0.1", 0)).map_err(failed);
        // The other port is the emulator's as soon as this socket is closed.
        let (socket, other) = (local()?, local()?);
        let emulator = other.local_addr().map_err(failed)?;
        socket.set_read_timeout(Some(LOST)).map_err(failed)?;
        Ok(Self { socket, emulator })
    }

    /// Returns the arguments that give the emulator its end of the connection.
    pub(super) fn arguments(&self) -> Result<[String; 2], Problem> {
        let own = self.socket.local_addr().map_err(Problem::io("a local port"))?;
        let emulator = self.emulator;
        Ok([
            "-nic".to_owned(),
            format!("socket,udp={own},localaddr={emulator},model=lan9118,mac={MAC}"),
        ])
    }

    /// Begins a flood.
    pub(super) fn flood(self) -> Flood {
        let answers = Arc::new(AtomicU64::new(0));
        let ends = Arc::new(AtomicBool::new(false));
        let shared = (Arc::clone(&answers), Arc::clone(&ends));
        let thread = std::thread::spawn(move || self.run(&shared.0, &shared.1));
        Flood {
            answers,
            ends,
            thread: Some(thread),
        }
    }

    fn run(&self, answers: &AtomicU64, ends: &AtomicBool) {
        let mut number = 0_u16;
        let mut send = || {
            number = number.wrapping_add(1);
            // A cable loses frames: the other end may not be there yet, or not any more.
            let _ = self.socket.send_to(&request(number), self.emulator);
        };
        (0..WINDOW).for_each(|_| send());
        let mut frame = [0; 2048];
        while !ends.load(Ordering::Relaxed) {
            match self.socket.recv(&mut frame) {
                Ok(length) if is_answer(frame.get(..length).unwrap_or(&[])) => {
                    answers.fetch_add(1, Ordering::Relaxed);
                    send();
                }
                // The RTOS also sends other frames.
                Ok(_) => {}
                Err(_) => send(),
            }
        }
    }
}

/// A flood, which lasts until it is dropped.
pub(super) struct Flood {
    answers: Arc<AtomicU64>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Flood {
    /// Returns the number of requests that were answered so far.
    pub(super) fn answers(&self) -> u64 {
        self.answers.load(Ordering::Relaxed)
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread has counted its work in shared counters, so its result does not matter.
            let _ = thread.join();
        }
    }
}

/// Computes the checksum of RFC 1071.
fn sum(bytes: &[u8]) -> [u8; 2] {
    let words = bytes.chunks(2).map(|pair| match pair {
        [high, low] => u32::from(u16::from_be_bytes([*high, *low])),
        [high, ..] => u32::from(*high) << 8,
        [] => 0,
    });
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

/// Returns an Ethernet frame with an echo request.
fn request(number: u16) -> Vec<u8> {
    let mut echo = vec![8, 0, 0, 0, 0x42, 0x4b];
    echo.extend(number.to_be_bytes());
    echo.extend(0..DATA);
    let check = sum(&echo);
    echo[2..4].copy_from_slice(&check);
    let length = u16::try_from(20 + echo.len()).unwrap_or(u16::MAX).to_be_bytes();
    let mut header = vec![0x45, 0, length[0], length[1], 0, 0, 0, 0, 64, 1, 0, 0];
    header.extend(OWN_ADDRESS);
    header.extend(ADDRESS);
    let check = sum(&header);
    header[10..12].copy_from_slice(&check);
    [&MAC_BYTES[..], &OWN_MAC, &[8, 0], &header, &echo].concat()
}

/// Tells whether a frame is an answer to one of our requests.
fn is_answer(frame: &[u8]) -> bool {
    frame.get(..6) == Some(&OWN_MAC[..])
        && frame.get(12..15) == Some(&[8, 0, 0x45])
        && frame.get(26..34) == Some(&[ADDRESS, OWN_ADDRESS].concat()[..])
        && frame.get(HEAD) == Some(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_whole_and_its_answer_is_known() {
        let mut frame = request(7);
        assert_eq!(frame.len(), HEAD + 8 + usize::from(DATA));
        assert_eq!(sum(&frame[14..HEAD]), [0, 0], "over its own sum it is 0");
        assert_eq!(sum(&frame[HEAD..]), [0, 0]);
        assert!(!is_answer(&frame));
        frame[..6].copy_from_slice(&OWN_MAC);
        frame[6..12].copy_from_slice(&MAC_BYTES);
        frame[26..30].copy_from_slice(&ADDRESS);
        frame[30..34].copy_from_slice(&OWN_ADDRESS);
        frame[HEAD] = 0;
        assert!(is_answer(&frame));
        assert!(!is_answer(&frame[..HEAD]));
    }

    #[test]
    fn the_other_end_gets_requests_and_each_answer_is_followed_by_one() {
        let cable = Cable::new().unwrap();
        let emulator = UdpSocket::bind(cable.emulator).unwrap();
        let flood = cable.flood();
        let mut frame = [0; 256];
        let (length, from) = emulator.recv_from(&mut frame).unwrap();
        assert_eq!(frame[..length], request(1));
        for (place, bytes) in [
            (0, &OWN_MAC[..]),
            (26, &ADDRESS),
            (30, &OWN_ADDRESS),
            (HEAD, &[0]),
        ] {
            frame[place..place + bytes.len()].copy_from_slice(bytes);
        }
        emulator.send_to(&frame[..length], from).unwrap();
        for _ in 0..WINDOW {
            emulator.recv_from(&mut frame).unwrap();
        }
        while flood.answers() == 0 {
            std::thread::yield_now();
        }
    }
}
