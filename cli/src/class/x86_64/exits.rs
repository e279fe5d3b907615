// SPDX-License-Identifier: Apache-2.0
//! Words for the exits of AMD-V (AMD APM volume 2, appendix C). A syndrome has the exit code in bits 63:48,
//! and the first word of information in the others.

/// Exits that are faults, with what the guest tried.
const EXITS: &[(u64, &str)] = &[
    (0x14, "writes CR4 with an instruction that is not decoded"),
    (0x18, "writes CR8 with an instruction that is not decoded"),
    (0x6F, "reads a performance counter"),
    (0x73, "leaves system management mode"),
    (0x7A, "executes INVLPGA"),
    (0x7B, "accesses I/O ports with a string instruction"),
    (0x7F, "cannot deliver an exception (triple fault)"),
    (0x80, "executes VMRUN"),
    (0x82, "executes VMLOAD"),
    (0x83, "executes VMSAVE"),
    (0x84, "executes STGI"),
    (0x85, "executes CLGI"),
    (0x86, "executes SKINIT"),
    (0x8A, "executes MONITOR"),
    (0x8B, "executes MWAIT"),
    (0x8C, "executes MWAIT"),
    (0x8D, "executes XSETBV"),
    (
        INVALID,
        "has set its registers to a state that no processor has (a reserved bit of CR0, CR3, CR4 or EFER, or a wrong CS?)",
    ),
];
/// VMRUN refused the state of the vCPU (15.6): -1, of which the syndrome has 16 bits.
pub(super) const INVALID: u64 = 0xFFFF;
/// A triple fault.
pub(super) const SHUTDOWN: u64 = 0x7F;
/// The exceptions of vectors 0 to 21 (AMD APM volume 2, table 8-1).
const EXCEPTIONS: [&str; 22] = [
    "#DE, a division",
    "#DB, a debug event",
    "an NMI",
    "#BP, a breakpoint",
    "#OF, an overflow",
    "#BR, a bound",
    "#UD, an instruction that it does not have",
    "#NM, the floating-point unit is off",
    "#DF, an exception on the way to a handler",
    "reserved",
    "#TS, a wrong task segment",
    "#NP, a segment that is not there",
    "#SS, the stack segment",
    "#GP, a general protection fault",
    "#PF, a page fault",
    "reserved",
    "#MF, a floating-point error",
    "#AC, an alignment check",
    "#MC, a machine check",
    "#XF, a SIMD error",
    "reserved",
    "#CP, control protection",
];

/// Returns the name of an exception.
pub(super) fn exception(vector: u8) -> &'static str {
    EXCEPTIONS
        .get(usize::from(vector))
        .copied()
        .unwrap_or("an interrupt")
}

const FIRST_EXCEPTION: u64 = 0x40;
const PAGE_FAULT: u64 = 0x4E;
const PORT: u64 = 0x7B;
const MSR: u64 = 0x7C;
const NESTED_FAULT: u64 = 0x400;

fn split(syndrome: u64) -> (u64, u64) {
    (syndrome >> 48, syndrome & 0xFFFF_FFFF_FFFF)
}

/// Describes the attempt of the partition's instruction.
pub(super) fn sentence(syndrome: u64, address: Option<u64>) -> String {
    let (code, info) = split(syndrome);
    let at = address.map_or(String::new(), |address| format!(" {address:#x}"));
    match code {
        NESTED_FAULT => {
            let what = if info & 1 << 4 != 0 {
                "fetches an instruction from"
            } else if info & 1 << 1 != 0 {
                "stores to"
            } else {
                "loads from"
            };
            format!("it {what}{at}, which is not its own to use so")
        }
        PAGE_FAULT => format!("it uses{at}, where it has no memory"),
        PORT => format!("it accesses I/O port{at}"),
        MSR if info & 1 == 0 => format!("it reads the model-specific register{at}, which it does not have"),
        MSR => format!("it writes the model-specific register{at}, which it does not have"),
        FIRST_EXCEPTION..0x60 => {
            let vector = (code - FIRST_EXCEPTION) as u8;
            format!("it raises exception {vector} ({})", exception(vector))
        }
        _ => EXITS.iter().find(|(number, _)| *number == code).map_or_else(
            || format!("it does what exit {code:#x} stands for"),
            |(_, what)| format!("it {what}"),
        ),
    }
}

/// Returns the fields of a syndrome.
pub(super) fn fields(syndrome: u64) -> String {
    let (code, info) = split(syndrome);
    format!("exit {code:#x}, information {info:#x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exits_have_words() {
        let nested = NESTED_FAULT << 48;
        assert!(sentence(nested | 2, Some(0x1000)).contains("stores to 0x1000"));
        assert!(sentence(MSR << 48 | 1, Some(0x1234)).contains("writes the model-specific register 0x1234"));
        assert!(sentence(0x7F << 48, None).contains("triple fault"));
        assert!(sentence(INVALID << 48, None).contains("has set its registers"));
        assert!(sentence(0x46 << 48, None).contains("exception 6"));
        assert_eq!(fields(nested | 7), "exit 0x400, information 0x7");
    }
}
