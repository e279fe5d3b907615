// SPDX-License-Identifier: Apache-2.0
//! Random messages against a queue, and a peer that writes anything anywhere.
#![cfg(not(loom))]

use bulkhead_ring::{Consumer, HEAD_WORDS, Producer, ReceiveError, SendError};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};

fn memory(places: usize, first: u32) -> Vec<AtomicU32> {
    let words: Vec<AtomicU32> = (0..HEAD_WORDS + places).map(|_| AtomicU32::new(0)).collect();
    // The indices may be about to wrap.
    words[0].store(first, Ordering::Relaxed);
    words[16].store(first, Ordering::Relaxed);
    words
}

#[derive(Clone, Debug)]
enum Step {
    Send(Vec<u8>),
    Receive(usize),
    AttachProducer,
    AttachConsumer,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..40).prop_map(Step::Send),
        4 => (0..48_usize).prop_map(Step::Receive),
        1 => Just(Step::AttachProducer),
        1 => Just(Step::AttachConsumer),
    ]
}

#[derive(Clone, Copy, Debug)]
enum Attack {
    Word(usize, u32),
    Written(u32),
    Taken(u32),
}

fn attack() -> impl Strategy<Value = Attack> {
    let near = prop_oneof![
        any::<u32>(),
        0..80_u32,
        (0..80_u32).prop_map(|n| n.wrapping_neg())
    ];
    prop_oneof![
        (0..HEAD_WORDS + 20, near.clone()).prop_map(|(at, value)| Attack::Word(at, value)),
        near.clone().prop_map(Attack::Written),
        near.prop_map(Attack::Taken),
    ]
}

fn strike(words: &[AtomicU32], attack: Attack) {
    let (at, value) = match attack {
        Attack::Word(at, value) => (at % words.len(), value),
        Attack::Written(value) => (0, value),
        Attack::Taken(value) => (16, value),
    };
    words[at].store(value, Ordering::Relaxed);
}

#[test]
fn too_few_words_are_no_ring_and_the_rest_of_a_power_of_two_is_unused() {
    for places in [0, 1] {
        assert!(Producer::attach(&memory(places, 0)).is_none());
        assert!(Consumer::attach(&memory(places, 0)).is_none());
    }
    assert!(Producer::attach(&[]).is_none());
    let words = memory(15, 0);
    assert_eq!(Producer::attach(&words).unwrap().longest(), 28);
}

#[test]
fn a_ring_can_be_filled_to_the_last_place() {
    let words = memory(4, 0);
    let (mut producer, mut consumer) = (
        Producer::attach(&words).unwrap(),
        Consumer::attach(&words).unwrap(),
    );
    let mut buffer = [0; 12];
    assert_eq!(consumer.receive(&mut buffer), Err(ReceiveError::Empty));
    assert_eq!(producer.send(&[7; 13]), Err(SendError::TooLong));
    assert_eq!(producer.send(&[7; 12]), Ok(()));
    assert_eq!(producer.send(&[]), Err(SendError::Full));
    assert_eq!(
        consumer.receive(&mut buffer[..11]),
        Err(ReceiveError::TooLong(12))
    );
    assert_eq!(consumer.receive(&mut buffer), Ok(12));
    assert_eq!(buffer, [7; 12]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, rng_seed: proptest::test_runner::RngSeed::Fixed(18), failure_persistence: None, ..ProptestConfig::default() })]

    /// Checks that the ring is a queue of messages, wherever its indices begin, and if either side starts
    /// anew.
    #[test]
    fn it_is_a_queue(
        steps in prop::collection::vec(step(), 1..80),
        places in 2..20_usize,
        first in prop_oneof![Just(0), any::<u32>(), (0..40_u32).prop_map(|n| n.wrapping_neg())],
    ) {
        let words = memory(places, first);
        let mut producer = Producer::attach(&words).unwrap();
        let mut consumer = Consumer::attach(&words).unwrap();
        let room = 1 << places.ilog2();
        let (mut queue, mut used) = (VecDeque::new(), 0);
        for step in steps {
            match step {
                Step::Send(message) => {
                    let needed = 1 + message.len().div_ceil(4);
                    let expected = if needed > room {
                        Err(SendError::TooLong)
                    } else if needed > room - used {
                        Err(SendError::Full)
                    } else {
                        Ok(())
                    };
                    prop_assert_eq!(producer.send(&message), expected);
                    if expected.is_ok() {
                        used += needed;
                        queue.push_back(message);
                    }
                }
                Step::Receive(size) => {
                    let mut buffer = vec![0; size];
                    let received = consumer.receive(&mut buffer);
                    match queue.front() {
                        None => prop_assert_eq!(received, Err(ReceiveError::Empty)),
                        Some(message) if message.len() > size => {
                            prop_assert_eq!(received, Err(ReceiveError::TooLong(message.len())));
                        }
                        Some(message) => {
                            prop_assert_eq!(received, Ok(message.len()));
                            prop_assert_eq!(&buffer[..message.len()], &message[..]);
                            used -= 1 + message.len().div_ceil(4);
                            queue.pop_front();
                        }
                    }
                }
                Step::AttachProducer => producer = Producer::attach(&words).unwrap(),
                Step::AttachConsumer => consumer = Consumer::attach(&words).unwrap(),
            }
        }
    }

    /// Runs a consumer beside a peer that writes anything: no panic, no byte after the length it is told,
    /// and a ring that is broken stays so until a side starts anew.
    #[test]
    fn a_hostile_producer_gets_nothing_but_messages_it_might_have_sent(
        rounds in prop::collection::vec((prop::collection::vec(attack(), 0..4), 0..48_usize), 1..40),
        places in 2..20_usize,
    ) {
        let words = memory(places, 0);
        let mut consumer = Consumer::attach(&words).unwrap();
        let mut broken = false;
        for (attacks, size) in rounds {
            attacks.into_iter().for_each(|attack| strike(&words, attack));
            let mut buffer = vec![0xEE; size];
            match consumer.receive(&mut buffer) {
                Ok(length) => {
                    prop_assert!(!broken && length <= size);
                    prop_assert!(buffer[length..].iter().all(|byte| *byte == 0xEE));
                    prop_assert!(length <= 4 * (places - 1));
                }
                Err(error) => {
                    prop_assert!(!broken || error == ReceiveError::Broken);
                    prop_assert!(buffer.iter().all(|byte| *byte == 0xEE));
                    broken |= error == ReceiveError::Broken;
                }
            }
        }
        let mut anew = Consumer::attach(&words).unwrap();
        let mut buffer = [0; 96];
        // At once or after what the peer left, the ring works again.
        for _ in 0..words.len() {
            if anew.receive(&mut buffer).is_err() {
                break;
            }
        }
    }

    /// Runs a producer beside a peer that writes anything: it never writes outside the places and its own
    /// index.
    #[test]
    fn a_hostile_consumer_makes_no_word_of_its_own_change(
        rounds in prop::collection::vec((prop::collection::vec(attack(), 0..4), prop::collection::vec(any::<u8>(), 0..60)), 1..40),
        places in 2..20_usize,
    ) {
        let words = memory(places, 0);
        let mut producer = Producer::attach(&words).unwrap();
        let room = 1 << places.ilog2();
        for (attacks, message) in rounds {
            attacks.into_iter().for_each(|attack| strike(&words, attack));
            let before: Vec<u32> = words.iter().map(|word| word.load(Ordering::Relaxed)).collect();
            let sent = producer.send(&message);
            let changed = words.iter().zip(&before).enumerate();
            let changed: Vec<usize> = changed
                .filter(|(_, (now, before))| now.load(Ordering::Relaxed) != **before)
                .map(|(at, _)| at)
                .collect();
            let own = |at: &usize| *at == 0 || (HEAD_WORDS..HEAD_WORDS + room).contains(at);
            prop_assert!(changed.iter().all(own), "{:?}", changed);
            prop_assert!(sent.is_ok() || changed.is_empty());
        }
    }
}
