// SPDX-License-Identifier: Apache-2.0
//! Syndromes as the manual's ISS encodings have them (Arm DDI 0487 D19.2.37).

use bulkhead_arch_aarch64_core::syndrome::{
    AbortAddress, DataAbort, DataAccess, WFI, abort_address, class, data_abort, data_register,
    has_virtual_address, is_not_wfi, is_part_of_word, is_word, is_write, length, second_target, size, target,
};

/// A data abort of a lower level, 32-bit instruction: ISV, SAS, SSE, SRT, SF, then FnV, CM, S1PTW, WnR, DFSC.
struct Abort {
    isv: u64,
    sas: u64,
    sse: u64,
    srt: u64,
    sf: u64,
    fnv: u64,
    cm: u64,
    s1ptw: u64,
    wnr: u64,
    dfsc: u64,
}

/// LDR W5, level 3 translation fault.
const LOAD: Abort = Abort {
    isv: 1,
    sas: 2,
    sse: 0,
    srt: 5,
    sf: 0,
    fnv: 0,
    cm: 0,
    s1ptw: 0,
    wnr: 0,
    dfsc: 0b00_0111,
};

impl Abort {
    fn syndrome(&self) -> u64 {
        0x24 << 26
            | 1 << 25
            | self.isv << 24
            | self.sas << 22
            | self.sse << 21
            | self.srt << 16
            | self.sf << 15
            | self.fnv << 10
            | self.cm << 8
            | self.s1ptw << 7
            | self.wnr << 6
            | self.dfsc
    }
}

#[test]
fn class_and_length() {
    assert_eq!(class(LOAD.syndrome()), 0x24);
    assert_eq!(class(u64::MAX), 0x3F);
    assert_eq!(length(1 << 25), 4);
    assert_eq!(length(!(1 << 25)), 2);
}

#[test]
fn every_single_register_access_is_described() {
    for sas in 0..4 {
        for srt in 0..32 {
            for flags in 0..8 {
                let abort = Abort {
                    sas,
                    srt,
                    sse: flags & 1,
                    sf: flags >> 1 & 1,
                    wnr: flags >> 2,
                    ..LOAD
                };
                let access = DataAccess {
                    register: srt as u8,
                    size: [1, 2, 4, 8][sas as usize],
                    write: abort.wnr == 1,
                    sign_extend: abort.sse == 1,
                    wide: abort.sf == 1,
                };
                let syndrome = abort.syndrome();
                assert_eq!(data_abort(syndrome), DataAbort::Emulate(access));
                assert_eq!(data_register(syndrome), srt as u8);
                assert_eq!(is_write(syndrome), abort.wnr == 1);
                assert_eq!(is_word(syndrome), sas == 2 && abort.sse == 0);
                assert_eq!(is_part_of_word(syndrome), sas < 2 && abort.sse == 0);
                assert_eq!(size(syndrome), 1 << sas);
            }
        }
    }
}

#[test]
fn what_the_syndrome_does_not_describe_is_told_apart() {
    // Pairs, SIMD, exclusives, atomics, write-back.
    let undescribed = Abort { isv: 0, ..LOAD };
    assert_eq!(data_abort(undescribed.syndrome()), DataAbort::Undescribed);
    assert!(!is_word(undescribed.syndrome()));
    assert!(!is_part_of_word(undescribed.syndrome()));
    let forbidden = Abort {
        isv: 0,
        dfsc: 0b00_1111,
        ..LOAD
    };
    assert_eq!(data_abort(forbidden.syndrome()), DataAbort::Fault);
    // The guest's own table walk.
    let walk = Abort { s1ptw: 1, ..LOAD };
    assert_eq!(data_abort(walk.syndrome()), DataAbort::Fault);
    assert!(!is_word(walk.syndrome()));
    assert!(!is_part_of_word(walk.syndrome()));
}

#[test]
fn only_translation_faults_are_emulated() {
    for dfsc in 0..64 {
        let syndrome = Abort { dfsc, ..LOAD }.syndrome();
        let is_translation = matches!(dfsc, 0b00_0100..=0b00_0111);
        assert_eq!(
            matches!(data_abort(syndrome), DataAbort::Emulate(_)),
            is_translation,
            "{dfsc:#b}"
        );
        assert_eq!(is_word(syndrome), is_translation, "{dfsc:#b}");
    }
}

#[test]
fn cache_maintenance_where_no_memory_is_does_nothing() {
    let maintenance = Abort {
        isv: 0,
        cm: 1,
        wnr: 1,
        ..LOAD
    };
    assert_eq!(data_abort(maintenance.syndrome()), DataAbort::CacheMaintenance);
    let walk = Abort {
        s1ptw: 1,
        ..maintenance
    };
    assert_eq!(data_abort(walk.syndrome()), DataAbort::Fault);
    let forbidden = Abort {
        isv: 0,
        cm: 1,
        dfsc: 0b00_1111,
        ..LOAD
    };
    assert_eq!(data_abort(forbidden.syndrome()), DataAbort::Fault);
}

/// HPFAR_EL2 is valid for translation, access flag and address size faults, and for any fault of a table walk
/// (D19.2.65).
#[test]
fn the_address_of_an_abort_is_where_the_manual_says() {
    for dfsc in 0..64 {
        let expected = match dfsc {
            // Address size, translation, access flag.
            0b00_0000..=0b00_1011 => AbortAddress::Page,
            // Permission.
            0b00_1100..=0b00_1111 => AbortAddress::Translate,
            _ => AbortAddress::Unknown,
        };
        assert_eq!(
            abort_address(Abort { dfsc, ..LOAD }.syndrome()),
            expected,
            "{dfsc:#b}"
        );
        let walk = Abort {
            dfsc,
            s1ptw: 1,
            ..LOAD
        };
        assert_eq!(abort_address(walk.syndrome()), AbortAddress::Page, "{dfsc:#b}");
    }
    let without_far = Abort {
        dfsc: 0b00_1111,
        fnv: 1,
        ..LOAD
    };
    assert_eq!(abort_address(without_far.syndrome()), AbortAddress::Unknown);
}

#[test]
fn far_is_valid_for_aborts_without_fnv() {
    for class in 0..64 {
        let is_abort = class == 0x20 || class == 0x24;
        assert_eq!(has_virtual_address(class << 26), is_abort, "{class:#x}");
        assert!(!has_virtual_address(class << 26 | 1 << 10));
    }
}

#[test]
fn waits() {
    // WFI of AArch64: CV 1, COND 0b1110, TI 0.
    assert_eq!(WFI, 0x01 << 26 | 1 << 25 | 1 << 24 | 0b1110 << 20);
    assert!(!is_not_wfi(WFI));
    for (ti, what) in [(1, "WFE"), (2, "WFIT"), (3, "WFET")] {
        assert!(is_not_wfi(WFI | ti), "{what}");
    }
}

#[test]
fn registers_of_system_and_coprocessor_accesses() {
    for number in 0..32 {
        let other = 31 - number;
        let syndrome = 0x18 << 26 | number << 5 | other << 10;
        assert_eq!(u64::from(target(syndrome)), number);
        assert_eq!(u64::from(second_target(syndrome)), other);
    }
}
