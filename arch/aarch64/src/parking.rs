// SPDX-License-Identifier: Apache-2.0
//! The end of a pCPU.

use crate::sysreg::instruction;

/// Ends this pCPU.
pub(crate) fn park() -> ! {
    loop {
        instruction!("wfe");
    }
}
