// SPDX-License-Identifier: Apache-2.0
//! The lives of a hostile program: attacks one after the other, from each start and each fault on.
//!
//! Every hostile program of a microcontroller has these lives. The root of each names its function `attack`.

use crate::console::print;
use crate::progress::{Progress, below};
use crate::{attacks, console, recovery};

/// Attacks of a line of output.
const GROUP: u32 = 64;

/// Called after a reset.
#[unsafe(no_mangle)]
extern "C" fn guest_main() -> ! {
    console::start();
    let mut progress = Progress::recall();
    progress.lives += 1;
    attack_for_ever(progress)
}

/// Called after a fault, on a fresh main stack.
#[unsafe(no_mangle)]
extern "C" fn hostile_again() -> ! {
    let mut progress = Progress::recall();
    progress.faults += 1;
    attack_for_ever(progress)
}

fn attack_for_ever(mut progress: Progress) -> ! {
    recovery::restore();
    loop {
        progress.attacks += 1;
        progress.keep();
        attacks::kick();
        if progress.attacks.is_multiple_of(GROUP) {
            recovery::restore();
            recovery::without_end();
            print!(
                "hostile: {} attacks, {} faults, {} lives\n",
                progress.attacks, progress.faults, progress.lives
            );
            recovery::restore();
        }
        progress.start_numbers();
        crate::attack();
        if below(4) == 0 {
            recovery::restore();
        }
        progress = Progress::recall();
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    hostile_again()
}
