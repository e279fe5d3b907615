// SPDX-License-Identifier: Apache-2.0
//! Class `armv8m`: the instructions and the stack of class `armv7m`, with instructions for two worlds.
//! Nothing interrupts the hypervisor but its own fault.

use super::armv7m::CortexM;

pub(super) const ARMV8M: CortexM = CortexM {
    name: "armv8m",
    has_worlds: true,
};
