// SPDX-License-Identifier: Apache-2.0
//! Fault reports of Cortex-M processors in words. Bits 63:32 of a syndrome are the number of the exception.
//! The bits below are the Configurable Fault Status Register (Arm DDI 0403E, B1.5.2 and B3.2.15), or for a
//! SecureFault the Secure Fault Status Register (Arm DDI 0553B, D1.2.260).

/// A bit of the register: its name, and its meaning for the partition.
struct Flag {
    bit: u32,
    name: &'static str,
    says: &'static str,
}

/// The causes in the Configurable Fault Status Register, the most telling first.
const FLAGS: [Flag; 18] = [
    flag(
        0,
        "IACCVIOL",
        "instruction fetch where nothing of its own can be executed",
    ),
    flag(1, "DACCVIOL", "load or store where that is not allowed"),
    flag(
        3,
        "MUNSTKERR",
        "return from an exception with a stack pointer that is not its own",
    ),
    flag(4, "MSTKERR", "exception with a stack pointer that is not its own"),
    flag(
        5,
        "MLSPERR",
        "floating-point registers were to be saved where that is not allowed",
    ),
    flag(8, "IBUSERR", "instruction fetch that the bus refused"),
    flag(9, "PRECISERR", "load or store that the bus refused"),
    flag(
        10,
        "IMPRECISERR",
        "store that the bus refused some time after its instruction",
    ),
    flag(
        11,
        "UNSTKERR",
        "return from an exception: the bus refused the stack",
    ),
    flag(12, "STKERR", "exception: the bus refused the stack"),
    flag(
        13,
        "LSPERR",
        "floating-point registers were to be saved: the bus refused",
    ),
    flag(16, "UNDEFINSTR", "an undefined instruction"),
    flag(
        17,
        "INVSTATE",
        "a jump to an address without bit 0, as for Arm instructions",
    ),
    flag(18, "INVPC", "a wrong EXC_RETURN"),
    flag(19, "NOCP", "a coprocessor that is off or not there"),
    flag(20, "STKOF", "the stack grew beyond its limit"),
    flag(24, "UNALIGNED", "an access that is not aligned"),
    flag(25, "DIVBYZERO", "a division by zero"),
];

/// The causes in the Secure Fault Status Register.
const SECURE_FLAGS: [Flag; 8] = [
    flag(0, "INVEP", "a jump to code of the secure world that is no entry"),
    flag(
        1,
        "INVIS",
        "return from an exception: the frame on the stack is not one of the processor's",
    ),
    flag(2, "INVER", "return from an exception of the other world"),
    flag(
        3,
        "AUVIOL",
        "load, store or stack where the memory is not its own",
    ),
    flag(
        4,
        "INVTRAN",
        "a jump from the secure world without a change of worlds",
    ),
    flag(
        5,
        "LSPERR",
        "floating-point registers were to be saved where the memory is not its own",
    ),
    flag(
        7,
        "LSERR",
        "floating-point registers were to be saved, and the state of that is damaged",
    ),
    // Says that the address of the report is valid, so it is no cause.
    flag(6, "SFARVALID", "an access to memory that is not its own"),
];

/// Number of the exception SecureFault.
const SECURE_FAULT: u64 = 7;
/// The exception number that stands for a lock-up. No exception has this number.
const LOCKUP: u64 = 0xF;
const IMPRECISE: u64 = 1 << 10;

const fn flag(bit: u32, name: &'static str, says: &'static str) -> Flag {
    Flag { bit, name, says }
}

fn causes(syndrome: u64) -> impl Iterator<Item = &'static Flag> {
    let flags: &[Flag] = if syndrome >> 32 == SECURE_FAULT {
        &SECURE_FLAGS
    } else {
        &FLAGS
    };
    flags.iter().filter(move |flag| syndrome >> flag.bit & 1 == 1)
}

/// Tells whether the guest's processor would have locked up.
pub const fn is_lockup(syndrome: u64) -> bool {
    syndrome >> 32 == LOCKUP
}

/// Tells whether it is a fault of an access to the other world.
pub const fn is_secure(syndrome: u64) -> bool {
    syndrome >> 32 == SECURE_FAULT
}

/// Returns the name of an exception by its number (B1.5.2).
pub fn exception(number: u64) -> String {
    let name = match number {
        2 => "NMI",
        3 => "HardFault",
        4 => "MemManage",
        5 => "BusFault",
        6 => "UsageFault",
        SECURE_FAULT => "SecureFault",
        11 => "SVCall",
        12 => "DebugMonitor",
        14 => "PendSV",
        15 => "SysTick",
        _ => return format!("interrupt {}", number.saturating_sub(16)),
    };
    name.to_owned()
}

/// Describes the attempt in one sentence.
pub fn sentence(syndrome: u64, address: Option<u64>) -> String {
    if is_lockup(syndrome) {
        return "a fault where its processor can take none: it would lock up".to_owned();
    }
    let Some(cause) = causes(syndrome).next() else {
        return fields(syndrome);
    };
    match address {
        Some(address) => format!("{} at {address:#x}", cause.says),
        None => cause.says.to_owned(),
    }
}

/// Returns the exception and the names of the bits.
pub fn fields(syndrome: u64) -> String {
    let exception = match syndrome >> 32 {
        0 => "CFSR".to_owned(),
        3 => "HardFault".to_owned(),
        4 => "MemManage".to_owned(),
        5 => "BusFault".to_owned(),
        6 => "UsageFault".to_owned(),
        SECURE_FAULT => "SecureFault".to_owned(),
        LOCKUP => "lock-up".to_owned(),
        number => format!("exception {number}"),
    };
    let names: Vec<&str> = causes(syndrome).map(|flag| flag.name).collect();
    if names.is_empty() {
        exception
    } else {
        format!("{exception}: {}", names.join(", "))
    }
}

/// Tells whether the fault came some time after its cause.
pub const fn is_asynchronous(syndrome: u64) -> bool {
    syndrome >> 32 != SECURE_FAULT && syndrome & IMPRECISE != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences() {
        let data = 4 << 32 | 0x82;
        assert_eq!(
            sentence(data, Some(0x2000_0000)),
            "load or store where that is not allowed at 0x20000000"
        );
        assert_eq!(fields(data), "MemManage: DACCVIOL");
        let late = 5 << 32 | 0x400;
        assert_eq!(
            sentence(late, None),
            "store that the bus refused some time after its instruction"
        );
        assert!(is_asynchronous(late) && !is_asynchronous(data));
    }

    #[test]
    fn a_fault_of_the_worlds_has_a_register_of_its_own() {
        let outside = 7 << 32 | 0x48;
        assert_eq!(
            sentence(outside, Some(0x3000_0000)),
            "load, store or stack where the memory is not its own at 0x30000000"
        );
        assert_eq!(fields(outside), "SecureFault: AUVIOL, SFARVALID");
        assert!(fields(7 << 32 | 1).ends_with("INVEP"));
        assert!(!is_asynchronous(7 << 32 | 0x400));
        assert_eq!(fields(6 << 32 | 1 << 20), "UsageFault: STKOF");
    }

    #[test]
    fn what_has_no_bits() {
        assert_eq!(
            sentence(0xF << 32, None),
            "a fault where its processor can take none: it would lock up"
        );
        assert_eq!(fields(0xF << 32), "lock-up");
        assert_eq!(sentence(19 << 32, None), "exception 19");
    }
}
