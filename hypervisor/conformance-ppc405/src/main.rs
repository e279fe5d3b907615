// SPDX-License-Identifier: Apache-2.0
//! The checks of `arch/conformance` on the backend of class `ppc405`, instead of the kernel.
//!
//! The guest is in the system image ([`Guest`]).
#![no_std]
#![no_main]

use bulkhead_arch_api::{Console, Cpus, EntryState, GuestPhys, Spaces, VcpuReset, VirtualLine};
use bulkhead_arch_conformance::{
    At, Bench, Dialect, Guest, Need, PROGRAM, Record, Role, Space, Step, operation, run, write_program,
};
use bulkhead_arch_ppc405::{Machine, Serial, entry_point};
use bulkhead_image::{Image, ImageError};

/// A line of the interrupt controller, whose line 0 is the most significant bit.
const LINE: u32 = 10;
/// A reset of the system in DBCR0 (PPC405 User's Manual, section 10).
const RESET_SYSTEM: u64 = 0x3000_0000;

const DIALECT: Dialect<'static> = Dialect {
    accept: &[Record::of(operation::OPEN, 1 << (31 - LINE))],
    reset: &[Record::of(operation::FIRMWARE, RESET_SYSTEM)],
    off: &[],
};

entry_point!(primary);

struct Board {
    machine: Machine,
    serial: Serial,
    guest: Guest,
}

impl Bench for Board {
    type Machine = Machine;

    fn machine(&mut self) -> &mut Machine {
        &mut self.machine
    }

    fn console(&mut self) -> &mut impl Console {
        &mut self.serial
    }

    fn space(&self, role: Role) -> Space {
        self.guest.space(role)
    }

    fn nowhere(&self) -> GuestPhys {
        Guest::NOWHERE
    }

    fn line(&self) -> VirtualLine {
        VirtualLine(LINE)
    }

    fn register_bits(&self) -> u32 {
        u32::BITS
    }

    fn is_big_endian(&self) -> bool {
        true
    }

    fn lacks(&self, need: Need) -> Option<&'static str> {
        match need {
            Need::Nothing | Need::Levels | Need::Protection => None,
            Need::Signals => Some("there is one pCPU"),
            Need::Wide => Some("a general register has 32 bits"),
            Need::SwitchingOff => Some("a processor of this class has nobody to ask for that"),
        }
    }

    fn load(&mut self, role: Role, steps: &'static [Step]) -> VcpuReset {
        let (start, code) = (self.address(role, At::Ram(PROGRAM)), self.guest.code);
        // Without its program the guest does what it did in an earlier check, which this one then sees.
        let _is_seen = self.machine.copy_out(role.partition(), start, code);
        let records = write_program(self, role, steps, &DIALECT);
        VcpuReset {
            state: EntryState::USUAL,
            entry: start,
            argument: records.map_or(0, |records| records.0),
            stack: start.0,
        }
    }
}

fn primary(mut machine: Machine, image: Result<Image<'static>, ImageError>) -> ! {
    let guest = image.ok().and_then(|image| Guest::find(&image));
    let Some(guest) = guest else { machine.stop() };
    run(Board {
        machine,
        serial: Serial,
        guest,
    })
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    bulkhead_arch_ppc405::panic(info)
}
