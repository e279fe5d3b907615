// SPDX-License-Identifier: Apache-2.0
//! A bare-metal VM: EL1 on the machine of QEMU's `virt` board, with or without the hypervisor below.
//!
//! The VM's `main` is named by [`vm_main!`](crate::vm_main). It runs on CPU 0 with interrupts masked, the MMU
//! off and its own stack; when it returns, the machine is switched off by PSCI.

pub mod bus;
pub mod cpu;
pub mod debug;
pub mod encoded;
pub mod exception;
pub mod floating_point;
pub mod gate;
pub mod gic;
pub mod instructions;
pub mod mmu;
pub mod pl011;
pub mod psci;
pub mod register;
pub mod sandbox;
pub mod smp;
mod start;
pub mod timer;

use crate::device_tree::DeviceTree;
use crate::hypercall::{self, Handle};

/// First address of RAM on the default machine.
pub const RAM_BASE: u64 = 0x4000_0000;

/// Names the function that is the VM's program: `fn(Machine)`.
#[macro_export]
macro_rules! vm_main {
    ($main:path) => {
        #[unsafe(no_mangle)]
        fn bulkhead_vm_main(machine: $crate::vm::Machine) {
            $main(machine)
        }
    };
}

/// The findings of the startup code.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    device_tree: Option<DeviceTree<'static>>,
    started: u64,
}

impl Machine {
    /// Describes the machine whose device tree is at `address`; without one there, the start of RAM is tried,
    /// because QEMU's `virt` board puts it there and does not say so to an ELF file.
    fn new(address: usize, started: u64) -> Self {
        Self {
            device_tree: device_tree(address).or_else(|| device_tree(RAM_BASE as usize)),
            started,
        }
    }

    /// Returns the physical counter (`CNTPCT_EL0`) at the machine's first instruction.
    #[must_use]
    pub const fn started(&self) -> u64 {
        self.started
    }

    /// Returns the kernel command line, empty if there is none.
    #[must_use]
    pub fn bootargs(&self) -> &'static str {
        self.device_tree.map_or("", |tree| tree.bootargs())
    }

    /// Returns the capability of this name (`/hypervisor` of the device tree).
    #[must_use]
    pub fn capability(&self, name: &str) -> Option<Handle> {
        let tree = self.device_tree?;
        let node = ["hypervisor"];
        let names = tree.property(&node, "capability-names")?;
        let index = names
            .split(|byte| *byte == 0)
            .position(|own| own == name.as_bytes())?;
        tree.cell(&node, "capabilities", index).map(Handle)
    }

    /// Returns the interrupt of a channel's doorbell (`/channel-NAME` of the device tree).
    #[must_use]
    pub fn doorbell(&self, path: &str) -> Option<u32> {
        // The binding counts shared lines from 0.
        let line = self.device_tree?.cell(&[path], "interrupts", 1)?;
        line.checked_add(gic::FIRST_SHARED)
    }

    /// Returns the device tree, if the machine has one.
    #[must_use]
    pub const fn device_tree(&self) -> Option<DeviceTree<'static>> {
        self.device_tree
    }
}

/// Tells whether the hypervisor is below (else the bare board).
#[must_use]
pub fn is_hypervised() -> bool {
    hypercall::version().is_ok()
}

/// Longest device tree the library looks at.
const MAX_DEVICE_TREE: usize = 2 << 20;

fn device_tree(address: usize) -> Option<DeviceTree<'static>> {
    // Zero is "none", and the flash of QEMU's board; a device tree is 8-byte aligned (arm64 boot protocol).
    if address < RAM_BASE as usize || !address.is_multiple_of(8) {
        return None;
    }
    let head = core::ptr::with_exposed_provenance::<[u32; 2]>(address);
    // SAFETY: the machine puts a device tree at `address`, or RAM is there; both can be read, and no code
    // writes there while the program runs (it lies outside the program's image, `link/vm.ld`).
    let [magic, size] = unsafe { head.read() }.map(u32::from_be);
    if magic != crate::device_tree::MAGIC || size as usize > MAX_DEVICE_TREE {
        return None;
    }
    let bytes = core::ptr::with_exposed_provenance::<u8>(address);
    // SAFETY: as above; the head says how long it is, and RAM of a VM is longer than its device tree.
    DeviceTree::new(unsafe { core::slice::from_raw_parts(bytes, size as usize) })
}
