// SPDX-License-Identifier: Apache-2.0
//! A bare-metal VM on a PPC405EP, with or without the hypervisor below.
//!
//! The VM's `main` is named by [`powerpc_main!`](crate::powerpc_main). It runs in supervisor state with
//! interrupts and translations off and its own stack. It uses only what the bare board has, so the same file
//! runs there.

pub mod cpu;
mod start;
pub mod uart;

use crate::device_tree::DeviceTree;
use crate::hypercall;

pub use crate::cpu::end::end_vm as end;

/// Names the function that is the VM's program: `fn(Machine)`.
#[macro_export]
macro_rules! powerpc_main {
    ($main:path) => {
        #[unsafe(no_mangle)]
        fn bulkhead_powerpc_main(machine: $crate::powerpc::Machine) {
            $main(machine)
        }
    };
}

/// The findings of the startup code.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    device_tree: Option<DeviceTree<'static>>,
}

impl Machine {
    /// Returns the kernel command line, empty if there is none.
    #[must_use]
    pub fn bootargs(&self) -> &'static str {
        self.device_tree.map_or("", |tree| tree.bootargs())
    }
}

/// Longest device tree the library looks at.
const MAX_DEVICE_TREE: usize = 1 << 20;
/// The end of the RAM that every board has.
const RAM: usize = 128 << 20;

/// Returns the device tree at an address, if there is one. The bare board has other tables there.
pub(crate) fn device_tree(address: usize) -> Option<DeviceTree<'static>> {
    if address == 0 || address >= RAM || !address.is_multiple_of(8) {
        return None;
    }
    let head = core::ptr::with_exposed_provenance::<[u32; 2]>(address);
    // SAFETY: RAM is there, and no code writes there while the program runs: it is outside the program's
    // image.
    let [magic, size] = unsafe { head.read() }.map(u32::from_be);
    if magic != crate::device_tree::MAGIC || size as usize > MAX_DEVICE_TREE {
        return None;
    }
    let bytes = core::ptr::with_exposed_provenance::<u8>(address);
    // SAFETY: as above; the head says how long it is.
    DeviceTree::new(unsafe { core::slice::from_raw_parts(bytes, size as usize) })
}

/// Tells whether the hypervisor is below (else the bare board). The bare board has a handler for system calls
/// that leaves r3 as it was.
#[must_use]
pub fn is_hypervised() -> bool {
    hypercall::version().is_ok_and(|version| version != 0)
}
