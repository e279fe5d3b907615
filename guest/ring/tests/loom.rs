// SPDX-License-Identifier: Apache-2.0
//! All orders in which a producer and a consumer on two CPUs can see each other's words.
//!
//! Run by `RUSTFLAGS="--cfg loom" cargo test -p bulkhead-ring --release --test loom`.
#![cfg(loom)]

use bulkhead_ring::{Consumer, HEAD_WORDS, Producer, ReceiveError, SendError};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

/// Makes a ring with so few places that it wraps and is full.
fn ring(places: usize) -> Arc<Vec<AtomicU32>> {
    Arc::new((0..HEAD_WORDS + places).map(|_| AtomicU32::new(0)).collect())
}

#[test]
fn messages_arrive_whole_and_in_order() {
    loom::model(|| {
        let words = ring(4);
        let theirs = Arc::clone(&words);
        let sender = thread::spawn(move || {
            let mut producer = Producer::attach(&theirs).unwrap();
            let mut sent = Vec::new();
            for message in [[1_u8, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]] {
                match producer.send(&message) {
                    Ok(()) => sent.push(message.to_vec()),
                    Err(error) => assert_eq!(error, SendError::Full),
                }
            }
            sent
        });
        let mut consumer = Consumer::attach(&words).unwrap();
        let mut received = Vec::new();
        let mut buffer = [0; 4];
        for _ in 0..2 {
            match consumer.receive(&mut buffer) {
                Ok(length) => received.push(buffer[..length].to_vec()),
                Err(error) => assert_eq!(error, ReceiveError::Empty),
            }
        }
        let sent = sender.join().unwrap();
        while let Ok(length) = consumer.receive(&mut buffer) {
            received.push(buffer[..length].to_vec());
        }
        assert_eq!(received, sent);
    });
}

#[test]
fn a_peer_that_writes_anything_meanwhile_does_no_harm() {
    loom::model(|| {
        let words = ring(4);
        Producer::attach(&words).unwrap().send(&[1, 2, 3, 4]).unwrap();
        let theirs = Arc::clone(&words);
        let hostile = thread::spawn(move || {
            theirs[0].store(7, Ordering::Relaxed);
            theirs[HEAD_WORDS].store(9, Ordering::Relaxed);
        });
        let mut consumer = Consumer::attach(&words).unwrap();
        let mut buffer = [0; 4];
        match consumer.receive(&mut buffer) {
            Ok(length) => assert!(length <= buffer.len()),
            Err(error) => assert_ne!(error, ReceiveError::TooLong(0)),
        }
        hostile.join().unwrap();
    });
}
