// SPDX-License-Identifier: Apache-2.0
//! A bare-metal program for class `armv8m` that does what a broken or malicious program could do, at
//! random, with a world of the processor for itself.
//!
//! Half of its attacks are the ones of `mcu-hostile`, which Armv8-M has as well. The others are at the
//! border of the two worlds: Secure memory by its own and by other names, the registers that attribute
//! memory and devices, branches into the hypervisor, BXNS, BLXNS, SG and TT, forged returns from Secure
//! code and from exceptions, frames of floating point at foreign addresses, limits of stacks, and a
//! protection unit that denies all.
//!
//! `lives` says how an attack ends. The test looks from outside: the neighbours must be as they are without
//! this program.
#![no_std]
#![no_main]

#[path = "../../mcu-hostile/src/attacks.rs"]
mod attacks;
#[path = "../../../suites/mcu-suite/src/console.rs"]
mod console;
#[allow(dead_code, reason = "shared with the suite, which uses all of it")]
#[path = "../../../suites/mcu-suite/src/cpu.rs"]
mod cpu;
#[path = "../../mcu-hostile/src/edges.rs"]
mod edges;
mod entry;
mod instructions;
#[path = "../../mcu-hostile/src/lives.rs"]
mod lives;
#[path = "../../mcu-hostile/src/progress.rs"]
mod progress;
#[path = "../../mcu-hostile/src/recovery.rs"]
mod recovery;
#[path = "../../../suites/mcu-suite/src/reset.rs"]
mod reset;
mod targets;
mod worlds;

use console::print;
use progress::{below, draw};

/// Makes one attack.
fn attack() {
    if below(2) == 0 {
        attacks::one();
    } else {
        worlds::one();
    }
}
