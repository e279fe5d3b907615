// SPDX-License-Identifier: Apache-2.0
//! The ring in C (`guest/c/ring.h`): the same layout, and as little harm from a hostile peer.
#![cfg(not(loom))]

mod support;

use bulkhead_ring::{Consumer, HEAD_WORDS, Producer};
use std::sync::atomic::{AtomicU32, Ordering};

#[test]
fn the_ring_in_c_is_the_same_ring() {
    let theirs = support::words_of("ring");

    let words: Vec<AtomicU32> = (0..HEAD_WORDS + 16).map(|_| AtomicU32::new(0)).collect();
    let mut producer = Producer::attach(&words).unwrap();
    for message in ["abcde", "", "0123456789"] {
        producer.send(message.as_bytes()).unwrap();
    }
    Consumer::attach(&words).unwrap().receive(&mut [0; 64]).unwrap();
    let ours: Vec<u32> = words.iter().map(|word| word.load(Ordering::Relaxed)).collect();
    assert_eq!(theirs, ours);
}
