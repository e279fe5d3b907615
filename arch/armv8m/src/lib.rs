// SPDX-License-Identifier: Apache-2.0
//! Backend of class `armv8m`: Cortex-M33 with TrustZone.
//!
//! The hypervisor is the Secure world. A VM is the whole Non-secure world while it runs, privileged code
//! included: its vector table, interrupt controller, SysTick, protection unit and stacks are the processor's
//! own, and its interrupts are no exits. A task is Secure unprivileged code under the Secure protection unit.
//! There is no translation, and all software uses the same addresses.
//!
//! The hypervisor runs in Secure Handler mode from its first moments on: it *is* the handler of the exception
//! that took the CPU out of a partition, until it returns from this exception into the same or another one.
//! All its exceptions have the same priority, above all of the Non-secure world, so nothing interrupts the
//! hypervisor, and nothing has to be masked.
//!
//! Way through the files, from the ground up; imports point from a line to the lines above it only.
//! - **Ground**: `sysreg`, `fp` (the processor's registers), `line_set`, `world` (the Non-secure state of a
//!   VM), `lines`, `context`, `attribution` (what is Non-secure), `protection` (spaces): hardware and plain
//!   data.
//! - **Machine**: `machine` (the struct), `enter` (what the assembly offers), `log`.
//! - **Partition at a trap**: `live` (its registers and memory).
//! - **Time, lines, worlds**: `clock`, `irq`, `passage` (out of handlers and into them), `floats` (of tasks),
//!   `switch`, `held` (memory that a partition holds).
//! - **Traps**: `answer` (the answers to a trap), `hard_fault` (the one that a VM is shown) -> `traps` (the
//!   way of every trap) -> `entry` (assembly).
//! - **The kernel's verbs**: `vcpu`, `cpu`, `space`; `crash` is the end.
//! - **Roof**: `bring_up`.
//!
//! **Two pCPUs** (`pair`, `view`, `wish`, `second`, `second_entry`): these files are in the class binaries of
//! systems with a second pCPU only.
#![no_std]

mod answer;
mod attribution;
mod bring_up;
mod clock;
mod context;
mod cpu;
mod crash;
mod enter;
mod entry;
mod floats;
mod fp;
mod hard_fault;
mod held;
mod irq;
mod late;
mod line_set;
mod lines;
mod live;
mod loan;
mod log;
mod machine;
mod pair;
mod passage;
mod protection;
mod second;
mod second_entry;
mod space;
mod switch;
mod sysreg;
mod traps;
mod vcpu;
mod view;
mod windows;
mod wish;
mod world;

pub use bulkhead_arch_one_pcpu::cmsdk::Serial;
pub use crash::panic;
pub use machine::Machine;
pub use pair::{IS_PAIR, Relax};

/// Makes the class binary's function the one that `entry` jumps to.
///
/// The function takes the [`Machine`] and the system image, or the image's error, and does not return. The
/// machine is made after the image has been checked, so the stack has to hold only one of the two at a time.
/// A second function is the one of the second pCPU. It takes the machine of this pCPU.
#[macro_export]
macro_rules! entry_point {
    ($primary:path, $secondary:path) => {
        $crate::entry_point!($primary);

        #[unsafe(no_mangle)]
        extern "C" fn secondary_main() -> ! {
            if $crate::IS_PAIR
                && let Some(machine) = $crate::Machine::of_second()
            {
                $secondary(machine)
            }
            loop {}
        }
    };
    ($primary:path) => {
        #[unsafe(no_mangle)]
        extern "C" fn primary_main() -> ! {
            let mut image = $crate::Machine::image();
            let machine = $crate::Machine::of(&image);
            $crate::Machine::check_programs(&mut image);
            $primary(machine, image)
        }
    };
}
