// SPDX-License-Identifier: Apache-2.0
//! SHA-256 by the CPU's own instructions (FEAT_SHA256), where it has them.
//!
//! A kernel image of tens of megabytes is checked before anything runs. In portable code the check would take
//! longer than the kernel's own boot. FP registers are opened for the duration only. No partition owns them
//! then: digests are computed before any partition runs.

use crate::sysreg::{instruction, read_register, write_guest_register};
use bulkhead_image::{Portable, Sha256};
use core::arch::global_asm;

/// SHA-256 by the CPU's own instructions where it has them.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuDigest;

/// Bytes of a block (FIPS 180-4 section 5.2.1).
const BLOCK: usize = 64;
/// Place of the length in the last block (5.1.1).
const LENGTH_AT: usize = BLOCK - size_of::<u64>();
/// The bytes that fill up a block.
const ZEROES: [u8; BLOCK] = [0; BLOCK];
/// Initial hash value (5.3.3).
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
/// Round constants (4.2.2).
static ROUNDS: [u32; 64] = [
    0x428a_2f98,
    0x7137_4491,
    0xb5c0_fbcf,
    0xe9b5_dba5,
    0x3956_c25b,
    0x59f1_11f1,
    0x923f_82a4,
    0xab1c_5ed5,
    0xd807_aa98,
    0x1283_5b01,
    0x2431_85be,
    0x550c_7dc3,
    0x72be_5d74,
    0x80de_b1fe,
    0x9bdc_06a7,
    0xc19b_f174,
    0xe49b_69c1,
    0xefbe_4786,
    0x0fc1_9dc6,
    0x240c_a1cc,
    0x2de9_2c6f,
    0x4a74_84aa,
    0x5cb0_a9dc,
    0x76f9_88da,
    0x983e_5152,
    0xa831_c66d,
    0xb003_27c8,
    0xbf59_7fc7,
    0xc6e0_0bf3,
    0xd5a7_9147,
    0x06ca_6351,
    0x1429_2967,
    0x27b7_0a85,
    0x2e1b_2138,
    0x4d2c_6dfc,
    0x5338_0d13,
    0x650a_7354,
    0x766a_0abb,
    0x81c2_c92e,
    0x9272_2c85,
    0xa2bf_e8a1,
    0xa81a_664b,
    0xc24b_8b70,
    0xc76c_51a3,
    0xd192_e819,
    0xd699_0624,
    0xf40e_3585,
    0x106a_a070,
    0x19a4_c116,
    0x1e37_6c08,
    0x2748_774c,
    0x34b0_bcb5,
    0x391c_0cb3,
    0x4ed8_aa4a,
    0x5b9c_ca4f,
    0x682e_6ff3,
    0x748f_82ee,
    0x78a5_636f,
    0x84c8_7814,
    0x8cc7_0208,
    0x90be_fffa,
    0xa450_6ceb,
    0xbef9_a3f7,
    0xc671_78f2,
];

unsafe extern "C" {
    /// Computes blocks of SHA-256. x0 = hash value, x1 = data, x2 = blocks (at least 1), x3 = round
    /// constants. Clobbers v0..v31, x1, x2.
    fn bulkhead_sha256(state: *mut [u32; 8], data: *const u8, blocks: usize, rounds: *const [u32; 64]);
}

global_asm!(
    r#"
    .arch_extension crypto
    .text
    .macro  sha256_rounds constant, w0
    add     v8.4s, \constant\().4s, \w0\().4s
    mov     v9.16b, v0.16b
    sha256h q0, q1, v8.4s
    sha256h2 q1, q9, v8.4s
    .endm
    .macro  sha256_schedule constant, w0, w1, w2, w3
    sha256_rounds \constant, \w0
    sha256su0 \w0\().4s, \w1\().4s
    sha256su1 \w0\().4s, \w2\().4s, \w3\().4s
    .endm
    .global bulkhead_sha256
bulkhead_sha256:
    ld1     {{v16.4s-v19.4s}}, [x3], #64
    ld1     {{v20.4s-v23.4s}}, [x3], #64
    ld1     {{v24.4s-v27.4s}}, [x3], #64
    ld1     {{v28.4s-v31.4s}}, [x3]
    ld1     {{v0.4s-v1.4s}}, [x0]
1:  ld1     {{v4.16b-v7.16b}}, [x1], #64
    rev32   v4.16b, v4.16b
    rev32   v5.16b, v5.16b
    rev32   v6.16b, v6.16b
    rev32   v7.16b, v7.16b
    mov     v2.16b, v0.16b
    mov     v3.16b, v1.16b
    sha256_schedule v16, v4, v5, v6, v7
    sha256_schedule v17, v5, v6, v7, v4
    sha256_schedule v18, v6, v7, v4, v5
    sha256_schedule v19, v7, v4, v5, v6
    sha256_schedule v20, v4, v5, v6, v7
    sha256_schedule v21, v5, v6, v7, v4
    sha256_schedule v22, v6, v7, v4, v5
    sha256_schedule v23, v7, v4, v5, v6
    sha256_schedule v24, v4, v5, v6, v7
    sha256_schedule v25, v5, v6, v7, v4
    sha256_schedule v26, v6, v7, v4, v5
    sha256_schedule v27, v7, v4, v5, v6
    sha256_rounds v28, v4
    sha256_rounds v29, v5
    sha256_rounds v30, v6
    sha256_rounds v31, v7
    add     v0.4s, v0.4s, v2.4s
    add     v1.4s, v1.4s, v3.4s
    subs    x2, x2, #1
    b.ne    1b
    st1     {{v0.4s-v1.4s}}, [x0]
    ret
    .arch_extension nocrypto
    .arch_extension nosimd
    .arch_extension nofp
"#
);

/// Tells whether the CPU has the instructions: ID_AA64ISAR0_EL1.SHA2 (Arm DDI 0487 D19.2.61).
fn has_instructions() -> bool {
    read_register!("id_aa64isar0_el1") >> 12 & 0xF != 0
}

/// A digest under way.
struct Hash {
    state: [u32; 8],
    /// Bytes that do not fill a block yet.
    rest: [u8; BLOCK],
    used: usize,
    length: u64,
}

impl Hash {
    fn compress(&mut self, blocks: &[[u8; BLOCK]]) {
        if !blocks.is_empty() {
            // SAFETY: the data is whole blocks, at least one; FP is open (`digest`) and owned by no
            // partition.
            unsafe {
                bulkhead_sha256(
                    &raw mut self.state,
                    blocks.as_ptr().cast(),
                    blocks.len(),
                    &raw const ROUNDS,
                )
            }
        }
    }

    fn update(&mut self, mut part: &[u8]) {
        self.length += part.len() as u64;
        if self.used != 0 {
            let taken = part.len().min(BLOCK - self.used);
            let (head, tail) = part.split_at(taken);
            self.append(head);
            part = tail;
        }
        let (blocks, rest) = part.as_chunks::<BLOCK>();
        self.compress(blocks);
        self.append(rest);
    }

    /// Adds bytes that fit the unfinished block.
    fn append(&mut self, bytes: &[u8]) {
        for (slot, byte) in self.rest.iter_mut().skip(self.used).zip(bytes) {
            *slot = *byte;
        }
        self.used += bytes.len();
        if self.used == BLOCK {
            let block = self.rest;
            self.compress(&[block]);
            self.used = 0;
        }
    }

    /// Pads (5.1.1) and returns the result.
    fn finish(mut self) -> [u8; 32] {
        let bits = (self.length * 8).to_be_bytes();
        self.append(&[0x80]);
        if self.used > LENGTH_AT {
            self.append(ZEROES.get(self.used..).unwrap_or(&[]));
        }
        self.append(ZEROES.get(self.used..LENGTH_AT).unwrap_or(&[]));
        self.append(&bits);
        let mut digest = [0; 32];
        for (bytes, word) in digest.as_chunks_mut::<4>().0.iter_mut().zip(self.state) {
            *bytes = word.to_be_bytes();
        }
        digest
    }
}

impl Sha256 for CpuDigest {
    fn digest(&self, parts: &[&[u8]]) -> [u8; 32] {
        if !has_instructions() {
            return Portable.digest(parts);
        }
        let kept = read_register!("cptr_el2");
        write_guest_register!("cptr_el2", crate::fp::CPTR_OPEN);
        instruction!("isb");
        let mut hash = Hash {
            state: INITIAL,
            rest: [0; BLOCK],
            used: 0,
            length: 0,
        };
        for part in parts {
            hash.update(part);
        }
        let digest = hash.finish();
        write_guest_register!("cptr_el2", kept);
        instruction!("isb");
        digest
    }
}
