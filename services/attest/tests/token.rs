// SPDX-License-Identifier: Apache-2.0
//! Tokens that are made here, and judged by the libraries of others.

use bulkhead_attest::verify::{Measured, Refusal, verify};
use bulkhead_attest::{Claims, Component, MAX_TOKEN, SigningKey, write_token};
use ed25519_dalek::Signer;
use proptest::prelude::*;

const SECRET: [u8; 32] = [7; 32];
const SIGNER: [u8; 32] = [3; 32];

fn components() -> [Component<'static>; 3] {
    [
        ("class binary", 1),
        ("system", 2),
        ("a partition with a long name", 4),
    ]
    .map(|(name, byte)| Component {
        name,
        measurement: [byte; 32],
    })
}

/// Returns a token with these claims.
fn token(nonce: &[u8], components: &[Component<'_>]) -> Option<Vec<u8>> {
    let claims = Claims {
        nonce,
        client: -3,
        implementation: [1; 32],
        signer: SIGNER,
        components,
    };
    let mut bytes = [0; MAX_TOKEN];
    let length = write_token(&claims, &SigningKey::of_secret(&SECRET), &mut bytes)?;
    Some(bytes[..length].to_vec())
}

fn public() -> [u8; 32] {
    *SigningKey::of_secret(&SECRET).public()
}

#[test]
fn a_token_says_what_it_was_given() {
    for length in [32, 48, 64] {
        let nonce = vec![9; length];
        let token = token(&nonce, &components()).unwrap();
        let quote = verify(&token, &public(), &nonce).unwrap();
        assert_eq!((quote.client, quote.lifecycle), (-3, 0));
        assert_eq!(quote.implementation, [1; 32]);
        let expected = components().map(|component| Measured {
            name: component.name.into(),
            measurement: component.measurement,
            signer: SIGNER,
        });
        assert_eq!(quote.components, expected);
    }
}

#[test]
fn what_is_no_question_gets_no_token() {
    for length in [0, 1, 31, 33, 65] {
        assert_eq!(token(&vec![9; length], &components()), None, "{length}");
    }
    assert_eq!(token(&[9; 32], &[]), None);
    let many = [components()[2]; 20];
    assert_eq!(token(&[9; 32], &many), None, "no room");
}

#[test]
fn another_key_another_nonce_and_each_flipped_bit_are_refused() {
    let token = token(&[9; 32], &components()).unwrap();
    let other = SigningKey::of_secret(&[8; 32]);
    let judge = |token: &[u8], key: &[u8; 32], nonce: &[u8]| verify(token, key, nonce).unwrap_err();
    assert_eq!(judge(&token, other.public(), &[9; 32]), Refusal::Signature);
    assert_eq!(judge(&token, &public(), &[8; 32]), Refusal::Nonce);
    let mut keys = (0..=255).map(|byte| judge(&token, &[byte; 32], &[9; 32]));
    assert!(keys.any(|refusal| refusal == Refusal::BadKey));
    // The identifier of the key in the unprotected header is a hint: not signed, and not believed.
    let hint = token.windows(2).position(|pair| pair == [0x04, 0x48]).unwrap();
    for bit in 0..token.len() * 8 {
        let mut changed = token.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        if !(hint..hint + 10).contains(&(bit / 8)) {
            assert!(verify(&changed, &public(), &[9; 32]).is_err(), "bit {bit}");
        }
    }
    for length in 0..token.len() {
        assert!(
            verify(&token[..length], &public(), &[9; 32]).is_err(),
            "{length} bytes"
        );
    }
}

proptest! {
    #[test]
    fn signatures_are_those_of_ed25519_dalek(secret: [u8; 32], a: Vec<u8>, b: Vec<u8>) {
        let own = SigningKey::of_secret(&secret);
        let theirs = ed25519_dalek::SigningKey::from_bytes(&secret);
        prop_assert_eq!(*own.public(), theirs.verifying_key().to_bytes());
        let message = [a.as_slice(), &b].concat();
        prop_assert_eq!(own.sign([&a, &b]), theirs.sign(&message).to_bytes());
    }

    #[test]
    fn hostile_claims_under_a_good_signature_are_read_strictly(payload in proptest::collection::vec(any::<u8>(), 0..64)) {
        use coset::{CoseSign1Builder, HeaderBuilder, TaggedCborSerializable, iana};
        let header = HeaderBuilder::new().algorithm(iana::Algorithm::EdDSA).build();
        let key = ed25519_dalek::SigningKey::from_bytes(&SECRET);
        let token = CoseSign1Builder::new()
            .protected(header)
            .payload(payload)
            .create_signature(&[], |message| key.sign(message).to_bytes().to_vec())
            .build()
            .to_tagged_vec()
            .unwrap();
        prop_assert!(verify(&token, &public(), &[9; 32]).is_err());
    }

    #[test]
    fn any_bytes_are_judged(token in proptest::collection::vec(any::<u8>(), 0..256)) {
        prop_assert!(verify(&token, &public(), &[9; 32]).is_err());
    }
}
