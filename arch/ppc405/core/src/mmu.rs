// SPDX-License-Identifier: Apache-2.0
//! The guest's memory management unit: from an address of a program to a guest-physical one (User's Manual,
//! chapter 7).

use crate::exception::vector;
use crate::registers::{Cpu, Frame, esr, msr};
use crate::tlb::{EXECUTE, Entry, WRITE};

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An instruction is fetched.
    Fetch,
    /// Data are loaded.
    Load,
    /// Data are stored.
    Store,
}

/// A translation that allows the access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The guest-physical address.
    pub physical: u32,
    /// The entry that it comes from, with its number. `None` if the address is not translated.
    pub entry: Option<(usize, Entry)>,
    /// Rights of the mode that the guest is in: stores.
    pub write: bool,
    /// Rights of the mode that the guest is in: instructions.
    pub execute: bool,
}

/// Why there is no translation that allows the access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// No entry has the address.
    Miss,
    /// The entry does not allow it.
    Protected,
    /// The zone does not allow it.
    Zone,
}

/// The modes of translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Neither instructions nor data.
    Real,
    /// Both.
    Translated,
    /// One of them.
    Mixed,
}

/// Returns the field of ZPR for a zone.
#[must_use]
pub const fn zone_field(zones: u32, zone: u32) -> u32 {
    zones.wrapping_shr(30_u32.wrapping_sub((zone & 15).wrapping_mul(2))) & 3
}

impl Cpu {
    /// Returns the mode of translation.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        match self.msr & (msr::IR | msr::DR) {
            0 => Mode::Real,
            both if both == msr::IR | msr::DR => Mode::Translated,
            _ => Mode::Mixed,
        }
    }

    /// Translates an address for an access.
    ///
    /// # Errors
    /// [`Refused`]
    pub fn translate(&self, address: u32, kind: Kind) -> Result<Found, Refused> {
        let translates = match kind {
            Kind::Fetch => self.msr & msr::IR != 0,
            Kind::Load | Kind::Store => self.msr & msr::DR != 0,
        };
        if !translates {
            return Ok(Found {
                physical: address,
                entry: None,
                write: true,
                execute: true,
            });
        }
        let (number, entry) = self.tlb.find(address, self.process).ok_or(Refused::Miss)?;
        let field = zone_field(self.zones, entry.zone());
        // Table 7-3: a program is shut out by 00, and is let in by 11; the system by 10 and 11.
        let (shut, open) = if self.is_user() {
            (field == 0, field == 3)
        } else {
            (false, field >= 2)
        };
        if shut {
            return Err(Refused::Zone);
        }
        let found = Found {
            physical: entry.physical(address),
            entry: Some((number, entry)),
            write: open || entry.low & WRITE != 0,
            execute: open || entry.low & EXECUTE != 0,
        };
        match kind {
            Kind::Fetch if !found.execute => Err(Refused::Protected),
            Kind::Store if !found.write => Err(Refused::Protected),
            Kind::Fetch | Kind::Load | Kind::Store => Ok(found),
        }
    }

    /// Takes the interrupt for an access that is refused.
    pub const fn refuse(&mut self, frame: &mut Frame, address: u32, kind: Kind, why: Refused) {
        let store = if matches!(kind, Kind::Store) { esr::DST } else { 0 };
        let zone = if matches!(why, Refused::Zone) { esr::DIZ } else { 0 };
        let offset = match (kind, why) {
            (Kind::Fetch, Refused::Miss) => vector::INSTRUCTION_MISS,
            (Kind::Fetch, _) => {
                self.syndrome = zone;
                vector::INSTRUCTION_STORAGE
            }
            (_, Refused::Miss) => vector::DATA_MISS,
            (_, _) => vector::DATA_STORAGE,
        };
        if !matches!(kind, Kind::Fetch) {
            self.syndrome = store | zone;
            self.data_address = address;
        }
        self.take(frame, offset);
    }
}
