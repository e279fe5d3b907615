// SPDX-License-Identifier: Apache-2.0
//! Backend of class `aarch64`: EL2 of Armv8-A, stage-2 translation, GICv3 virtual interface.
//!
//! One [`Machine`] per pCPU implements the boundary. It is made by the class binary's two entry
//! functions ([`entry_points`]) out of the checked system image, owns what its pCPU owns, and reaches the rest
//! (translation tables, virtual interrupt controllers) through statics that are constant after boot or atomic.
//!
//! Way through the files: `entry` (assembly) -> `boot` and `mmu` (first steps) -> `machine` -> `vcpu` (contexts,
//! switch) -> `traps` (exceptions of a guest) -> `system`, `psci`, `irq` (what is answered here). `state`,
//! `timer`, `fp`, `debug` are the parts of a context; `space`, `clock`, `cpu`, `console` the remaining verbs.
#![no_std]

mod aarch32;
mod boot;
mod cache;
mod clock;
mod console;
mod cpu;
mod crash;
mod debug;
mod digest;
mod entry;
mod fp;
mod inject;
mod irq;
mod log;
mod machine;
mod memory;
mod mmu;
mod psci;
mod serror;
mod space;
mod state;
mod status;
mod sysreg;
mod system;
mod tables;
mod timer;
mod traps;
mod vcpu;

pub use crash::panic;
pub use digest::CpuDigest;
pub use machine::{Machine, Relax};

/// Makes the class binary's two functions the ones that `entry` jumps to, on the boot pCPU and on every other.
///
/// Both take the [`Machine`] of their pCPU and do not return; the boot pCPU's also gets what [`Machine::primary`] says of
/// the system image.
#[macro_export]
macro_rules! entry_points {
    ($primary:path, $secondary:path) => {
        #[unsafe(no_mangle)]
        extern "C" fn primary_main(_index: u64) -> ! {
            let (machine, image) = $crate::Machine::primary();
            $primary(machine, image)
        }
        #[unsafe(no_mangle)]
        extern "C" fn secondary_main(index: u64) -> ! {
            $secondary($crate::Machine::secondary(index))
        }
    };
}
