// SPDX-License-Identifier: Apache-2.0
//! The checks of `arch/conformance` on the backend of class `x86_64`, instead of the kernel.
//!
//! The guest is in the system image ([`Guest`]).
#![no_std]
#![no_main]

use bulkhead_arch_api::class::device::APIC;
use bulkhead_arch_api::class::x86_64::FLAT_32;
use bulkhead_arch_api::{
    Console, Cpus, EntryState, GuestPhys, Spaces, VcpuReset, VirtualDevice, VirtualLine,
};
use bulkhead_arch_conformance::{
    At, Bench, Dialect, Guest, Need, PROGRAM, Record, Role, Space, Step, controller, operation, run,
    write_program,
};
use bulkhead_arch_x86_64::{Machine, Serial, entry_points};
use bulkhead_image::{Image, ImageError};

/// A pin of the I/O APIC, and the vector that it is given.
const LINE: u32 = 10;
const VECTOR: u64 = 0x40;
/// Registers of the local APIC (Intel SDM 3A, 11.4.1) and of the I/O APIC (82093AA, 3.0).
const SPURIOUS: u64 = 0xF0;
const ENABLED: u64 = 0x1FF;
const DATA: u64 = 0x10;
const ENTRY: u64 = 0x10 + 2 * LINE as u64;
/// The reset register, and a value that resets.
const RESET: u64 = 0xCF9;
const RESET_ALL: u64 = 6;
/// Where the guest's part for tasks begins.
const TASK: u64 = 0x400;

entry_points!(primary, secondary);

struct Board {
    machine: Machine,
    serial: Serial,
    guest: Guest,
    /// The windows of the guest's interrupt controller, and the lines of that.
    controller: ([VirtualDevice; 2], u32),
    accept: [Record; 5],
}

/// Returns the writes of a guest that make [`LINE`] arrive at its first vCPU.
fn accept([local, io]: &[VirtualDevice; 2]) -> [Record; 5] {
    [
        Record::store(local.base() + SPURIOUS, 4, ENABLED),
        Record::store(io.base(), 4, ENTRY + 1),
        Record::store(io.base() + DATA, 4, 0),
        Record::store(io.base(), 4, ENTRY),
        Record::store(io.base() + DATA, 4, VECTOR),
    ]
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

    fn controller(&self) -> Option<([VirtualDevice; 2], u32)> {
        Some(self.controller)
    }

    fn line(&self) -> VirtualLine {
        VirtualLine(LINE)
    }

    /// VMs of the checks are in 32-bit mode, which needs no translation tables.
    fn register_bits(&self) -> u32 {
        u32::BITS
    }

    fn lacks(&self, need: Need) -> Option<&'static str> {
        match need {
            Need::Nothing | Need::Signals | Need::Protection => None,
            // Intel SDM 3A, 11.8.4.
            Need::Levels => Some("a local APIC keeps what has come until it is taken"),
            Need::Wide => Some("the VMs of the checks are in 32-bit mode"),
            Need::SwitchingOff => Some("a processor of a PC does not switch itself off"),
        }
    }

    fn load(&mut self, role: Role, steps: &'static [Step]) -> VcpuReset {
        let (start, code, accept) = (self.address(role, At::Ram(PROGRAM)), self.guest.code, self.accept);
        // Without its program the guest does what it did in an earlier check, which this one then sees.
        let _is_seen = self.machine.copy_out(role.partition(), start, code);
        let port = |address, value| Record {
            operation: operation::FIRMWARE,
            size: 2,
            address,
            value,
        };
        let dialect = Dialect {
            accept: &accept,
            reset: &[port(RESET, RESET_ALL)],
            off: &[],
        };
        let records = write_program(self, role, steps, &dialect);
        let is_task = role == Role::Task;
        VcpuReset {
            state: if is_task { EntryState::USUAL } else { FLAT_32 },
            entry: GuestPhys(start.0 + if is_task { TASK } else { 0 }),
            argument: records.map_or(0, |records| records.0),
            stack: start.0,
        }
    }
}

fn primary(mut machine: Machine, image: Result<Image<'static>, ImageError>) -> ! {
    let found = image
        .ok()
        .and_then(|image| Some((Guest::find(&image)?, controller(&image, &[APIC.number])?)));
    let Some((guest, controller)) = found else {
        machine.stop()
    };
    run(Board {
        machine,
        serial: Serial,
        guest,
        accept: accept(&controller.0),
        controller,
    })
}

/// Stops: no other pCPU is started.
fn secondary(mut machine: Machine) -> ! {
    machine.stop()
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    bulkhead_arch_x86_64::panic(info)
}
