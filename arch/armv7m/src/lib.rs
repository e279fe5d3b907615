// SPDX-License-Identifier: Apache-2.0
//! Backend of class `armv7m`: Cortex-M3/M4/M7, which have no support for virtual machines.
//!
//! A guest always runs in Thread mode, unprivileged, on the process stack. What it does to the processor itself
//! traps, and `bulkhead_arch_deprivileged` says what a processor of its own would have done. Memory is kept apart
//! by the memory protection unit (`bulkhead_arch_regions`); there is no translation.
//!
//! The hypervisor runs in Handler mode from its first moments on: it *is* the handler of the exception that took
//! the CPU out of a guest, until it returns from it into the same or another guest. All exceptions have
//! the same priority, so nothing interrupts it, and nothing has to be masked.
//!
//! Way through the files: `entry` (assembly) -> `machine` -> `vcpu` (contexts, switch) -> `traps` (what took the
//! CPU out of a guest; `quick`: the same on the shortest way) -> `live` (a guest at its trap). `irq`, `network`, `clock`, `space`, `fp`, `cpu`, `console`, `log`, `pool` are
//! the remaining verbs, `crash` the end.
#![no_std]

mod arrival;
mod clock;
mod console;
mod cpu;
mod crash;
mod entry;
mod fp;
mod irq;
mod live;
mod log;
mod machine;
mod network;
mod pool;
mod quick;
mod space;
mod system;
mod traps;
mod vcpu;
mod window;

pub use crash::panic;
pub use machine::{Machine, Relax};

/// Makes the class binary's function the one that `entry` jumps to.
///
/// It takes the [`Machine`] and the system image, or what is wrong with it, and does not return. The machine is
/// made after the image has been checked, so that the stack has to hold the one or the other.
#[macro_export]
macro_rules! entry_point {
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
