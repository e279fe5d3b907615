// SPDX-License-Identifier: Apache-2.0
//! EL2's own translation: an identity map, never writable and executable at once.
//!
//! Built in two steps. [`build`] runs with the MMU off, before anything else, and maps the class binary by
//! its sections and the system image behind it as long as its header says; nothing of the image is
//! believed but that length, and a lie only widens a read-only view. When the image has been checked,
//! [`map_board`] adds the board's RAM and the devices the hypervisor drives. Tables come from a small
//! static pool, so that none of this depends on the image's own memory plan. Mappings are only ever
//! added, and an entry once valid never changes, so no TLB maintenance is needed.
//!
//! Stacks: the first page of each pCPU's part stays unmapped, an overflow is a translation fault.

use crate::entry::{GUARD_SIZE, STACK_SIZE, STACKS};
use crate::sysreg::{instruction, instruction_with};
use crate::tables::{PAGE, Pool, Radix};
use bulkhead_arch_api::{HostPhys, MAX_PCPUS};
use bulkhead_image::layout::{Header, MAGIC};
use core::cell::UnsafeCell;
use core::mem::offset_of;

/// MAIR_EL2: 0 = normal write-back, 1 = device nGnRE.
pub(crate) const MAIR: u64 = 0x04FF;
/// TCR_EL2 without PS (Arm DDI 0487 D19.2.133): T0SZ 16, walks inner-shareable write-back, 4 KiB granule, RES1.
pub(crate) const TCR: u64 = 16 | 1 << 8 | 1 << 10 | 3 << 12 | 1 << 23 | 1 << 31;

/// Stage-1 descriptor fields for a regime with one level (D8.3): AF, inner shareable, AttrIndx, AP, XN; AP[1] is RES1.
const COMMON: u64 = 1 << 10 | 3 << 8 | 1 << 6;
const READ_ONLY: u64 = 1 << 7;
const EXECUTE_NEVER: u64 = 1 << 54;
/// Code: read and execute.
const TEXT: u64 = COMMON | READ_ONLY;
/// Constants: read.
const RODATA: u64 = COMMON | READ_ONLY | EXECUTE_NEVER;
/// Data: read and write.
const DATA: u64 = COMMON | EXECUTE_NEVER;
/// Registers: device nGnRE, read and write.
const DEVICE: u64 = COMMON | EXECUTE_NEVER | 1 << 2;

/// Most of a system image that is mapped on the word of its unchecked header.
const IMAGE_LIMIT: u64 = 1 << 30;
/// Tables: one root, and for each of binary, image, RAM ends and devices up to three levels.
const TABLE_COUNT: usize = 32;

/// The tables, the root first.
#[repr(C, align(4096))]
pub(crate) struct Tables(UnsafeCell<[[u64; 512]; TABLE_COUNT]>);

// SAFETY: written by `build` and `map_board` on the boot pCPU before others are started, by address only;
// read by hardware.
unsafe impl Sync for Tables {}

#[unsafe(link_section = ".tables")]
pub(crate) static TABLES: Tables = Tables(UnsafeCell::new([[0; 512]; TABLE_COUNT]));

/// How many of the tables are in use; on the boot pCPU only.
static USED: core::sync::atomic::AtomicUsize = core::sync::atomic::AtomicUsize::new(1);

unsafe extern "C" {
    static __image_start: u8;
    static __text_end: u8;
    static __relro_start: u8;
    static __rodata_end: u8;
    static __stacks_start: u8;
    static __stacks_end: u8;
    static __image_end: u8;
}

/// The address of a linker symbol.
macro_rules! address_of {
    ($symbol:ident) => {
        (&raw const $symbol) as u64
    };
}

/// Where the class binary runs.
pub(crate) fn load_address() -> u64 {
    address_of!(__image_start)
}

/// Where the system image is.
pub(crate) fn image_address() -> u64 {
    address_of!(__image_end)
}

/// Bytes of the system image by its own, unchecked word, limited to what is mapped.
pub(crate) fn image_length() -> u64 {
    let base = image_address() as usize;
    let mut magic = [0; MAGIC.len()];
    // SAFETY: a system image, or at least RAM, follows the class binary in the flashable file.
    unsafe { bulkhead_arch_support::physical::read(base, &mut magic) }
    let mut length = [0; 8];
    // SAFETY: as above.
    unsafe { bulkhead_arch_support::physical::read(base + offset_of!(Header, total_len), &mut length) }
    let length = u64::from_le_bytes(length);
    if magic == MAGIC && length <= IMAGE_LIMIT { length } else { PAGE }
}

/// Fills the tables with what the hypervisor itself needs. Runs with the MMU off: no atomic
/// read-modify-write, no unaligned access.
pub(crate) extern "C" fn build() {
    let stacks = (&raw const STACKS) as u64;
    map(load_address(), address_of!(__text_end), TEXT);
    map(address_of!(__text_end), address_of!(__rodata_end), RODATA);
    map(address_of!(__rodata_end), address_of!(__stacks_start), DATA);
    for pcpu in 0..MAX_PCPUS as u64 {
        let part = stacks + pcpu * (GUARD_SIZE + STACK_SIZE) as u64;
        map(part + GUARD_SIZE as u64, part + (GUARD_SIZE + STACK_SIZE) as u64, DATA);
    }
    map(address_of!(__stacks_end), image_address(), DATA);
    map(image_address(), image_address() + image_length().next_multiple_of(PAGE), RODATA);
    // What was written past the caches must not be hidden by older lines of them (B2.7, boot protocol).
    forget_lines(address_of!(__relro_start), address_of!(__rodata_end));
    forget_lines((&raw const TABLES) as u64, (&raw const TABLES) as u64 + size_of::<Tables>() as u64);
    forget_lines((&raw const USED) as u64, (&raw const USED) as u64 + 8);
}

/// Invalidates the cache lines of a range to the point of coherency, with the MMU off.
fn forget_lines(from: u64, to: u64) {
    let line = crate::cache::line_size();
    let mut at = from & !(line - 1);
    while at < to {
        instruction_with!("dc ivac", at);
        at += line;
    }
    instruction!("dsb sy");
}

/// Maps a board's memory or device registers, besides what is mapped already.
pub(crate) fn map_ram(from: HostPhys, size: u64) {
    map(from.0, from.0.saturating_add(size), DATA);
    publish();
}

/// Maps device registers.
pub(crate) fn map_device(from: HostPhys, size: u64) {
    map(from.0 & !(PAGE - 1), from.0.saturating_add(size).next_multiple_of(PAGE), DEVICE);
    publish();
}

/// New entries are seen by this CPU's table walks.
fn publish() {
    instruction!("dsb ish");
    instruction!("isb");
}

fn map(from: u64, to: u64, attributes: u64) {
    let root = (&raw const TABLES) as u64;
    let mut next = USED.load(core::sync::atomic::Ordering::Relaxed);
    let pool = Pool { base: root, count: TABLE_COUNT, next: &mut next };
    let mut radix = Radix { root, first_level: 0, pool };
    radix.map(from, from, to.saturating_sub(from), attributes);
    USED.store(next, core::sync::atomic::Ordering::Relaxed);
}
