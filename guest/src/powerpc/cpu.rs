// SPDX-License-Identifier: Apache-2.0
//! The VM's processor: registers and instructions of the supervisor state, for suites and measurements.

use core::arch::asm;

/// Returns the low word of the time base.
#[inline(always)]
pub fn ticks() -> u32 {
    let value;
    // SAFETY: reads the time base.
    unsafe { asm!("mftb {}", out(reg) value, options(nomem, nostack, preserves_flags)) }
    value
}

/// Reads MSR.
#[inline(always)]
pub fn read_msr() -> u32 {
    let value;
    // SAFETY: reads a register.
    unsafe { asm!("mfmsr {}", out(reg) value, options(nomem, nostack, preserves_flags)) }
    value
}

/// Writes MSR. Translations stay off: their bits are left out.
#[inline(always)]
pub fn write_msr(value: u32) {
    let value = value & !0x4030;
    // SAFETY: the program has a handler for each interrupt, and stays in supervisor state without
    // translation.
    unsafe { asm!("mtmsr {}", in(reg) value, options(nostack, preserves_flags)) }
}

/// Sets MSR.EE, by an immediate.
#[inline(always)]
pub fn enable_interrupts() {
    // SAFETY: as above.
    unsafe { asm!("wrteei 1", options(nostack, preserves_flags)) }
}

/// Clears MSR.EE, by an immediate.
#[inline(always)]
pub fn disable_interrupts() {
    // SAFETY: as above.
    unsafe { asm!("wrteei 0", options(nostack, preserves_flags)) }
}

/// Reads a special purpose register.
#[inline(always)]
#[must_use]
pub fn read_spr<const NUMBER: u32>() -> u32 {
    let value;
    // SAFETY: reads a register.
    unsafe {
        asm!("mfspr {}, {n}", out(reg) value, n = const NUMBER, options(nomem, nostack, preserves_flags))
    }
    value
}

/// Writes a special purpose register. None of them changes what the program does while translations are off,
/// besides EVPR and DBCR0, which the caller leaves alone.
#[inline(always)]
pub fn write_spr<const NUMBER: u32>(value: u32) {
    // SAFETY: see above.
    unsafe { asm!("mtspr {n}, {}", in(reg) value, n = const NUMBER, options(nostack, preserves_flags)) }
}

/// Reads a device control register of the interrupt controller.
#[inline(always)]
#[must_use]
pub fn read_dcr<const NUMBER: u32>() -> u32 {
    let value;
    // SAFETY: reads a register.
    unsafe { asm!("mfdcr {}, {n}", out(reg) value, n = const NUMBER, options(nostack, preserves_flags)) }
    value
}

/// Writes a device control register of the interrupt controller.
#[inline(always)]
pub fn write_dcr<const NUMBER: u32>(value: u32) {
    // SAFETY: the program has a handler for each interrupt.
    unsafe { asm!("mtdcr {n}, {}", in(reg) value, n = const NUMBER, options(nostack, preserves_flags)) }
}

/// Makes a system call, whose handler returns at once. The number is none of the hypervisor's.
#[inline(always)]
pub fn system_call() {
    // SAFETY: the handler changes r3 alone, besides SRR0 and SRR1.
    unsafe { asm!("sc", in("r0") 1, out("r3") _, out("r4") _, options(nostack)) }
}

/// Goes to the next instruction by `rfi`.
#[inline(always)]
pub fn return_from_interrupt() {
    // SAFETY: SRR0 leads to the next instruction, and SRR1 is MSR.
    unsafe {
        asm!("bl 2f", "2: mflr {0}", "addi {0}, {0}, 24", "mtspr 26, {0}", "mfmsr {0}", "mtspr 27, {0}", "rfi",
            out(reg) _, out("lr") _, options(nostack));
    }
}

/// Writes an entry of the translation buffer, which no code uses while translations are off.
#[inline(always)]
pub fn write_entry(number: u32, high: u32, low: u32) {
    // SAFETY: see above.
    unsafe {
        asm!("tlbwe {low}, {number}, 1", "tlbwe {high}, {number}, 0", low = in(reg) low, high = in(reg) high,
            number = in(reg) number, options(nostack, preserves_flags));
    }
}

/// Makes all entries of the translation buffer invalid.
pub fn invalidate_entries() {
    // SAFETY: see above.
    unsafe { asm!("tlbia", "isync", options(nostack, preserves_flags)) }
}

/// Lets the programmable interval timer expire every `period` ticks. It sets a bit of TSR; no interrupt is
/// taken.
pub fn start_periods(period: u32) {
    write_spr::<984>(u32::MAX);
    // ARE, PIE.
    write_spr::<986>(0x0440_0000);
    write_spr::<987>(period);
}

/// Waits for the next period, and returns the time at which the program goes on. The processor waits for an
/// interrupt, which its handler leaves pending.
pub fn wait_for_period() -> u32 {
    const EXPIRED: u32 = 0x0800_0000;
    while read_spr::<984>() & EXPIRED == 0 {
        // SAFETY: the handler of the timer clears WE and EE in SRR1, so that the program goes on after this.
        unsafe { asm!("mtmsr {}", "isync", in(reg) 0x4_8000_u32, options(nostack, preserves_flags)) }
    }
    write_spr::<984>(EXPIRED);
    ticks()
}

/// Loads a word of memory or of a device.
#[must_use]
pub fn load(address: u32) -> u32 {
    let value;
    // SAFETY: a load changes none of the program's memory.
    unsafe { asm!("lwz {}, 0({})", out(reg) value, in(reg_nonzero) address, options(readonly, nostack)) }
    value
}

/// Stores a word to a device.
pub fn store(address: u32, value: u32) {
    // SAFETY: the caller names a device, or memory that is not the program's.
    unsafe { asm!("stw {}, 0({})", in(reg) value, in(reg_nonzero) address, options(nostack)) }
}

/// Jumps to an address where no program is. The interrupt or the exit of the fetch ends the caller.
pub fn jump(address: u32) -> ! {
    // SAFETY: nothing is executed there, and this does not come back.
    unsafe { asm!("mtctr {}", "bctr", in(reg) address, options(noreturn)) }
}
