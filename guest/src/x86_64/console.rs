// SPDX-License-Identifier: Apache-2.0
//! The console of a VM of class `x86_64`.

pub(crate) use crate::pc::uart::write;
