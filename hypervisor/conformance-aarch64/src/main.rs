// SPDX-License-Identifier: Apache-2.0
//! The checks of `arch/conformance` on the backend of class `aarch64`, instead of the kernel.
#![no_std]
#![no_main]

use bulkhead_arch_aarch64::{Machine, Serial, entry_points};
use bulkhead_arch_api::class::device::{GIC_V2, GIC_V3};
use bulkhead_arch_api::{Cpus, VirtualDevice, VirtualLine};
use bulkhead_arch_conformance::{Class, Dialect, Record, operation, start};
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

struct Aarch64;

impl Class for Aarch64 {
    type Machine = Machine;
    type Serial = Serial;
    const LINE: VirtualLine = VirtualLine(LINE);
    const CONTROLLERS: &'static [u32] = &[GIC_V2.number, GIC_V3.number];

    fn dialect(controller: Option<&[VirtualDevice; 2]>) -> Dialect {
        let accept = controller.map(accept).unwrap_or_default();
        Dialect {
            accept,
            reset: Record::of(operation::FIRMWARE, SYSTEM_RESET),
            off: Some(Record::of(operation::FIRMWARE, CPU_OFF)),
        }
    }
}

/// Returns the writes of a guest that make [`LINE`] arrive at its first vCPU.
fn accept([distributor, interface]: &[VirtualDevice; 2]) -> [Option<Record>; 6] {
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
    .map(Some)
}

fn primary(machine: Machine, image: Result<Image<'static>, ImageError>) -> ! {
    start::<Aarch64>(machine, Serial, image)
}

/// Stops: no other pCPU is started.
fn secondary(mut machine: Machine) -> ! {
    machine.stop()
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    bulkhead_arch_aarch64::panic(info)
}
