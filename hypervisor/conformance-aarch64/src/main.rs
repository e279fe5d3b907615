// SPDX-License-Identifier: Apache-2.0
//! The checks of `arch/conformance` on the backend of class `aarch64`, instead of the kernel.
//!
//! The system image has one partition: the guest that does what the checks say. Its code is copied into the RAM of each
//! partition of the checks; they share the memory of that partition, but for the one that must have some of its own.
#![no_std]
#![no_main]

use bulkhead_arch_aarch64::{Machine, entry_points};
use bulkhead_arch_api::{ControllerKind, Cpus, GuestPhys, Spaces, VcpuReset, VirtualController, VirtualLine};
use bulkhead_arch_conformance::{
    At, Bench, Dialect, PAGE, PROGRAM, RAM_SIZE, Record, Role, Space, Step, operation, ram_region,
    report_all, write_program,
};
use bulkhead_image::layout::{VIRTUAL_GIC_V2, VIRTUAL_GIC_V3};
use bulkhead_image::{Image, ImageError};

/// Memory of a partition.
const SLICE: u64 = 0x8000;
/// Where a partition sees its RAM, what it may only read, and nothing.
const RAM: u64 = 0x4000_0000;
const CONSTANT: u64 = 0x5000_0000;
const NOWHERE: u64 = 0x6000_0000;
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
    guest: Guest,
}

/// The guest, as the system image has it.
struct Guest {
    memory: u64,
    code: &'static [u8],
    controller: VirtualController,
    accept: [Record; 6],
}

/// What a guest writes so that [`LINE`] is delivered to its first vCPU.
fn accept(controller: &VirtualController) -> [Record; 6] {
    let [(distributor, _), (interface, _)] = controller.windows;
    let at = |offset, size, value| Record::store(distributor.0 + offset, size, value);
    match controller.kind {
        // Group 1, with affinity routing, which starts with the first vCPU.
        ControllerKind::GicV3 => [
            at(GROUP, 4, BIT),
            at(PRIORITY, 1, 0x80),
            at(CONTROL, 4, 1 << 1 | 1 << 4),
            at(SET_ENABLE, 4, BIT),
            Record::of(operation::OPEN, 0),
            at(SET_ENABLE, 4, BIT),
        ],
        ControllerKind::GicV2 => [
            at(TARGETS, 1, 1),
            at(PRIORITY, 1, 0x80),
            at(CONTROL, 4, 1),
            at(SET_ENABLE, 4, BIT),
            Record::store(interface.0 + PRIORITY_MASK, 4, 0xFF),
            Record::store(interface.0 + CONTROL, 4, 1),
        ],
    }
}

impl Guest {
    /// The guest of the system image; `None` if it is not there.
    fn find(image: &Image<'static>) -> Option<Self> {
        let guest = image.partitions().first()?;
        let entry = guest.entry.get();
        let load = image.loads_of(0, 0).find(|load| {
            let start = load.guest.get();
            (start..start + load.size.get()).contains(&entry)
        })?;
        let from = (load.offset.get() + entry - load.guest.get()) as usize;
        let behind = (load.offset.get() + load.size.get()) as usize;
        let code = image.payload(load.payload.get()).get(from..behind)?;
        let memory = image.memory_of(0).find(|record| record.size.get() >= 2 * SLICE)?;
        let controller = controller(image, guest.virtual_lines.get())?;
        Some(Self {
            memory: memory.host.get(),
            code: code.get(..(PAGE as usize).min(code.len()))?,
            accept: accept(&controller),
            controller,
        })
    }
}

/// The virtual interrupt controller of the system image's partition.
fn controller(image: &Image<'_>, lines: u32) -> Option<VirtualController> {
    let is_one = |kind: u32| matches!(kind, VIRTUAL_GIC_V2 | VIRTUAL_GIC_V3);
    let device = image
        .virtual_devices_of(0)
        .find(|device| is_one(device.kind.get()))?;
    let window = |index: usize| {
        let (base, size) = (device.base.get(index)?, device.size.get(index)?);
        Some((GuestPhys(base.get()), size.get()))
    };
    Some(VirtualController {
        kind: if device.kind.get() == VIRTUAL_GIC_V2 {
            ControllerKind::GicV2
        } else {
            ControllerKind::GicV3
        },
        windows: [window(0)?, window(1)?],
        lines,
    })
}

impl Bench for Board {
    type Machine = Machine;

    fn machine(&mut self) -> &mut Machine {
        &mut self.machine
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

    fn controller(&self) -> Option<VirtualController> {
        Some(self.guest.controller)
    }

    fn line(&self) -> VirtualLine {
        VirtualLine(LINE)
    }

    fn register_bits(&self) -> u32 {
        u64::BITS
    }

    fn load(&mut self, role: Role, steps: &'static [Step]) -> VcpuReset {
        let (entry, code, accept) = (
            self.address(role, At::Ram(PROGRAM)),
            self.guest.code,
            self.guest.accept,
        );
        // Without its program the guest does what it did in an earlier check, which this one then sees.
        let _is_seen = self.machine.copy_out(role.partition(), entry, code);
        let dialect = Dialect {
            accept: &accept,
            reset: &[Record::of(operation::FIRMWARE, SYSTEM_RESET)],
            off: &[Record::of(operation::FIRMWARE, CPU_OFF)],
        };
        let records = write_program(self, role, steps, &dialect);
        VcpuReset {
            entry,
            argument: records.map_or(0, |records| records.0),
            stack: entry.0,
        }
    }
}

fn primary(mut machine: Machine, image: Result<Image<'static>, ImageError>) -> ! {
    let guest = image.ok().and_then(|image| Guest::find(&image));
    let Some(guest) = guest else { machine.stop() };
    let mut board = Board { machine, guest };
    report_all(&mut board);
    board.machine.power_off();
    board.machine.stop()
}

/// No other pCPU is started.
fn secondary(mut machine: Machine) -> ! {
    machine.stop()
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    bulkhead_arch_aarch64::panic(info)
}
