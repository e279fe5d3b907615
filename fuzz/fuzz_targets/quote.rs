// SPDX-License-Identifier: Apache-2.0
//! Quotes, which a stranger may send to the one who asks: as a whole, and their claims as if the signature
//! were right. An accepted quote has the nonce.
#![no_main]

use bulkhead_attest::verify::{judge_claims, verify};
use libfuzzer_sys::fuzz_target;

/// A public key (RFC 8032, section 7.1, test 1).
const KEY: [u8; 32] = [
    0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a, 0xb7, 0xd5, 0x4b, 0xfe, 0xd3, 0xc9, 0x64, 0x07, 0x3a, 0x0e, 0xe1,
    0x72, 0xf3, 0xda, 0xa6, 0x23, 0x25, 0xaf, 0x02, 0x1a, 0x68, 0xf7, 0x07, 0x51, 0x1a,
];

fuzz_target!(|data: &[u8]| {
    assert!(verify(data, &KEY, &[9; 32]).is_err());
    let Some((nonce, claims)) = data.split_at_checked(32) else {
        return;
    };
    if let Ok(quote) = judge_claims(claims, &KEY, nonce) {
        assert!(!quote.components.is_empty());
        assert!(claims.windows(32).any(|bytes| bytes == nonce));
    }
});
