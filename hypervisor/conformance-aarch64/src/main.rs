// SPDX-License-Identifier: Apache-2.0
//! The checks of `arch/conformance` on the backend of class `aarch64`, instead of the kernel.
//!
//! The guest is in the system image ([`Guest`]).
#![no_std]
#![no_main]

use bulkhead_arch_aarch64::{Machine, Serial, entry_points};
use bulkhead_arch_api::class::device::{GIC_V2, GIC_V3};
use bulkhead_arch_api::{
    Console, Cpus, EntryState, GuestPhys, Spaces, VcpuReset, VirtualDevice, VirtualLine,
};
use bulkhead_arch_conformance::{
    At, Bench, Dialect, Guest, PROGRAM, Record, Role, Space, Step, controller, operation, run, write_program,
};
use bulkhead_image::{Image, ImageError};

/// A shared interrupt line, and its bit in registers with a bit for each line.
const LINE: u32 = 40;
const WORD: u64 = LINE as u64 / 32 * 4;
const BIT: u64 = 1 << (LINE % 32);
/// PSCI CPU_OFF and SYSTEM_RESET (Arm DEN 0022F, 5.1).
const CPU_OFF: u64 = 0x8400_0002;
const SYSTEM_RESET: u64 = 0x8400_0009;
/// Registers of a distributor and of a CPU interface (Arm IHI 0069 12.8, IHI 0048B 4.3 and 4.4).
const CONTROL: u64 = 0;
const GROUP: u64 = 0x80 + WORD;
const SET_ENABLE: u64 = 0x100 + WORD;
const PRIORITY: u64 = 0x400 + LINE as u64;
const TARGETS: u64 = 0x800 + LINE as u64;
const PRIORITY_MASK: u64 = 4;

entry_points!(primary, secondary);

struct Board {
    machine: Machine,
    serial: Serial,
    guest: Guest,
    /// The windows of the guest's interrupt controller, and the lines of that.
    controller: ([VirtualDevice; 2], u32),
    accept: [Record; 6],
}

/// Returns the writes of a guest that make [`LINE`] arrive at its first vCPU.
fn accept([distributor, interface]: &[VirtualDevice; 2]) -> [Record; 6] {
    let at = |offset, size, value| Record::store(distributor.base() + offset, size, value);
    if distributor.kind() == GIC_V3.number {
        // Group 1, with affinity routing, which starts with the first vCPU.
        [
            at(GROUP, 4, BIT),
            at(PRIORITY, 1, 0x80),
            at(CONTROL, 4, 1 << 1 | 1 << 4),
            at(SET_ENABLE, 4, BIT),
            Record::of(operation::OPEN, 0),
            at(SET_ENABLE, 4, BIT),
        ]
    } else {
        [
            at(TARGETS, 1, 1),
            at(PRIORITY, 1, 0x80),
            at(CONTROL, 4, 1),
            at(SET_ENABLE, 4, BIT),
            Record::store(interface.base() + PRIORITY_MASK, 4, 0xFF),
            Record::store(interface.base() + CONTROL, 4, 1),
        ]
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

    fn register_bits(&self) -> u32 {
        u64::BITS
    }

    fn load(&mut self, role: Role, steps: &'static [Step]) -> VcpuReset {
        let (entry, code, accept) = (self.address(role, At::Ram(PROGRAM)), self.guest.code, self.accept);
        // Without its program the guest does what it did in an earlier check, which this one then sees.
        let _is_seen = self.machine.copy_out(role.partition(), entry, code);
        let dialect = Dialect {
            accept: &accept,
            reset: &[Record::of(operation::FIRMWARE, SYSTEM_RESET)],
            off: &[Record::of(operation::FIRMWARE, CPU_OFF)],
        };
        let records = write_program(self, role, steps, &dialect);
        VcpuReset {
            state: EntryState::USUAL,
            entry,
            argument: records.map_or(0, |records| records.0),
            stack: entry.0,
        }
    }
}

fn primary(mut machine: Machine, image: Result<Image<'static>, ImageError>) -> ! {
    let found = image.ok().and_then(|image| {
        Some((
            Guest::find(&image)?,
            controller(&image, &[GIC_V2.number, GIC_V3.number])?,
        ))
    });
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
    bulkhead_arch_aarch64::panic(info)
}
