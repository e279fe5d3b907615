// SPDX-License-Identifier: Apache-2.0
//! PSCI 1.1 (Arm DEN 0022E) and SMCCC 1.2 (DEN 0028F): every function in both widths, every error.

use bulkhead_abi::hypercall::FUNCTION_BASE;
use bulkhead_arch_aarch64_core::psci::{Answer, Caller, answer, is_beyond_aarch32, refuse_start};
use bulkhead_arch_api::ResetKind;

const WIDE: u32 = 1 << 30;
const VERSION: u32 = 0x8400_0000;
const SUSPEND: u32 = 0x8400_0001;
const CPU_OFF: u32 = 0x8400_0002;
const CPU_ON: u32 = 0x8400_0003;
const AFFINITY_INFO: u32 = 0x8400_0004;
const MIGRATE: u32 = 0x8400_0005;
const MIGRATE_INFO_TYPE: u32 = 0x8400_0006;
const MIGRATE_INFO_UP_CPU: u32 = 0x8400_0007;
const SYSTEM_OFF: u32 = 0x8400_0008;
const SYSTEM_RESET: u32 = 0x8400_0009;
const FEATURES: u32 = 0x8400_000A;
const CPU_FREEZE: u32 = 0x8400_000B;
const NODE_HW_STATE: u32 = 0x8400_000D;
const SYSTEM_SUSPEND: u32 = 0x8400_000E;
const SYSTEM_RESET2: u32 = 0x8400_0012;
const SMCCC_VERSION: u32 = 0x8000_0000;
const SMCCC_ARCH_FEATURES: u32 = 0x8000_0001;
const SMCCC_ARCH_WORKAROUND_1: u32 = 0x8000_8000;
const CALL_UID: u32 = 0x8600_FF01;
const CALL_REVISION: u32 = 0x8600_FF03;

const OK: Answer = Answer::Value(0);
const NOT_SUPPORTED: Answer = Answer::Value(-1_i64 as u64);
const INVALID_PARAMETERS: Answer = Answer::Value(-2_i64 as u64);
const INVALID_ADDRESS: Answer = Answer::Value(-9_i64 as u64);

const FOUR: Caller = Caller {
    vcpus: 4,
    aarch32: false,
};
const FOUR_32: Caller = Caller {
    vcpus: 4,
    aarch32: true,
};
/// Memory of the caller: one GiB from here on.
const RAM: u64 = 0x4000_0000;
/// Something in the upper half of a register that a 32-bit call must not see.
const UPPER: u64 = 0xDEAD_BEEF << 32;

fn call_of(caller: Caller, function: u32, arguments: [u64; 3]) -> Answer {
    answer(function, arguments, caller, |address| {
        (RAM..RAM + (1 << 30)).contains(&address)
    })
}

fn call(function: u32, arguments: [u64; 3]) -> Answer {
    call_of(FOUR, function, arguments)
}

#[test]
fn versions() {
    assert_eq!(call(VERSION, [0; 3]), Answer::Value(0x1_0001));
    assert_eq!(call(SMCCC_VERSION, [0; 3]), Answer::Value(0x1_0002));
}

#[test]
fn what_the_kernel_decides() {
    assert_eq!(call(CPU_OFF, [0; 3]), Answer::Off);
    assert_eq!(call(SYSTEM_OFF, [0; 3]), Answer::Reset(ResetKind::Off));
    assert_eq!(call(SYSTEM_RESET, [0; 3]), Answer::Reset(ResetKind::Cold));
    for function in [SYSTEM_RESET2, SYSTEM_RESET2 | WIDE] {
        assert_eq!(call(function, [0; 3]), Answer::Reset(ResetKind::Warm));
        assert_eq!(call(function, [1, 0, 0]), INVALID_PARAMETERS);
        // Vendor-specific types.
        assert_eq!(call(function, [0x8000_0000, 0, 0]), INVALID_PARAMETERS);
    }
    assert_eq!(call(SYSTEM_RESET2, [UPPER, 0, 0]), Answer::Reset(ResetKind::Warm));
    assert_eq!(call(SYSTEM_RESET2 | WIDE, [UPPER, 0, 0]), INVALID_PARAMETERS);
    for function in [FUNCTION_BASE, FUNCTION_BASE | 0xFFFF] {
        assert_eq!(call(function, [0; 3]), Answer::Hypercall);
    }
}

#[test]
fn there_is_no_trusted_os_to_migrate() {
    assert_eq!(call(MIGRATE_INFO_TYPE, [0; 3]), Answer::Value(2));
    for function in [
        MIGRATE,
        MIGRATE | WIDE,
        MIGRATE_INFO_UP_CPU,
        MIGRATE_INFO_UP_CPU | WIDE,
    ] {
        assert_eq!(call(function, [0; 3]), NOT_SUPPORTED);
    }
}

#[test]
fn functions_of_one_width_are_not_there_in_the_other() {
    for function in [
        VERSION,
        CPU_OFF,
        MIGRATE_INFO_TYPE,
        SYSTEM_OFF,
        SYSTEM_RESET,
        FEATURES,
        SMCCC_VERSION,
        SMCCC_ARCH_FEATURES,
    ] {
        assert_eq!(call(function | WIDE, [0; 3]), NOT_SUPPORTED, "{function:#x}");
    }
}

/// The 64-bit range of the hypervisor service has our hypercalls, of which the kernel refuses those it
/// does not know.
#[test]
fn queries_of_the_hypervisor_service_have_32_bits() {
    for function in [CALL_UID, CALL_REVISION] {
        assert_eq!(call(function | WIDE, [0; 3]), Answer::Hypercall, "{function:#x}");
    }
}

#[test]
fn unknown_functions_are_not_supported() {
    for function in [
        0,
        u32::MAX,
        CPU_FREEZE,
        NODE_HW_STATE,
        SYSTEM_SUSPEND,
        0x8400_001F,
        SMCCC_ARCH_WORKAROUND_1,
        0x8600_FF00,
        0x8600_FF02,
        // Trusted OS calls.
        0xB200_0000,
    ] {
        assert_eq!(call(function, [0; 3]), NOT_SUPPORTED, "{function:#x}");
    }
}

#[test]
fn features_are_the_functions_that_are_there() {
    let narrow_only = [
        VERSION,
        CPU_OFF,
        MIGRATE_INFO_TYPE,
        SYSTEM_OFF,
        SYSTEM_RESET,
        FEATURES,
        SMCCC_VERSION,
    ];
    let both = [SUSPEND, CPU_ON, AFFINITY_INFO, SYSTEM_RESET2];
    for function in narrow_only.into_iter().chain(both) {
        assert_eq!(call(FEATURES, [function.into(), 0, 0]), OK, "{function:#x}");
        assert_eq!(
            call(FEATURES, [UPPER | u64::from(function), 0, 0]),
            OK,
            "{function:#x}"
        );
    }
    for function in both {
        assert_eq!(
            call(FEATURES, [(function | WIDE).into(), 0, 0]),
            OK,
            "{function:#x}"
        );
    }
    for function in narrow_only {
        assert_eq!(
            call(FEATURES, [(function | WIDE).into(), 0, 0]),
            NOT_SUPPORTED,
            "{function:#x}"
        );
    }
    for function in [MIGRATE, CPU_FREEZE, SYSTEM_SUSPEND, SMCCC_ARCH_FEATURES, 0] {
        assert_eq!(
            call(FEATURES, [function.into(), 0, 0]),
            NOT_SUPPORTED,
            "{function:#x}"
        );
    }
}

#[test]
fn features_of_smccc() {
    assert_eq!(call(SMCCC_ARCH_FEATURES, [SMCCC_VERSION.into(), 0, 0]), OK);
    assert_eq!(call(SMCCC_ARCH_FEATURES, [SMCCC_ARCH_FEATURES.into(), 0, 0]), OK);
    assert_eq!(
        call(SMCCC_ARCH_FEATURES, [SMCCC_ARCH_WORKAROUND_1.into(), 0, 0]),
        NOT_SUPPORTED
    );
}

/// 8e3b7c52-4f1d-4a96-9b20-62756c6b6864: bytes 0..3 in x0, lowest byte first, and so on (DEN 0028F section
/// 6.2).
#[test]
fn the_uid_of_the_hypervisor_service() {
    let bytes = [
        0x8e, 0x3b, 0x7c, 0x52, 0x4f, 0x1d, 0x4a, 0x96, 0x9b, 0x20, 0x62, 0x75, 0x6c, 0x6b, 0x68, 0x64_u8,
    ];
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *word = u64::from(u32::from_le_bytes(*bytes));
    }
    assert_eq!(call(CALL_UID, [0; 3]), Answer::Values(words));
    let major = u64::from(bulkhead_abi::hypercall::ABI_VERSION >> 16);
    assert_eq!(call(CALL_REVISION, [0; 3]), Answer::Pair([major, 0]));
}

#[test]
fn cpu_on_starts_each_vcpu_of_the_partition() {
    for target in 0..4 {
        assert_eq!(
            call(CPU_ON | WIDE, [target, RAM, 7]),
            Answer::Start([target, RAM, 7])
        );
    }
    assert_eq!(
        call(CPU_ON | WIDE, [1, RAM + 4, UPPER | 7]),
        Answer::Start([1, RAM + 4, UPPER | 7])
    );
    // A 32-bit call sees the lower halves.
    assert_eq!(
        call(CPU_ON, [UPPER | 1, UPPER | RAM, UPPER | 7]),
        Answer::Start([1, RAM, 7])
    );
}

#[test]
fn cpu_on_of_no_vcpu_is_an_invalid_parameter() {
    for target in [
        4,
        0xFF,
        0x100,
        0x1_0000,
        0x1_0000_0000,
        1 << 31,
        1 << 24,
        u64::MAX,
        UPPER | 1,
    ] {
        assert_eq!(
            call(CPU_ON | WIDE, [target, RAM, 0]),
            INVALID_PARAMETERS,
            "{target:#x}"
        );
    }
    let one = Caller {
        vcpus: 1,
        aarch32: false,
    };
    assert_eq!(call_of(one, CPU_ON | WIDE, [1, RAM, 0]), INVALID_PARAMETERS);
    // The target is looked at before the entry point.
    assert_eq!(call(CPU_ON | WIDE, [4, 1, 0]), INVALID_PARAMETERS);
}

#[test]
fn cpu_on_needs_an_entry_point_in_memory() {
    for entry in [RAM + 1, RAM + 2, RAM + 3, RAM - 4, RAM + (1 << 30), UPPER | RAM] {
        assert_eq!(call(CPU_ON | WIDE, [1, entry, 0]), INVALID_ADDRESS, "{entry:#x}");
    }
}

#[test]
fn an_entry_of_a_32_bit_kernel_may_be_t32() {
    for (entry, expected) in [
        (RAM, None),
        (RAM + 1, None),
        (RAM + 3, None),
        (RAM + 2, Some(-9_i64 as u64)),
    ] {
        assert_eq!(refuse_start(FOUR_32, 1, entry), expected, "{entry:#x}");
    }
    assert_eq!(
        call_of(FOUR_32, CPU_ON, [1, RAM + 1, 5]),
        Answer::Start([1, RAM + 1, 5])
    );
}

#[test]
fn affinity_info_asks_for_vcpus_of_the_partition_alone() {
    for function in [AFFINITY_INFO, AFFINITY_INFO | WIDE] {
        for target in 0..4 {
            assert_eq!(call(function, [target, 0, 0]), Answer::Power(target as u8));
        }
        for (target, level) in [(4, 0), (0x100, 0), (0, 1), (0, 3), (1 << 31, 0)] {
            assert_eq!(call(function, [target, level, 0]), INVALID_PARAMETERS);
        }
    }
    assert_eq!(call(AFFINITY_INFO, [UPPER | 2, UPPER, 0]), Answer::Power(2));
    assert_eq!(call(AFFINITY_INFO | WIDE, [UPPER | 2, 0, 0]), INVALID_PARAMETERS);
}

/// Power state, original format: StateID 15:0, StateType 16, PowerLevel 25:24 (DEN 0022E section 5.4.2).
#[test]
fn cpu_suspend_is_a_wait() {
    for function in [SUSPEND, SUSPEND | WIDE] {
        // Standby: there is no entry point.
        for state in [0, 0xFFFF, 3 << 24, UPPER] {
            assert_eq!(call(function, [state, 1, 0]), Answer::Wait, "{state:#x}");
        }
        // Power-down.
        assert_eq!(call(function, [1 << 16, RAM, 0]), Answer::Wait);
        assert_eq!(call(function, [1 << 16, RAM + 2, 0]), INVALID_ADDRESS);
        assert_eq!(call(function, [1 << 16, RAM - 4, 0]), INVALID_ADDRESS);
        for bit in (17..24).chain(26..32) {
            assert_eq!(
                call(function, [1 << bit, RAM, 0]),
                INVALID_PARAMETERS,
                "bit {bit}"
            );
        }
    }
    assert_eq!(call(SUSPEND, [1 << 16, UPPER | RAM, 0]), Answer::Wait);
    assert_eq!(call(SUSPEND | WIDE, [1 << 16, UPPER | RAM, 0]), INVALID_ADDRESS);
}

#[test]
fn aarch32_state_has_no_64_bit_functions_of_the_firmware() {
    for function in [
        CPU_ON,
        SUSPEND,
        AFFINITY_INFO,
        SYSTEM_RESET2,
        VERSION,
        SMCCC_VERSION,
    ] {
        assert!(!is_beyond_aarch32(function), "{function:#x}");
        assert!(is_beyond_aarch32(function | WIDE), "{function:#x}");
    }
    assert!(!is_beyond_aarch32(FUNCTION_BASE | 1));
}
