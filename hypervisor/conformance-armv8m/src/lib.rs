// SPDX-License-Identifier: Apache-2.0
//! The checks of `arch/conformance` on the backend of class `armv8m`, instead of the kernel.
#![no_std]

use bulkhead_arch_api::{VirtualDevice, VirtualLine};
use bulkhead_arch_armv8m::{Machine, Serial, entry_point};
use bulkhead_arch_conformance::{Class, Dialect, Need, Record, start};
use bulkhead_image::{Image, ImageError};

/// An interrupt line of the board.
const LINE: u32 = 20;
/// NVIC_ISER0, and AIRCR with its key and SYSRESETREQ (Arm DDI 0553B, D1.2.186 and D1.2.2).
const ENABLE: u64 = 0xE000_E100;
const CONTROL: u64 = 0xE000_ED0C;
const RESET: u64 = 0x05FA_0004;

entry_point!(primary);

struct Armv8m;

impl Class for Armv8m {
    type Machine = Machine;
    type Serial = Serial;
    const LINE: VirtualLine = VirtualLine(LINE);

    fn dialect(_controller: Option<&[VirtualDevice; 2]>) -> Dialect {
        let enable = Record::store(ENABLE, 4, 1 << LINE);
        Dialect {
            accept: [Some(enable), None, None, None, None, None],
            reset: Record::store(CONTROL, 4, RESET),
            off: None,
        }
    }

    fn lacks(need: Need) -> Option<&'static str> {
        match need {
            Need::Signals => Some("there is one pCPU"),
            Need::Wide => Some("the bus is 32 bits wide"),
            // Arm DDI 0553B, B3.11.
            Need::Levels => Some("the NVIC keeps what has come until it is taken"),
            // Arm DDI 0553B, B6.1: WFI of Non-secure code does not trap.
            Need::Idle => Some("a VM sleeps in its own time"),
            Need::Resets => Some("a VM's request of a reset has no effect"),
            // Arm DDI 0553B, B8.3.
            Need::Constants => Some("the SAU knows no rights"),
            Need::Protection => Some("only a window that is held changes its rights"),
            Need::SwitchingOff => Some("a microcontroller has nothing to ask for that"),
            _ => None,
        }
    }
}

fn primary(machine: Machine, image: Result<Image<'static>, ImageError>) -> ! {
    start::<Armv8m>(machine, Serial, image)
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    bulkhead_arch_armv8m::panic(info)
}
