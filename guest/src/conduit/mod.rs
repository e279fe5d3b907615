// SPDX-License-Identifier: Apache-2.0
//! The instruction that makes a hypercall, and the registers around it, as the CPU has them.
//!
//! All kinds of CPU take the same numbers (head of `bulkhead-abi`), so what is above this module does not
//! ask for the CPU.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "arm")]
mod arm;
#[cfg(target_arch = "powerpc")]
mod powerpc;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::call;
#[cfg(target_arch = "arm")]
pub(crate) use arm::call;
#[cfg(target_arch = "powerpc")]
pub(crate) use powerpc::call;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::call;
