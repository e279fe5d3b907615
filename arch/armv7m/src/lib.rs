// SPDX-License-Identifier: Apache-2.0
//! Backend of class `armv7m`: Cortex-M3/M4/M7, which have no support for virtual machines.
//!
//! A guest always runs in Thread mode, unprivileged, on the process stack. The guest's operations on the
//! processor itself trap, and `bulkhead_arch_armv7m_core` says what a processor of its own would have done.
//! The memory protection unit keeps memory apart (`bulkhead_arch_regions`). There is no translation.
//!
//! The hypervisor runs in Handler mode from its first moments on: it *is* the handler of the exception that
//! took the CPU out of a guest, until it returns from this exception into the same or another guest. All
//! exceptions have the same priority, so nothing interrupts the hypervisor, and nothing has to be masked.
//!
//! Way through the files, from the ground up; imports point from a line to the lines above it only.
//! - **Ground**: `sysreg`, `fp` (the processor's registers), `pool`, `context`, `protection` (spaces in the
//!   memory protection unit), `starts`, `lines`, `counter`, `arrival`: hardware and plain data.
//! - **Machine**: `machine` (the struct), `window`, `log`.
//! - **Guest at a trap**: `live` (its registers and memory), `trapped` (with its processor and space).
//! - **Time and lines**: `clock`, `latency`, `early`, `irq`; and `switch`: the vCPU whose configuration is in
//!   the hardware.
//! - **Traps**: `answer` (the answers to a guest's trap) -> `traps` (the way of every trap) -> `quick` (the
//!   shortest ways) -> `entry`, `early_entry` (assembly).
//! - **The kernel's verbs**: `vcpu`, `cpu`, `space`, `network`; `crash` is the end.
//! - **Roof**: `bring_up`.
//!
//! The decoding, and the behaviour of a real processor, are in `bulkhead_arch_armv7m_core`, where the host
//! tests them.
#![no_std]

mod answer;
mod arrival;
mod bring_up;
mod clock;
mod context;
mod cpu;
mod crash;
mod early;
mod early_entry;
mod entry;
mod fp;
mod irq;
mod latency;
mod lines;
mod live;
mod log;
mod machine;
mod masks;
mod network;
mod protection;
mod quick;
mod space;
mod starts;
mod switch;
mod sysreg;

mod trapped;
mod traps;
mod vcpu;
mod window;
mod words;

pub use bulkhead_arch_one_pcpu::Relax;
pub use bulkhead_arch_one_pcpu::cmsdk::Serial;
pub use crash::panic;
pub use machine::Machine;

/// Makes the class binary's function the one that `entry` jumps to.
///
/// The function takes the [`Machine`] and the system image, or the image's error, and does not return. The
/// machine is made after the image has been checked, so the stack has to hold only one of the two at a time.
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
