// SPDX-License-Identifier: Apache-2.0
//! The processor that a guest is told it has: the real one, less what the table takes away, plus what the
//! hypervisor gives.
//!
//! A leaf without a row reads as zero. The generated page `docs/x86-filters.md` has the same table.

/// EAX, EBX, ECX and EDX.
pub type Registers = [u32; 4];

/// A row: what remains of a leaf of the real processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// First leaf.
    pub first: u32,
    /// Last leaf.
    pub last: u32,
    /// The bits that the guest sees of the real processor's.
    pub keep: Registers,
    /// The bits that are set besides.
    pub set: Registers,
    /// The reason, for people.
    pub note: &'static str,
}

const ALL: u32 = u32::MAX;
/// Leaf 1 ECX: x2APIC, TSC_DEADLINE, hypervisor present.
const GIVEN_1C: u32 = 1 << 21 | 1 << 24 | 1 << 31;
/// Leaf 1 ECX without MONITOR, VMX, SMX, EST, TM2, FMA, PDCM, PCID, DCA, XSAVE, OSXSAVE, AVX, F16C.
const KEPT_1C: u32 = !(1 << 3
    | 1 << 5
    | 1 << 6
    | 1 << 7
    | 1 << 8
    | 1 << 12
    | 1 << 15
    | 1 << 17
    | 1 << 18
    | 1 << 26
    | 1 << 27
    | 1 << 28
    | 1 << 29);
/// Leaf 1 EDX without MCE, MTRR, MCA, DS, ACPI, TM.
const KEPT_1D: u32 = !(1 << 7 | 1 << 12 | 1 << 14 | 1 << 21 | 1 << 22 | 1 << 29);
/// Leaf 7 EBX: FSGSBASE, BMI1, SMEP, BMI2, ERMS, RDSEED, ADX, SMAP, CLFLUSHOPT, CLWB.
const KEPT_7B: u32 = 1 | 1 << 3 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 18 | 1 << 19 | 1 << 20 | 1 << 23 | 1 << 24;
/// Leaf 8000_0001 ECX without SVM, extended APIC space, OSVW, IBS, SKINIT, WDT, LWP, FMA4, TCE, TOPOEXT,
/// performance counters, MWAITX.
const KEPT_EXTENDED_C: u32 = !(1 << 2
    | 1 << 3
    | 1 << 9
    | 1 << 10
    | 1 << 12
    | 1 << 13
    | 1 << 15
    | 1 << 16
    | 1 << 11
    | 1 << 17
    | 1 << 22
    | 1 << 23
    | 1 << 24
    | 1 << 26
    | 1 << 27
    | 1 << 28
    | 1 << 29);

const fn row(first: u32, last: u32, keep: Registers, set: Registers, note: &'static str) -> Row {
    Row {
        first,
        last,
        keep,
        set,
        note,
    }
}

/// The table.
pub const ROWS: &[Row] = &[
    row(
        0,
        0,
        [0, ALL, ALL, ALL],
        [0x0D, 0, 0, 0],
        "vendor; leaves up to 0xD",
    ),
    row(
        1,
        1,
        [ALL, 0xFF00, KEPT_1C, KEPT_1D],
        [0, 0, GIVEN_1C, 0],
        "no VMX, MONITOR, XSAVE, AVX, MTRR, machine checks; x2APIC, TSC deadline, hypervisor",
    ),
    row(2, 2, [ALL; 4], [0; 4], "caches"),
    row(4, 4, [0x3FFF, ALL, ALL, ALL], [0; 4], "caches, each of one vCPU"),
    row(6, 6, [0; 4], [4, 0, 0, 0], "the APIC timer never stops (ARAT)"),
    row(
        7,
        7,
        [0, KEPT_7B, 0, 0],
        [0; 4],
        "what needs no state beside the general registers",
    ),
    row(
        0x8000_0000,
        0x8000_0000,
        [0, ALL, ALL, ALL],
        [0x8000_0008, 0, 0, 0],
        "leaves up to 8000_0008",
    ),
    row(
        0x8000_0001,
        0x8000_0001,
        [ALL, 0, KEPT_EXTENDED_C, ALL & !(1 << 7 | 1 << 12 | 1 << 14)],
        [0; 4],
        "no SVM and what belongs to it, no performance counters",
    ),
    row(0x8000_0002, 0x8000_0004, [ALL; 4], [0; 4], "name"),
    row(0x8000_0005, 0x8000_0006, [ALL; 4], [0; 4], "caches"),
    row(
        0x8000_0007,
        0x8000_0007,
        [0; 4],
        [0, 0, 0, 1 << 8],
        "the TSC never stops",
    ),
    row(
        0x8000_0008,
        0x8000_0008,
        [0xFFFF, 0, 0, 0],
        [0; 4],
        "sizes of addresses",
    ),
];

/// First leaf of a hypervisor.
const HYPERVISOR: u32 = 0x4000_0000;
/// "KVMKVMKVM": Linux uses x2APIC without interrupt remapping only under a hypervisor that it knows.
const SIGNATURE: Registers = [HYPERVISOR + 1, 0x4B4D_564B, 0x564B_4D56, 0x0000_004D];

/// The facts that depend on the vCPU.
#[derive(Clone, Copy, Debug)]
pub struct Processor {
    /// Its APIC id.
    pub id: u32,
    /// vCPUs of its partition.
    pub count: u32,
}

/// Returns what the guest reads. `real` asks the real processor; it is called only for leaves of the table.
#[must_use]
pub fn answer(
    leaf: u32,
    subleaf: u32,
    processor: Processor,
    real: impl FnOnce(u32, u32) -> Registers,
) -> Registers {
    match leaf {
        HYPERVISOR => return SIGNATURE,
        0x4000_0001 => return [0; 4],
        0xB => return topology(subleaf, processor),
        _ => {}
    }
    let Some(row) = ROWS.iter().find(|row| (row.first..=row.last).contains(&leaf)) else {
        return [0; 4];
    };
    if leaf == 7 && subleaf != 0 {
        return [0; 4];
    }
    let [a, b, c, d] = real(leaf, subleaf);
    let ([ka, kb, kc, kd], [sa, sb, sc, sd]) = (row.keep, row.set);
    let mut all = [a & ka | sa, b & kb | sb, c & kc | sc, d & kd | sd];
    if leaf == 1 {
        let [_, b, _, d] = &mut all;
        *b |= processor.id << 24 | (processor.count & 0xFF) << 16;
        let several = u32::from(processor.count > 1) << 28;
        *d = *d & !(1 << 28) | several;
    }
    if leaf == 0x8000_0008 {
        let [_, _, c, _] = &mut all;
        *c = processor.count.saturating_sub(1);
    }
    all
}

/// Leaf 0xB: one thread a core, all vCPUs in one package.
const fn topology(subleaf: u32, processor: Processor) -> Registers {
    let bits = u32::BITS.wrapping_sub(processor.count.saturating_sub(1).leading_zeros());
    match subleaf {
        0 => [0, 1, 0x100, processor.id],
        1 => [bits, processor.count, 0x201, processor.id],
        _ => [0, 0, subleaf & 0xFF, processor.id],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Processor = Processor { id: 1, count: 2 };

    #[test]
    fn virtualization_and_extended_state_are_hidden() {
        let [_, b, c, _] = answer(1, 0, ONE, |_, _| [ALL; 4]);
        assert_eq!(c & (1 << 3 | 1 << 5 | 1 << 26 | 1 << 27 | 1 << 28), 0);
        assert_eq!(c & GIVEN_1C, GIVEN_1C);
        assert_eq!(b >> 16, 0x102);
        let [_, _, c, _] = answer(0x8000_0001, 0, ONE, |_, _| [ALL; 4]);
        assert_eq!(c & 1 << 2, 0, "SVM");
        assert_eq!(answer(0x8000_000A, 0, ONE, |_, _| [ALL; 4]), [0; 4]);
        assert_eq!(answer(0xD, 0, ONE, |_, _| [ALL; 4]), [0; 4]);
    }

    #[test]
    fn the_signature_is_the_one_that_linux_knows() {
        let [_, words @ ..] = answer(HYPERVISOR, 0, ONE, |_, _| [0; 4]);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(&bytes, b"KVMKVMKVM\0\0\0");
        assert_eq!(answer(0x4000_0001, 0, ONE, |_, _| [ALL; 4]), [0; 4]);
    }

    #[test]
    fn rows_are_in_order_and_apart() {
        assert!(ROWS.windows(2).all(|pair| pair[0].last < pair[1].first));
        assert_eq!(answer(0xB, 1, ONE, |_, _| [0; 4]), [1, 2, 0x201, 1]);
    }
}
