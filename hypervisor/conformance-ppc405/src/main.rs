// SPDX-License-Identifier: Apache-2.0
//! The checks of `arch/conformance` on the backend of class `ppc405`, instead of the kernel.
#![no_std]
#![no_main]

use bulkhead_arch_api::{VirtualDevice, VirtualLine};
use bulkhead_arch_conformance::{Class, Dialect, Need, Record, operation, start};
use bulkhead_arch_ppc405::{Machine, Serial, entry_point};
use bulkhead_image::{Image, ImageError};

/// A line of the interrupt controller, whose line 0 is the most significant bit.
const LINE: u32 = 10;
/// A reset of the system in DBCR0 (PPC405 User's Manual, section 10).
const RESET_SYSTEM: u64 = 0x3000_0000;

entry_point!(primary);

struct Ppc405;

impl Class for Ppc405 {
    type Machine = Machine;
    type Serial = Serial;
    const LINE: VirtualLine = VirtualLine(LINE);

    fn dialect(_controller: Option<&[VirtualDevice; 2]>) -> Dialect {
        let open = Record::of(operation::OPEN, 1 << (31 - LINE));
        Dialect {
            accept: [Some(open), None, None, None, None, None],
            reset: Record::of(operation::FIRMWARE, RESET_SYSTEM),
            off: None,
        }
    }

    fn lacks(need: Need) -> Option<&'static str> {
        match need {
            Need::Signals => Some("there is one pCPU"),
            Need::Wide => Some("a general register has 32 bits"),
            Need::SwitchingOff => Some("a processor of this class has nothing to ask for that"),
            _ => None,
        }
    }
}

fn primary(machine: Machine, image: Result<Image<'static>, ImageError>) -> ! {
    start::<Ppc405>(machine, Serial, image)
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    bulkhead_arch_ppc405::panic(info)
}
