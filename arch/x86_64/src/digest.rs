// SPDX-License-Identifier: Apache-2.0
//! SHA-256 of eight lanes at a time, by the instructions on 256 bits (AVX2) where the CPU has them.
//!
//! Portable code takes some 80 instructions a byte, and a kernel image has megabytes of them. Each doubleword
//! of a vector is of another lane, so this takes 9. The registers are opened for the duration only. No
//! partition owns them then: digests are computed before any partition runs.

use crate::sysreg;
use bulkhead_image::{BLOCK, LANES, Portable, Sha256};
use core::arch::global_asm;

/// SHA-256 with lanes by AVX2, where the CPU has it.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuDigest;

/// A word of each lane.
type Words = [u32; LANES];

/// Initial hash value (FIPS 180-4, 5.3.3).
const INITIAL: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// Round constants (4.2.2): the first 32 bits after the point of the cube roots of the first 64 primes.
static ROUNDS: [u32; 64] = rounds();

#[expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "computed by the compiler, which refuses what overflows"
)]
const fn rounds() -> [u32; 64] {
    let mut found = [0; 64];
    let (mut count, mut candidate) = (0, 2_u128);
    while count < 64 {
        let mut divisor = 2;
        while divisor < candidate && candidate % divisor != 0 {
            divisor += 1;
        }
        if divisor == candidate {
            // The largest number whose cube is not above the prime times 2^96 has 32 bits after the point.
            let (mut root, mut bit) = (0_u128, 1_u128 << 35);
            while bit != 0 {
                let next = root | bit;
                if next * next * next <= candidate << 96 {
                    root = next;
                }
                bit >>= 1;
            }
            found[count] = root as u32;
            count += 1;
        }
        candidate += 1;
    }
    found
}

unsafe extern "C" {
    /// Computes blocks of eight lanes. RDI = hash value, RSI = the first lane, RDX = offsets of the lanes
    /// from there, RCX = blocks (at least 1), R8 = round constants, R9 = room. Clobbers YMM0 to YMM15.
    fn bulkhead_sha256_lanes(
        state: *mut [Words; 8],
        data: *const u8,
        offsets: *const Words,
        blocks: usize,
        rounds: *const [u32; 64],
        room: *mut [Words; 64],
    );
}

global_asm!(
    r#"
    // XOR of two rotations and a shift of from, with ymm10 in between: AVX2 cannot rotate. The second macro
    // makes the shift a rotation.
    .macro  rotations to, from, first, second, third
    vpsrld  \to, \from, \first
    vpslld  ymm10, \from, 32 - \first
    vpxor   \to, \to, ymm10
    vpsrld  ymm10, \from, \second
    vpxor   \to, \to, ymm10
    vpslld  ymm10, \from, 32 - \second
    vpxor   \to, \to, ymm10
    vpsrld  ymm10, \from, \third
    vpxor   \to, \to, ymm10
    .endm
    .macro  third_rotates to, from, third
    vpslld  ymm10, \from, 32 - \third
    vpxor   \to, \to, ymm10
    .endm
    // A round (6.2.2). ab becomes a XOR b; bc is b XOR c, the value of the round before. h becomes the
    // next a, and d the next e.
    .macro  round a, b, c, d, e, f, g, h, ab, bc, number
    rotations ymm8, \e, 6, 11, 25
    third_rotates ymm8, \e, 25
    vpaddd  \h, \h, ymm8
    vpxor   ymm9, \f, \g
    vpand   ymm9, ymm9, \e
    vpxor   ymm9, ymm9, \g
    vpaddd  \h, \h, ymm9
    vpbroadcastd ymm8, dword ptr [r8 + 4 * rdx + 4 * \number]
    vpaddd  \h, \h, ymm8
    vpaddd  \h, \h, ymmword ptr [r9 + rax + 32 * \number]
    vpaddd  \d, \d, \h
    rotations ymm8, \a, 2, 13, 22
    third_rotates ymm8, \a, 22
    vpaddd  \h, \h, ymm8
    vpxor   \ab, \a, \b
    vpand   \bc, \bc, \ab
    vpxor   \bc, \bc, \b
    vpaddd  \h, \h, \bc
    .endm
    .text
    .balign 16
.Lsha_swap:
    .byte   3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12
    .global bulkhead_sha256_lanes
bulkhead_sha256_lanes:
    vmovdqu ymm15, ymmword ptr [rdx]
    vbroadcasti128 ymm14, xmmword ptr [rip + .Lsha_swap]
1:  xor     eax, eax
2:  vpcmpeqd ymm8, ymm8, ymm8
    vpgatherdd ymm9, dword ptr [rsi + ymm15], ymm8
    vpshufb ymm9, ymm9, ymm14
    vmovdqu ymmword ptr [r9 + rax], ymm9
    add     rsi, 4
    add     eax, 32
    cmp     eax, 16 * 32
    jne     2b
3:  vmovdqu ymm8, ymmword ptr [r9 + rax - 15 * 32]
    rotations ymm9, ymm8, 7, 18, 3
    vmovdqu ymm8, ymmword ptr [r9 + rax - 2 * 32]
    rotations ymm11, ymm8, 17, 19, 10
    vpaddd  ymm9, ymm9, ymm11
    vpaddd  ymm9, ymm9, ymmword ptr [r9 + rax - 16 * 32]
    vpaddd  ymm9, ymm9, ymmword ptr [r9 + rax - 7 * 32]
    vmovdqu ymmword ptr [r9 + rax], ymm9
    add     eax, 32
    cmp     eax, 64 * 32
    jne     3b
    // YMM0 to YMM7 are a to h.
    vmovdqu ymm0, ymmword ptr [rdi]
    vmovdqu ymm1, ymmword ptr [rdi + 32]
    vmovdqu ymm2, ymmword ptr [rdi + 64]
    vmovdqu ymm3, ymmword ptr [rdi + 96]
    vmovdqu ymm4, ymmword ptr [rdi + 128]
    vmovdqu ymm5, ymmword ptr [rdi + 160]
    vmovdqu ymm6, ymmword ptr [rdi + 192]
    vmovdqu ymm7, ymmword ptr [rdi + 224]
    vpxor   ymm12, ymm1, ymm2
    xor     eax, eax
    xor     edx, edx
4:  round   ymm0, ymm1, ymm2, ymm3, ymm4, ymm5, ymm6, ymm7, ymm11, ymm12, 0
    round   ymm7, ymm0, ymm1, ymm2, ymm3, ymm4, ymm5, ymm6, ymm12, ymm11, 1
    round   ymm6, ymm7, ymm0, ymm1, ymm2, ymm3, ymm4, ymm5, ymm11, ymm12, 2
    round   ymm5, ymm6, ymm7, ymm0, ymm1, ymm2, ymm3, ymm4, ymm12, ymm11, 3
    round   ymm4, ymm5, ymm6, ymm7, ymm0, ymm1, ymm2, ymm3, ymm11, ymm12, 4
    round   ymm3, ymm4, ymm5, ymm6, ymm7, ymm0, ymm1, ymm2, ymm12, ymm11, 5
    round   ymm2, ymm3, ymm4, ymm5, ymm6, ymm7, ymm0, ymm1, ymm11, ymm12, 6
    round   ymm1, ymm2, ymm3, ymm4, ymm5, ymm6, ymm7, ymm0, ymm12, ymm11, 7
    add     eax, 8 * 32
    add     edx, 8
    cmp     edx, 64
    jne     4b
    .irp    number, 0, 1, 2, 3, 4, 5, 6, 7
    vpaddd  ymm\number, ymm\number, ymmword ptr [rdi + 32 * \number]
    vmovdqu ymmword ptr [rdi + 32 * \number], ymm\number
    .endr
    dec     rcx
    jnz     1b
    vzeroupper
    ret
"#
);

/// Tells whether the CPU has XSAVE and AVX (AMD APM volume 3, appendix E.3.2), and AVX2 (E.3.6).
fn has_instructions() -> bool {
    const WIDE: u32 = 1 << 26 | 1 << 28;
    let [last, ..] = sysreg::cpuid(0, 0);
    let [_, _, first, _] = sysreg::cpuid(1, 0);
    let [_, seventh, ..] = if last >= 7 { sysreg::cpuid(7, 0) } else { [0; 4] };
    first & WIDE == WIDE && seventh & 1 << 5 != 0
}

/// Returns where each lane is from the first one on, if all are as [`Sha256::lanes`] says and near enough for
/// offsets of 32 bits.
fn offsets(lanes: &[&[u8]; LANES]) -> Option<Words> {
    let [first, ..] = lanes;
    let mut offsets = [0; LANES];
    for (offset, lane) in offsets.iter_mut().zip(lanes) {
        let distance = (lane.as_ptr() as usize).checked_sub(first.as_ptr() as usize)?;
        if lane.len() != first.len() || distance.checked_add(lane.len())? > i32::MAX as usize {
            return None;
        }
        *offset = distance as u32;
    }
    Some(offsets)
}

impl Sha256 for CpuDigest {
    fn digest(&self, parts: &[&[u8]]) -> [u8; 32] {
        Portable.digest(parts)
    }

    #[inline(never)]
    fn lanes(&self, lanes: [&[u8]; LANES]) -> [[u8; 32]; LANES] {
        let [first, ..] = lanes;
        let blocks = first.len() / BLOCK;
        let Some(offsets) = offsets(&lanes).filter(|_| blocks != 0 && has_instructions()) else {
            return Portable.lanes(lanes);
        };
        // The last block of each lane (5.1.1). It is the same, because the lengths are.
        let mut last = [0_u8; BLOCK];
        let [start, ..] = &mut last;
        *start = 0x80;
        let bits = (first.len() as u64).wrapping_mul(8).to_be_bytes();
        for (slot, byte) in last.iter_mut().rev().zip(bits.iter().rev()) {
            *slot = *byte;
        }
        let mut state = INITIAL.map(|word| [word; LANES]);
        let mut room = [[0; LANES]; 64];
        let mut compress = |data: *const u8, offsets: &Words, blocks| {
            // SAFETY: there are so many blocks at each offset from `data`, the registers are open, and no
            // partition owns them.
            unsafe {
                bulkhead_sha256_lanes(
                    &raw mut state,
                    data,
                    offsets,
                    blocks,
                    &raw const ROUNDS,
                    &raw mut room,
                )
            }
        };
        sysreg::open_wide();
        compress(first.as_ptr(), &offsets, blocks);
        compress(last.as_ptr(), &[0; LANES], 1);
        sysreg::close_wide();
        let mut digests = [[0; 32]; LANES];
        for (lane, digest) in digests.iter_mut().enumerate() {
            for (bytes, words) in digest.as_chunks_mut::<4>().0.iter_mut().zip(&state) {
                *bytes = words.get(lane).copied().unwrap_or(0).to_be_bytes();
            }
        }
        digests
    }
}
