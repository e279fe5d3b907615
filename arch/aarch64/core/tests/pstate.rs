// SPDX-License-Identifier: Apache-2.0
//! PSTATE: byte order, privilege, and what it is after a completed instruction.

use bulkhead_arch_aarch64_core::pstate::{is_big_endian, is_el1, is_privileged_aarch32, it_state, stepped};

const T32_USER: u64 = 0x30;

/// PSTATE of T32 User mode with this ITSTATE.
fn in_it_block(it: u64) -> u64 {
    T32_USER | (it >> 2 & 0x3F) << 10 | (it & 3) << 25
}

#[test]
fn it_state_is_put_together_from_both_fields() {
    for it in 0..=0xFF {
        assert_eq!(it_state(in_it_block(it)), it);
    }
}

/// The manual's table of IT blocks (F1.3.3): mask bits move up, and the block ends after its last
/// instruction.
#[test]
fn it_state_advances_through_blocks_of_one_to_four_instructions() {
    // ITTEE EQ: then EQ, EQ, NE, NE.
    let block = [0b0000_0111, 0b0000_1110, 0b0001_1100, 0b0001_1000];
    for pair in block.windows(2) {
        assert_eq!(it_state(stepped(in_it_block(pair[0]))), pair[1]);
    }
    assert_eq!(it_state(stepped(in_it_block(block[3]))), 0);
    for (mask, instructions) in [(0b1000, 1), (0b0100, 2), (0b0010, 3), (0b0001, 4)] {
        let mut pstate = in_it_block(0xA0 | mask);
        for _ in 1..instructions {
            pstate = stepped(pstate);
            assert_eq!(it_state(pstate) >> 5, 0xA0 >> 5, "the base condition stays");
        }
        assert_eq!(it_state(stepped(pstate)), 0);
    }
}

#[test]
fn a_step_changes_it_and_single_step_alone() {
    let others = !(0xFC00 | 3 << 25 | 1 << 21);
    assert_eq!(stepped(u64::MAX) & others, others);
    assert_eq!(stepped(u64::MAX) & 1 << 21, 0);
    // In AArch64 state the bits of IT mean other things.
    assert_eq!(
        stepped(0x3C5 | 1 << 21 | 3 << 25 | 1 << 12),
        0x3C5 | 3 << 25 | 1 << 12
    );
}

#[test]
fn levels_and_modes() {
    for (pstate, el1) in [
        (0x0, false),
        (0x4, true),
        (0x5, true),
        (0x10, false),
        (0x13, false),
        (0x8, false),
    ] {
        assert_eq!(is_el1(pstate), el1, "{pstate:#x}");
    }
    assert!(!is_privileged_aarch32(0x10));
    for mode in [0x11, 0x12, 0x13, 0x17, 0x1B, 0x1F] {
        assert!(is_privileged_aarch32(0x6000_01C0 | mode), "{mode:#x}");
    }
}

#[test]
fn byte_order_is_that_of_the_state_and_level() {
    const EE: u64 = 1 << 25;
    const E0E: u64 = 1 << 24;
    for (pstate, sctlr, big) in [
        (0x0, 0, false),
        (0x0, E0E, true),
        (0x0, EE, false),
        (0x4, EE, true),
        (0x5, EE, true),
        (0x5, E0E, false),
        // AArch32: PSTATE.E alone.
        (0x10, EE | E0E, false),
        (0x10 | 1 << 9, 0, true),
        (0x13 | 1 << 9, 0, true),
        // AArch64: bit 9 is D.
        (0x5 | 1 << 9, 0, false),
    ] {
        assert_eq!(is_big_endian(pstate, sctlr), big, "{pstate:#x} {sctlr:#x}");
    }
}
