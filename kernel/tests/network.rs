// SPDX-License-Identifier: Apache-2.0
//! The switch between virtual interfaces, and the board's own interface. The tests look at the frames that
//! each interface gets, at frames that it must not get, and at the frames left after a restart.

use crate::support::{Bench, tables, vm};
use bulkhead_arch_api::{Clock, Reply, ResetKind};
use bulkhead_arch_sim::{Action, External, Outcome};
use bulkhead_image::ImageBuilder;
use bulkhead_image::layout::{NicRecord, VIRTUAL_LAN9118, VirtualDeviceRecord};

/// The address at which every VM finds the controller. The next constant is the line of the controller.
pub(crate) const NIC: u64 = 0x0a00_0000;
pub(crate) const NIC_LINE: u32 = 40;
/// The address of the memory for frames on the bus.
pub(crate) const FRAMES: u64 = 0x4800_0000;
pub(crate) const FRAMES_EACH: u64 = 8192;
/// Registers (LAN9118 datasheet, 5.3) and bits of theirs.
const RX_DATA: u64 = 0x00;
pub(crate) const TX_DATA: u64 = 0x20;
const RX_STATUS: u64 = 0x40;
/// The value 0x11 makes the output active high and push-pull. The line is low then.
pub(crate) const IRQ_CFG: u64 = 0x54;
pub(crate) const RX_DROP: u64 = 0xA0;
const MAC_CSR_CMD: u64 = 0xA4;
const MAC_CSR_DATA: u64 = 0xA8;
const FIRST_AND_LAST: u64 = 0x3000;
const RECEIVE: u64 = 1 << 2;
/// Bits of the RX status: group addresses (3.13.3).
const BROADCAST: u64 = 1 << 13 | 1 << 10;

pub(crate) const ALL: [u8; 6] = [0xFF; 6];
/// An address that the manifest does not know.
pub(crate) const STRANGER: [u8; 6] = [2, 9, 9, 9, 9, 9];
/// The time at which receivers look for frames.
pub(crate) const LATER: u64 = 20_000;

/// Returns the address of VM `number`.
pub(crate) fn mac(number: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, number]
}

/// Returns VMs with an interface to each of these networks. The later VMs are the more urgent ones. The
/// network does not interrupt them.
fn bench(networks: &[u32]) -> Bench {
    Bench::with_image(1, image(networks).build().unwrap())
}

pub(crate) fn image(networks: &[u32]) -> ImageBuilder {
    let names = ["a", "b", "c", "d"];
    let parts: Vec<_> = (1_u32..)
        .zip(names.iter().take(networks.len()))
        .map(|(priority, name)| vm(name, &[(0, priority)]))
        .collect();
    let mut image = tables(1, &parts);
    for (number, network) in (0_u8..).zip(networks) {
        let [a, b, c, d, e, f] = mac(number);
        image.nics.push(NicRecord {
            partition: u32::from(number).into(),
            network: (*network).into(),
            address: [a, b, c, d, e, f, 0, 0],
            memory: (FRAMES + FRAMES_EACH * u64::from(number)).into(),
        });
        image.virtual_devices.push(VirtualDeviceRecord {
            partition: u32::from(number).into(),
            kind: VIRTUAL_LAN9118.into(),
            base: [NIC.into(), 0.into()],
            size: [0x1000.into(), 0.into()],
            virtual_line: NIC_LINE.into(),
            reserved: 0.into(),
        });
    }
    image
}

/// Does the actions one after the other, marks the values read, then idles.
pub(crate) fn accesses(actions: Vec<Action>) -> impl FnMut(Outcome, u64) -> Action {
    // The line is low from then on, as each driver makes it.
    let mut actions = [write(IRQ_CFG, 0x11)].into_iter().chain(actions);
    move |last, _| match last {
        Outcome::Replied(Reply::Read(value)) => Action::Mark(value),
        _ => actions.next().unwrap_or(Action::Idle),
    }
}

pub(crate) fn write(offset: u64, value: u64) -> Action {
    Action::Write {
        address: NIC + offset,
        size: 4,
        value,
    }
}

pub(crate) fn read(offset: u64) -> Action {
    Action::Read {
        address: NIC + offset,
        size: 4,
    }
}

/// Returns a frame of 64 bytes. Its receiver finds `content` at the end of the fourth word.
pub(crate) fn frame(to: [u8; 6], from: [u8; 6], content: u16) -> Vec<u32> {
    let [c, d] = content.to_be_bytes();
    let bytes = [&to[..], &from, &[8, 0, c, d]].concat();
    let mut words: Vec<u32> = bytes
        .chunks_exact(4)
        .map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
        .collect();
    words.resize(16, 0x5A5A_5A5A);
    words
}

/// Returns the actions of a driver that sends a frame.
pub(crate) fn send(words: &[u32]) -> Vec<Action> {
    let bytes = 4 * words.len() as u64;
    let data = words.iter().map(|word| write(TX_DATA, u64::from(*word)));
    [write(TX_DATA, FIRST_AND_LAST | bytes), write(TX_DATA, bytes)]
        .into_iter()
        .chain(data)
        .collect()
}

pub(crate) fn start_receiver() -> Vec<Action> {
    vec![write(MAC_CSR_DATA, RECEIVE), write(MAC_CSR_CMD, 1 << 31 | 1)]
}

/// Returns the actions that read the status of the oldest frame, its first four words, and the rest.
pub(crate) fn take() -> Vec<Action> {
    let words = (0..4).map(|_| read(RX_DATA));
    let rest = (0..13).map(|_| read(RX_DATA));
    [read(RX_STATUS)].into_iter().chain(words).chain(rest).collect()
}

/// Receives, and looks later whether there are so many frames.
pub(crate) fn receiver(frames: usize) -> Vec<Action> {
    let mut actions = start_receiver();
    actions.extend([
        Action::SetTimer(Some(LATER)),
        Action::Idle,
        Action::SetTimer(None),
    ]);
    for _ in 0..frames {
        actions.extend(take());
    }
    actions.push(read(RX_STATUS));
    actions.push(read(RX_DROP));
    actions
}

/// Returns the marks of [`receiver`]: status and content of each frame, without frames that are not there.
pub(crate) fn received(bench: &Bench, vcpu: u8) -> Vec<(u64, u16)> {
    let marks = bench.marks(vcpu);
    let (last, frames) = marks
        .split_last_chunk::<2>()
        .map_or((None, &marks[..]), |(rest, last)| (Some(last), rest));
    assert_eq!(last.map(|last| last[0]), Some(0), "nothing is left");
    frames
        .chunks_exact(18)
        .filter(|frame| frame[0] != 0)
        .map(|frame| (frame[0], (frame[4] as u32 >> 16) as u16))
        .map(|(status, content)| (status, content.swap_bytes()))
        .collect()
}

/// The status of an undamaged frame of [`frame`], its CRC included.
pub(crate) const WHOLE: u64 = 68 << 16;

/// Starts VM 0 with these actions, and the others as receivers. Then runs.
fn exchange(networks: &[u32], actions: Vec<Action>) -> Bench {
    let mut bench = bench(networks);
    bench.program(0, move |_| accesses(actions.clone()));
    for vcpu in 1..networks.len() as u8 {
        bench.program(vcpu, |_| accesses(receiver(3)));
    }
    bench.run(10 * LATER);
    bench
}

#[test]
fn a_frame_goes_to_whom_it_is_for_and_to_nobody_else() {
    let bench = exchange(&[1, 1, 1], send(&frame(mac(2), mac(0), 7)));
    assert_eq!(received(&bench, 1), []);
    assert_eq!(received(&bench, 2), [(WHOLE, 7)]);
    assert!(bench.look().uplink.sent.is_empty());
}

#[test]
fn a_broadcast_goes_to_all_on_the_network_and_out_if_that_has_an_uplink() {
    let bench = exchange(&[0, 0, 0, 1], send(&frame(ALL, mac(0), 3)));
    for vcpu in [1, 2] {
        assert_eq!(received(&bench, vcpu), [(WHOLE | BROADCAST, 3)]);
    }
    assert_eq!(received(&bench, 3), [], "another network");
    assert_eq!(bench.look().uplink.sent.len(), 1);
    assert_eq!(bench.look().uplink.sent[0].len(), 64);
    assert_eq!(bench.look().uplink.sent[0][..6], ALL);
}

#[test]
fn whom_nobody_knows_is_outside_or_nowhere() {
    let bench = exchange(&[0, 0], send(&frame(STRANGER, mac(0), 4)));
    assert_eq!(received(&bench, 1), []);
    assert_eq!(bench.look().uplink.sent.len(), 1);
    let bench = exchange(&[1, 1], send(&frame(STRANGER, mac(0), 4)));
    assert_eq!(received(&bench, 1), []);
    assert!(bench.look().uplink.sent.is_empty());
    // The owner of the address is on another network.
    let bench = exchange(&[1, 2], send(&frame(mac(1), mac(0), 4)));
    assert_eq!(received(&bench, 1), []);
}

#[test]
fn a_sender_has_no_address_but_its_own() {
    let mut actions = send(&frame(mac(1), mac(1), 1));
    actions.extend(send(&frame(mac(1), STRANGER, 2)));
    actions.extend(send(&frame(mac(1), mac(0), 3)));
    let bench = exchange(&[0, 0], actions);
    assert_eq!(received(&bench, 1), [(WHOLE, 3)]);
    assert!(bench.look().uplink.sent.is_empty());
    let complaints = bench
        .log()
        .iter()
        .filter(|line| line.contains("do not have its address"))
        .count();
    assert_eq!(complaints, 1);
}

#[test]
fn a_receiver_that_does_not_read_loses_its_own_frames_only() {
    let mut actions = Vec::new();
    for number in 0..20 {
        actions.extend(send(&frame(mac(1), mac(0), number)));
    }
    actions.extend(send(&frame(mac(2), mac(0), 99)));
    let mut bench = bench(&[1, 1, 1]);
    bench.program(0, move |_| accesses(actions.clone()));
    bench.program(1, |_| accesses(receiver(16)));
    bench.program(2, |_| accesses(receiver(3)));
    bench.run(10 * LATER);
    let numbers: Vec<u16> = received(&bench, 1).iter().map(|(_, number)| *number).collect();
    assert_eq!(numbers, (0..16).collect::<Vec<_>>(), "the oldest stay");
    assert_eq!(
        bench.marks(1).last(),
        Some(&4),
        "and the device counts the others"
    );
    assert_eq!(received(&bench, 2), [(WHOLE, 99)]);
}

#[test]
fn half_a_frame_ends_with_the_life_of_its_sender() {
    let mut bench = bench(&[1, 1]);
    let lives = std::cell::Cell::new(0);
    bench.program(0, move |_| {
        lives.set(lives.get() + 1);
        let mut actions = send(&frame(mac(1), mac(0), 1));
        if lives.get() == 1 {
            actions.truncate(9);
            actions.push(Action::Reset(ResetKind::Warm));
        }
        accesses(actions)
    });
    bench.program(1, |_| accesses(receiver(3)));
    bench.run(10 * LATER);
    assert_eq!(received(&bench, 1), [(WHOLE, 1)]);
}

#[test]
fn a_receiver_starts_anew_without_what_came_before_and_a_stopped_one_gets_nothing() {
    let mut bench = bench(&[1, 1, 1]);
    bench.program(0, |_| {
        let mut actions = send(&frame(mac(1), mac(0), 1));
        actions.extend(send(&frame(mac(2), mac(0), 2)));
        actions.extend([
            Action::SetTimer(Some(LATER)),
            Action::Idle,
            Action::SetTimer(None),
        ]);
        actions.extend(send(&frame(ALL, mac(0), 3)));
        accesses(actions)
    });
    // This VM restarts with a frame in its queue.
    let lives = std::cell::Cell::new(0);
    bench.program(1, move |_| {
        lives.set(lives.get() + 1);
        let mut actions = start_receiver();
        if lives.get() == 1 {
            actions.extend([
                Action::SetTimer(Some(LATER / 2)),
                Action::Idle,
                Action::Reset(ResetKind::Warm),
            ]);
        } else {
            actions.extend([
                Action::SetTimer(Some(2 * LATER)),
                Action::Idle,
                Action::SetTimer(None),
            ]);
            actions.extend(take());
            actions.extend([read(RX_STATUS), read(RX_DROP)]);
        }
        accesses(actions)
    });
    // This VM is off when the last frame comes.
    bench.program(2, |_| {
        let mut actions = start_receiver();
        actions.extend([
            Action::SetTimer(Some(LATER / 2)),
            Action::Idle,
            Action::Reset(ResetKind::Off),
        ]);
        accesses(actions)
    });
    bench.run(10 * LATER);
    assert_eq!(received(&bench, 1), [(WHOLE | BROADCAST, 3)]);
    assert!(bench.logged("partition c: stopped"), "{:?}", bench.log());
}

#[test]
fn frames_from_outside_find_their_receiver_and_a_full_uplink_loses_what_is_sent() {
    let mut bench = bench(&[0, 0, 1]);
    bench.world().uplink.is_full = true;
    for (time, to) in [(3000, mac(1)), (3010, STRANGER), (3020, mac(2)), (3030, ALL)] {
        bench.world().schedule(time, External::Frame(to, 64));
    }
    bench.program(0, |_| accesses(send(&frame(STRANGER, mac(0), 1))));
    for vcpu in [1, 2] {
        bench.program(vcpu, |_| accesses(receiver(3)));
    }
    bench.run(10 * LATER);
    assert_eq!(
        received(&bench, 1),
        [(WHOLE, 0xEEEE), (WHOLE | BROADCAST, 0xEEEE)]
    );
    assert_eq!(received(&bench, 2), [], "its network has no uplink");
    assert!(bench.look().uplink.sent.is_empty());
    assert!(bench.look().uplink.arrived.is_empty(), "all were taken");
}

#[test]
fn a_flood_from_outside_takes_no_more_than_its_budget_from_whoever_runs() {
    const FLOOD: usize = 4000;
    let mut image = image(&[0]);
    // The budget is two microseconds in twenty.
    (image.board.network_budget_us, image.board.network_period_us) = (2.into(), 20.into());
    let mut bench = Bench::with_image(1, image.build().unwrap());
    let hertz = bench.machine(0).hertz();
    let period = 20 * hertz / 1_000_000;
    for _ in 0..FLOOD {
        bench.world().schedule(1000, External::Frame(mac(0), 1500));
    }
    // The VM computes in small steps, and so sees for how long it is away.
    bench.program(0, |_| {
        let mut setup = start_receiver().into_iter();
        let mut before = 0;
        move |_: Outcome, now: u64| {
            let away = now - std::mem::replace(&mut before, now);
            match setup.next() {
                Some(action) => action,
                None if away > 100 => Action::Mark(away),
                None => Action::Compute(50),
            }
        }
    });
    let end = 100 * period;
    bench.run(end);
    let taken = FLOOD - bench.look().uplink.arrived.len();
    assert!(taken >= 100, "one in each period: {taken}");
    let away: u64 = bench.marks(0).iter().sum();
    assert!(away < end / 4, "{away} of {end}");
}
