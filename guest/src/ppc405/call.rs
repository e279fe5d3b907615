// SPDX-License-Identifier: Apache-2.0
//! Hypercalls of a PowerPC 405: `sc` with the function identifier in r0.

use core::arch::asm;

/// Makes a call with `identifier` in r0, the first argument in r3, the others in pairs from r4 on, the high
/// word first; returns r3 (as a signed number) and the pairs r4:r5 to r10:r11.
pub(crate) fn call(identifier: u64, arguments: [u64; 6]) -> [u64; 5] {
    let [capability, pairs @ ..] = arguments;
    let high = |value: u64| (value >> 32) as u32;
    let [second, third, fourth, fifth, sixth] = pairs;
    // A capability that does not fit names none, as on a CPU with longer registers.
    let mut status = u32::try_from(capability).unwrap_or(u32::MAX);
    let (mut r4, mut r5) = (high(second), second as u32);
    let (mut r6, mut r7) = (high(third), third as u32);
    let (mut r8, mut r9) = (high(fourth), fourth as u32);
    let (mut r10, mut r11) = (high(fifth), fifth as u32);
    // The compiler keeps r13 for small data, so the last pair goes through the registers by hand.
    let last = [high(sixth), sixth as u32];
    // SAFETY: the hypervisor changes r3 to r11 only (head of `bulkhead-abi`), and of our memory only the
    // buffer that a call of a port names. The compiler takes all memory for changed. r13 is put back.
    unsafe {
        asm!(
            "mr 14, 13",
            "lwz 13, 4(12)",
            "lwz 12, 0(12)",
            "sc",
            "mr 13, 14",
            in("r0") identifier as u32,
            inout("r3") status,
            inout("r4") r4, inout("r5") r5, inout("r6") r6, inout("r7") r7,
            inout("r8") r8, inout("r9") r9, inout("r10") r10, inout("r11") r11,
            inout("r12") last.as_ptr() => _,
            out("r14") _,
            options(nostack),
        );
    }
    let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    let status = i64::from(status.cast_signed()).cast_unsigned();
    [status, pair(r4, r5), pair(r6, r7), pair(r8, r9), pair(r10, r11)]
}
