// SPDX-License-Identifier: Apache-2.0
//! A serial link: random pieces against two queues of bytes, a peer that writes anything, and the link in C.
#![cfg(not(loom))]

mod support;

use bulkhead_ring::{Broken, HEAD_WORDS, Link, PIECE, Producer};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};

/// Words of each half: a ring of 64 places.
const HALF: usize = HEAD_WORDS + 64;

fn memory() -> Vec<AtomicU32> {
    (0..2 * HALF).map(|_| AtomicU32::new(0)).collect()
}

#[derive(Clone, Debug)]
enum Step {
    Write(bool, Vec<u8>),
    Read(bool, usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (any::<bool>(), prop::collection::vec(any::<u8>(), 0..200))
            .prop_map(|(is_first, bytes)| Step::Write(is_first, bytes)),
        (any::<bool>(), 0..100_usize).prop_map(|(is_first, room)| Step::Read(is_first, room)),
    ]
}

proptest! {
    #[test]
    fn bytes_come_out_as_they_went_in(steps in prop::collection::vec(step(), 1..60)) {
        let words = memory();
        let mut ends = [false, true].map(|is_first| Link::attach(&words, is_first).unwrap());
        // By the end that reads.
        let mut expected = [VecDeque::new(), VecDeque::new()];
        for step in steps {
            match step {
                Step::Write(is_first, bytes) => {
                    let sent = ends[usize::from(is_first)].write(&bytes).unwrap();
                    prop_assert!(sent == bytes.len() || sent % PIECE == 0);
                    expected[usize::from(!is_first)].extend(&bytes[..sent]);
                }
                Step::Read(is_first, room) => {
                    let mut buffer = vec![0; room];
                    let got = ends[usize::from(is_first)].read(&mut buffer).unwrap();
                    let queue = &mut expected[usize::from(is_first)];
                    prop_assert!(got > 0 || room == 0 || queue.is_empty());
                    let wanted: Vec<u8> = queue.drain(..got).collect();
                    prop_assert_eq!(&buffer[..got], wanted);
                }
            }
        }
    }

    #[test]
    fn a_peer_that_writes_anything_breaks_nothing_but_the_link(
        attacks in prop::collection::vec((0..2 * HALF, any::<u32>(), 0..100_usize), 1..100)
    ) {
        let words = memory();
        let mut link = Link::attach(&words, true).unwrap();
        for (place, value, length) in attacks {
            words[place].store(value, Ordering::Relaxed);
            let mut buffer = [0xEE; 128];
            if let Ok(got) = link.read(&mut buffer[..length]) {
                prop_assert!(got <= length.min(PIECE));
            }
            prop_assert!(buffer[length..].iter().all(|byte| *byte == 0xEE));
            if let Ok(sent) = link.write(&buffer[..length]) {
                prop_assert!(sent <= length);
            }
        }
    }
}

#[test]
fn a_piece_that_is_too_long_breaks_the_link() {
    let words = memory();
    let mut link = Link::attach(&words, true).unwrap();
    Producer::attach(&words[HALF..])
        .unwrap()
        .send(&[7; PIECE + 1])
        .unwrap();
    assert_eq!(link.read(&mut [0; 200]), Err(Broken));
    assert_eq!(link.read(&mut [0; 200]), Err(Broken));
    assert!(
        Link::attach(&words[..HEAD_WORDS], true).is_none(),
        "too few words"
    );
}

#[test]
fn the_link_in_c_is_the_same_link() {
    let theirs = support::words_of("link");

    let words = memory();
    let mut first = Link::attach(&words, true).unwrap();
    let mut second = Link::attach(&words, false).unwrap();
    assert_eq!(first.write(&[b'x'; 300]), Ok(192), "three pieces have room");
    assert_eq!(second.write(b"0123456789"), Ok(10));
    assert_eq!(second.read(&mut [0; 70]), Ok(64));
    assert_eq!(first.read(&mut [0; 4]), Ok(4));
    let ours: Vec<u32> = words.iter().map(|word| word.load(Ordering::Relaxed)).collect();
    assert_eq!(theirs, ours);
}
