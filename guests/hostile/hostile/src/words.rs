// SPDX-License-Identifier: Apache-2.0
//! Machine code: the forms of loads, stores and address operations, and random words (Arm ARM DDI 0487 C4).
//!
//! All forms use x1 as the address, x2 and x3 as data, and touch no other general register.

use bulkhead_guest::random::Random;

/// Every form of load, store, prefetch, cache maintenance and address translation.
pub const ACCESSES: &[u32] = &[
    0x3940_0022, // ldrb w2, [x1]
    0x3900_0022, // strb w2, [x1]
    0x7940_0022, // ldrh w2, [x1]
    0x7900_0022, // strh w2, [x1]
    0xB940_0022, // ldr w2, [x1]
    0xB900_0022, // str w2, [x1]
    0xF940_0022, // ldr x2, [x1]
    0xF900_0022, // str x2, [x1]
    0x3980_0022, // ldrsb x2, [x1]
    0x79C0_0022, // ldrsh w2, [x1]
    0xB980_0022, // ldrsw x2, [x1]
    0xF85F_D022, // ldur x2, [x1, #-3]
    0xF840_8422, // ldr x2, [x1], #8
    0xF800_8C22, // str x2, [x1, #8]!
    0x3840_1422, // ldrb w2, [x1], #1
    0x781F_EC22, // strh w2, [x1, #-2]!
    0xF863_6822, // ldr x2, [x1, x3]
    0xB823_5822, // str w2, [x1, w3, uxtw #2]
    0xA940_0C22, // ldp x2, x3, [x1]
    0xA900_0C22, // stp x2, x3, [x1]
    0x2940_0C22, // ldp w2, w3, [x1]
    0x2900_0C22, // stp w2, w3, [x1]
    0x6940_0C22, // ldpsw x2, x3, [x1]
    0xA8C1_0C22, // ldp x2, x3, [x1], #16
    0xA9BF_0C22, // stp x2, x3, [x1, #-16]!
    0xA840_0C22, // ldnp x2, x3, [x1]
    0x3D40_0020, // ldr b0, [x1]
    0x7D00_0020, // str h0, [x1]
    0xBD40_0020, // ldr s0, [x1]
    0xFD00_0020, // str d0, [x1]
    0x3DC0_0020, // ldr q0, [x1]
    0x3D80_0020, // str q0, [x1]
    0xAD40_0420, // ldp q0, q1, [x1]
    0x6D00_0420, // stp d0, d1, [x1]
    0x4C40_7020, // ld1 {v0.16b}, [x1]
    0x4C00_A820, // st1 {v0.4s, v1.4s}, [x1]
    0x0CDF_0020, // ld4 {v0.8b-v3.8b}, [x1], #32
    0xC85F_7C22, // ldxr x2, [x1]
    0xC803_7C22, // stxr w3, x2, [x1]
    0x085F_7C22, // ldxrb w2, [x1]
    0x4803_7C22, // stxrh w3, w2, [x1]
    0xC87F_0C22, // ldxp x2, x3, [x1]
    0xC820_0C22, // stxp w0, x2, x3, [x1]
    0x885F_FC22, // ldaxr w2, [x1]
    0x8803_FC22, // stlxr w3, w2, [x1]
    0xC8DF_FC22, // ldar x2, [x1]
    0x889F_FC22, // stlr w2, [x1]
    0x08DF_FC22, // ldarb w2, [x1]
    0xF840_0822, // ldtr x2, [x1]
    0xB800_0822, // sttr w2, [x1]
    0xF823_8022, // swp x3, x2, [x1]
    0xB8E3_0022, // ldaddal w3, w2, [x1]
    0xC8A3_7C22, // cas x3, x2, [x1]
    0xF980_0020, // prfm pldl1keep, [x1]
    0xD50B_7E21, // dc civac, x1
    0xD50B_7A21, // dc cvac, x1
    0xD50B_7B21, // dc cvau, x1
    0xD508_7621, // dc ivac, x1
    0xD50B_7421, // dc zva, x1
    0xD50B_7521, // ic ivau, x1
    0xD508_7801, // at s1e1r, x1
    0xD508_7821, // at s1e1w, x1
    0xD508_7841, // at s1e0r, x1
    0xD508_7861, // at s1e0w, x1
];

/// `BR x1`.
pub const BRANCH: u32 = 0xD61F_0020;
/// `HVC #0`, `SMC #0`, and where their immediate is.
pub const HVC: u32 = 0xD400_0002;
/// See [`HVC`].
pub const SMC: u32 = 0xD400_0003;
/// `WFI`
pub const WFI: u32 = 0xD503_207F;
/// `WFE`
pub const WFE: u32 = 0xD503_205F;
/// `YIELD`
pub const YIELD: u32 = 0xD503_203F;
/// `SEV`
pub const SEV: u32 = 0xD503_209F;

/// Picks one of a list.
pub fn pick<T: Copy>(random: &mut Random, list: &[T]) -> T {
    list[random.below(list.len() as u64) as usize]
}

/// op0, op1 and CRn of groups in which CPUs have registers or operations (DDI 0487 C5.3, D19.2).
const GROUPS_OF_REGISTERS: &[(u32, u32, u32)] = &[
    (0, 3, 2),
    (0, 3, 3),
    (0, 0, 4),
    (0, 3, 4),
    (1, 0, 7),
    (1, 3, 7),
    (1, 4, 7),
    (1, 0, 8),
    (1, 4, 8),
    (2, 0, 0),
    (2, 0, 1),
    (2, 0, 7),
    (2, 3, 0),
    (3, 0, 0),
    (3, 0, 1),
    (3, 0, 2),
    (3, 0, 4),
    (3, 0, 5),
    (3, 0, 6),
    (3, 0, 7),
    (3, 0, 9),
    (3, 0, 10),
    (3, 0, 11),
    (3, 0, 12),
    (3, 0, 13),
    (3, 0, 14),
    (3, 0, 15),
    (3, 1, 0),
    (3, 1, 11),
    (3, 1, 15),
    (3, 2, 0),
    (3, 3, 0),
    (3, 3, 4),
    (3, 3, 9),
    (3, 3, 13),
    (3, 3, 14),
    (3, 4, 1),
    (3, 4, 12),
    (3, 4, 14),
    (3, 5, 1),
    (3, 6, 1),
    (3, 7, 14),
];

/// `MSR`/`SYS` (or `MRS`/`SYSL`) of any encoding, mostly of groups that exist, with x2.
pub fn system(random: &mut Random) -> u32 {
    let free = random.draw() as u32;
    let direction = free & 1 << 21;
    if random.below(4) == 0 {
        return 0xD500_0002 | direction | free & 0x001F_FFE0;
    }
    let (op0, op1, crn) = pick(random, GROUPS_OF_REGISTERS);
    let crm = if free & 1 == 0 { 0 } else { free >> 8 & 15 };
    0xD500_0002 | direction | op0 << 19 | op1 << 16 | crn << 12 | crm << 8 | free & 0xE0
}

/// `MSR` or `MRS` of a debug register (op0 2), with x2.
pub fn debug_register(random: &mut Random) -> u32 {
    let write = 0xD510_0002 | random.draw() as u32 & 0x0020_0000;
    // CRn 0 and 1 hold the comparators and the locks.
    write | random.draw() as u32 & 0x0000_1FE0
}

/// Patterns of groups of instructions: fixed bits, and which bits are free (DDI 0487 C4.1).
const GROUPS: &[(u32, u32)] = &[
    (0x0000_0000, 0xFFFF_FFFF), // anything
    (0xD500_0000, 0x003F_FFFF), // system
    (0xD400_0000, 0x00FF_FFFF), // exception generation
    (0xD600_0000, 0x00FF_FFFF), // branch to register, ERET, DRPS
    (0x0800_0000, 0xF7FF_FFFF), // loads and stores
    (0x1400_0000, 0xEBFF_FFFF), // branches
    (0x0E00_0000, 0xF1FF_FFFF), // FP and SIMD
    (0x0A00_0000, 0xF5FF_FFFF), // data processing, registers
    (0x1000_0000, 0xE3FF_FFFF), // data processing, immediate
];

/// Draws a word of a random group.
pub fn any(random: &mut Random) -> u32 {
    let (fixed, free) = pick(random, GROUPS);
    fixed | random.draw() as u32 & free
}
