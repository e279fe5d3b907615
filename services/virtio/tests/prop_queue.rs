// SPDX-License-Identifier: Apache-2.0
//! Queues against a model: each chain that a driver makes available comes back once, with what it asked for.
#![forbid(unsafe_code)]

#[path = "support/device.rs"]
mod device;

use bulkhead_virtio::broken::Broken;
use bulkhead_virtio::numbers::{FEATURE_EVENT_INDEX, NO_INTERRUPT};
use bulkhead_virtio::queue::Queue;
use device::{BASE, BUFFERS, Buffer, DEVICE, DRIVER, Driver, Ram, SIZE, TABLES, descriptor};
use proptest::prelude::*;
use std::collections::VecDeque;

/// The lengths of the buffers that the device reads and of those it writes, and whether they are in a table.
#[derive(Clone, Debug)]
struct Request {
    inputs: Vec<u32>,
    outputs: Vec<u32>,
    is_indirect: bool,
    /// The chains in hand that the device gives back afterwards, the last one first.
    answers: usize,
}

fn request() -> impl Strategy<Value = Request> {
    let lengths = || prop::collection::vec(0_u32..40, 0..3);
    (lengths(), lengths(), any::<bool>(), 0_usize..3)
        .prop_filter("a chain has a buffer", |(inputs, outputs, ..)| {
            !inputs.is_empty() || !outputs.is_empty()
        })
        .prop_map(|(inputs, outputs, is_indirect, answers)| Request {
            inputs,
            outputs,
            is_indirect,
            answers,
        })
}

/// Runs requests through a queue. The device reads each byte, answers with its complement, and gives the
/// chains back in an order of its own.
fn run(packed: bool, size: u16, requests: &[Request]) {
    let (mut ram, mut driver) = (Ram::new(), Driver::new(packed, size));
    let mut queue = Queue::new(driver.place(), driver.features());
    let mut in_hand = VecDeque::new();
    let mut free = size;
    let mut expected = Vec::new();
    for (number, request) in requests.iter().enumerate() {
        let count = (request.inputs.len() + request.outputs.len()) as u16;
        let slots = if request.is_indirect { 1 } else { count };
        // The ring is in the order of the chains here, so a driver waits until all are back.
        if free < slots {
            finish(&mut queue, &mut ram, &mut in_hand, usize::MAX);
            check(&mut driver, &ram, &mut expected);
            assert!(expected.is_empty(), "a chain did not come back");
            free = size;
        }
        if free < slots {
            continue;
        }
        let mut at = BUFFERS + (number as u64 % 8) * 0x200;
        let mut buffers = Vec::new();
        for (lengths, is_output) in [(&request.inputs, false), (&request.outputs, true)] {
            for length in lengths {
                let seed: Vec<u8> = (0..*length)
                    .map(|byte| (byte as u8).wrapping_mul(7) ^ number as u8)
                    .collect();
                ram.put(at, &seed);
                buffers.push(Buffer(at, *length, is_output));
                at += u64::from(*length);
            }
        }
        let table = request
            .is_indirect
            .then_some(TABLES + (number as u64 % 16) * 0x80);
        let id = driver.offer(&mut ram, &buffers, table);
        free -= slots;
        let inputs: u32 = request.inputs.iter().sum();
        let outputs: u32 = request.outputs.iter().sum();
        expected.push((id, inputs.min(outputs)));
        let chain = queue.take(&mut ram).unwrap().expect("the chain is available");
        assert_eq!((chain.readable(), chain.writable()), (inputs, outputs));
        assert!(queue.take(&mut ram).unwrap().is_none(), "there is one");
        assert!(!queue.listen(&mut ram).unwrap());
        in_hand.push_back(chain);
        finish(&mut queue, &mut ram, &mut in_hand, request.answers);
        check(&mut driver, &ram, &mut expected);
    }
    finish(&mut queue, &mut ram, &mut in_hand, usize::MAX);
    check(&mut driver, &ram, &mut expected);
    assert!(expected.is_empty(), "a chain did not come back");
}

fn finish(
    queue: &mut Queue,
    ram: &mut Ram,
    in_hand: &mut VecDeque<bulkhead_virtio::chain::Chain>,
    answers: usize,
) {
    for _ in 0..answers.min(in_hand.len()) {
        let chain = in_hand.pop_back().unwrap();
        let length = chain.readable().min(chain.writable());
        for at in 0..length {
            let mut byte = [0];
            chain.read(ram, at, &mut byte).unwrap();
            chain.write(ram, at, &[!byte[0]]).unwrap();
        }
        assert!(chain.read(ram, chain.readable(), &mut [0]).is_err());
        assert!(chain.write(ram, chain.writable(), &[0]).is_err());
        queue.give_back(ram, &chain, length).unwrap();
        assert!(queue.wants_interrupt(ram).unwrap());
        assert!(!queue.wants_interrupt(ram).unwrap(), "it was told");
    }
}

fn check(driver: &mut Driver, ram: &Ram, expected: &mut Vec<(u16, u32)>) {
    while let Some(back) = driver.take_back(ram) {
        let place = expected.iter().position(|one| *one == back);
        expected.remove(place.unwrap_or_else(|| panic!("{back:?} was not asked for: {expected:?}")));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_chain_comes_back_once(
        packed in any::<bool>(),
        power in 0_u32..4,
        odd in 0_u16..2,
        requests in prop::collection::vec(request(), 0..40),
    ) {
        let size = (1 << power) + if packed { odd } else { 0 };
        run(packed, size, &requests);
    }
}

fn split(size: u16) -> (Ram, Driver, Queue) {
    let driver = Driver::new(false, size);
    let queue = Queue::new(driver.place(), driver.features());
    (Ram::new(), driver, queue)
}

#[test]
fn a_loop_of_descriptors_ends() {
    let (mut ram, mut driver, mut queue) = split(4);
    driver.offer(
        &mut ram,
        &[Buffer(BUFFERS, 4, false), Buffer(BUFFERS, 4, false)],
        None,
    );
    ram.put(BASE + 16, &descriptor(BUFFERS, 4, 1, 0));
    assert_eq!(queue.take(&mut ram).unwrap_err(), Broken::Loop);
    let (mut ram, mut driver, mut queue) = (
        Ram::new(),
        Driver::new(true, 4),
        Queue::new(driver.place(), 1 << 34),
    );
    driver.offer(&mut ram, &[Buffer(BUFFERS, 4, false); 4], None);
    ram.put(BASE + 48, &descriptor(BUFFERS, 4, 0, 0x81));
    assert_eq!(queue.take(&mut ram).unwrap_err(), Broken::Loop);
}

#[test]
fn what_the_standard_forbids_is_found() {
    let write_first = [Buffer(BUFFERS, 4, true), Buffer(BUFFERS, 4, false)];
    for packed in [false, true] {
        let mut driver = Driver::new(packed, 4);
        let (mut ram, mut queue) = (Ram::new(), Queue::new(driver.place(), driver.features()));
        driver.offer(&mut ram, &write_first, None);
        assert_eq!(queue.take(&mut ram).unwrap_err(), Broken::Order);

        let mut driver = Driver::new(packed, 4);
        let (mut ram, mut queue) = (Ram::new(), Queue::new(driver.place(), driver.features()));
        driver.offer(
            &mut ram,
            &[Buffer(BUFFERS, u32::MAX, false), Buffer(BUFFERS, 2, false)],
            None,
        );
        assert_eq!(queue.take(&mut ram).unwrap_err(), Broken::TooLong);

        let mut driver = Driver::new(packed, 4);
        let (mut ram, mut queue) = (Ram::new(), Queue::new(driver.place(), driver.features()));
        let outside = BASE + SIZE as u64 - 16;
        driver.offer(&mut ram, &[Buffer(BUFFERS, 4, false); 1], Some(outside));
        // A table in a table.
        let flags = if packed { (0, 4) } else { (4, 0) };
        ram.put(outside, &descriptor(outside, 16, flags.0, flags.1));
        assert_eq!(queue.take(&mut ram).unwrap_err(), Broken::Table);
    }
    let (mut ram, mut driver, mut queue) = split(4);
    driver.offer(&mut ram, &[Buffer(BUFFERS, 4, false)], None);
    ram.put(DRIVER + 2, &6_u16.to_le_bytes());
    assert_eq!(
        queue.take(&mut ram).unwrap_err(),
        Broken::Index,
        "more chains than descriptors"
    );
    ram.put(DRIVER + 2, &1_u16.to_le_bytes());
    ram.put(DRIVER + 4, &4_u16.to_le_bytes());
    assert_eq!(
        queue.take(&mut ram).unwrap_err(),
        Broken::Index,
        "no such descriptor"
    );
}

#[test]
fn an_interrupt_comes_when_the_driver_wants_one() {
    let (mut ram, mut driver, mut queue) = split(4);
    let mut round = |ram: &mut Ram, queue: &mut Queue| {
        driver.offer(ram, &[Buffer(BUFFERS, 4, true)], None);
        let chain = queue.take(ram).unwrap().unwrap();
        queue.give_back(ram, &chain, 0).unwrap();
        queue.wants_interrupt(ram).unwrap()
    };
    assert!(round(&mut ram, &mut queue));
    ram.put(DRIVER, &NO_INTERRUPT.to_le_bytes());
    assert!(!round(&mut ram, &mut queue));
    ram.put(DRIVER, &[0, 0]);
    assert!(round(&mut ram, &mut queue));

    let mut driver = Driver::new(false, 4);
    let (mut ram, mut queue) = (Ram::new(), Queue::new(driver.place(), FEATURE_EVENT_INDEX));
    // The third chain back is the one that counts.
    ram.put(DRIVER + 4 + 8, &2_u16.to_le_bytes());
    let mut told = Vec::new();
    for _ in 0..4 {
        driver.offer(&mut ram, &[Buffer(BUFFERS, 4, true)], None);
        let chain = queue.take(&mut ram).unwrap().unwrap();
        queue.give_back(&mut ram, &chain, 0).unwrap();
        told.push(queue.wants_interrupt(&mut ram).unwrap());
    }
    assert_eq!(told, [false, false, true, false]);
    assert!(!queue.listen(&mut ram).unwrap());
    assert_eq!(
        u16::from_le_bytes(ram.get(DEVICE + 4 + 32)),
        4,
        "the next chain is notified"
    );

    let mut driver = Driver::new(true, 3);
    let (mut ram, mut queue) = (
        Ram::new(),
        Queue::new(driver.place(), driver.features() | FEATURE_EVENT_INDEX),
    );
    // Position 1 of the second round.
    ram.put(DRIVER, &[1, 0, 2, 0]);
    let mut told = Vec::new();
    for _ in 0..7 {
        driver.offer(&mut ram, &[Buffer(BUFFERS, 4, true)], None);
        let chain = queue.take(&mut ram).unwrap().unwrap();
        queue.give_back(&mut ram, &chain, 0).unwrap();
        told.push(queue.wants_interrupt(&mut ram).unwrap());
    }
    assert_eq!(told, [false, false, false, false, true, false, false]);
}
