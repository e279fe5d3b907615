// SPDX-License-Identifier: Apache-2.0
//! VMs that see the memory in which their frames wait: frames between rings and FIFOs, the interrupt, senders
//! that lie, guests that write anything into the memory, and restarts.

use crate::network::{
    ALL, FRAMES, FRAMES_EACH, IRQ_CFG, LATER, NIC_LINE, RX_DROP, STRANGER, TX_DATA, WHOLE, frame, image, mac,
    read, received, receiver, send, start_receiver, write,
};
use crate::support::Bench;
use bulkhead_arch_api::{Reply, ResetKind};
use bulkhead_arch_sim::{Action, External, Outcome};
use bulkhead_image::layout::{MEMORY_CLEAR, MEMORY_READ, MEMORY_WRITE, MemoryRecord, NIC_FRAME_RING};

/// Registers, and the interrupt for a received frame.
const INT_EN: u64 = 0x5C;
const RING: u64 = 0xC0;
const RECEIVED: u64 = 1 << 3;
/// Words of the memory (docs/devices.md): the frame to send, the indices.
const TRANSMIT: u64 = 1664;
const PRODUCED: u64 = 2046;
const CONSUMED: u64 = 2047;

/// Returns the address of a word of the memory of VM `number`.
fn word(number: u8, index: u64) -> u64 {
    FRAMES + FRAMES_EACH * u64::from(number) + 4 * index
}

/// Returns VMs with an interface to each of these networks. Those in `rings` see their memory.
fn bench(networks: &[u32], rings: &[u8]) -> Bench {
    let mut image = image(networks);
    for number in rings {
        let at = word(*number, 0);
        let nic = &mut image.nics[usize::from(*number)];
        nic.network = (nic.network.get() | NIC_FRAME_RING).into();
        image.memory.push(MemoryRecord {
            partition: u32::from(*number).into(),
            flags: (MEMORY_READ | MEMORY_WRITE | MEMORY_CLEAR).into(),
            guest: at.into(),
            host: at.into(),
            size: FRAMES_EACH.into(),
            manifest_line: 1.into(),
            reserved: 0.into(),
        });
    }
    Bench::with_image(1, image.build().unwrap())
}

/// Does the actions one after the other, and marks what it reads and which interrupt it takes.
fn accesses(actions: Vec<Action>) -> impl FnMut(Outcome, u64) -> Action {
    let mut actions = [write(IRQ_CFG, 0x111)].into_iter().chain(actions);
    move |last, _| match last {
        Outcome::Replied(Reply::Read(value)) | Outcome::Value(value) => Action::Mark(value),
        Outcome::Interrupt(line) => Action::Mark(line.map_or(0, u64::from)),
        _ => actions.next().unwrap_or(Action::Idle),
    }
}

fn load(number: u8, index: u64) -> Action {
    Action::Read {
        address: word(number, index),
        size: 4,
    }
}

fn store(number: u8, index: u64, value: u64) -> Action {
    Action::Write {
        address: word(number, index),
        size: 4,
        value,
    }
}

/// Returns the actions of a driver with a ring that has set up the controller.
fn start() -> Vec<Action> {
    let mut actions = start_receiver();
    actions.push(write(RING, 1));
    actions
}

fn later(time: u64) -> [Action; 3] {
    [Action::SetTimer(Some(time)), Action::Idle, Action::SetTimer(None)]
}

/// Returns the actions of VM `number` that puts a frame into its memory and stores the length `bytes`.
fn put(number: u8, words: &[u32], bytes: u64) -> Vec<Action> {
    let words = words.iter().zip(TRANSMIT..);
    let stores = words.map(|(value, index)| store(number, index, u64::from(*value)));
    stores.chain([write(TX_DATA, bytes)]).collect()
}

/// Returns the word of a frame with its content.
fn content(words: &[u32]) -> u64 {
    words[3].into()
}

#[test]
fn rings_and_fifos_get_each_others_frames() {
    let to = |number, content| frame(mac(number), mac(0), content);
    let mut bench = bench(&[0, 0, 0], &[0, 1]);
    bench.program(0, move |_| {
        let mut actions = start();
        actions.extend(put(0, &to(1, 1), 64));
        actions.extend(put(0, &to(2, 2), 64));
        actions.extend(put(0, &frame(ALL, mac(0), 3), 64));
        accesses(actions)
    });
    bench.program(1, |_| {
        let mut actions = start();
        actions.extend([write(INT_EN, RECEIVED), Action::Idle, Action::Acknowledge]);
        actions.push(write(INT_EN, 0));
        actions.extend(later(LATER));
        let own = [PRODUCED, CONSUMED, 0, 4, 18, 22, 1 + 16];
        actions.extend(own.map(|index| load(1, index)));
        accesses(actions)
    });
    bench.program(2, |_| crate::network::accesses(receiver(3)));
    bench.run(10 * LATER);
    let [one, three] = [1, 3].map(|number| content(&to(1, number)));
    let ring = [u64::from(NIC_LINE), 36, 0, 68, one, 68, three, 0];
    assert_eq!(bench.marks(1), ring);
    let [broadcast, unicast] = [WHOLE | 1 << 13 | 1 << 10, WHOLE];
    assert_eq!(received(&bench, 2), [(unicast, 2), (broadcast, 3)]);
    assert_eq!(bench.look().uplink.sent.len(), 1);
}

#[test]
fn a_fifo_and_the_outside_reach_a_ring() {
    let mut bench = bench(&[0, 0], &[1]);
    bench.world().schedule(3000, External::Frame(mac(1), 64));
    bench.program(0, |_| {
        let mut actions = later(4000).to_vec();
        actions.extend(send(&frame(mac(1), mac(0), 5)));
        crate::network::accesses(actions)
    });
    bench.program(1, |_| {
        let mut actions = start();
        actions.extend(later(LATER));
        actions.extend([
            load(1, 0),
            load(1, 1),
            load(1, 18),
            load(1, 18 + 4),
            load(1, PRODUCED),
        ]);
        accesses(actions)
    });
    bench.run(10 * LATER);
    let head = u64::from(u32::from_le_bytes([2, 0, 0, 0]));
    assert_eq!(
        bench.marks(1),
        [68, head, 68, content(&frame(mac(1), mac(0), 5)), 36]
    );
    assert!(bench.look().uplink.arrived.is_empty());
}

#[test]
fn a_ring_vm_that_does_not_say_so_has_its_fifo() {
    let mut bench = bench(&[0, 0], &[0, 1]);
    bench.program(0, |_| crate::network::accesses(send(&frame(mac(1), mac(0), 5))));
    bench.program(1, |_| crate::network::accesses(receiver(3)));
    bench.run(10 * LATER);
    assert_eq!(received(&bench, 1), [(WHOLE, 5)]);
}

#[test]
fn a_sender_with_a_ring_has_no_address_but_its_own() {
    let mut bench = bench(&[0, 0], &[0]);
    bench.program(0, |_| {
        let mut actions = start();
        actions.extend(put(0, &frame(mac(1), STRANGER, 1), 64));
        for bytes in [0, 1, 13, 1519, 8192, u64::from(u32::MAX)] {
            actions.extend(put(0, &frame(mac(1), mac(0), 2), bytes));
        }
        actions.extend(put(0, &frame(mac(1), mac(0), 3), 64));
        accesses(actions)
    });
    bench.program(1, |_| crate::network::accesses(receiver(3)));
    bench.run(10 * LATER);
    assert_eq!(received(&bench, 1), [(WHOLE, 3)]);
    assert!(bench.look().uplink.sent.is_empty());
    let complaints = bench.log();
    let complaints = complaints
        .iter()
        .filter(|line| line.contains("do not have its address"));
    assert_eq!(complaints.count(), 1);
}

#[test]
fn an_index_that_cannot_be_loses_frames_of_its_own_vm_only() {
    let mut bench = bench(&[1, 1, 1], &[1]);
    bench.program(0, |_| {
        let mut actions = send(&frame(mac(1), mac(0), 1));
        actions.extend(send(&frame(mac(2), mac(0), 2)));
        crate::network::accesses(actions)
    });
    bench.program(1, |_| {
        let mut actions = start();
        actions.push(store(1, CONSUMED, 0xFFFF_FFFF));
        actions.extend(later(LATER));
        actions.extend([read(RX_DROP), load(1, PRODUCED), load(1, 0)]);
        accesses(actions)
    });
    bench.program(2, |_| crate::network::accesses(receiver(3)));
    bench.run(10 * LATER);
    assert_eq!(bench.marks(1), [1, 0, 0]);
    assert_eq!(received(&bench, 2), [(WHOLE, 2)]);
}

#[test]
fn a_restart_leaves_nothing_of_a_ring() {
    let mut bench = bench(&[1, 1], &[1]);
    bench.program(0, |_| {
        let mut actions = send(&frame(mac(1), mac(0), 1));
        actions.extend(later(LATER));
        actions.extend(send(&frame(mac(1), mac(0), 2)));
        actions.extend(later(3 * LATER));
        actions.extend(send(&frame(mac(1), mac(0), 3)));
        crate::network::accesses(actions)
    });
    let lives = std::cell::Cell::new(0);
    bench.program(1, move |_| {
        lives.set(lives.get() + 1);
        let mut actions = Vec::new();
        if lives.get() == 1 {
            actions.extend(start());
            actions.extend(later(LATER / 2));
            actions.push(load(1, PRODUCED));
            actions.push(Action::Reset(ResetKind::Cold));
        } else {
            actions.extend([load(1, PRODUCED), load(1, 0), load(1, 4)]);
            actions.extend(later(2 * LATER));
            actions.push(load(1, PRODUCED));
            actions.extend(start());
            actions.extend(later(4 * LATER));
            actions.extend([load(1, PRODUCED), load(1, 0), load(1, 4)]);
        }
        accesses(actions)
    });
    bench.run(10 * LATER);
    let last = content(&frame(mac(1), mac(0), 3));
    assert_eq!(
        bench.marks(1),
        [18, 0, 0, 0, 0, 18, 68, last],
        "{:?}",
        bench.log()
    );
}
