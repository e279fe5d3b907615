// SPDX-License-Identifier: Apache-2.0
//! An Armv7-M processor as a program that is not privileged sees it, as plain data and functions.
//!
//! On a CPU without support for virtualisation a guest runs unprivileged. Accesses to the processor itself
//! trap (the private peripheral bus, exception returns), or the host tool makes them trap (MRS, MSR, CPS,
//! WFI, WFE and SEV, replaced in place by undefined ones). This crate is what happens then:
//! - [`VirtualCore`]: the state: interrupt controller, SysTick, system control block, masks, stacks;
//!   loads and stores of registers, special registers, exception entry and return.
//! - [`Cause`]: what the physical CPU says of a fault, and whose business that is.
//! - [`decode`]: what a load or store wanted that trapped, and what a replaced instruction was.
//! - [`take_hypercall`], [`answer_hypercall`]: the hypervisor's own calls.
//! - [`Guest`]: what the backend lends: the registers of the frame that the CPU pushed when the guest
//!   trapped, and the guest's memory.
//!
//! The order in which a backend calls: [`VirtualCore::advance`] with the time; one of the verbs for the trap
//! ([`VirtualCore::access_trapped`], [`VirtualCore::replaced_instruction`], [`VirtualCore::supervisor_call`],
//! [`VirtualCore::exception_return`], [`VirtualCore::raise`], [`VirtualCore::stacking_failed`]); then
//! [`VirtualCore::deliver`]; then [`VirtualCore::take_changes`] and [`VirtualCore::take_ended_line`]; and
//! before it returns to the guest it arms a timer for [`VirtualCore::next_deadline`].
//!
//! Nothing a guest does makes this code fail: what would stop a real CPU is a [`Lockup`].
//! References are to the Armv7-M Architecture Reference Manual, Arm DDI 0403E.e.
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

mod cause;
pub mod decode;
mod early;
mod emulate;
mod exception;
mod fault;
mod guest;
mod hypercall;
mod lines;
pub mod masks;
mod mpu;
mod processor;
mod registers;
mod semihosting;
mod sequence;
mod special;
pub mod status;
mod system;
mod systick;

pub use crate::cause::{Cause, Subject};
pub use crate::decode::Special;
pub use crate::processor::{Changes, Model, VirtualCore};
pub use early::LineEntry;
pub use emulate::{GuestAccess, Late, Several, Trapped, advance_it, fetch_transfer, step, word_quickly};
pub use exception::{ExcReturn, Exception, Stack, Target, frame_size};
pub use fault::{Fault, Lockup, UsageStatus};
pub use guest::Guest;
pub use hypercall::{answer_hypercall, refuse_hypercall, take_hypercall};
pub use lines::{LINE_WORDS, MAX_LINES};
pub use mpu::MAX_MPU_REGIONS;
pub use registers::{BusError, PRIVATE_BUS, PRIVATE_BUS_SIZE};
pub use semihosting::SEMIHOSTING;
pub use sequence::Next;
