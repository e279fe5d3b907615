// SPDX-License-Identifier: Apache-2.0
//! Backend of class `x86_64`: AMD-V with nested paging.
//!
//! One [`Machine`] per pCPU implements the boundary. The class binary's two entry functions
//! ([`entry_points`]) make the machine out of the checked system image.
//!
//! A vCPU runs between VMRUN and #VMEXIT. Everything that an exit needs is done by ordinary Rust code after
//! it: [`traps`] answers what concerns the vCPU alone, and makes an exit of everything else. The interrupt
//! controllers and timers of a VM are state machines of `bulkhead_arch_x86_64_core`; [`platform`] has those
//! that a VM's vCPUs share, each with a lock of its own.
//!
//! Imports run one way. From the ground up:
//!
//! | layer | files |
//! |---|---|
//! | instructions and memory | `sysreg`, `stacks`, `board`, `parking` |
//! | data | `svm`, `context`, `tables`, `mmu` |
//! | verbs of a pCPU | `console`, `log`, `crash`, `descriptors`, `machine`, `physical`, `clock`, `irq`, `trees`, `space` |
//! | interrupts of a VM | `platform` |
//! | exits of a guest | `guest`, `emulate`, `ports`, `registers`, `traps` |
//! | the current vCPU | `switch`, `vcpu`, `cpu` |
//! | roof | `bring_up`, `entry` |
#![no_std]

mod board;
mod bring_up;
mod clock;
mod console;
mod context;
mod cpu;
mod crash;
mod descriptors;
mod digest;
mod direct;
mod emulate;
mod entry;
mod guest;
mod irq;
mod log;
mod machine;
mod mmu;
mod nmi;
mod note;
mod parking;
mod physical;
mod platform;
mod ports;
mod predictions;
mod registers;
mod space;
mod stacks;
mod svm;
mod switch;
mod sysreg;
mod tables;
mod traps;
mod trees;
mod vcpu;

pub use bulkhead_arch_translating::Relax;
pub use console::Serial;
pub use crash::panic;
pub use digest::CpuDigest;
pub use machine::Machine;

/// Makes the class binary's two functions the ones that `entry` jumps to, on the boot pCPU and on every
/// other.
///
/// Both functions take the [`Machine`] of their pCPU and do not return. The boot pCPU's function also gets
/// the result of [`Machine::primary`] for the system image.
#[macro_export]
macro_rules! entry_points {
    ($primary:path, $secondary:path) => {
        #[unsafe(no_mangle)]
        extern "C" fn primary_main() -> ! {
            let (machine, image) = $crate::Machine::primary();
            $primary(machine, image)
        }
        #[unsafe(no_mangle)]
        extern "C" fn secondary_main(index: u64) -> ! {
            $secondary($crate::Machine::secondary(index))
        }
    };
}
