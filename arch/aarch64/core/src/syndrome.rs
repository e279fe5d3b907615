// SPDX-License-Identifier: Apache-2.0
//! Syndromes of traps, as ESR_EL2 holds them (Arm DDI 0487 D19.2.37).

/// Exception class: unknown reason.
pub const EC_UNKNOWN: u64 = 0x00;
/// Exception class: WFI or WFE.
pub const EC_WFX: u64 = 0x01;
/// Exception class: MCR or MRC of CP15.
pub const EC_CP15: u64 = 0x03;
/// Exception class: MCRR or MRRC of CP15.
pub const EC_CP15_PAIR: u64 = 0x04;
/// Exception class: MCR or MRC of CP14.
pub const EC_CP14: u64 = 0x05;
/// Exception class: LDC or STC of CP14.
pub const EC_CP14_MEMORY: u64 = 0x06;
/// Exception class: FP or SIMD, by CPTR_EL2.TFP.
pub const EC_FP: u64 = 0x07;
/// Exception class: VMRS of an identification register.
pub const EC_VMRS: u64 = 0x08;
/// Exception class: MRRC of CP14.
pub const EC_CP14_PAIR: u64 = 0x0C;
/// Exception class: HVC of AArch32 state.
pub const EC_HVC32: u64 = 0x12;
/// Exception class: SMC of AArch32 state.
pub const EC_SMC32: u64 = 0x13;
/// Exception class: SVC of AArch64 state.
pub const EC_SVC64: u64 = 0x15;
/// Exception class: HVC of AArch64 state.
pub const EC_HVC64: u64 = 0x16;
/// Exception class: SMC of AArch64 state.
pub const EC_SMC64: u64 = 0x17;
/// Exception class: MRS, MSR or SYS.
pub const EC_SYSTEM: u64 = 0x18;
/// Exception class: SVE.
pub const EC_SVE: u64 = 0x19;
/// Exception class: instruction abort of a lower level.
pub const EC_INSTRUCTION_ABORT: u64 = 0x20;
/// Exception class: data abort of a lower level.
pub const EC_DATA_ABORT: u64 = 0x24;
/// Exception class: SError.
pub const EC_SERROR: u64 = 0x2F;

/// IL: the instruction is 32 bits long.
pub const IL: u64 = 1 << 25;
/// IL and ISS.
pub const DETAILS: u64 = 0x3FF_FFFF;

/// The syndrome of the usual WFI: 32 bits long, always executed (in AArch64 state COND says so), TI 0.
pub const WFI: u64 = EC_WFX << 26 | IL | 1 << 24 | 0xE << 20;
/// ISS of WFI and WFE: TI, 0 = WFI.
const WFX_TI: u64 = 3;

/// ISS of MRS, MSR, SYS, MCR, MRC, MCRR and MRRC: Direction, a read.
pub const ISS_READ: u64 = 1;

/// ISS of aborts: ISV, the fields after it describe the access.
const ISS_VALID: u64 = 1 << 24;
const ISS_SIZE: u64 = 3 << 22;
const ISS_SIZE_WORD: u64 = 2 << 22;
const ISS_SIGN_EXTEND: u64 = 1 << 21;
const ISS_SIXTY_FOUR: u64 = 1 << 15;
/// ISS of aborts: FnV, FAR_EL2 holds no address.
pub const ISS_FNV: u64 = 1 << 10;
const ISS_CACHE_MAINTENANCE: u64 = 1 << 8;
const ISS_S1PTW: u64 = 1 << 7;
/// ISS of data aborts: WnR, a write.
pub const ISS_WRITE: u64 = 1 << 6;
/// Fault status without the level.
const FSC_TYPE: u64 = 0x3C;
const FSC_TRANSLATION: u64 = 0x04;
const FSC_PERMISSION: u64 = 0x0C;

/// Returns the exception class.
#[inline(always)]
#[must_use]
pub const fn class(syndrome: u64) -> u64 {
    syndrome >> 26 & 0x3F
}

/// Returns the number of bytes of the instruction that trapped.
#[inline(always)]
#[must_use]
pub const fn length(syndrome: u64) -> u64 {
    if syndrome & IL != 0 { 4 } else { 2 }
}

/// Tells whether it is WFE or a wait with a time-out instead of WFI.
#[inline]
#[must_use]
pub const fn is_not_wfi(syndrome: u64) -> bool {
    syndrome & WFX_TI != 0
}

/// Returns the general register that an MRS, MSR, MCR, MRC, MCRR, MRRC (Rt) or VMRS names.
#[inline(always)]
#[must_use]
pub const fn target(syndrome: u64) -> u8 {
    (syndrome >> 5 & 31) as u8
}

/// Returns the second general register that an MCRR or MRRC names (Rt2).
#[inline]
#[must_use]
pub const fn second_target(syndrome: u64) -> u8 {
    (syndrome >> 10 & 31) as u8
}

/// Returns the general register of a data abort (SRT).
#[inline(always)]
#[must_use]
pub const fn data_register(syndrome: u64) -> u8 {
    (syndrome >> 16 & 31) as u8
}

/// Tells whether a data abort is a translation fault of a load or store of a word, zero-extended, by one
/// general register.
#[inline(always)]
#[must_use]
pub const fn is_word(syndrome: u64) -> bool {
    const FIELDS: u64 = ISS_VALID | ISS_SIZE | ISS_SIGN_EXTEND | ISS_S1PTW | FSC_TYPE;
    syndrome & FIELDS == ISS_VALID | ISS_SIZE_WORD | FSC_TRANSLATION
}

/// Tells whether a data abort is a translation fault of a load or store of one or two bytes, zero-extended,
/// by one general register.
#[inline(always)]
#[must_use]
pub const fn is_part_of_word(syndrome: u64) -> bool {
    // The size of a word and of two words have their upper bit set.
    const FIELDS: u64 = ISS_VALID | ISS_SIZE_WORD | ISS_SIGN_EXTEND | ISS_S1PTW | FSC_TYPE;
    syndrome & FIELDS == ISS_VALID | FSC_TRANSLATION
}

/// Returns the bytes that a data abort's load or store moves.
#[inline(always)]
#[must_use]
pub const fn size(syndrome: u64) -> u8 {
    1 << (syndrome >> 22 & 3)
}

/// Tells whether a data abort is a write.
#[inline(always)]
#[must_use]
pub const fn is_write(syndrome: u64) -> bool {
    syndrome & ISS_WRITE != 0
}

/// The answers to a data abort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataAbort {
    /// The access can be done by software.
    Emulate(DataAccess),
    /// Cache maintenance where no memory is: there is nothing to do.
    CacheMaintenance,
    /// The syndrome does not describe the access. The instruction may.
    Undescribed,
    /// The partition may not do it.
    Fault,
}

/// A load or store of one general register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataAccess {
    /// The register.
    pub register: u8,
    /// Bytes: 1, 2, 4 or 8.
    pub size: u8,
    /// A store.
    pub write: bool,
    /// A load extends the sign.
    pub sign_extend: bool,
    /// The register is 64 bits wide.
    pub wide: bool,
}

/// Gives the answer to a data abort.
#[inline]
#[must_use]
pub const fn data_abort(syndrome: u64) -> DataAbort {
    if syndrome & ISS_S1PTW != 0 || syndrome & FSC_TYPE != FSC_TRANSLATION {
        return DataAbort::Fault;
    }
    if syndrome & ISS_VALID != 0 {
        return DataAbort::Emulate(described(syndrome));
    }
    if syndrome & ISS_CACHE_MAINTENANCE != 0 {
        return DataAbort::CacheMaintenance;
    }
    DataAbort::Undescribed
}

/// Returns the access that stage 2 refused although memory is mapped there, if the CPU describes the access.
#[must_use]
pub const fn refused_access(syndrome: u64) -> Option<DataAccess> {
    let is_described = syndrome & (ISS_S1PTW | ISS_VALID) == ISS_VALID;
    if is_described && syndrome & FSC_TYPE == FSC_PERMISSION {
        return Some(described(syndrome));
    }
    None
}

const fn described(syndrome: u64) -> DataAccess {
    DataAccess {
        register: data_register(syndrome),
        size: 1 << (syndrome >> 22 & 3),
        write: is_write(syndrome),
        sign_extend: syndrome & ISS_SIGN_EXTEND != 0,
        wide: syndrome & ISS_SIXTY_FOUR != 0,
    }
}

/// Where the guest-physical address of an abort is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbortAddress {
    /// HPFAR_EL2 holds the page.
    Page,
    /// HPFAR_EL2 is not valid: FAR_EL2 must be translated again.
    Translate,
    /// Nowhere.
    Unknown,
}

/// Tells where the guest-physical address of an abort is found: HPFAR_EL2 is valid for translation, access
/// flag and address size faults and for faults of a table walk, but not for other permission faults
/// (D19.2.65).
#[must_use]
pub const fn abort_address(syndrome: u64) -> AbortAddress {
    let kind = syndrome & FSC_TYPE;
    if syndrome & ISS_S1PTW != 0 || kind < FSC_PERMISSION {
        return AbortAddress::Page;
    }
    if kind == FSC_PERMISSION && syndrome & ISS_FNV == 0 {
        return AbortAddress::Translate;
    }
    AbortAddress::Unknown
}

/// Tells whether FAR_EL2 holds the virtual address of the exception with this syndrome.
#[must_use]
pub const fn has_virtual_address(syndrome: u64) -> bool {
    matches!(class(syndrome), EC_DATA_ABORT | EC_INSTRUCTION_ABORT) && syndrome & ISS_FNV == 0
}
