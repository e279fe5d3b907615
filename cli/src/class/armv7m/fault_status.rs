// SPDX-License-Identifier: Apache-2.0
//! Fault reports of class `armv7m` in words. Bits 63:32 of a syndrome are the number of the exception, the
//! bits below are the Configurable Fault Status Register (Arm DDI 0403E, B1.5.2 and B3.2.15).

/// A bit of the register: its name, and its meaning for the partition.
struct Flag {
    bit: u32,
    name: &'static str,
    says: &'static str,
}

/// The causes, the most telling first.
const FLAGS: [Flag; 17] = [
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
    flag(24, "UNALIGNED", "an access that is not aligned"),
    flag(25, "DIVBYZERO", "a division by zero"),
];

/// The exception number that stands for a lock-up. No exception has this number.
const LOCKUP: u64 = 0xF;
const IMPRECISE: u64 = 1 << 10;

const fn flag(bit: u32, name: &'static str, says: &'static str) -> Flag {
    Flag { bit, name, says }
}

fn causes(syndrome: u64) -> impl Iterator<Item = &'static Flag> {
    FLAGS.iter().filter(move |flag| syndrome >> flag.bit & 1 == 1)
}

/// Tells whether the guest's processor would have locked up.
pub const fn is_lockup(syndrome: u64) -> bool {
    syndrome >> 32 == LOCKUP
}

/// Returns the name of an exception by its number (B1.5.2).
pub(super) fn exception(number: u64) -> String {
    let name = match number {
        2 => "NMI",
        3 => "HardFault",
        4 => "MemManage",
        5 => "BusFault",
        6 => "UsageFault",
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
    syndrome & IMPRECISE != 0
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
    fn what_has_no_bits() {
        assert_eq!(
            sentence(0xF << 32, None),
            "a fault where its processor can take none: it would lock up"
        );
        assert_eq!(fields(0xF << 32), "lock-up");
        assert_eq!(sentence(19 << 32, None), "exception 19");
    }
}
