// SPDX-License-Identifier: Apache-2.0
//! The memory and devices that are Non-secure: what the security attribution unit (SAU) and the memory
//! protection controllers (MPC) say of the VM that has the Non-secure world.
//!
//! **Invariant.** An address is Non-secure for the SAU exactly if its block is so for its MPC, or its device
//! for its peripheral protection controller. All software uses the same addresses, those that the
//! implementation calls Non-secure. The SAU makes each of them Secure that the VM has not. So Secure code
//! reaches all memory at any time: the VM's by Non-secure transactions, all other memory by Secure ones.
//!
//! With two pCPUs the blocks of all VMs are Non-secure for ever, and the SAU of each CPU decides alone
//! (`pair`).
//!
//! **The hypervisor's Non-secure block** is the one exception: it is always Non-secure for its MPC. The SAU
//! opens it only while no VM can run ([`Attribution::open_block`]).

use crate::pair::{IS_PAIR, Shown, address};
use crate::sysreg::{self, SAU_CTRL, SAU_RBAR, SAU_RLAR, SAU_RNR};
use bulkhead_arch_armv8m_core::Stretches;
use bulkhead_arch_armv8m_core::blocks::Run;
use bulkhead_arch_regions::VM_STRETCHES;
use bulkhead_arch_support::Mmio;
use bulkhead_image::layout::{REGISTERS_GATED, RegistersRecord};
use core::ops::RangeInclusive;

unsafe extern "C" {
    /// The hypervisor's Non-secure block, which begins with a vector table.
    static bulkhead_other_vectors: u8;
}

/// Memory protection controllers that a board can have.
pub(crate) const MAX_CONTROLLERS: usize = 8;
/// The region of the SAU that opens the hypervisor's Non-secure block.
pub(crate) const BLOCK_REGION: u32 = 7;
const _: () = assert!(VM_STRETCHES <= BLOCK_REGION as usize);

/// Bytes of the block.
const BLOCK_BYTES: u32 = 1024;

/// Distance from the register that makes devices Non-secure to the one that opens them to Secure unprivileged
/// code (Arm DDI 0571G, section 3.9.1).
const UNPRIVILEGED: usize = 0x40;

/// The register that makes controllers of DMA Non-secure, and the bits of all of them (NSMSCEXP; Arm
/// ECM0601256, section 4.4.2). After a reset their transfers to the Secure world are Secure.
const MASTERS: usize = 0xD0;
const ALL_MASTERS: u32 = 0xFFFF_0000;

/// SAU_CTRL.ENABLE; without it all memory is Secure (D1.2.220).
const ENABLE: u32 = 1;

/// Registers of an MPC (Arm DDI 0571G, section 3.10.2).
const BLK_CFG: usize = 0x14;
const BLK_IDX: usize = 0x18;
const BLK_LUT: usize = 0x1C;
const INT_EN: usize = 0x28;

/// A memory protection controller.
#[derive(Clone, Copy)]
struct Controller {
    registers: Mmio,
    /// The memory that it guards: first and last address.
    first: u32,
    last: u32,
    /// Logarithm of the size of a block.
    shift: u32,
}

impl Controller {
    /// Returns the blocks of a stretch that the controller guards.
    fn blocks(&self, first: u32, last: u32) -> Option<Run> {
        let (first, last) = (first.max(self.first), last.min(self.last));
        (first <= last).then(|| Run::of(first - self.first, last - self.first, self.shift))
    }

    /// Makes blocks Non-secure, or Secure. The other blocks of their words stay as they are.
    fn set(&self, blocks: Run, non_secure: bool) {
        if let Some(words) = blocks.whole_words() {
            let bits = if non_secure { u32::MAX } else { 0 };
            for index in words {
                self.registers.write32(BLK_IDX, index);
                self.registers.write32(BLK_LUT, bits);
            }
            return;
        }
        for word in blocks.words() {
            let bits = if non_secure { word.bits } else { 0 };
            self.registers.write32(BLK_IDX, word.index);
            let others = if word.bits == u32::MAX {
                0
            } else {
                let value = self.registers.read32(BLK_LUT) & !word.bits;
                // The register may have gone to the next word (CTRL, auto-increment).
                self.registers.write32(BLK_IDX, word.index);
                value
            };
            self.registers.write32(BLK_LUT, others | bits);
        }
    }
}

/// Runs of blocks that a VM can have: each stretch has one, and one more for each controller on whose memory
/// it ends.
const MAX_RUNS: usize = VM_STRETCHES + MAX_CONTROLLERS;

/// The memory and devices of a partition, and the blocks of its memory, each run with its controller. They
/// are found once, because a switch of VMs opens and closes them.
pub(crate) struct Share {
    pub(crate) stretches: Stretches,
    runs: [(u8, Run); MAX_RUNS],
    count: usize,
}

impl Share {
    /// Makes the share of a task without blocks, because a task's memory is never Non-secure.
    pub(crate) const fn of_task(stretches: Stretches) -> Self {
        Self {
            stretches,
            runs: [(0, Run::NONE); MAX_RUNS],
            count: 0,
        }
    }

    /// Tells whether it is the share of a task. Requires: there are two pCPUs.
    pub(crate) const fn is_of_task(&self) -> bool {
        self.count == 0
    }
}

/// The controllers of the board.
pub(crate) struct Attribution {
    controllers: [Option<Controller>; MAX_CONTROLLERS],
    /// The devices of partitions, and the partitions that are VMs.
    pub(crate) devices: &'static [RegistersRecord],
    pub(crate) vms: u32,
    /// The share that is open to VMs.
    pub(crate) shown: Shown,
}

/// Opens a region of the SAU that is off: with a new base and an old limit it would open anything.
pub(crate) fn set_region(number: u32, [base, limit]: [u32; 2]) {
    sysreg::write(SAU_RNR, number);
    sysreg::write(SAU_RBAR, base);
    sysreg::write(SAU_RLAR, limit);
}

/// Switches a region off.
fn close_region(number: u32) {
    sysreg::write(SAU_RNR, number);
    sysreg::write(SAU_RLAR, 0);
}

impl Attribution {
    pub(crate) const fn new() -> Self {
        Self {
            controllers: [None; MAX_CONTROLLERS],
            devices: &[],
            vms: 0,
            shown: Shown::new(),
        }
    }

    /// Gives devices to the worlds of their partitions, and all controllers of DMA to the Non-secure world,
    /// for good. `vms` has the partitions that are VMs, and `gates` are the registers that say who reaches a
    /// device. Requires: records of a checked image.
    pub(crate) fn give_devices(&mut self, devices: &'static [RegistersRecord], vms: u32, gates: Mmio) {
        (self.devices, self.vms) = (devices, vms);
        gates.write32(MASTERS, ALL_MASTERS);
        for record in devices {
            if record.flags.get() & REGISTERS_GATED == 0 {
                continue;
            }
            let unprivileged = if self.is_vm(record.partition.get()) {
                0
            } else {
                UNPRIVILEGED
            };
            let register = record.gate_offset.get() as usize + unprivileged;
            let bit = 1_u32.wrapping_shl(record.gate_bit.get());
            gates.write32(register, gates.read32(register) | bit);
        }
    }

    /// Tells whether a partition is a VM.
    pub(crate) fn is_vm(&self, partition: u32) -> bool {
        self.vms & 1_u32.wrapping_shl(partition) != 0
    }

    /// Adds a controller with these registers, which guards this memory. Returns false if there is no room.
    pub(crate) fn add(&mut self, registers: Mmio, memory: RangeInclusive<u32>) -> bool {
        let slot = self.controllers.iter_mut().find(|slot| slot.is_none());
        let has_room = slot.is_some();
        // A refused transfer of a DMA controller has no owner. Its interrupt would be pending for any VM.
        registers.write32(INT_EN, 0);
        if let Some(slot) = slot {
            *slot = Some(Controller {
                registers,
                first: *memory.start(),
                last: *memory.end(),
                shift: (registers.read32(BLK_CFG) & 0xF) + 5,
            });
        }
        has_room
    }

    /// Switches the SAU on: everything is Secure but the block of the hypervisor.
    pub(crate) fn start(&self) {
        for controller in self.controllers.iter().flatten() {
            if let Some(blocks) = controller.blocks(block(), block() + (BLOCK_BYTES - 1)) {
                controller.set(blocks, true);
            }
        }
        Self::start_unit();
    }

    /// Switches the SAU of this CPU on, with everything Secure.
    pub(crate) fn start_unit() {
        for region in 0..=BLOCK_REGION {
            close_region(region);
        }
        sysreg::write(SAU_CTRL, ENABLE);
        sysreg::synchronize();
    }

    /// Makes the share of a partition, or `None` if it has more runs of blocks than a VM can have.
    pub(crate) fn share(&self, stretches: Stretches) -> Option<Share> {
        let mut share = Share::of_task(stretches);
        self.find_runs(&mut share).then_some(share)
    }

    /// Finds the runs of blocks of the stretches with rights. Returns false if there are more than a VM can
    /// have.
    pub(crate) fn find_runs(&self, share: &mut Share) -> bool {
        share.count = 0;
        for (number, controller) in (0..).zip(self.controllers.iter().flatten()) {
            let open = share.stretches.as_slice().iter();
            let memory = open.filter(|stretch| !stretch.is_device);
            for run in memory.filter_map(|stretch| controller.blocks(stretch.first, stretch.last)) {
                let Some(slot) = share.runs.get_mut(share.count) else {
                    return false;
                };
                *slot = (number, run);
                share.count += 1;
            }
        }
        true
    }

    /// Makes the blocks of a VM Non-secure, or Secure.
    pub(crate) fn set_all(&self, share: &Share, non_secure: bool) {
        for (number, run) in share.runs.iter().take(share.count) {
            if let Some(Some(controller)) = self.controllers.get(usize::from(*number)) {
                controller.set(*run, non_secure);
            }
        }
    }

    /// Gives the Non-secure world the memory and the devices of a VM. It had none.
    pub(crate) fn open(&self, share: &Share) {
        for (number, stretch) in (0..BLOCK_REGION).zip(share.stretches.as_slice()) {
            set_region(number, stretch.non_secure());
        }
        self.uncover(share);
    }

    /// Takes them away.
    pub(crate) fn close(&self, share: &Share) {
        self.cover(share);
        for number in 0..share.stretches.as_slice().len() {
            close_region(number as u32);
        }
        sysreg::write(SAU_CTRL, ENABLE);
        sysreg::synchronize();
    }

    /// Makes all memory Secure for as long as a task runs. A task can branch to Non-secure memory (BXNS is
    /// not privileged, C2.4.26), so there must be no such memory.
    pub(crate) fn cover(&self, share: &Share) {
        sysreg::write(SAU_CTRL, 0);
        self.shown.set(0);
        if !IS_PAIR {
            self.set_all(share, false);
        }
        sysreg::synchronize();
    }

    /// Ends that.
    pub(crate) fn uncover(&self, share: &Share) {
        if !IS_PAIR {
            self.set_all(share, true);
        }
        self.shown.set(address(share));
        sysreg::write(SAU_CTRL, ENABLE);
        sysreg::synchronize();
    }

    /// Opens the hypervisor's Non-secure block to the CPU.
    pub(crate) fn open_block() {
        let block = block();
        set_region(BLOCK_REGION, [block, (block + (BLOCK_BYTES - 32)) | 1]);
        sysreg::synchronize();
    }

    /// Closes it.
    pub(crate) fn close_block() {
        close_region(BLOCK_REGION);
        sysreg::synchronize();
    }
}

/// Returns the address of the hypervisor's Non-secure block, which begins with its vector table.
pub(crate) fn block() -> u32 {
    (&raw const bulkhead_other_vectors) as u32
}

/// Bytes of the window of a device.
const PAGE: u32 = 0x1000;

/// A device of a VM that is Non-secure for the SAU while this value lives.
pub(crate) struct Reach {
    /// SAU_CTRL as it was: the SAU may be off while a task runs.
    control: u32,
}

impl Drop for Reach {
    fn drop(&mut self) {
        Attribution::close_block();
        sysreg::write(SAU_CTRL, self.control);
        sysreg::synchronize();
    }
}

impl Attribution {
    /// Makes the registers around an address Non-secure for the SAU, if they belong to a VM that has not the
    /// world now: Secure code reaches such a device by Non-secure transactions only.
    pub(crate) fn reach(&self, address: u32) -> Option<Reach> {
        let page = address & !(PAGE - 1);
        let holds = |record: &RegistersRecord| {
            let (start, size) = (record.host.get() as u32, record.size.get() as u32);
            address.wrapping_sub(start) < size && record.flags.get() & REGISTERS_GATED != 0
        };
        let found = self.devices.iter().find(|record| holds(record))?;
        self.is_vm(found.partition.get()).then(|| {
            let control = sysreg::read(SAU_CTRL);
            set_region(BLOCK_REGION, [page, (page + (PAGE - 32)) | 1]);
            sysreg::write(SAU_CTRL, ENABLE);
            sysreg::synchronize();
            Reach { control }
        })
    }
}
