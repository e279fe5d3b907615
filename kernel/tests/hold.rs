// SPDX-License-Identifier: Apache-2.0
//! Memory of channels that is mapped only while it is held: rights, refusals, revocation, restarts.

use crate::support::{
    self, At, Bench, Part, add_channel, call, error_mark, load, marking, store, tables, task,
};
use bulkhead_abi::{Error, HealthClass, ObjectKind, Operation, PartitionState, Rights};
use bulkhead_arch_api::PartitionId;
use bulkhead_arch_sim::Action;
use bulkhead_image::layout::{HealthAction, MEMORY_READ, NONE, SIDE_FUNCTION};
use bulkhead_image::{Fault, ImageError, MAX_HELD, Table};

const CHANNEL: u64 = 1;
const CLOCK: u64 = 2;
const OTHER: u64 = 3;
/// Index of what the owner grants.
const GRANTED: u64 = 1;
const HERE: u64 = 0x1000_0000;
const THERE: u64 = 0x2000_0000;
const SIZE: u64 = 0x3000;
const READ_WRITE: Rights = Rights(3);
const MAY_WRITE: u64 = 1 << 16;
const USER: u8 = 1;
/// By then every partition is loaded, and keeps what it is granted.
const LOADED: u64 = 40_000;

fn parts(pcpu: u32) -> [Part; 3] {
    let owner = task("owner", 0, 20)
        .cap(CHANNEL as u32, ObjectKind::Channel, 0, Rights::ALL)
        .cap(CLOCK as u32, ObjectKind::Timer, 0, Rights::READ)
        .cap(OTHER as u32, ObjectKind::Partition, 1, Rights::ALL);
    let user = task("user", pcpu, 10)
        .cap(CLOCK as u32, ObjectKind::Timer, 0, Rights::READ)
        .action(HealthClass::Memory, HealthAction::Stop);
    let neighbour = task("neighbour", pcpu, 5).cap(CLOCK as u32, ObjectKind::Timer, 0, Rights::READ);
    [owner, user, neighbour].map(|part| part.with(|part| part.memory = 0x4000))
}

fn side(partition: u32, guest: u64, writes: bool, held: bool) -> At {
    At {
        partition,
        guest,
        writes,
        held,
        line: NONE,
        event: NONE,
    }
}

/// Returns a board with an owner, who sees the memory all the time, and a user on `pcpu`, who has a window.
/// The user has no capability at first, and the third partition has nothing to do with the channel.
fn bench(pcpu: u32) -> Bench {
    let mut image = tables(2, &parts(pcpu));
    let sides = [side(0, HERE, true, false), side(1, THERE, true, true)];
    add_channel(&mut image, "link", SIZE, &sides);
    Bench::with_image(2, image.build().unwrap())
}

fn sleep(until: u64) -> Action {
    support::sleep(CLOCK, until)
}

fn grant(rights: Rights) -> Action {
    call(Operation::CapabilityGrant, &[OTHER, CHANNEL, u64::from(rights.0)])
}

fn revoke() -> Action {
    call(Operation::CapabilityRevoke, &[CHANNEL])
}

fn hold() -> Action {
    call(Operation::ChannelHold, &[1])
}

fn release() -> Action {
    call(Operation::ChannelRelease, &[1])
}

/// The results of a call that says nothing.
const DONE: [u64; 4] = [0; 4];

/// Returns the results of the end of a hold of the user.
fn released() -> [u64; 4] {
    held(false)
}

/// Returns the results of a hold of the user.
fn held(writes: bool) -> [u64; 4] {
    let shape = 1 | 2 << 8 | if writes { MAY_WRITE } else { 0 };
    [THERE, SIZE, shape, 0]
}

fn granted() -> [u64; 4] {
    [GRANTED, 0, 0, 0]
}

fn state(bench: &Bench, partition: u8) -> PartitionState {
    bench.shared().partition(PartitionId(partition)).state()
}

#[test]
fn a_window_is_mapped_while_it_is_held_with_the_rights_of_the_capability() {
    for pcpu in [0, 1] {
        let mut bench = bench(pcpu);
        bench.program(0, |_| {
            marking(vec![
                store(HERE + 0x2008, 0x77),
                sleep(LOADED),
                grant(READ_WRITE),
                sleep(200_000),
                load(HERE + 0x2010),
            ])
        });
        bench.program(1, |_| {
            marking(vec![
                sleep(50_000),
                hold(),
                load(THERE + 0x2008),
                store(THERE + 0x2010, 0x88),
                hold(),
                release(),
                release(),
                hold(),
                load(THERE + 0x2010),
                release(),
                load(THERE + 0x2010),
            ])
        });
        bench.run(1_000_000);
        let owner = [&DONE[..], &granted(), &DONE, &[0x88]].concat();
        assert_eq!(bench.marks(0), owner, "pCPU {pcpu}");
        let wrong = error_mark(Error::WrongState);
        let (first, again) = ([0x77, wrong], [wrong]);
        let user = [
            &DONE[..],
            &held(true),
            &first,
            &released(),
            &again,
            &held(true),
            &[0x88],
            &released(),
        ];
        assert_eq!(bench.marks(1), user.concat(), "pCPU {pcpu}");
        assert_eq!(state(&bench, USER), PartitionState::Failed, "pCPU {pcpu}");
    }
}

#[test]
fn a_capability_without_the_right_to_write_maps_for_loads_alone() {
    let mut bench = bench(0);
    bench.program(0, |_| {
        marking(vec![
            sleep(LOADED),
            grant(Rights::READ),
            sleep(200_000),
            load(HERE),
        ])
    });
    bench.program(1, |_| {
        marking(vec![sleep(50_000), hold(), load(THERE), store(THERE, 0x99)])
    });
    bench.run(1_000_000);
    assert_eq!(bench.marks(1), [&DONE[..], &held(false), &[0]].concat());
    assert_eq!(state(&bench, USER), PartitionState::Failed);
    assert_eq!(bench.marks(0), [&DONE[..], &granted(), &DONE, &[0]].concat());
}

#[test]
fn a_revocation_takes_the_memory_away_wherever_the_holder_runs() {
    for pcpu in [0, 1] {
        let mut bench = bench(pcpu);
        bench.program(0, |_| {
            marking(vec![
                sleep(LOADED),
                grant(READ_WRITE),
                sleep(300_000),
                revoke(),
                load(HERE),
                sleep(600_000),
                load(HERE),
            ])
        });
        // The user stores as fast as it can, until it is stopped.
        bench.program(1, |_| {
            let mut step = 0_u64;
            move |_, _| {
                step += 1;
                match step {
                    1 => sleep(50_000),
                    2 => hold(),
                    _ => store(THERE, step),
                }
            }
        });
        bench.program(2, |_| marking(vec![sleep(800_000), sleep(810_000)]));
        bench.run(1_000_000);
        let marks = bench.marks(0);
        let last = marks[16];
        assert!(last > 3, "the user has written: {last}");
        let calls = [&DONE[..], &granted(), &DONE, &DONE].concat();
        let expected = [&calls[..], &[last], &DONE, &[last]].concat();
        assert_eq!(marks, expected, "nothing was written behind the revocation");
        assert_eq!(state(&bench, USER), PartitionState::Failed, "pCPU {pcpu}");
        assert_eq!(bench.marks(2), [DONE, DONE].concat(), "the neighbour runs on");
        assert_eq!(state(&bench, 2), PartitionState::Running);
    }
}

#[test]
fn a_holder_meets_the_error_once_and_then_its_slot_is_free() {
    let mut bench = bench(0);
    bench.program(0, |_| {
        marking(vec![
            sleep(LOADED),
            grant(READ_WRITE),
            sleep(100_000),
            revoke(),
            sleep(200_000),
            grant(Rights::READ),
        ])
    });
    bench.program(1, |_| {
        marking(vec![
            sleep(50_000),
            hold(),
            sleep(150_000),
            release(),
            release(),
            hold(),
            sleep(250_000),
            hold(),
            load(THERE),
        ])
    });
    bench.run(1_000_000);
    let (gone, none) = (error_mark(Error::Revoked), error_mark(Error::NoCapability));
    let user = [
        &DONE[..],
        &held(true),
        &DONE,
        &[gone, none, none],
        &DONE,
        &held(false),
        &[0],
    ];
    assert_eq!(bench.marks(1), user.concat());
    assert_eq!(state(&bench, USER), PartitionState::Running);
}

#[test]
fn the_end_of_the_granter_and_the_start_of_the_holder_end_a_hold() {
    // The owner restarts: what it granted is gone, and so is the memory.
    let mut first = bench(1);
    let restart = || call(Operation::PartitionRestart, &[0]);
    let lives = std::rc::Rc::new(std::cell::Cell::new(0));
    let count = std::rc::Rc::clone(&lives);
    first.program(0, move |_| {
        count.set(count.get() + 1);
        marking(if count.get() == 1 {
            vec![sleep(LOADED), grant(READ_WRITE), sleep(200_000), restart()]
        } else {
            vec![sleep(900_000)]
        })
    });
    first.program(1, |_| {
        marking(vec![
            sleep(50_000),
            hold(),
            load(THERE),
            sleep(600_000),
            load(THERE),
        ])
    });
    first.run(1_000_000);
    assert_eq!(lives.get(), 2);
    assert_eq!(
        first.marks(1),
        [&DONE[..], &held(true), &[0], &DONE].concat(),
        "the last load faults"
    );
    assert_eq!(state(&first, USER), PartitionState::Failed);

    // The holder restarts: its new life holds nothing, no matter which capabilities it has.
    let mut parts = parts(1);
    parts[1] = task("user", 1, 10)
        .cap(1, ObjectKind::Channel, 0, READ_WRITE)
        .cap(CLOCK as u32, ObjectKind::Timer, 0, Rights::READ)
        .action(HealthClass::Memory, HealthAction::Stop)
        .with(|part| part.memory = 0x4000);
    let mut image = tables(2, &parts);
    let sides = [side(0, HERE, true, false), side(1, THERE, true, true)];
    add_channel(&mut image, "link", SIZE, &sides);
    let mut second = Bench::with_image(2, image.build().unwrap());
    let lives = std::rc::Rc::new(std::cell::Cell::new(0));
    let count = std::rc::Rc::clone(&lives);
    second.program(1, move |_| {
        count.set(count.get() + 1);
        marking(match count.get() {
            1 => vec![hold(), store(THERE, 5), restart()],
            2 => vec![release(), hold(), load(THERE), restart()],
            _ => vec![load(THERE)],
        })
    });
    second.run(1_000_000);
    assert_eq!(lives.get(), 3);
    let wrong = [error_mark(Error::WrongState)];
    assert_eq!(
        second.marks(1),
        [&held(true)[..], &wrong, &held(true), &[5]].concat()
    );
    assert_eq!(state(&second, USER), PartitionState::Failed);
}

#[test]
fn wrong_holds_are_refused_and_nothing_is_mapped() {
    let mut bench = bench(0);
    bench.program(0, |_| {
        marking(vec![
            sleep(LOADED),
            // The owner sees the memory all the time.
            call(Operation::ChannelHold, &[CHANNEL]),
            call(Operation::ChannelRelease, &[CHANNEL]),
            call(Operation::ChannelHold, &[CLOCK]),
            call(Operation::ChannelHold, &[63]),
            call(Operation::ChannelHold, &[u64::MAX]),
            grant(Rights::WRITE),
        ])
    });
    bench.program(1, |_| {
        marking(vec![sleep(50_000), hold(), release(), load(THERE)])
    });
    bench.run(1_000_000);
    let errors = [
        Error::WrongState,
        Error::WrongState,
        Error::WrongKind,
        Error::NoCapability,
        Error::NoCapability,
    ];
    assert_eq!(
        bench.marks(0),
        [&DONE[..], &errors.map(error_mark), &granted()].concat()
    );
    let refused = [error_mark(Error::NoRight); 2];
    assert_eq!(bench.marks(1), [&DONE[..], &refused].concat());
    assert_eq!(state(&bench, USER), PartitionState::Failed);
}

#[test]
fn the_image_refuses_windows_that_cannot_be_held() {
    let refusal = |size: u64, flag: u32, mapping: u32| {
        let mut image = tables(2, &parts(0));
        let sides = [side(0, HERE, true, false), side(1, THERE, true, true)];
        add_channel(&mut image, "link", size, &sides);
        image.sides[1].flags = (image.sides[1].flags.get() | flag).into();
        let last = image.memory.last_mut().unwrap();
        last.flags = (last.flags.get() | mapping).into();
        image.build().err()
    };
    assert_eq!(refusal(MAX_HELD, 0, 0), None);
    let fault = |table, index, fault| Some(ImageError::Record { table, index, fault });
    assert_eq!(
        refusal(MAX_HELD + 0x1000, 0, 0),
        fault(Table::Sides, 1, Fault::OutOfRange)
    );
    assert_eq!(
        refusal(SIZE, SIDE_FUNCTION, 0),
        fault(Table::Sides, 1, Fault::BadFlags)
    );
    assert!(refusal(SIZE, 0, MEMORY_READ).is_some(), "mapped from the start");
}
