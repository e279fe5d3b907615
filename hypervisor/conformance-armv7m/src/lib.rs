// SPDX-License-Identifier: Apache-2.0
//! The checks of `arch/conformance` on the backend of class `armv7m`, instead of the kernel.
//!
//! The system image has one partition: the guest that does what the checks say. All partitions of the checks
//! execute its code where it is and share its RAM, but for the one that must have some of its own.
#![no_std]

use bulkhead_arch_api::{Console, Cpus, EntryState, GuestPhys, Region, VcpuReset, VirtualLine};
use bulkhead_arch_armv7m::{Machine, Serial, entry_point};
use bulkhead_arch_conformance::{
    At, Bench, Dialect, Need, PAGE, RAM_SIZE, RECORDS, Record, Role, Space, Step, ram_region, run,
    write_program,
};
use bulkhead_image::layout::{MEMORY_EXECUTE, MEMORY_WRITE};
use bulkhead_image::{Image, ImageError};

/// RAM of a partition, with what it may only read and a gap between them.
const SLICE: u64 = 0x8000;
/// The offset of the read-only page in the slice.
const CONSTANT: u64 = 0x6000;
/// An address where nothing is: the board has no memory here, and no partition has a device here.
const NOWHERE: u64 = 0x7000_0000;
/// An interrupt line of the board.
const LINE: u32 = 20;
/// NVIC_ISER0, and AIRCR with its key and SYSRESETREQ (Arm DDI 0403E.e, B3.4.4 and B3.2.6).
const ENABLE: u64 = 0xE000_E100;
const RESET: (u64, u64) = (0xE000_ED0C, 0x05FA_0004);

const DIALECT: Dialect<'static> = Dialect {
    accept: &[Record::store(ENABLE, 4, 1 << LINE)],
    reset: &[Record::store(RESET.0, 4, RESET.1)],
    off: &[],
};

entry_point!(primary);

struct Board {
    machine: Machine,
    serial: Serial,
    guest: Guest,
}

/// The guest, as the system image has it.
struct Guest {
    /// The guest's code, and its first RAM address.
    code: Region,
    ram: u64,
    entry: u64,
}

impl Guest {
    /// Returns the guest of the system image, or `None` if it is not there.
    fn find(image: &Image<'_>) -> Option<Self> {
        let has = |flag| image.memory_of(0).find(|record| record.flags.get() & flag != 0);
        let (code, ram) = (has(MEMORY_EXECUTE)?, has(MEMORY_WRITE)?);
        (ram.size.get() >= 2 * SLICE).then_some(())?;
        Some(Self {
            code: ram_region(code.host.get(), code.host.get(), code.size.get(), false, true),
            ram: ram.host.get(),
            entry: image.partitions().first()?.entry.get(),
        })
    }
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
        let slice = self.guest.ram + if role == Role::Other { SLICE } else { 0 };
        Space {
            ram: ram_region(slice, slice, RAM_SIZE, true, false),
            constant: ram_region(slice + CONSTANT, slice + CONSTANT, PAGE, false, false),
            program: Some(self.guest.code),
        }
    }

    fn nowhere(&self) -> GuestPhys {
        GuestPhys(NOWHERE)
    }

    fn line(&self) -> VirtualLine {
        VirtualLine(LINE)
    }

    fn register_bits(&self) -> u32 {
        u32::BITS
    }

    fn lacks(&self, need: Need) -> Option<&'static str> {
        match need {
            Need::Nothing | Need::Protection => None,
            Need::Signals => Some("there is one pCPU"),
            Need::Wide => Some("the bus is 32 bits wide"),
            // Arm DDI 0403E.e, B3.4.1.
            Need::Levels => Some("the NVIC keeps what has come until it is taken"),
            Need::SwitchingOff => Some("a microcontroller has nobody to ask for that"),
        }
    }

    fn load(&mut self, role: Role, steps: &'static [Step]) -> VcpuReset {
        let records = self.address(role, At::Ram(RECORDS)).0;
        // Without its program the guest finds the program of an earlier check, which this one then sees.
        let _is_seen = write_program(self, role, steps, &DIALECT);
        VcpuReset {
            state: EntryState::USUAL,
            entry: GuestPhys(self.guest.entry),
            argument: self.guest.code.guest.0,
            stack: records,
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
    bulkhead_arch_armv7m::panic(info)
}
