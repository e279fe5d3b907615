// SPDX-License-Identifier: Apache-2.0
//! The instructions of each class.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::{HIGHEST, go};
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{HIGHEST, go};
