// SPDX-License-Identifier: Apache-2.0
//! Backend of class `aarch64`: EL2 of Armv8-A, stage-2 translation, GICv3 virtual interface.
//!
//! One [`Machine`] per pCPU implements the boundary. The class binary's two entry functions
//! ([`entry_points`]) make the machine out of the checked system image. The machine owns everything that its
//! pCPU owns. It reaches the rest (translation tables, virtual interrupt controllers) through statics that
//! are constant after boot or atomic.
//!
//! Imports run one way. From the ground up:
//!
//! | layer | files |
//! |---|---|
//! | instructions and memory | `sysreg`, `memory`, `parking`, `stacks`, `layout`, `board`, `cache`, `tables`, `mmu` |
//! | parts of a context | `state`, `banked`, `fp`, `debug`, `timer`, `gic` |
//! | a vCPU and its pCPU | `context`, `machine`, `enter`, `serror` |
//! | verbs of a pCPU | `clock`, `irq`, `console`, `log`, `space`, `crash`, `digest` |
//! | exceptions of a guest | `status`, `inject`, `outcome`, `wait`, `psci`, `system`, `abort`, `undescribed`, `data_abort`, `traps` |
//! | the current vCPU | `switch`, `vcpu`, `cpu` |
//! | roof | `boot`, `bring_up`, `entry` |
#![no_std]

mod abort;
mod banked;
mod board;
mod boot;
mod bring_up;
mod cache;
mod clock;
mod console;
mod context;
mod cpu;
mod crash;
mod data_abort;
mod debug;
mod digest;
mod enter;
mod entry;
mod firmware;
mod flash;
mod fp;
mod gic;
mod inject;
mod irq;
mod layout;
mod log;
mod machine;
mod memory;
mod mmu;
mod outcome;
mod parking;
mod predictions;
mod psci;
mod serror;
mod short_call;
mod short_trace;
mod space;
mod stacks;
mod state;
mod status;
mod switch;
mod sysreg;
mod system;
mod tables;
mod timer;
mod traps;
mod undescribed;
mod vcpu;
mod wait;

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
