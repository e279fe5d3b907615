// SPDX-License-Identifier: Apache-2.0
//! Random partitions beside a critical one. They cause no panic, no broken protocol (the mock is strict) and
//! no lockdown. The critical partition's releases are all there and in time. The log is bounded.

use crate::support::{At, Bench, NOWHERE, Part, RAM, UART, add_channel, call, port, tables, task, vm};
use bulkhead_abi::{HealthClass, ObjectKind, Operation, Rights};
use bulkhead_arch_api::{FaultReport, GuestPhys, ResetKind, VcpuId};
use bulkhead_arch_sim::{Action, Outcome, What};
use bulkhead_image::layout::HealthAction;
use bulkhead_image::layout::{NONE, Name, PortRecord, SERVED_VIRTIO, SERVED_WRITES, ServedRecord};
use proptest::prelude::*;

const PERIOD: u64 = 5_000;
/// The time of one chunk of loading another partition, and of the way in and out.
const LATENESS: u64 = 1_200;
const END: u64 = 400_000;
/// The capability for the channel, and where its sides see it.
const LINK: u64 = 8;
const CHANNEL: u64 = 0x1000_0000;
/// The line of a guest's own timer.
const TIMER: u32 = 27;
/// The address of the window that one of the hostile partitions serves for the other.
const WINDOW: u64 = 0x0a00_0000;

/// Returns a call of a port or a reply that mostly has possible arguments.
fn message_call() -> impl Strategy<Value = Action> {
    let operation = prop_oneof![
        Just(Operation::PortSend),
        Just(Operation::PortReceive),
        Just(Operation::PortTryReceive),
        Just(Operation::PortSendReceive),
        Just(Operation::PortSendReceiveDonate),
        Just(Operation::PortReceiveDonate),
        Just(Operation::PortResume),
        Just(Operation::PortReply),
        Just(Operation::CapabilityDelete),
    ];
    let place = (0..0x802_u64).prop_map(|word| RAM + 8 * word);
    let until = prop_oneof![Just(0), Just(1), 0..END];
    (operation, 5..12_u64, place.clone(), place, 0..40_u64, until).prop_map(
        |(operation, index, from, to, length, until)| {
            let arguments = match operation {
                Operation::PortReceive => [index, to, 64, until, 0, 0],
                Operation::PortReceiveDonate => [index, to, 64, length, until % 12, until],
                Operation::PortResume => [0, until, 0, 0, 0, 0],
                _ => [index, from, length, to, 64, until],
            };
            Action::Hypercall(operation as u16, arguments)
        },
    )
}

/// Returns the actions of the hostile guests. The guests do them in a circle, and each vCPU starts at another
/// action.
fn actions() -> impl Strategy<Value = Vec<Action>> {
    let small = prop_oneof![0..9_u64, any::<u64>(), Just(63), Just(64)];
    let number = prop_oneof![
        (0..Operation::ALL.len()).prop_map(|index| Operation::ALL[index] as u16),
        any::<u16>(),
    ];
    let address = prop_oneof![
        UART..UART + 0x1000,
        WINDOW..WINDOW + 0x80,
        RAM..RAM + 0x5000,
        Just(NOWHERE),
        CHANNEL..CHANNEL + 0x2100,
        any::<u64>()
    ];
    let size = prop_oneof![Just(1_u8), Just(2), Just(4), Just(8)];
    let action = prop_oneof![
        4 => (0..3_000_u64).prop_map(Action::Compute),
        8 => (number, prop::array::uniform6(small)).prop_map(|(number, arguments)| Action::Hypercall(number, arguments)),
        6 => message_call(),
        4 => (0..9_u64).prop_map(|sides| call(Operation::ChannelDoorbell, &[LINK, sides])),
        3 => (address.clone(), size.clone()).prop_map(|(address, size)| Action::Read { address, size }),
        3 => (address, size, any::<u64>()).prop_map(|(address, size, value)| Action::Write { address, size, value }),
        2 => (0..END).prop_map(|time| Action::SetTimer(Some(time))),
        2 => Just(Action::Idle),
        2 => Just(Action::Acknowledge),
        2 => any::<u8>().prop_map(Action::Send),
        2 => (any::<u8>(), any::<u64>()).prop_map(|(target, entry)| Action::CpuOn(target, entry, 0)),
        1 => any::<u8>().prop_map(Action::CpuPower),
        1 => Just(Action::CpuOff),
        1 => prop_oneof![Just(ResetKind::Cold), Just(ResetKind::Warm)].prop_map(Action::Reset),
        1 => (1..=5_u8).prop_map(|class| Action::Fault(FaultReport {
            class: HealthClass::from_number(class).unwrap_or(HealthClass::Memory),
            syndrome: 1,
            pc: 2,
            address: Some(GuestPhys(3)),
            virtual_address: None,
        })),
    ];
    prop::collection::vec(action, 1..60)
}

fn hostile(actions: Vec<Action>, start: usize) -> impl FnMut(Outcome, u64) -> Action {
    let mut step = start;
    move |_, _| {
        step += 1;
        // The CPU refuses an address that would wrap before the address gets anywhere.
        match actions[step % actions.len()] {
            Action::Read { address, size } => Action::Read {
                address: address % (1 << 40),
                size,
            },
            Action::Write { address, size, value } => Action::Write {
                address: address % (1 << 40),
                size,
                value,
            },
            action => action,
        }
    }
}

fn critical() -> impl FnMut(Outcome, u64) -> Action {
    let mut step = 0;
    let mut due = 0;
    move |last, now| {
        step += 1;
        match (step % 4, last) {
            (1, _) => {
                due = (now / PERIOD + 1) * PERIOD;
                Action::SetTimer(Some(due))
            }
            (2, _) => Action::Idle,
            (3, _) => Action::Acknowledge,
            (_, Outcome::Interrupt(Some(TIMER))) => Action::Mark(now - due),
            _ => {
                step = 1;
                Action::Compute(1)
            }
        }
    }
}

fn parts(health: [HealthAction; 5], peers: Rights) -> Vec<Part> {
    let with = |part: Part, number: u32| {
        part.with(|part| part.health[1..6].copy_from_slice(&health.map(|action| action as u8)))
            .cap(1, ObjectKind::Partition, 3 - number, peers)
            .cap(2, ObjectKind::EventGate, number, Rights::ALL)
            .cap(3, ObjectKind::EventGate, 3 - number, Rights::ALL)
            .cap(4, ObjectKind::Timer, 0, Rights::READ)
            .cap(5, ObjectKind::Console, number, Rights::ALL)
            .cap(6, ObjectKind::Port, 0, Rights::ALL)
            .cap(7, ObjectKind::Port, 1, Rights::ALL)
            .cap(LINK as u32, ObjectKind::Channel, 0, Rights::ALL)
            .cap(9, ObjectKind::Service, 2, Rights::ALL)
            .with(|part| {
                part.watches = vec![3 - number];
                part.watchdog_ns = 70_000;
            })
    };
    vec![
        vm("control", &[(0, 30)]),
        with(vm("smp", &[(0, 4), (1, 4)]), 1),
        with(task("task", 1, 6), 2),
    ]
}

fn action() -> impl Strategy<Value = HealthAction> {
    prop_oneof![
        Just(HealthAction::Log),
        Just(HealthAction::Inject),
        Just(HealthAction::Stop),
        Just(HealthAction::Restart),
        Just(HealthAction::RestartWarm)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, rng_seed: proptest::test_runner::RngSeed::Fixed(42), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_a_partition_does_disturbs_the_critical_one(
        actions in actions(),
        health in prop::array::uniform5(action()),
        peers in 1..16_u8,
        seed in 0..2_u64,
    ) {
        let mut image = tables(2, &parts(health, Rights(peers)));
        for (name, depth) in [("first", 2_u32), ("second", 0)] {
            image.ports.push(PortRecord {
 name: Name::new(name).unwrap(),
 ..port(64, depth)
 });
        }
        let side = |partition: u32, line: u32, event: u32| At {
            partition,
            guest: CHANNEL,
            held: false,
            writes: true,
            line,
            event,
        };
        // The critical one has a side that rings on a line it never looks at.
        add_channel(&mut image, "shared", 0x2000, &[side(0, 61, NONE), side(1, 62, NONE), side(2, NONE, 9)]);
        image.served.push(ServedRecord {
            client: 1.into(),
            server: 2.into(),
            guest: WINDOW.into(),
            size: 0x1000.into(),
            grant: RAM.into(),
            grant_size: 0x1000.into(),
            timeout_ns: 20_000.into(),
            virtual_line: 40.into(),
            event: 9.into(),
            flags: (SERVED_WRITES | SERVED_VIRTIO).into(),
            reserved: 0.into(),
        });
        let mut bench = Bench::with_image(2, image.build().unwrap());
        bench.seed(seed);
        bench.program(0, |_| critical());
        for vcpu in 1..=3 {
            let actions = actions.clone();
            bench.program(vcpu, move |_| hostile(actions.clone(), usize::from(vcpu) * 7));
        }
        bench.run(END);
        prop_assert!(!bench.look().powered_off);
        prop_assert!(bench.look().halted.is_empty());
        let late = bench.marks(0);
        prop_assert_eq!(late.len() as u64, (END - 1) / PERIOD, "missed a release");
        prop_assert!(late.iter().all(|late| *late < LATENESS), "{:?}", late);
        prop_assert_eq!(bench.records(|what| *what == What::Detach(VcpuId(0))).len(), 0);
        prop_assert!(bench.log().len() < 800, "{} lines", bench.log().len());
    }
}
