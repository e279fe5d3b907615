// SPDX-License-Identifier: Apache-2.0
//! The rules of the Arm architecture that class `aarch64` follows in software, as functions of plain values.
//!
//! The backend reads the registers of the CPU, asks this crate what they mean, and writes the result back.
//! This crate touches no register and no memory, so every rule is tested on the host against the Arm
//! Architecture Reference Manual.
//!
//! | module | question |
//! |---|---|
//! | [`syndrome`] | which instruction trapped, and what its syndrome says |
//! | [`pstate`] | what a PSTATE says, and what it is after a completed instruction |
//! | [`data`] | which bytes a load or store moves |
//! | [`registers`] | what a system register is to a guest |
//! | [`psci`] | what the answer to a firmware call is |
//! | [`exception`] | how EL1 takes an exception in AArch64 state |
//! | [`transfer`] | loads and stores that only the instruction itself describes |
//! | [`aarch32`] | modes, conditions, coprocessor names and exceptions of AArch32 state |
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing
    )
)]

pub mod aarch32;
pub mod data;
pub mod exception;
pub mod predictions;
pub mod psci;
pub mod pstate;
pub mod registers;
pub mod syndrome;
pub mod transfer;

/// Where an exception handler of a guest starts: PSTATE and PC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handler {
    /// PSTATE of its first instruction.
    pub pstate: u64,
    /// Its first instruction.
    pub pc: u64,
}
