// SPDX-License-Identifier: Apache-2.0
//! The interrupt controller a VM sees: a GICv3 (Arm IHI 0069) or a GICv2 (IHI 0048B), as plain data and
//! functions.
//!
//! Model. A line's state is one bit in each of a few words ([`Lines`]): enabled, latch, level, active and so
//! on. Shared lines live in the VM's [`Distributor`], private ones in each vCPU's [`Redistributor`]. Code
//! that changes a word marks the word *dirty* for the vCPU that takes the line. The vCPU's own pCPU looks at
//! dirty words only, before it enters the guest ([`Vgic::service`]), and moves deliverable lines into list
//! registers. A line in a list register is out of the words until it is *released*: the guest ended it, or it
//! was taken back.
//!
//! Invariants:
//! - A line is in at most one list register of the whole VM (shared lines: `holder`, claimed by
//!   compare-and-exchange; private lines: only their own vCPU ever loads them).
//! - Only the pCPU on which a vCPU is loaded touches the vCPU's list registers. Another vCPU that wants to
//!   change a held line posts a request bit, marks `RECHECK` dirty and has it notified.
//! - A vCPU that is not loaded keeps only active interrupts in its saved list registers.
//! - If something deliverable does not fit, at least one list register is pending and the "no pending"
//!   maintenance interrupt is on, so nothing waits for ever.
//!
//! All shared words are atomics with sequentially consistent ordering, and there is no lock. A lost interrupt
//! would be a lost "set word, then look at who runs" race. With one total order the argument is a two-line
//! interleaving. On AArch64 that costs acquire/release instructions only.
//!
//! The crate knows nothing of registers of the physical GIC: those are in [`Hardware`]. The state is not
//! tied to a register layout either: the layouts of both versions are confined to the `registers` and
//! `fields` files.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

mod deliver;
mod fields;
mod hardware;
mod life;
mod lines;
mod list_register;
mod raise;
mod registers;
mod registers_v2;
mod requests;
mod state;
mod waiting;

pub use hardware::{Control, CpuInterface, Hardware, PhysicalLines};
pub use lines::Lines;
pub use list_register::ListRegister;
pub use raise::{Latched, Sgi};
pub use registers::{Frame, RegisterAccess};
pub use state::{Bank, Distributor, Redistributor, Vgic};

/// Interrupt lines a VM can have, private ones included.
pub const MAX_LINES: u32 = 1024;
/// First number that is no line (IHI 0069, 2.2): special, or not there.
pub const FIRST_SPECIAL: u32 = 1020;
/// vCPUs a VM can have.
pub const MAX_VCPUS: usize = 8;
/// List registers a CPU interface can have (IHI 0069, `ICH_VTR_EL2.ListRegs`).
pub const MAX_SLOTS: usize = 16;
/// Implemented bits of a priority: 32 levels.
pub const PRIORITY_MASK: u8 = 0xF8;
/// Stands for "no vCPU of this VM" where a vCPU is asked for.
pub const NO_VCPU: usize = usize::MAX;
/// Private lines: SGIs 0..=15 and PPIs 16..=31.
pub const PRIVATE_LINES: u32 = 32;

/// Words of 32 lines.
const WORDS: usize = (MAX_LINES / 32) as usize;
/// Words of shared lines.
const SHARED_WORDS: usize = WORDS - 1;

/// Counts what takes time, so that a test can search for the longest operation.
#[cfg(feature = "steps")]
pub mod steps {
    use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

    static TAKEN: AtomicU64 = AtomicU64::new(0);

    /// Steps since this was asked last, of all threads.
    pub fn take() -> u64 {
        TAKEN.swap(0, Relaxed)
    }

    /// Counts a step: what costs some ten instructions.
    pub fn count() {
        TAKEN.fetch_add(1, Relaxed);
    }
}

/// Counts a turn of a loop, or a look at a word.
#[inline(always)]
fn step() {
    #[cfg(feature = "steps")]
    steps::count();
}

/// Returns the bit of `line` within its word.
const fn bit(line: u32) -> u32 {
    1u32.wrapping_shl(line & 31)
}

/// Returns the set bits of a word, lowest first, in at most 32 steps.
fn bits(word: u32) -> impl Iterator<Item = u32> {
    let mut rest = word;
    core::iter::from_fn(move || {
        if rest == 0 {
            return None;
        }
        step();
        let lowest = rest.trailing_zeros();
        rest &= rest.wrapping_sub(1);
        Some(lowest)
    })
}
