// SPDX-License-Identifier: Apache-2.0
//! Starts a system from UEFI: one PE file with the loader, the class binary and the system image.
//!
//! The host tool puts the [plan](bulkhead_loader_plan) of the system into a section of this program
//! (`bulkhead build --efi`). The firmware checks the signature of the file as a whole where Secure Boot is
//! on.
//!
//! 1. The loader compares the memory of the system with the firmware's map. Memory that the firmware keeps
//!    for itself is a refusal, with the address and the kind.
//! 2. It copies the system to a place apart from all places of the plan, because those may be the firmware's
//!    until it is gone.
//! 3. It ends the firmware's services, and jumps to a few instructions that are apart, too. They take the CPU
//!    out of the firmware's translation tables, copy each piece to its place, and enter the class binary as
//!    the loaders of its class do.
//!
//! The loader is no part of the hypervisor: its memory is free as soon as the class binary runs.
#![no_main]
#![no_std]

mod class;
mod job;
mod jump;
mod map;
mod own;
mod stage;

use bulkhead_loader_plan::{Fault, Plan, PlanError};
use core::fmt;
use uefi::mem::memory_map::MemoryType;
use uefi::{Status, entry};

/// The reason why the system is not started.
enum Refusal {
    /// The file's own system is not there or damaged.
    Plan(PlanError),
    /// A call of the firmware failed.
    Firmware(&'static str, Status),
    /// The system needs memory that it cannot have.
    Memory(Fault<MemoryType>),
    /// There is no room apart from the system's own memory.
    NoRoom,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(error) => error.fmt(f),
            Self::Firmware(what, status) => write!(f, "the firmware did not {what}: {status}"),
            Self::Memory(Fault::Kept(range, kind)) => write!(
                f,
                "the system needs the memory from {:#x} to {:#x}, which the firmware keeps ({kind:?}): \
                 leave it out of `ram` in the board file",
                range.base,
                range.end()
            ),
            Self::Memory(Fault::Missing(range)) => write!(
                f,
                "the system needs the memory from {:#x} to {:#x}, which this machine does not have: \
                 correct `ram` in the board file",
                range.base,
                range.end()
            ),
            Self::NoRoom => f.write_str("no memory is left to hold the system while the firmware ends"),
        }
    }
}

#[entry]
fn main() -> Status {
    if uefi::helpers::init().is_err() {
        return Status::ABORTED;
    }
    let Err(refusal) = start();
    uefi::println!("bulkhead: not started: {refusal}");
    Status::LOAD_ERROR
}

/// Starts the system. Comes back only with a refusal, and then nothing has changed.
fn start() -> Result<core::convert::Infallible, Refusal> {
    let plan = Plan::read(own::plan()?).map_err(Refusal::Plan)?;
    map::look(&plan)?;
    let staged = stage::copy(&plan)?;
    uefi::println!("bulkhead: starting from UEFI");
    jump::leave(&staged)
}

#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
