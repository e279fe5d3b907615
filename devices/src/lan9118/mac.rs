// SPDX-License-Identifier: Apache-2.0
//! MAC and PHY, reached through the command register (5.4, 5.5), and the filter they make.

use super::receive::Destination;

/// MAC_CSR_CMD (5.3.19): do it; a read.
const BUSY: u32 = 1 << 31;
const READ: u32 = 1 << 30;
/// Registers of the MAC (5.4).
const MAC_CR: u32 = 1;
const ADDRH: u32 = 2;
const ADDRL: u32 = 3;
const HASHH: u32 = 4;
const HASHL: u32 = 5;
const MII_ACC: u32 = 6;
const MII_DATA: u32 = 7;
/// Others are numbered up to this, and keep what is written.
const WUCSR: u32 = 12;
/// MAC_CR (5.4.1).
const RECEIVE_ENABLE: u32 = 1 << 2;
const NO_BROADCAST: u32 = 1 << 11;
const HASH_ALL: u32 = 1 << 13;
const HASH_ONLY: u32 = 1 << 15;
const PROMISCUOUS: u32 = 1 << 18;
const ALL_MULTICAST: u32 = 1 << 19;
const MAC_CR_RESET: u32 = 0x0004_0000;
/// MII_ACC (5.4.6): a write.
const MII_WRITE: u32 = 1 << 1;
/// Basic control of the PHY (5.5.1): reset; restart negotiation.
const PHY_RESET: u16 = 1 << 15;
const PHY_RESTART: u16 = 1 << 9;
const PHY_CONTROL_RESET: u16 = 0x3000;
const PHY_ADVERTISES: u16 = 0x01E1;
/// The generator polynomial of the CRC, bits reversed (IEEE 802.3, 3.2.9).
const POLYNOMIAL: u32 = 0xEDB8_8320;

#[derive(Clone, Debug)]
pub(super) struct Mac {
    data: u32,
    command: u32,
    control: u32,
    address: [u8; 6],
    loaded: [u8; 6],
    hash: u64,
    phy_address: u16,
    phy_data: u16,
    phy_control: u16,
    phy_advertised: u16,
}

impl Mac {
    pub(super) const fn new(address: [u8; 6]) -> Self {
        Self {
            data: 0,
            command: 0,
            control: MAC_CR_RESET,
            address,
            loaded: address,
            hash: 0,
            phy_address: 0,
            phy_data: 0,
            phy_control: PHY_CONTROL_RESET,
            phy_advertised: PHY_ADVERTISES,
        }
    }

    /// Returns what the EEPROM holds.
    pub(super) const fn loaded(&self) -> [u8; 6] {
        self.loaded
    }

    pub(super) const fn receives(&self) -> bool {
        self.control & RECEIVE_ENABLE != 0
    }

    /// Returns the last command; a command is done at once.
    pub(super) const fn command(&self) -> u32 {
        self.command
    }

    pub(super) const fn data(&self) -> u32 {
        self.data
    }

    pub(super) const fn set_data(&mut self, value: u32) {
        self.data = value;
    }

    pub(super) fn run(&mut self, command: u32) {
        self.command = command & !BUSY;
        if command & BUSY == 0 {
            return;
        }
        let register = command & 0xF;
        if command & READ != 0 {
            self.data = self.read(register);
        } else {
            self.write(register, self.data);
        }
    }

    fn read(&self, register: u32) -> u32 {
        let [a0, a1, a2, a3, a4, a5] = self.address;
        match register {
            MAC_CR => self.control,
            ADDRH => u32::from_le_bytes([a4, a5, 0, 0]),
            ADDRL => u32::from_le_bytes([a0, a1, a2, a3]),
            HASHH => (self.hash >> 32) as u32,
            HASHL => self.hash as u32,
            MII_ACC => self.phy_address.into(),
            MII_DATA => self.phy_data.into(),
            _ => 0,
        }
    }

    fn write(&mut self, register: u32, value: u32) {
        let [a0, a1, a2, a3, a4, a5] = self.address;
        let [v0, v1, v2, v3] = value.to_le_bytes();
        match register {
            MAC_CR => self.control = value,
            ADDRH => self.address = [a0, a1, a2, a3, v0, v1],
            ADDRL => self.address = [v0, v1, v2, v3, a4, a5],
            HASHH => self.hash = self.hash & 0xFFFF_FFFF | u64::from(value) << 32,
            HASHL => self.hash = self.hash >> 32 << 32 | u64::from(value),
            MII_ACC => self.reach_phy(value),
            MII_DATA => self.phy_data = value as u16,
            // Flow control, VLAN and wake-up have no effect here.
            0 | 8..=WUCSR => {}
            _ => {}
        }
    }

    /// Does a command of MII_ACC: the PHY has address 1.
    fn reach_phy(&mut self, command: u32) {
        self.phy_address = (command & 0xFFC2) as u16;
        let register = command >> 6 & 0x1F;
        if command >> 11 & 0x1F != 1 {
            self.phy_data = 0xFFFF;
        } else if command & MII_WRITE == 0 {
            self.phy_data = self.read_phy(register);
        } else if register == 0 {
            self.phy_control = if self.phy_data & PHY_RESET != 0 {
                PHY_CONTROL_RESET
            } else {
                self.phy_data & !PHY_RESTART
            };
        } else if register == 4 {
            self.phy_advertised = self.phy_data;
        }
    }

    /// Reads a register of the PHY. The link is up, with what the other side always offers: 100 Mbit/s, full
    /// duplex.
    const fn read_phy(&self, register: u32) -> u16 {
        match register {
            0 => self.phy_control,
            // All modes, negotiation possible and complete, link up (5.5.2).
            1 => 0x782D,
            2 => 0x0007,
            3 => 0xC0D1,
            4 => self.phy_advertised,
            5 => 0x45E1,
            6 => 0x0001,
            // PHY special control and status (5.5.9): negotiated, 100BASE-TX full duplex.
            31 => 0x1058,
            _ => 0,
        }
    }

    /// Tells whether a frame with these first bytes passes the filter (3.4), and whom it is for.
    pub(super) fn wants(&self, head: [u32; 2]) -> Option<Destination> {
        if !self.receives() {
            return None;
        }
        let [low, high] = head;
        let [d0, d1, d2, d3] = low.to_le_bytes();
        let [d4, d5, ..] = high.to_le_bytes();
        let destination = [d0, d1, d2, d3, d4, d5];
        let all = self.control & PROMISCUOUS != 0;
        let (kind, passes) = if destination == [0xFF; 6] {
            (Destination::Broadcast, self.control & NO_BROADCAST == 0)
        } else if d0 & 1 != 0 {
            let hashed = self.control & HASH_ALL != 0 && self.is_in_hash(destination);
            (
                Destination::Multicast,
                self.control & ALL_MULTICAST != 0 || hashed,
            )
        } else if self.control & HASH_ONLY != 0 {
            (Destination::Own, self.is_in_hash(destination))
        } else {
            (Destination::Own, destination == self.address)
        };
        (all || passes).then_some(kind)
    }

    /// Tells whether an address is in the hash table. The hash of an address is the upper six bits of its
    /// CRC.
    fn is_in_hash(&self, address: [u8; 6]) -> bool {
        let mut crc = u32::MAX;
        for byte in address {
            crc ^= u32::from(byte);
            for _ in 0..8 {
                let feedback = if crc & 1 != 0 { POLYNOMIAL } else { 0 };
                crc = crc >> 1 ^ feedback;
            }
        }
        // The chip shifts the other way.
        let hash = crc.reverse_bits() >> 26;
        self.hash >> hash & 1 != 0
    }
}
