// SPDX-License-Identifier: Apache-2.0
//! SHA-256 (interim).

use bulkhead_image::{Portable, Sha256};

/// SHA-256 by the CPU's own instructions where it has them.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuDigest;

impl Sha256 for CpuDigest {
    fn digest(&self, parts: &[&[u8]]) -> [u8; 32] {
        Portable.digest(parts)
    }
}
