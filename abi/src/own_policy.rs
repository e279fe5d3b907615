// SPDX-License-Identifier: Apache-2.0
//! The number by which a system image names a policy of the user's own.
//!
//! Such a policy is a crate, and it is built into a class binary for one system. The number is made from the
//! name of the crate. So a class binary refuses the image of a system whose policy is another one.

/// The bit that the number of every policy of a user's own has, and no other policy.
pub const POLICY_OWN: u32 = 1 << 31;

/// The number of the user's own policy in this build, if there is one.
pub const BUILT_IN: u32 = POLICY_OWN | crate::size::own("own-policy", usize::MAX) as u32;

/// Returns the number of the policy with this name: a hash of 31 bits (FNV-1a) and the bit of own policies.
#[must_use]
pub const fn number(name: &str) -> u32 {
    let mut hash = 0x811C_9DC5_u32;
    let mut bytes = name.as_bytes();
    while let [byte, rest @ ..] = bytes {
        hash = (hash ^ *byte as u32).wrapping_mul(0x0100_0193);
        bytes = rest;
    }
    hash | POLICY_OWN
}

#[cfg(test)]
mod tests {
    use super::{POLICY_OWN, number};

    #[test]
    fn names_have_numbers_of_their_own() {
        assert_ne!(number("weighted-turns"), number("weighted-turn"));
        assert_ne!(number("a") & POLICY_OWN, 0);
    }
}
