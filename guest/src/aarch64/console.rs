// SPDX-License-Identifier: Apache-2.0
//! The console of a VM on a 64-bit CPU.

pub(crate) use crate::vm::pl011::write;
