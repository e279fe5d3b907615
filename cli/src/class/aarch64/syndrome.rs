// SPDX-License-Identifier: Apache-2.0
//! Exception syndromes of class `aarch64` in words (Arm DDI 0487, ESR_ELx).

use aarch64_esr_decoder::{FieldInfo, decode};

/// Exception classes that are told apart here.
const UNKNOWN: u64 = 0x00;
const WAIT: u64 = 0x01;
const CP15: u64 = 0x03;
const CP15_PAIR: u64 = 0x04;
const CP14: u64 = 0x05;
const CP14_MEMORY: u64 = 0x06;
const CP14_PAIR: u64 = 0x0C;
const SYSTEM_REGISTER: u64 = 0x18;
const SVC32: u64 = 0x11;
const SVC64: u64 = 0x15;
const SMC32: u64 = 0x13;
const SMC64: u64 = 0x17;
const INSTRUCTION_ABORT: u64 = 0x20;
const DATA_ABORT: u64 = 0x24;
const SERROR: u64 = 0x2F;

/// General registers as AArch32 names them, by their numbers in AArch64 (D1.20.1).
const NARROW: [&str; 31] = [
    "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "sp_usr", "lr_usr",
    "sp_hyp", "lr_irq", "sp_irq", "lr_svc", "sp_svc", "lr_abt", "sp_abt", "lr_und", "sp_und", "r8_fiq",
    "r9_fiq", "r10_fiq", "r11_fiq", "r12_fiq", "sp_fiq", "lr_fiq",
];

/// The surroundings of an instruction.
#[derive(Clone, Copy, Default)]
pub struct Surroundings {
    /// The instruction was one of AArch32.
    pub narrow: bool,
    /// The hypervisor emulates a device at the address.
    pub emulated: bool,
}

/// Describes the instruction's attempt in one sentence.
pub fn sentence(
    syndrome: u64,
    address: Option<u64>,
    virtual_address: Option<u64>,
    surroundings: Surroundings,
) -> String {
    let bit = |number: u32| syndrome >> number & 1 == 1;
    match syndrome >> 26 & 0x3F {
        DATA_ABORT => {
            let walk = if bit(7) {
                " while the CPU walked the partition's own translation tables"
            } else {
                ""
            };
            format!(
                "{} {}{walk}: {}",
                access(syndrome, surroundings),
                at(address, virtual_address),
                status(syndrome, surroundings.emulated)
            )
        }
        INSTRUCTION_ABORT => {
            format!(
                "instruction fetch {}: {}",
                at(address, virtual_address),
                status(syndrome, surroundings.emulated)
            )
        }
        SYSTEM_REGISTER => format!("{} is not this machine's to use", system_register(syndrome)),
        CP15 | CP14 => format!("{} is not this machine's to use", coprocessor_register(syndrome)),
        CP15_PAIR | CP14_PAIR => format!("{} is not this machine's to use", coprocessor_pair(syndrome)),
        CP14_MEMORY => "LDC or STC of a debug register, which this machine does not have".to_owned(),
        WAIT => "WFI or WFE where waiting is not allowed".to_owned(),
        SMC32 | SMC64 => "a call to the firmware that no guest may make".to_owned(),
        SERROR => "an asynchronous external abort (SError) came in".to_owned(),
        UNKNOWN => "an undefined instruction".to_owned(),
        _ => fields(syndrome),
    }
}

/// Tells whether the exception came some time after its cause.
pub const fn is_asynchronous(syndrome: u64) -> bool {
    syndrome >> 26 & 0x3F == SERROR
}

/// Describes the access: load or store, and the size of the data.
fn access(syndrome: u64, surroundings: Surroundings) -> String {
    let Surroundings { narrow, emulated } = surroundings;
    let verb = if syndrome >> 6 & 1 == 1 { "store" } else { "load" };
    if syndrome >> 24 & 1 == 0 {
        // The hypervisor decodes pairs and write-back itself where it emulates registers.
        let forms = if emulated {
            "an exclusive, an atomic or SIMD"
        } else {
            "a pair, an exclusive, SIMD, or with write-back"
        };
        return format!("{verb} that the CPU does not describe ({forms})");
    }
    let bytes = 1 << (syndrome >> 22 & 3);
    let plural = if bytes == 1 { "" } else { "s" };
    let number = syndrome >> 16 & 31;
    let name = match NARROW.get(number as usize) {
        Some(name) if narrow => (*name).to_owned(),
        None if narrow => "pc".to_owned(),
        _ => format!("x{number}"),
    };
    match (number, verb) {
        (31, "store") if !narrow => format!("store of {bytes} zero byte{plural}"),
        (_, "store") => format!("store of {bytes} byte{plural} of {name}"),
        _ => format!("load of {bytes} byte{plural} into {name}"),
    }
}

fn at(address: Option<u64>, virtual_address: Option<u64>) -> String {
    match (address, virtual_address) {
        (Some(physical), Some(seen)) if physical != seen => format!("at {physical:#x} (virtual {seen:#x})"),
        (Some(address), _) => format!("at {address:#x}"),
        (None, Some(seen)) => format!("at virtual {seen:#x}"),
        (None, None) => "somewhere".to_owned(),
    }
}

/// Returns the meaning of the fault status code of an abort (DFSC, IFSC).
fn status(syndrome: u64, emulated: bool) -> &'static str {
    match syndrome & 0x3F {
        0x00..=0x03 => "beyond the address space",
        0x04..=0x07 if emulated => "an access of a kind that is not emulated",
        0x04..=0x07 => "nothing is mapped there",
        0x0C..=0x0F => "that is not allowed there",
        0x10 | 0x14..=0x17 => "the bus refused (external abort)",
        0x21 => "not aligned",
        0x30 => "conflicting entries in the TLB",
        _ => "refused",
    }
}

/// Returns the register that an MRS, MSR or SYS names, and the direction.
fn system_register(syndrome: u64) -> String {
    let field = |low: u32, bits: u32| syndrome >> low & ((1 << bits) - 1);
    let (op0, op1, crn, crm, op2) = (
        field(20, 2),
        field(14, 3),
        field(10, 4),
        field(1, 4),
        field(17, 3),
    );
    let verb = if syndrome & 1 == 1 { "reading" } else { "writing" };
    if op0 == 1 {
        return format!("instruction SYS #{op1}, C{crn}, C{crm}, #{op2}");
    }
    let known = decode(syndrome & 0xFFFF_FFFF)
        .ok()
        .and_then(|fields| register_name(&fields));
    let encoding = format!("S{op0}_{op1}_C{crn}_C{crm}_{op2}");
    match known {
        Some(name) => format!("{verb} {name} ({encoding})"),
        None => format!("{verb} {encoding}"),
    }
}

/// Returns the coprocessor whose access by MCR, MRC, MCRR or MRRC trapped.
fn coprocessor(syndrome: u64) -> u32 {
    if matches!(syndrome >> 26 & 0x3F, CP15 | CP15_PAIR) {
        15
    } else {
        14
    }
}

/// Returns the register that an MCR or MRC names, as an assembler writes it.
fn coprocessor_register(syndrome: u64) -> String {
    let field = |low: u32, bits: u32| syndrome >> low & ((1 << bits) - 1);
    let instruction = if syndrome & 1 == 1 { "MRC" } else { "MCR" };
    format!(
        "{instruction} p{}, {}, <Rt>, c{}, c{}, {}",
        coprocessor(syndrome),
        field(14, 3),
        field(10, 4),
        field(1, 4),
        field(17, 3)
    )
}

/// Returns the registers that an MCRR or MRRC names.
fn coprocessor_pair(syndrome: u64) -> String {
    let instruction = if syndrome & 1 == 1 { "MRRC" } else { "MCRR" };
    format!(
        "{instruction} p{}, {}, <Rt>, <Rt2>, c{}",
        coprocessor(syndrome),
        syndrome >> 16 & 0xF,
        syndrome >> 1 & 0xF
    )
}

/// Returns the name of the register, if the decoder knows it: the decoder then ends its description of the
/// syndrome with `NAME`.
fn register_name(fields: &[FieldInfo]) -> Option<String> {
    let iss = fields.iter().find(|field| field.name == "ISS")?;
    let description = iss.description.as_deref()?;
    let name = description.split_ascii_whitespace().find(|word| {
        word.contains("_EL")
            && word
                .chars()
                .all(|char| char.is_ascii_alphanumeric() || char == '_')
    })?;
    Some(name.to_owned())
}

/// Returns how many bytes before its return address the instruction is whose exception this syndrome is
/// about. The address of a call is after the instruction, which has 16 bits if `IL` is 0.
fn length_before(syndrome: u64) -> u64 {
    match syndrome >> 26 & 0x3F {
        SVC32 | SVC64 if syndrome & 1 << 25 != 0 => 4,
        SVC32 => 2,
        _ => 0,
    }
}

/// Returns the exception that leads to a vector of EL1, and the bytes from its instruction to its return
/// address. Interrupts leave ESR_EL1 as it was: the vector alone tells them (DDI 0487, D1.3.1 and D1.3.5).
pub fn taken_at(vector: u64, esr: u64) -> (String, u64) {
    match vector & 0x180 {
        0x80 => ("was interrupted (IRQ)".to_owned(), 0),
        0x100 => ("was interrupted (FIQ)".to_owned(), 0),
        0x180 => (
            format!(
                "had an SError, some time after its cause: syndrome {esr:#x}: {}",
                fields(esr)
            ),
            0,
        ),
        _ => (
            format!("took an exception: syndrome {esr:#x}: {}", fields(esr)),
            length_before(esr),
        ),
    }
}

/// Describes the fields of a syndrome, most general first.
pub fn fields(syndrome: u64) -> String {
    let Ok(fields) = decode(syndrome & 0xFFFF_FFFF) else {
        return format!("exception class {:#x}", syndrome >> 26 & 0x3F);
    };
    let mut words = Vec::new();
    collect(&fields, &mut words);
    words.join("; ")
}

fn collect(fields: &[FieldInfo], words: &mut Vec<String>) {
    for field in fields {
        // A reader of a report learns nothing from the fields that say which other fields are valid or wide.
        let dull = matches!(
            field.name,
            "IL" | "ISV" | "SF" | "AR" | "SSE" | "RES0" | "VNCR" | "LST" | "Xs"
        );
        if let Some(description) = field.description.as_ref().filter(|_| !dull) {
            words.push(format!("{} {}", field.name, description.trim_end_matches('.')));
        }
        collect(&field.subfields, words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences() {
        const WIDE: Surroundings = Surroundings {
            narrow: false,
            emulated: false,
        };
        const NARROW_ONE: Surroundings = Surroundings { narrow: true, ..WIDE };
        const EMULATED: Surroundings = Surroundings {
            emulated: true,
            ..WIDE
        };
        assert_eq!(
            sentence(0x9200_0047, Some(0x0800_0104), None, EMULATED),
            "store that the CPU does not describe (an exclusive, an atomic or SIMD) at 0x8000104: an access of a kind that is not emulated"
        );
        assert_eq!(
            sentence(0x9389_0005, Some(0x8000_0000), Some(0x8000_0000), WIDE),
            "load of 4 bytes into x9 at 0x80000000: nothing is mapped there"
        );
        assert_eq!(
            sentence(0x9200_004F, Some(0x1000), Some(0xFFFF_0000), WIDE),
            "store that the CPU does not describe (a pair, an exclusive, SIMD, or with write-back) at 0x1000 (virtual 0xffff0000): that is not allowed there"
        );
        assert_eq!(
            sentence(0x8200_0006, Some(0), None, WIDE),
            "instruction fetch at 0x0: nothing is mapped there"
        );
        assert_eq!(
            sentence(0x0200_0000, None, None, WIDE),
            "an undefined instruction"
        );
        // The register of Supervisor mode, and one without a name.
        assert_eq!(
            sentence(0x9393_0005, Some(0x8000_0000), None, NARROW_ONE),
            "load of 4 bytes into sp_svc at 0x80000000: nothing is mapped there"
        );
        assert_eq!(
            sentence(0x939F_0045, Some(0x8000_0000), None, NARROW_ONE),
            "store of 4 bytes of pc at 0x80000000: nothing is mapped there"
        );
    }

    #[test]
    fn registers_have_their_encoding_at_least() {
        // MRS x0, PMCR_EL0: op0 3, op1 3, CRn 9, CRm 12, op2 0.
        let syndrome = 0x18 << 26 | 1 << 25 | 3 << 20 | 3 << 14 | 9 << 10 | 12 << 1 | 1;
        let text = sentence(syndrome, None, None, Surroundings::default());
        assert!(
            text.starts_with("reading ") && text.contains("S3_3_C9_C12_0"),
            "{text}"
        );
    }

    #[test]
    fn coprocessors_as_an_assembler_writes_them() {
        // Read of PMCR in A32; MRRC of CNTPCT; MCR of DBGDSCR.
        let pair = CP15_PAIR << 26 | 1 << 25 | 14 << 1 | 1;
        let debug = CP14 << 26 | 1 << 25 | 2 << 17 | 2 << 1;
        for (syndrome, text) in [
            (
                0x0E30_2439,
                "MRC p15, 0, <Rt>, c9, c12, 0 is not this machine's to use",
            ),
            (pair, "MRRC p15, 0, <Rt>, <Rt2>, c14 is not this machine's to use"),
            (debug, "MCR p14, 0, <Rt>, c0, c2, 2 is not this machine's to use"),
        ] {
            assert_eq!(sentence(syndrome, None, None, Surroundings::default()), text);
        }
    }

    #[test]
    fn any_number_is_survived() {
        for class in 0..64_u64 {
            for iss in [0, 1, 0x1FF_FFFF, 0x0AA_AAAA, 0x155_5555] {
                let syndrome = class << 26 | 1 << 25 | iss;
                assert!(!sentence(syndrome, None, None, Surroundings::default()).is_empty());
            }
        }
    }
}
