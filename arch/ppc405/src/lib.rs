// SPDX-License-Identifier: Apache-2.0
//! Backend of class `ppc405`: PowerPC 405, which has no support for virtual machines.
//!
//! A guest always runs in problem state with both translations on. Each of its operations on its processor is
//! a program interrupt, and `bulkhead_arch_ppc405_core` says what a processor of its own would have done. The
//! translation buffer keeps memory apart. Software fills it, so only entries that the rules of `fill` allow
//! are ever there.
//!
//! The hypervisor runs in real mode. It takes no entry of the buffer and no address from a guest. Interrupts
//! are off while it runs. SPRG1 to SPRG3 are its own; SPRG0 and SPRG4 to SPRG7 hold the guest's values,
//! because a program in problem state can read them (SPRG0 as USPRG0 in QEMU 7.2).
//!
//! Way through the files, from the ground up; imports point from a line to the lines above it only.
//! - **Ground**: `sysreg` (the processor's registers), `layout`, `log`: hardware and plain data.
//! - **Data**: `regions` (spaces of partitions), `buffer` (the real translation buffer), `context` (vCPUs),
//!   `machine` (the struct).
//! - **Verbs of a pCPU**: `clock`, `irq`, `space`, `console`.
//! - **Guest at a trap**: `guest` (its memory and translations), `access` (loads and stores that no memory
//!   answers), `short_call` (calls without an exit), `instruction` (privileged ones), `traps` (the way of
//!   every trap) -> `entry` (assembly).
//! - **The kernel's verbs**: `switch`, `vcpu`, `cpu`; `crash` is the end.
//! - **Roof**: `bring_up`.
#![no_std]

mod access;
mod bring_up;
mod buffer;
mod clock;
mod console;
mod context;
mod cpu;
mod crash;
mod entry;
mod guest;
mod instruction;
mod irq;
mod layout;
mod lines;
mod log;
mod machine;

mod regions;
mod short_call;
mod space;
mod switch;
mod sysreg;
mod traps;
mod vcpu;

pub use bulkhead_arch_one_pcpu::Relax;
pub use console::Serial;
pub use crash::panic;
pub use machine::Machine;

/// Makes the class binary's function the one that `entry` jumps to.
///
/// The function takes the [`Machine`] and the system image, or the image's error, and does not return.
#[macro_export]
macro_rules! entry_point {
    ($primary:path) => {
        #[unsafe(no_mangle)]
        extern "C" fn primary_main() -> ! {
            let (machine, image) = $crate::Machine::primary();
            $primary(machine, image)
        }
    };
}
