// SPDX-License-Identifier: Apache-2.0
//! ACPI tables of a VM (ACPI 6.4, chapter 5): RSDP, XSDT, FADT, MADT, DSDT. No author writes an interrupt
//! number twice: the tables are made of the numbers that the virtual devices have.

use bulkhead_arch_api::class::x86_64::PM_BASE;

use super::places::ACPI;
use super::{IO_APIC, LOCAL_APIC};

/// Bytes of the header that all tables but the first have.
const HEADER: usize = 36;
/// The line of the SCI.
const SCI: u16 = 9;
/// The distance of each table from the RSDP.
const XSDT_AT: u64 = 0x40;
const FADT_AT: u64 = 0x100;
const MADT_AT: u64 = 0x280;
const FACS_AT: u64 = 0x400;
const DSDT_AT: u64 = 0x440;

/// The DSDT: `Name (\_S5, Package () { 0, 0, 0, 0 })`, and in `\_SB` the first serial line of a PC as
/// `PNP0501` with its ports and line.
const DSDT: &[u8] = &[
    // NameOp \_S5_ PackageOp, 4 elements of Zero.
    0x08, b'_', b'S', b'5', b'_', 0x12, 0x06, 0x04, 0, 0, 0, 0, // ScopeOp \_SB_, 45 bytes.
    0x10, 0x2D, b'\\', b'_', b'S', b'B', b'_', // ExtOpPrefix DeviceOp COM1, 37 bytes.
    0x5B, 0x82, 0x25, b'C', b'O', b'M', b'1', // Name _HID, EISAID PNP0501.
    0x08, b'_', b'H', b'I', b'D', 0x0C, 0x41, 0xD0, 0x05, 0x01, // Name _CRS, Buffer of 13 bytes.
    0x08, b'_', b'C', b'R', b'S', 0x11, 0x10, 0x0A, 0x0D,
    // IO (Decode16, 0x3F8, 0x3F8, 1, 8); IRQNoFlags {4}; end tag.
    0x47, 0x01, 0xF8, 0x03, 0xF8, 0x03, 0x01, 0x08, 0x22, 0x10, 0x00, 0x79, 0x00,
];

/// Makes the bytes of a table sum up to 0.
fn sum_up(bytes: &mut [u8], at: usize) {
    bytes[at] = 0;
    let sum = bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    bytes[at] = sum.wrapping_neg();
}

/// Returns a table with its header.
fn table(signature: &[u8; 4], revision: u8, body: &[u8]) -> Vec<u8> {
    let mut out = signature.to_vec();
    out.extend(((HEADER + body.len()) as u32).to_le_bytes());
    out.extend([revision, 0]);
    out.extend(b"BULKHDBULKHEAD ");
    out.resize(24, b' ');
    out.extend(1_u32.to_le_bytes());
    out.extend(b"BLKH");
    out.extend(1_u32.to_le_bytes());
    out.extend_from_slice(body);
    sum_up(&mut out, 9);
    out
}

/// Returns the RSDP.
fn pointer() -> Vec<u8> {
    let mut out = b"RSD PTR \0BULKHD\x02".to_vec();
    out.extend(0_u32.to_le_bytes());
    out.extend(36_u32.to_le_bytes());
    out.extend((ACPI + XSDT_AT).to_le_bytes());
    out.extend([0; 4]);
    sum_up(&mut out[..20], 8);
    sum_up(&mut out, 32);
    out
}

/// Returns an address in the way of ACPI: I/O ports of `width` bits.
fn ports(address: u64, width: u8) -> Vec<u8> {
    let mut out = vec![1, width, 0, (width / 8).ilog2() as u8 + 1];
    out.extend(address.to_le_bytes());
    out
}

/// Returns the FADT, revision 5.
fn fixed() -> Vec<u8> {
    /// WBINVD, C1, no sleep button, reset register, 32-bit timer.
    const FLAGS: u32 = 1 | 1 << 2 | 1 << 5 | 1 << 8 | 1 << 10 | 1 << 4;
    /// There are devices of old PCs, no VGA, no CMOS clock is missing.
    const ARCHITECTURE: u16 = 1 | 1 << 2;
    let mut out = vec![0; 268];
    let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
    let port = |offset: u64| ((PM_BASE + offset) as u32).to_le_bytes();
    // Offsets count from the start of the table.
    put(36, &((ACPI + FACS_AT) as u32).to_le_bytes());
    put(40, &((ACPI + DSDT_AT) as u32).to_le_bytes());
    put(46, &SCI.to_le_bytes());
    put(56, &port(0));
    put(64, &port(4));
    put(76, &port(8));
    // PM1_EVT_LEN, PM1_CNT_LEN, PM_TMR_LEN.
    put(88, &[4]);
    put(89, &[2]);
    put(91, &[4]);
    // C2 and C3 are not there.
    put(96, &101_u16.to_le_bytes());
    put(98, &1001_u16.to_le_bytes());
    // The century's place in CMOS memory.
    put(108, &[0x32]);
    put(109, &ARCHITECTURE.to_le_bytes());
    put(112, &FLAGS.to_le_bytes());
    put(116, &ports(0xCF9, 8));
    put(128, &[6]);
    put(132, &(ACPI + FACS_AT).to_le_bytes());
    put(140, &(ACPI + DSDT_AT).to_le_bytes());
    put(148, &ports(PM_BASE, 32));
    put(172, &ports(PM_BASE + 4, 16));
    put(208, &ports(PM_BASE + 8, 32));
    table(b"FACP", 5, &out[HEADER..])
}

/// Returns the FACS.
fn firmware_control() -> Vec<u8> {
    let mut out = b"FACS".to_vec();
    out.extend(64_u32.to_le_bytes());
    out.resize(64, 0);
    out[32] = 2;
    out
}

/// Returns the MADT: a local APIC for each vCPU, the I/O APIC, where the PIT and the SCI are, and the
/// non-maskable interrupt.
fn interrupts(vcpus: u32) -> Vec<u8> {
    let mut body = (LOCAL_APIC as u32).to_le_bytes().to_vec();
    // PCAT_COMPAT: there is an 8259 pair.
    body.extend(1_u32.to_le_bytes());
    for id in 0..vcpus as u8 {
        body.extend([0, 8, id, id, 1, 0, 0, 0]);
    }
    body.extend([1, 12, 0, 0]);
    body.extend((IO_APIC as u32).to_le_bytes());
    body.extend(0_u32.to_le_bytes());
    // ISA line 0 is pin 2, as on every PC.
    body.extend([2, 10, 0, 0, 2, 0, 0, 0, 0, 0]);
    // The SCI is a level, active high.
    body.extend([2, 10, 0, SCI as u8, SCI as u8, 0, 0, 0, 0x0D, 0]);
    body.extend([4, 6, 0xFF, 0, 0, 1]);
    table(b"APIC", 4, &body)
}

/// Returns the tables of a VM with so many vCPUs, for the address [`ACPI`].
pub(super) fn tables(vcpus: u32) -> Vec<u8> {
    let list: Vec<u8> = [FADT_AT, MADT_AT]
        .iter()
        .flat_map(|at| (ACPI + at).to_le_bytes())
        .collect();
    let mut out = Vec::new();
    for (at, table) in [
        (0, pointer()),
        (XSDT_AT, table(b"XSDT", 1, &list)),
        (FADT_AT, fixed()),
        (MADT_AT, interrupts(vcpus)),
        (FACS_AT, firmware_control()),
        (DSDT_AT, table(b"DSDT", 2, DSDT)),
    ] {
        assert!(out.len() as u64 <= at, "tables are apart");
        out.resize(at as usize, 0);
        out.extend(table);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(bytes: &[u8]) -> u8 {
        bytes.iter().fold(0, |sum, byte| sum.wrapping_add(*byte))
    }

    #[test]
    fn every_table_sums_up_to_nothing() {
        let all = tables(8);
        assert_eq!((sum(&all[..20]), sum(&all[..36])), (0, 0));
        for at in [XSDT_AT, FADT_AT, MADT_AT, DSDT_AT].map(|at| at as usize) {
            let length = u32::from_le_bytes(all[at + 4..at + 8].try_into().unwrap()) as usize;
            assert_eq!(sum(&all[at..at + length]), 0, "{:?}", &all[at..at + 4]);
        }
        assert_eq!(&all[FADT_AT as usize..][..4], b"FACP");
    }

    #[test]
    fn packages_of_the_dsdt_are_as_long_as_they_say() {
        let scope = 12;
        assert_eq!(DSDT[scope], 0x10);
        assert_eq!(scope + 1 + usize::from(DSDT[scope + 1]), DSDT.len());
        let device = scope + 7;
        assert_eq!(DSDT[device..device + 2], [0x5B, 0x82]);
        assert_eq!(device + 2 + usize::from(DSDT[device + 2]), DSDT.len());
        assert_eq!(DSDT[DSDT.len() - 2], 0x79, "end tag");
    }

    #[test]
    fn there_is_an_apic_for_each_vcpu() {
        let two = interrupts(2);
        assert_eq!(two.len(), HEADER + 8 + 16 + 12 + 20 + 6);
        assert_eq!(two[HEADER + 16..HEADER + 20], [0, 8, 1, 1]);
    }
}
