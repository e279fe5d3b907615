// SPDX-License-Identifier: Apache-2.0
//! A task of class `armv8m` that does what a broken or malicious program without privileges could do, at
//! random.
//!
//! Half of its attacks are the ones of `mcu-hostile-task`, whose file says what the task needs. The others
//! are at the border of the two worlds. A task is Secure code: it may execute BXNS, BLXNS and SG, branch to
//! the memory of VMs, and try the registers of both worlds by all their names.
#![no_std]
#![no_main]

#[path = "../../mcu-hostile-task/src/attacks.rs"]
mod attacks;
#[path = "../../world-hostile/src/instructions.rs"]
mod instructions;
#[path = "../../mcu-hostile-task/src/lives.rs"]
mod lives;
mod targets;
mod worlds;

use bulkhead_guest::random::Random;

bulkhead_guest::task_main!(lives::main);

/// Makes one attack.
fn attack(random: &mut Random) {
    if attacks::below(random, 2) == 0 {
        attacks::one(random);
    } else {
        worlds::one(random);
    }
}
