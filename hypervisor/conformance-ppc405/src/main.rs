// SPDX-License-Identifier: Apache-2.0
//! The checks of `arch/conformance` on the backend of class `ppc405`, instead of the kernel.
//!
//! The system image has one partition: the guest that does what the checks say. Its code is copied into the
//! RAM of each partition of the checks. They share the memory of that partition, but for the one that must
//! have some of its own.
#![no_std]
#![no_main]

use bulkhead_arch_api::{Console, Cpus, EntryState, GuestPhys, Spaces, VcpuReset, VirtualLine};
use bulkhead_arch_conformance::{
    At, Bench, Dialect, Need, PAGE, PROGRAM, RAM_SIZE, Record, Role, Space, Step, operation, ram_region,
    report_all, write_program,
};
use bulkhead_arch_ppc405::{Machine, Serial, entry_point};
use bulkhead_image::{Image, ImageError};

/// Memory of a partition.
const SLICE: u64 = 0x8000;
/// The addresses at which a partition sees its RAM, memory that it may only read, and nothing.
const RAM: u64 = 0x4000_0000;
const CONSTANT: u64 = 0x5000_0000;
const NOWHERE: u64 = 0x6000_0000;
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

/// The guest, as the system image has it.
struct Guest {
    memory: u64,
    code: &'static [u8],
}

impl Guest {
    /// Returns the guest of the system image, or `None` if it is not there.
    fn find(image: &Image<'static>) -> Option<Self> {
        let entry = image.partitions().first()?.entry.get();
        let load = image.loads_of(0, 0).find(|load| {
            let start = load.guest.get();
            (start..start + load.size.get()).contains(&entry)
        })?;
        let from = (load.offset.get() + entry - load.guest.get()) as usize;
        let behind = (load.offset.get() + load.size.get()) as usize;
        let code = image.payload(load.payload.get()).get(from..behind)?;
        let memory = image.memory_of(0).find(|record| record.size.get() >= 2 * SLICE)?;
        Some(Self {
            memory: memory.host.get(),
            code: code.get(..(PAGE as usize).min(code.len()))?,
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
        let slice = self.guest.memory + if role == Role::Other { SLICE } else { 0 };
        Space {
            ram: ram_region(RAM, slice, RAM_SIZE, true, true),
            constant: ram_region(CONSTANT, slice + RAM_SIZE, PAGE, false, false),
            program: None,
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

    fn is_big_endian(&self) -> bool {
        true
    }

    fn lacks(&self, need: Need) -> Option<&'static str> {
        match need {
            Need::Nothing | Need::Levels => None,
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
    let mut board = Board {
        machine,
        serial: Serial,
        guest,
    };
    report_all(&mut board);
    board.machine.power_off();
    board.machine.stop()
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    bulkhead_arch_ppc405::panic(info)
}
