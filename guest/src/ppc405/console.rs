// SPDX-License-Identifier: Apache-2.0
//! The console of a VM on a PowerPC 405.

pub(crate) use crate::powerpc::uart::write;
