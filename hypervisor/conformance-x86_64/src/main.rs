// SPDX-License-Identifier: Apache-2.0
//! The checks of `arch/conformance` on the backend of class `x86_64`, instead of the kernel.
#![no_std]
#![no_main]

use bulkhead_arch_api::class::device::APIC;
use bulkhead_arch_api::class::x86_64::FLAT_32;
use bulkhead_arch_api::{Cpus, GuestPhys, VcpuReset, VirtualDevice, VirtualLine};
use bulkhead_arch_conformance::{Class, Dialect, Need, Record, Role, operation, start};
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

struct X86;

impl Class for X86 {
    type Machine = Machine;
    type Serial = Serial;
    const LINE: VirtualLine = VirtualLine(LINE);
    const CONTROLLERS: &'static [u32] = &[APIC.number];
    /// VMs of the checks are in 32-bit mode, which needs no translation tables.
    const REGISTER_BITS: u32 = u32::BITS;

    fn dialect(controller: Option<&[VirtualDevice; 2]>) -> Dialect {
        Dialect {
            accept: controller.map(accept).unwrap_or_default(),
            reset: Record {
                operation: operation::FIRMWARE,
                size: 2,
                address: RESET,
                value: RESET_ALL,
            },
            off: None,
        }
    }

    fn lacks(need: Need) -> Option<&'static str> {
        match need {
            // Intel SDM 3A, 11.8.4.
            Need::Levels => Some("a local APIC keeps what has come until it is taken"),
            Need::Wide => Some("the VMs of the checks are in 32-bit mode"),
            Need::SwitchingOff => Some("a processor of a PC does not switch itself off"),
            _ => None,
        }
    }

    fn adjust(role: Role, reset: &mut VcpuReset) {
        if role == Role::Task {
            reset.entry = GuestPhys(reset.entry.0 + TASK);
        } else {
            reset.state = FLAT_32;
        }
    }
}

/// Returns the writes of a guest that make [`LINE`] arrive at its first vCPU.
fn accept([local, io]: &[VirtualDevice; 2]) -> [Option<Record>; 6] {
    [
        Some(Record::store(local.base() + SPURIOUS, 4, ENABLED)),
        Some(Record::store(io.base(), 4, ENTRY + 1)),
        Some(Record::store(io.base() + DATA, 4, 0)),
        Some(Record::store(io.base(), 4, ENTRY)),
        Some(Record::store(io.base() + DATA, 4, VECTOR)),
        None,
    ]
}

fn primary(machine: Machine, image: Result<Image<'static>, ImageError>) -> ! {
    start::<X86>(machine, Serial, image)
}

/// Stops: no other pCPU is started.
fn secondary(mut machine: Machine) -> ! {
    machine.stop()
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    bulkhead_arch_x86_64::panic(info)
}
