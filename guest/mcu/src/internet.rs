// SPDX-License-Identifier: Apache-2.0
//! The parts of the Internet protocols that a ping needs: ARP (RFC 826), IPv4 without options (RFC 791), ICMP
//! echo (RFC 792).

use crate::ethernet::{Adapter, Ethernet, Frame};

/// An IPv4 address.
pub type Ip = [u8; 4];
/// A MAC address.
pub type Mac = [u8; 6];

/// Bytes of data in an echo, as `ping` sends them.
const ECHO_DATA: usize = 56;
const ECHO_LENGTH: usize = 14 + 20 + 8 + ECHO_DATA;

const TYPE_IP: [u8; 2] = [8, 0];
const TYPE_ARP: [u8; 2] = [8, 6];
/// ARP over Ethernet for IPv4.
const ARP_HEAD: [u8; 6] = [0, 1, 8, 0, 6, 4];
const ARP_LENGTH: usize = 42;
const ARP_REQUEST: u8 = 1;
const ARP_REPLY: u8 = 2;
const ICMP: u8 = 1;
const ECHO_REPLY: u8 = 0;
const ECHO_REQUEST: u8 = 8;

/// The kind of a received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A peer asked, and was answered.
    Answered,
    /// This address has this MAC address.
    Address(Ip, Mac),
    /// The answer to the echo with this number, from this address.
    Echo(Ip, u16),
    /// A frame of no interest.
    Other,
}

/// A host: an interface with an address.
#[derive(Debug)]
pub struct Host<A = Ethernet> {
    chip: A,
    /// Its address.
    pub ip: Ip,
}

/// Returns the Internet checksum of bytes of a frame (RFC 1071).
fn checksum(frame: &Frame, from: usize, length: usize) -> [u8; 2] {
    let mut sum = 0_u32;
    for index in (from..from + length).step_by(2) {
        sum += u32::from(frame.byte(index)) << 8;
        if index + 1 < from + length {
            sum += u32::from(frame.byte(index + 1));
        }
    }
    while sum >> 16 != 0 {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    (!sum as u16).to_be_bytes()
}

impl<A: Adapter> Host<A> {
    /// Returns a host in 10.0.2.0/24, at a number that follows from its MAC address.
    #[must_use]
    pub fn new(chip: A) -> Self {
        let [.., last] = chip.address();
        Self {
            chip,
            ip: [10, 0, 2, number(last)],
        }
    }

    /// Tells whether a frame waits.
    #[must_use]
    pub fn has_frame(&self) -> bool {
        self.chip.has_frame()
    }

    /// Asks which host has `ip`.
    pub fn ask(&self, frame: &mut Frame, ip: Ip) -> bool {
        self.arp(frame, ARP_REQUEST, [0xFF; 6], ip);
        self.chip.send(frame)
    }

    fn arp(&self, frame: &mut Frame, operation: u8, mac: Mac, ip: Ip) {
        frame.set_bytes(0, &mac);
        frame.set_bytes(6, &self.chip.address());
        frame.set_bytes(12, &TYPE_ARP);
        frame.set_bytes(14, &ARP_HEAD);
        frame.set_bytes(20, &[0, operation]);
        frame.set_bytes(22, &self.chip.address());
        frame.set_bytes(28, &self.ip);
        frame.set_bytes(32, &mac);
        frame.set_bytes(38, &ip);
        frame.length = ARP_LENGTH;
    }

    /// Sends an echo request.
    pub fn ping(&self, frame: &mut Frame, ip: Ip, mac: Mac, number: u16) -> bool {
        frame.set_bytes(0, &mac);
        frame.set_bytes(6, &self.chip.address());
        frame.set_bytes(12, &TYPE_IP);
        let total = (ECHO_LENGTH - 14) as u16;
        let [high, low] = total.to_be_bytes();
        frame.set_bytes(14, &[0x45, 0, high, low, 0, 0, 0, 0, 64, ICMP, 0, 0]);
        frame.set_bytes(26, &self.ip);
        frame.set_bytes(30, &ip);
        frame.set_bytes(24, &[0, 0]);
        let sum = checksum(frame, 14, 20);
        frame.set_bytes(24, &sum);
        let [high, low] = number.to_be_bytes();
        frame.set_bytes(34, &[ECHO_REQUEST, 0, 0, 0, 0, 1, high, low]);
        for index in 0..ECHO_DATA {
            frame.set_byte(42 + index, index as u8);
        }
        let sum = checksum(frame, 34, 8 + ECHO_DATA);
        frame.set_bytes(36, &sum);
        frame.length = ECHO_LENGTH;
        self.chip.send(frame)
    }

    /// Takes a frame, if there is one, and answers what asks for an answer.
    pub fn listen(&self, frame: &mut Frame) -> Option<Heard> {
        if !self.chip.receive(frame) {
            return None;
        }
        Some(match frame.bytes(12) {
            TYPE_ARP if frame.bytes(14) == ARP_HEAD => self.heard_arp(frame),
            TYPE_IP if frame.byte(14) == 0x45 && frame.byte(23) == ICMP && frame.bytes(30) == self.ip => {
                self.heard_icmp(frame)
            }
            _ => Heard::Other,
        })
    }

    fn heard_arp(&self, frame: &mut Frame) -> Heard {
        let (mac, ip, target) = (frame.bytes(22), frame.bytes(28), frame.bytes::<4>(38));
        match frame.byte(21) {
            ARP_REQUEST if target == self.ip => {
                self.arp(frame, ARP_REPLY, mac, ip);
                self.chip.send(frame);
                Heard::Answered
            }
            ARP_REPLY => Heard::Address(ip, mac),
            _ => Heard::Other,
        }
    }

    fn heard_icmp(&self, frame: &mut Frame) -> Heard {
        let total = usize::from(u16::from_be_bytes(frame.bytes(16)));
        let is_whole = (28..=frame.length.saturating_sub(14)).contains(&total);
        if !is_whole || checksum(frame, 34, total - 20) != [0; 2] {
            return Heard::Other;
        }
        let from = frame.bytes(26);
        match frame.byte(34) {
            ECHO_REPLY => Heard::Echo(from, u16::from_be_bytes(frame.bytes(40))),
            ECHO_REQUEST => {
                let mac: Mac = frame.bytes(6);
                frame.set_bytes(0, &mac);
                frame.set_bytes(6, &self.chip.address());
                frame.set_bytes(26, &self.ip);
                frame.set_bytes(30, &from);
                frame.set_byte(34, ECHO_REPLY);
                frame.set_bytes(36, &[0, 0]);
                let sum = checksum(frame, 34, total - 20);
                frame.set_bytes(36, &sum);
                frame.length = 14 + total;
                self.chip.send(frame);
                Heard::Answered
            }
            _ => Heard::Other,
        }
    }
}

/// Returns the number of a host with this last byte of its MAC address; those below 100 are the emulator's.
#[must_use]
pub const fn number(last: u8) -> u8 {
    100 + last % 100
}
