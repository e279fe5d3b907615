// SPDX-License-Identifier: Apache-2.0
//! Values of emulated loads and stores: LDR, LDRB, LDRH, LDRSB, LDRSH, LDRSW in W and X registers, STR, STRB,
//! STRH.

use bulkhead_arch_aarch64_core::data::{Load, stored};

const VALUE: u64 = 0xF1E2_D3C4_B5A6_9788;

fn load(size: u8, sign_extend: bool, wide: bool, big_endian: bool) -> u64 {
    let load = Load {
        register: 3,
        size,
        sign_extend,
        wide,
        big_endian,
    };
    load.result(VALUE)
}

#[test]
fn loads_extend_with_zeroes() {
    for wide in [false, true] {
        assert_eq!(load(1, false, wide, false), 0x88);
        assert_eq!(load(2, false, wide, false), 0x9788);
        assert_eq!(load(4, false, wide, false), 0xB5A6_9788);
    }
    assert_eq!(load(8, false, true, false), VALUE);
}

#[test]
fn loads_extend_the_sign_up_to_the_width_of_the_register() {
    assert_eq!(load(1, true, false, false), 0xFFFF_FF88);
    assert_eq!(load(1, true, true, false), 0xFFFF_FFFF_FFFF_FF88);
    assert_eq!(load(2, true, false, false), 0xFFFF_9788);
    assert_eq!(load(2, true, true, false), 0xFFFF_FFFF_FFFF_9788);
    assert_eq!(load(4, true, true, false), 0xFFFF_FFFF_B5A6_9788);
    let positive = Load {
        register: 0,
        size: 1,
        sign_extend: true,
        wide: true,
        big_endian: false,
    };
    assert_eq!(positive.result(0xFF7F), 0x7F);
}

#[test]
fn big_endian_loads_turn_the_bytes_of_the_access() {
    assert_eq!(load(1, false, false, true), 0x88);
    assert_eq!(load(2, false, false, true), 0x8897);
    assert_eq!(load(4, false, false, true), 0x8897_A6B5);
    assert_eq!(load(8, false, true, true), VALUE.swap_bytes());
    assert_eq!(load(2, true, true, true), 0xFFFF_FFFF_FFFF_8897);
}

#[test]
fn stores_take_the_low_bytes_of_the_register() {
    for (size, little, big) in [
        (1, 0x88, 0x88),
        (2, 0x9788, 0x8897),
        (4, 0xB5A6_9788, 0x8897_A6B5),
        (8, VALUE, VALUE.swap_bytes()),
    ] {
        assert_eq!(stored(VALUE, size, false), little);
        assert_eq!(stored(VALUE, size, true), big);
    }
}
