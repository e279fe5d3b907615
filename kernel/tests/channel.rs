// SPDX-License-Identifier: Apache-2.0
//! Channels: memory that sides share, doorbells, refusals, restarts.

use crate::support::{
    self, At, Bench, Part, add_channel, call, error_mark, load, marking, store, tables, task, vm,
};
use bulkhead_abi::{Error, HealthClass, ObjectKind, Operation, PartitionState, Rights};
use bulkhead_arch_api::{PartitionId, Reply, VcpuId, VirtualLine};
use bulkhead_arch_sim::{Action, Guest, Outcome, What};
use bulkhead_image::layout::{
    HealthAction, MEMORY_SHARED, NONE, SIDE_FUNCTION, VIRTUAL_PCI_BRIDGE, VirtualDeviceRecord,
};
use bulkhead_image::{Fault, Image, ImageError, Table};
use proptest::prelude::*;

const LINK: u64 = 1;
const CLOCK: u64 = 2;
const GATE: u64 = 3;
const OTHER: u64 = 4;
/// Where the sides see the channel.
const HERE: u64 = 0x1000_0000;
const THERE: u64 = 0x2000_0000;
const SIZE: u64 = 0x3000;
const LINE: u32 = 48;
const EVENT: u32 = 5;
const READ_WRITE: Rights = Rights(3);

fn link(part: Part, number: u32, rights: Rights) -> Part {
    part.cap(LINK as u32, ObjectKind::Channel, 0, rights)
        .cap(CLOCK as u32, ObjectKind::Timer, 0, Rights::READ)
        .cap(GATE as u32, ObjectKind::EventGate, number, READ_WRITE)
        .with(|part| part.memory = 0x4000)
}

fn side(partition: u32, guest: u64, writes: bool) -> At {
    let is_vm = partition < 2;
    At {
        partition,
        guest,
        writes,
        held: false,
        line: if is_vm { LINE } else { NONE },
        event: if is_vm { NONE } else { EVENT },
    }
}

/// Returns a board with two VMs and a task at one channel, which the task may only read. The second VM is on
/// `pcpu`. A fourth partition has the capability but no side.
fn bench(pcpu: u32) -> Bench {
    let parts = [
        link(vm("one", &[(0, 10)]), 0, READ_WRITE),
        link(vm("two", &[(pcpu, 20)]), 1, READ_WRITE),
        link(task("three", 1, 5), 2, READ_WRITE).action(HealthClass::Memory, HealthAction::Stop),
        link(task("stranger", 0, 4), 3, READ_WRITE),
    ];
    let mut image = tables(2, &parts);
    let sides = [side(0, HERE, true), side(1, THERE, true), side(2, HERE, false)];
    add_channel(&mut image, "link", SIZE, &sides);
    Bench::with_image(2, image.build().unwrap())
}

fn sleep(until: u64) -> Action {
    support::sleep(CLOCK, until)
}

fn ring(sides: u64) -> Action {
    call(Operation::ChannelDoorbell, &[LINK, sides])
}

fn wait() -> Action {
    call(Operation::EventWait, &[GATE, 0])
}

/// Returns a guest that waits for interrupts, and marks each with the word at `address` at that time.
fn listener(address: u64) -> impl Guest {
    let mut came = 0;
    move |last: Outcome, _: u64| match last {
        Outcome::Interrupt(Some(line)) => {
            came = u64::from(line);
            load(address)
        }
        Outcome::Value(value) => Action::Mark(came << 32 | value),
        Outcome::Interrupt(None) | Outcome::Started(_) => Action::Idle,
        Outcome::Done if came == 0 => Action::Acknowledge,
        _ => {
            came = 0;
            Action::Idle
        }
    }
}

#[test]
fn the_doorbell_reaches_vms_by_their_lines_and_tasks_by_their_gates() {
    for pcpu in [0, 1] {
        let mut bench = bench(pcpu);
        bench.program(0, |_| {
            marking(vec![
                sleep(50_000),
                store(HERE + 8, 0x11),
                ring(0),
                sleep(90_000),
                store(HERE + 8, 0x22),
                ring(0b010),
                sleep(130_000),
                store(HERE + 8, 0x33),
                ring(0b101),
            ])
        });
        bench.program(1, |_| listener(THERE + 8));
        bench.program(2, |_| {
            marking(vec![wait(), load(HERE + 8), wait(), load(HERE + 8)])
        });
        bench.run(1_000_000);
        let rung = |value: u64| u64::from(LINE) << 32 | value;
        assert_eq!(bench.marks(1), [rung(0x11), rung(0x22)], "pCPU {pcpu}");
        let event = 1 << EVENT;
        let took = [event, 0, 0, 0, 0x11, event, 0, 0, 0, 0x33];
        assert_eq!(bench.marks(2), took, "pCPU {pcpu}");
        let rings = bench.records(|what| matches!(what, What::Pulse(..)));
        let at = |record: &bulkhead_arch_sim::Record| match record.what {
            What::Pulse(PartitionId(partition), VirtualLine(line)) => (partition, line),
            _ => (u8::MAX, 0),
        };
        // Never the caller's own side, and not where the bitmap says no.
        assert_eq!(rings.iter().map(at).collect::<Vec<_>>(), [(1, LINE), (1, LINE)]);
    }
}

#[test]
fn each_side_learns_its_place_and_others_do_not() {
    let mut bench = bench(0);
    let place = || call(Operation::ChannelPlace, &[LINK]);
    for vcpu in 0..4 {
        bench.program(vcpu, move |_| marking(vec![place()]));
    }
    bench.run(1_000_000);
    assert_eq!(bench.marks(0), [HERE, SIZE, 3 << 8 | 1 << 16, 0]);
    assert_eq!(bench.marks(1), [THERE, SIZE, 1 | 3 << 8 | 1 << 16, 0]);
    assert_eq!(bench.marks(2), [HERE, SIZE, 2 | 3 << 8, 0]);
    assert_eq!(bench.marks(3), [error_mark(Error::WrongState)]);
}

#[test]
fn a_holder_without_a_side_rings_at_all_and_sees_no_memory() {
    let mut bench = bench(0);
    bench.program(0, |_| listener(HERE));
    bench.program(1, |_| listener(THERE));
    bench.program(3, |_| marking(vec![sleep(50_000), ring(0), load(HERE)]));
    bench.run(1_000_000);
    assert_eq!(bench.marks(1), [u64::from(LINE) << 32]);
    assert_eq!(bench.records(|what| matches!(what, What::Pulse(..))).len(), 2);
    assert!(bench.logged("stranger"), "{:?}", bench.log());
    assert_eq!(
        bench.shared().partition(PartitionId(3)).state(),
        PartitionState::Failed
    );
}

#[test]
fn calls_without_a_right_are_refused_and_ring_nowhere() {
    let parts = [
        link(vm("one", &[(0, 10)]), 0, Rights::READ).cap(OTHER as u32, ObjectKind::Channel, 0, Rights::WRITE),
        vm("two", &[(0, 20)]),
    ];
    let mut image = tables(1, &parts);
    add_channel(
        &mut image,
        "link",
        SIZE,
        &[side(0, HERE, true), side(1, HERE, true)],
    );
    let mut bench = Bench::with_image(1, image.build().unwrap());
    bench.program(0, |_| {
        marking(vec![
            ring(0),
            call(Operation::ChannelPlace, &[OTHER]),
            call(Operation::ChannelDoorbell, &[GATE, 0]),
            call(Operation::ChannelDoorbell, &[CLOCK, 0]),
            call(Operation::ChannelDoorbell, &[9, 0]),
            call(Operation::PortSend, &[OTHER, HERE, 8]),
            // Sides that do not exist, and the caller's own.
            call(Operation::ChannelDoorbell, &[OTHER, !0b11]),
            call(Operation::ChannelDoorbell, &[OTHER, 0b01]),
        ])
    });
    bench.run(1_000_000);
    let marks: Vec<u64> = [
        Error::NoRight,
        Error::NoRight,
        Error::WrongKind,
        Error::WrongKind,
        Error::NoCapability,
        Error::WrongKind,
    ]
    .into_iter()
    .map(error_mark)
    .chain([0; 8])
    .collect();
    assert_eq!(bench.marks(0), marks);
    assert_eq!(bench.records(|what| matches!(what, What::Pulse(..))).len(), 0);
}

#[test]
fn a_side_that_may_only_read_is_stopped_when_it_writes() {
    let mut bench = bench(0);
    bench.program(0, |_| {
        marking(vec![store(HERE, 0x77), sleep(200_000), load(HERE)])
    });
    bench.program(2, |_| {
        marking(vec![sleep(50_000), load(HERE), store(HERE, 1), load(HERE)])
    });
    bench.run(1_000_000);
    assert_eq!(bench.marks(2), [0, 0, 0, 0, 0x77]);
    assert_eq!(bench.marks(0), [0, 0, 0, 0, 0x77]);
    assert_eq!(
        bench.shared().partition(PartitionId(2)).state(),
        PartitionState::Failed
    );
}

#[test]
fn a_start_of_one_side_leaves_the_memory_as_it_is_and_drops_its_rings() {
    let mut bench = bench(1);
    bench.program(0, |_| {
        marking(vec![
            store(HERE, 0x77),
            // The other side is being restarted by itself meanwhile.
            sleep(500_000),
            load(HERE + 8),
            ring(0),
        ])
    });
    let lives = std::rc::Rc::new(std::cell::Cell::new(0));
    let count = std::rc::Rc::clone(&lives);
    bench.program(1, move |_| {
        let life = count.get();
        count.set(life + 1);
        let restart = call(Operation::PartitionRestart, &[0]);
        let first = vec![sleep(50_000), load(THERE), store(THERE + 8, 0x88), restart];
        marking(if life == 0 {
            first
        } else {
            vec![load(THERE), load(THERE + 8)]
        })
    });
    bench.run(1_000_000);
    assert_eq!(lives.get(), 2);
    assert_eq!(bench.marks(1), [0, 0, 0, 0, 0x77, 0x77, 0x88]);
    assert_eq!(bench.marks(0), [0, 0, 0, 0, 0x88, 0, 0, 0, 0]);
}

#[test]
fn a_shared_mapping_without_a_side_is_refused() {
    let parts = [vm("one", &[(0, 10)]), vm("two", &[(0, 20)])];
    let mut image = tables(1, &parts);
    // A partition that takes part in another one's RAM.
    image.memory[1].flags = (image.memory[1].flags.get() & 3 | MEMORY_SHARED).into();
    image.memory[1].host = image.memory[0].host;
    let bytes = image.build_unchecked();
    let refused = Image::check(
        &bytes,
        <bulkhead_arch_sim::Sim as bulkhead_arch_sim::SimClass>::FACTS,
        &bulkhead_image::Portable,
    );
    assert_eq!(
        refused.map(|_| ()).unwrap_err(),
        ImageError::Record {
            table: Table::Memory,
            index: 1,
            fault: Fault::NoSuch(Table::Sides)
        }
    );
}

/// Where a VM finds the configuration space of its bridge, and the registers of its functions.
const ECAM: u64 = 0x3F00_0000;
const REGISTERS: u64 = 0x3E00_0000;
const INTX: u32 = 50;

/// Returns a board whose first VM has two channels as PCI functions. The second VM is at both.
fn bridged(pcpu: u32) -> Bench {
    let parts = [
        vm("linux", &[(0, 10)]).cap(CLOCK as u32, ObjectKind::Timer, 0, Rights::READ),
        link(vm("two", &[(pcpu, 20)]), 1, READ_WRITE).cap(OTHER as u32, ObjectKind::Channel, 1, READ_WRITE),
    ];
    let mut image = tables(2, &parts);
    for (number, guest) in [(0_u32, HERE), (1, HERE + 0x4000)] {
        let own = |partition: u32, guest: u64, line: u32| At {
            line: line + number,
            ..side(partition, guest, true)
        };
        let name = ["first", "second"][number as usize];
        add_channel(
            &mut image,
            name,
            0x4000,
            &[own(1, guest, LINE), own(0, guest, INTX)],
        );
        let last = image.sides.last_mut().unwrap();
        last.flags = (last.flags.get() | SIDE_FUNCTION).into();
    }
    image.virtual_devices.push(VirtualDeviceRecord {
        partition: 0.into(),
        kind: VIRTUAL_PCI_BRIDGE.into(),
        base: [ECAM.into(), REGISTERS.into()],
        size: [0x10_0000.into(), 0x2_0000.into()],
        virtual_line: NONE.into(),
        reserved: 0.into(),
    });
    Bench::with_image(2, image.build().unwrap())
}

fn word(address: u64) -> Action {
    Action::Read { address, size: 4 }
}

fn set_word(address: u64, value: u64) -> Action {
    Action::Write {
        address,
        size: 4,
        value,
    }
}

/// Returns a guest that does `actions` in turn and marks what it reads and which interrupts it takes.
fn driver(actions: Vec<Action>) -> impl Guest {
    let mut rest = actions.into_iter();
    move |last: Outcome, _: u64| match last {
        Outcome::Value(value) | Outcome::Replied(Reply::Read(value)) => Action::Mark(value),
        Outcome::Interrupt(line) => Action::Mark(line.map_or(0, u64::from)),
        _ => rest.next().unwrap_or(Action::Compute(1_000_000)),
    }
}

#[test]
fn a_vm_finds_its_channels_behind_the_bridge() {
    let mut bench = bridged(1);
    bench.program(0, |_| {
        driver(vec![
            word(ECAM),
            word(ECAM + 0x10),
            word(ECAM + 0x18),
            word(ECAM + 0x8018),
            word(ECAM + 0x8010),
            // Another function of a device, a device that is not there, and registers of one.
            word(ECAM + 0x1000),
            word(ECAM + 0x10000),
            word(REGISTERS + 0x2008),
            set_word(ECAM + 0x10000, 1),
            Action::Read {
                address: ECAM + 2,
                size: 2,
            },
            word(REGISTERS + 8),
            store(HERE + 8, 0x77),
            load(HERE + 8),
        ])
    });
    bench.run(500_000);
    let nobody = 0xFFFF_FFFF;
    let found = [
        0x1110_1AF4,
        REGISTERS,
        HERE | 0xC,
        (HERE + 0x4000) | 0xC,
        REGISTERS + 0x1000,
        nobody,
        nobody,
        nobody,
        0x1110,
        1,
        0x77,
    ];
    assert_eq!(bench.marks(0), found);
}

#[test]
fn rings_go_both_ways_between_a_function_and_a_line() {
    for pcpu in [0, 1] {
        let mut bench = bridged(pcpu);
        bench.program(0, |_| {
            driver(vec![
                set_word(REGISTERS, 1),
                set_word(REGISTERS + 0x1000, 1),
                Action::Idle,
                Action::Acknowledge,
                word(REGISTERS + 4),
                // The level has fallen with the read.
                Action::Acknowledge,
                // Side 0 of the second channel, then a side that is not there.
                set_word(REGISTERS + 0x100C, 0),
                set_word(REGISTERS + 0x100C, 31 << 16),
                set_word(REGISTERS + 0x100C, 32 << 16),
            ])
        });
        bench.program(1, |_| {
            let mut rest = vec![sleep(50_000), ring(0), sleep(100_000)].into_iter();
            let mut listens = listener(THERE);
            move |last: Outcome, now: u64| match rest.next() {
                Some(action) => action,
                None => match last {
                    Outcome::Interrupt(Some(line)) => Action::Mark(line.into()),
                    last => listens.next(last, now),
                },
            }
        });
        bench.run(1_000_000);
        assert_eq!(bench.marks(0), [u64::from(INTX), 1, 0], "pCPU {pcpu}");
        assert_eq!(bench.marks(1), [u64::from(LINE) + 1], "pCPU {pcpu}");
    }
}

/// A step of a side: what it does, and on which word.
#[derive(Clone, Copy, Debug)]
enum Step {
    Store(u64, u64),
    Load(u64),
    Ring(u64),
    Sleep(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let word = 0..SIZE / 8;
    let step = prop_oneof![
        (word.clone(), any::<u64>()).prop_map(|(word, value)| Step::Store(word, value)),
        word.prop_map(Step::Load),
        (0..16_u64).prop_map(Step::Ring),
        (1..2_000_u64).prop_map(Step::Sleep),
    ];
    prop::collection::vec(step, 1..40)
}

fn run_steps(steps: Vec<Step>, base: u64) -> impl Guest {
    let mut rest = steps.into_iter();
    move |last: Outcome, now: u64| match last {
        Outcome::Value(value) => Action::Mark(value),
        _ => match rest.next() {
            Some(Step::Store(word, value)) => store(base + 8 * word, value),
            Some(Step::Load(word)) => load(base + 8 * word),
            Some(Step::Ring(sides)) => ring(sides),
            Some(Step::Sleep(time)) => sleep(now + time),
            None => Action::Idle,
        },
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, rng_seed: proptest::test_runner::RngSeed::Fixed(18), failure_persistence: None, ..ProptestConfig::default() })]

    /// Lets one side write and ring, and the other read: it reads what one memory would hold, and is
    /// interrupted no more often than was rung.
    #[test]
    fn the_sides_see_one_memory(steps in steps(), pcpu in 0..2_u32) {
        let mut bench = bench(pcpu);
        let own = steps.clone();
        // A ring before the other side has started is lost with everything of its earlier life.
        bench.program(0, move |_| run_steps([vec![Step::Sleep(50_000)], own.clone()].concat(), HERE));
        bench.program(1, |_| listener(THERE));
        bench.run(2_000_000);
        let mut memory = vec![0; SIZE as usize / 8];
        let (mut read, mut rings) = (Vec::new(), 0);
        for step in &steps {
            match *step {
                Step::Store(word, value) => memory[word as usize] = value,
                Step::Load(word) => read.push(memory[word as usize]),
                Step::Ring(sides) => rings += usize::from(sides == 0 || sides & 0b10 != 0),
                Step::Sleep(_) => {}
            }
        }
        prop_assert_eq!(bench.marks(0), read);
        let heard = bench.marks(1).len();
        prop_assert!(heard <= rings && (heard > 0) == (rings > 0), "{} of {}", heard, rings);
        prop_assert_eq!(bench.records(|what| matches!(what, What::Pulse(..))).len(), rings);
        prop_assert_eq!(bench.records(|what| *what == What::Detach(VcpuId(1))).len(), 0);
    }
}
