// SPDX-License-Identifier: Apache-2.0
//! Attacks of a task at the border of the two worlds.

use bulkhead_guest::random::Random;

use crate::attacks::{STACK, access, address, below, draw, run_with};
use crate::instructions::{self, RETURNS};

/// The bit of an address that makes it the name of the same place in the Secure world.
const SECURE: u32 = 1 << 28;

/// Draws a value that ends an exception or a call from Secure code, or looks like one.
fn return_value(random: &mut Random) -> u32 {
    match below(random, 4) {
        0 => 0xFFFF_FF00 | draw(random),
        1 => 0xFEFF_FFF0 | draw(random) & 0xF,
        _ => RETURNS[below(random, RETURNS.len() as u32) as usize],
    }
}

/// Draws a register that says to whom memory or a device belongs, or one of the Non-secure world by its name
/// for Secure code.
fn authority(random: &mut Random) -> u32 {
    /// The security controller, the memory protection controllers, a DMA controller and UARTs.
    const DEVICES: [u32; 10] = [
        0x5008_0000,
        0x5008_00D0,
        0x5800_7000,
        0x5800_8000,
        0x5800_9000,
        0x4008_0000,
        0x4011_0000,
        0x5011_0000,
        0x4020_0000,
        0x5020_0000,
    ];
    match below(random, 4) {
        0 => 0xE002_E000 + below(random, 0x1000),
        1 => 0xE000_EDD0 + below(random, 0x18),
        2 => 0xE000_E380 + below(random, 0x40),
        _ => DEVICES[below(random, DEVICES.len() as u32) as usize] + below(random, 0x100),
    }
}

/// Executes an instruction that changes worlds, or reads or writes a register of the other one. Its operand
/// is a place of the Non-secure world (bit 0 clear), any other, or a value that ends something.
fn instruction(random: &mut Random) -> ! {
    let number = below(random, instructions::count());
    let operand = match below(random, 3) {
        0 => return_value(random),
        1 => address(random) & !1,
        _ => address(random),
    };
    run_with(random, instructions::at(number), STACK, operand)
}

/// Branches to the memory of a VM by both names, or to a value that ends something.
fn jump(random: &mut Random) -> ! {
    let at = match below(random, 3) {
        0 => return_value(random),
        1 => (address(random) ^ SECURE) | 1,
        _ => address(random) | 1,
    };
    let first = address(random);
    run_with(random, at, STACK, first)
}

/// Makes one attack.
pub fn one(random: &mut Random) {
    match below(random, 8) {
        0..=2 => instruction(random),
        3 => jump(random),
        4 => {
            let at = address(random) ^ SECURE;
            access(random, at);
        }
        _ => {
            let at = authority(random);
            access(random, at);
        }
    }
}
