// SPDX-License-Identifier: Apache-2.0
//! The memory and devices that are Non-secure: what the security attribution unit (SAU) and the memory
//! protection controllers (MPC) say of the VM that has the Non-secure world.
//!
//! **Invariant.** An address is Non-secure for the SAU exactly if its block is so for its MPC, or its device
//! for its peripheral protection controller. All software uses the same addresses, those that the
//! implementation calls Non-secure. The SAU makes each of them Secure that the VM has not. So Secure code
//! reaches all memory at any time: the VM's by Non-secure transactions, all other memory by Secure ones.
//!
//! **The hypervisor's Non-secure block** is the one exception: it is always Non-secure for its MPC. The SAU
//! opens it only while no VM can run ([`Attribution::open_block`]).

use crate::sysreg::{self, SAU_CTRL, SAU_RBAR, SAU_RLAR, SAU_RNR};
use bulkhead_arch_armv8m_core::{Stretches, blocks};
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
const BLOCK_REGION: u32 = 7;
const _: () = assert!(VM_STRETCHES <= BLOCK_REGION as usize);

/// Bytes of the block.
const BLOCK_BYTES: u32 = 1024;

/// Distance from the register that makes devices Non-secure to the one that opens them to Secure unprivileged
/// code (Arm DDI 0571G, section 3.9.1).
const UNPRIVILEGED: usize = 0x40;

/// SAU_CTRL.ENABLE; without it all memory is Secure (D1.2.220).
const ENABLE: u32 = 1;

/// Registers of an MPC (Arm DDI 0571G, section 3.10.2).
const BLK_CFG: usize = 0x14;
const BLK_IDX: usize = 0x18;
const BLK_LUT: usize = 0x1C;

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
    /// Returns the bits of a word that are always Non-secure: the hypervisor's block.
    fn always(&self, index: u32) -> u32 {
        let block = block();
        if !(self.first..=self.last).contains(&block) {
            return 0;
        }
        let first = block - self.first;
        let mut words = blocks::words(first, first + (BLOCK_BYTES - 1), self.shift);
        words.find(|word| word.index == index).map_or(0, |word| word.bits)
    }

    /// Makes the blocks of a stretch Non-secure, or Secure.
    fn set(&self, first: u32, last: u32, non_secure: bool) {
        let (first, last) = (first.max(self.first), last.min(self.last));
        if first > last {
            return;
        }
        let (first, last) = (first - self.first, last - self.first);
        for word in blocks::words(first, last, self.shift) {
            self.registers.write32(BLK_IDX, word.index);
            let others = if word.bits == u32::MAX {
                0
            } else {
                let value = self.registers.read32(BLK_LUT) & !word.bits;
                // The register may have gone to the next word (CTRL, auto-increment).
                self.registers.write32(BLK_IDX, word.index);
                value
            };
            let bits = if non_secure { word.bits } else { 0 };
            self.registers.write32(BLK_LUT, others | bits);
        }
    }
}

/// A word of the look-up table of a controller, as it is while a VM has the Non-secure world, and while not.
#[derive(Clone, Copy)]
struct BlockWord {
    controller: u8,
    index: u32,
    open: u32,
    closed: u32,
}

/// Words of a VM that are found in advance: a stretch of 32 KiB is one.
const MAX_WORDS: usize = 16;

/// The blocks of a VM, found in advance, so that a switch only stores.
pub(crate) struct Blocks {
    words: [BlockWord; MAX_WORDS],
    count: usize,
}

impl Blocks {
    /// No block.
    const NONE: Self = Self {
        words: [BlockWord {
            controller: 0,
            index: 0,
            open: 0,
            closed: 0,
        }; MAX_WORDS],
        count: 0,
    };

    /// Adds bits of a word; false if there is no room.
    fn add(&mut self, controller: u8, index: u32, bits: u32, closed: u32) -> bool {
        let known = self.words.iter_mut().take(self.count);
        for word in known {
            if word.controller == controller && word.index == index {
                word.open |= bits;
                return true;
            }
        }
        let Some(slot) = self.words.get_mut(self.count) else {
            return false;
        };
        *slot = BlockWord {
            controller,
            index,
            open: bits | closed,
            closed,
        };
        self.count += 1;
        true
    }
}

/// The controllers of the board.
pub(crate) struct Attribution {
    controllers: [Option<Controller>; MAX_CONTROLLERS],
    /// The devices of partitions, and the partitions that are VMs.
    devices: &'static [RegistersRecord],
    vms: u32,
}

/// Opens a region of the SAU that is off: with a new base and an old limit it would open anything.
fn set_region(number: u32, [base, limit]: [u32; 2]) {
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
        }
    }

    /// Gives devices to the worlds of their partitions, for good. `vms` has the partitions that are VMs, and
    /// `gates` are the registers that say who reaches a device. Requires: records of a checked image.
    pub(crate) fn give_devices(&mut self, devices: &'static [RegistersRecord], vms: u32, gates: Mmio) {
        (self.devices, self.vms) = (devices, vms);
        for record in devices {
            if record.flags.get() & REGISTERS_GATED == 0 {
                continue;
            }
            let unprivileged = if self.is_of_vm(record) { 0 } else { UNPRIVILEGED };
            let register = record.gate_offset.get() as usize + unprivileged;
            let bit = 1_u32.wrapping_shl(record.gate_bit.get());
            gates.write32(register, gates.read32(register) | bit);
        }
    }

    fn is_of_vm(&self, record: &RegistersRecord) -> bool {
        self.vms & 1_u32.wrapping_shl(record.partition.get()) != 0
    }

    /// Adds a controller with these registers, which guards this memory. Returns false if there is no room.
    pub(crate) fn add(&mut self, registers: Mmio, memory: RangeInclusive<u32>) -> bool {
        let slot = self.controllers.iter_mut().find(|slot| slot.is_none());
        let has_room = slot.is_some();
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
        for region in 0..=BLOCK_REGION {
            close_region(region);
        }
        let block = block();
        self.set_blocks(block, block + (BLOCK_BYTES - 1), true);
        sysreg::write(SAU_CTRL, ENABLE);
        sysreg::synchronize();
    }

    fn set_blocks(&self, first: u32, last: u32, non_secure: bool) {
        for controller in self.controllers.iter().flatten() {
            controller.set(first, last, non_secure);
        }
    }

    /// Finds the blocks of a VM in advance. Returns `None` if there are more than can be kept: they are then
    /// found at each switch.
    pub(crate) fn blocks(&self, stretches: &Stretches) -> Option<Blocks> {
        let mut all = Blocks::NONE;
        for (number, controller) in (0_u8..).zip(self.controllers.iter().flatten()) {
            for stretch in stretches.as_slice().iter().filter(|stretch| !stretch.is_device) {
                let (first, last) = (
                    stretch.first.max(controller.first),
                    stretch.last.min(controller.last),
                );
                if first > last {
                    continue;
                }
                let inside = (first - controller.first, last - controller.first);
                for word in blocks::words(inside.0, inside.1, controller.shift) {
                    let closed = controller.always(word.index);
                    if !all.add(number, word.index, word.bits, closed) {
                        return None;
                    }
                }
            }
        }
        Some(all)
    }

    /// Makes the blocks of a VM Non-secure, or Secure.
    fn set_all(&self, stretches: &Stretches, blocks: Option<&Blocks>, non_secure: bool) {
        let Some(blocks) = blocks else {
            for stretch in stretches.as_slice().iter().filter(|stretch| !stretch.is_device) {
                self.set_blocks(stretch.first, stretch.last, non_secure);
            }
            return;
        };
        for word in blocks.words.iter().take(blocks.count) {
            if let Some(Some(controller)) = self.controllers.get(usize::from(word.controller)) {
                let value = if non_secure { word.open } else { word.closed };
                controller.registers.write32(BLK_IDX, word.index);
                controller.registers.write32(BLK_LUT, value);
            }
        }
    }

    /// Gives the Non-secure world the memory and the devices of a VM. It had none.
    pub(crate) fn open(&self, stretches: &Stretches, blocks: Option<&Blocks>) {
        for (number, stretch) in (0..BLOCK_REGION).zip(stretches.as_slice()) {
            set_region(number, stretch.non_secure());
        }
        self.uncover(stretches, blocks);
    }

    /// Takes them away.
    pub(crate) fn close(&self, stretches: &Stretches, blocks: Option<&Blocks>) {
        self.cover(stretches, blocks);
        for number in 0..stretches.as_slice().len() {
            close_region(number as u32);
        }
        sysreg::write(SAU_CTRL, ENABLE);
        sysreg::synchronize();
    }

    /// Makes all memory Secure for as long as a task runs. A task can branch to Non-secure memory (BXNS is
    /// not privileged, C2.4.26), so there must be no such memory.
    pub(crate) fn cover(&self, stretches: &Stretches, blocks: Option<&Blocks>) {
        sysreg::write(SAU_CTRL, 0);
        self.set_all(stretches, blocks, false);
        sysreg::synchronize();
    }

    /// Ends that.
    pub(crate) fn uncover(&self, stretches: &Stretches, blocks: Option<&Blocks>) {
        self.set_all(stretches, blocks, true);
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
        self.is_of_vm(found).then(|| {
            let control = sysreg::read(SAU_CTRL);
            set_region(BLOCK_REGION, [page, (page + (PAGE - 32)) | 1]);
            sysreg::write(SAU_CTRL, ENABLE);
            sysreg::synchronize();
            Reach { control }
        })
    }
}
