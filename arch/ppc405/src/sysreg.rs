// SPDX-License-Identifier: Apache-2.0
//! Registers of the processor, and the instructions that need a block of their own.

/// Special purpose registers by number (User's Manual, table 10-2).
pub(crate) const SRR0: u32 = 26;
pub(crate) const SRR1: u32 = 27;
pub(crate) const SPRG0: u32 = 272;
pub(crate) const SPRG1: u32 = 273;
pub(crate) const SPRG3: u32 = 275;
pub(crate) const SPRG4: u32 = 276;
pub(crate) const SPRG5: u32 = 277;
pub(crate) const SPRG6: u32 = 278;
pub(crate) const SPRG7: u32 = 279;
pub(crate) const ZPR: u32 = 944;
pub(crate) const PID: u32 = 945;
pub(crate) const SGR: u32 = 953;
pub(crate) const ESR: u32 = 980;
pub(crate) const DEAR: u32 = 981;
pub(crate) const EVPR: u32 = 982;
pub(crate) const SRR2: u32 = 990;
pub(crate) const SRR3: u32 = 991;
pub(crate) const TSR: u32 = 984;
pub(crate) const TCR: u32 = 986;
pub(crate) const PIT: u32 = 987;
pub(crate) const DBCR0: u32 = 1010;
pub(crate) const DCCR: u32 = 1018;
pub(crate) const ICCR: u32 = 1019;

/// Device control registers of the interrupt controller (PPC405EP User's Manual).
pub(crate) const UIC_STATUS: u32 = 0xC0;
pub(crate) const UIC_ENABLE: u32 = 0xC2;
pub(crate) const UIC_CRITICAL: u32 = 0xC3;
pub(crate) const UIC_MASKED_STATUS: u32 = 0xC6;

/// Writes a special purpose register that is the hypervisor's own.
#[inline(always)]
pub(crate) fn write_spr<const NUMBER: u32>(value: u32) {
    // SAFETY: the registers above are the hypervisor's alone, which runs in real mode: none of them changes
    // memory that Rust code refers to, or the address at which that memory is.
    unsafe {
        core::arch::asm!("mtspr {number}, {value}", number = const NUMBER, value = in(reg) value,
            options(nostack, preserves_flags));
    }
}

/// Reads such a register.
#[inline(always)]
pub(crate) fn read_spr<const NUMBER: u32>() -> u32 {
    let value;
    // SAFETY: a read of the registers above has no effect.
    unsafe {
        core::arch::asm!("mfspr {value}, {number}", number = const NUMBER, value = out(reg) value,
            options(nostack, preserves_flags));
    }
    value
}

/// Writes a device control register.
#[inline(always)]
pub(crate) fn write_dcr<const NUMBER: u32>(value: u32) {
    // SAFETY: registers of the interrupt controller, which the hypervisor drives alone.
    unsafe {
        core::arch::asm!("mtdcr {number}, {value}", number = const NUMBER, value = in(reg) value,
            options(nostack, preserves_flags));
    }
}

/// Reads a device control register.
#[inline(always)]
pub(crate) fn read_dcr<const NUMBER: u32>() -> u32 {
    let value;
    // SAFETY: as above; a read of them has no effect.
    unsafe {
        core::arch::asm!("mfdcr {value}, {number}", number = const NUMBER, value = out(reg) value,
            options(nostack, preserves_flags));
    }
    value
}

/// Returns the time base.
#[inline]
pub(crate) fn time() -> u64 {
    loop {
        let (high, low, again): (u32, u32, u32);
        // SAFETY: reads the time base; no other effect.
        unsafe {
            core::arch::asm!("mftbu {0}", "mftb {1}", "mftbu {2}", out(reg) high, out(reg) low, out(reg) again,
                options(nomem, nostack, preserves_flags));
        }
        // The high word changes every 2^32 ticks, so a second turn is the last one.
        if high == again {
            return u64::from(high) << 32 | u64::from(low);
        }
    }
}

/// Bytes that [`clear_groups`] clears at a time: a line of the cache.
pub(crate) const GROUP: usize = 32;

/// Clears `count` groups of bytes, in ten instructions each.
///
/// # Safety
/// `first` is a multiple of 4, and the bytes are memory to which no Rust reference exists.
pub(crate) unsafe fn clear_groups(first: usize, count: usize) {
    // SAFETY: as the caller promises.
    unsafe {
        core::arch::asm!(
            "cmplwi {count}, 0",
            "beq 2f",
            "mtctr {count}",
            "1: stw {zero}, 0({to})", "stw {zero}, 4({to})", "stw {zero}, 8({to})", "stw {zero}, 12({to})",
            "stw {zero}, 16({to})", "stw {zero}, 20({to})", "stw {zero}, 24({to})", "stw {zero}, 28({to})",
            "addi {to}, {to}, 32",
            "bdnz 1b",
            "2:",
            count = in(reg) count, zero = in(reg) 0, to = inout(reg_nonzero) first => _,
            out("ctr") _, out("cr0") _, options(nostack));
    }
}

/// Writes an entry of the translation buffer, for a process. PID is this process then.
pub(crate) fn write_entry(number: u32, high: u32, low: u32, process: u32) {
    write_spr::<PID>(process);
    // SAFETY: entries serve guests alone, because the hypervisor runs in real mode; `buffer` writes only
    // those that `fill` allows.
    unsafe {
        core::arch::asm!("tlbwe {low}, {number}, 1", "tlbwe {high}, {number}, 0",
            low = in(reg) low, high = in(reg) high, number = in(reg) number, options(nostack, preserves_flags));
    }
}

/// Makes all entries of the translation buffer invalid.
pub(crate) fn invalidate_entries() {
    // SAFETY: as above.
    unsafe { core::arch::asm!("tlbia", "sync", "isync", options(nostack, preserves_flags)) }
}

/// Lets the caches serve code in real mode, in the regions of 128 MiB of `ram`: one bit each, the first
/// region first (PPC405 UM, "Real-Mode Storage Attribute Control"). All other regions are guarded.
pub(crate) fn cache(ram: u32) {
    write_spr::<DCCR>(ram);
    write_spr::<ICCR>(ram);
    write_spr::<SGR>(!ram);
    // SAFETY: a barrier without any other effect.
    unsafe { core::arch::asm!("isync", options(nostack, preserves_flags)) }
}

/// Makes code that was stored visible to instruction fetches: the lines of the data cache go to memory, and
/// the instruction cache is empty afterwards. All of it, because a line has several places there: its place
/// depends on the effective address of the guest.
pub(crate) fn make_code_visible(first: usize, length: usize) {
    write_back(first, length);
    // SAFETY: empties a cache that only instructions are in, and a barrier.
    unsafe { core::arch::asm!("iccci 0, 0", "isync", options(nostack, preserves_flags)) }
}

/// Writes the lines of the data cache that hold these bytes to memory.
pub(crate) fn write_back(first: usize, length: usize) {
    const LINE: usize = 32;
    for line in (first & !(LINE - 1)..first.saturating_add(length)).step_by(LINE) {
        // SAFETY: writes a line back and leaves memory as it is for everybody.
        unsafe { core::arch::asm!("dcbst 0, {0}", in(reg) line, options(nostack, preserves_flags)) }
    }
    // SAFETY: a barrier without any other effect.
    unsafe { core::arch::asm!("sync", options(nostack, preserves_flags)) }
}
