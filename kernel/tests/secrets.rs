// SPDX-License-Identifier: Apache-2.0
//! Secrets of partitions: from what is handed over to what a partition can take.

use crate::support::{Bench, Part, call, error_mark, marking, sleep, tables, task, vm};
use bulkhead_abi::log::HANDOVER_MAGIC;
use bulkhead_abi::measurement::Measurement;
use bulkhead_abi::status::{StartMode, StartOptions};
use bulkhead_abi::{Error, ObjectKind, Operation, Rights};
use bulkhead_arch_sim::Action;
use bulkhead_image::layout::{Name, SECRET_OF_DEVICE, SECRET_OF_PROGRAM, SECRET_OF_SYSTEM};
use bulkhead_image::{ImageBuilder, seal};
use std::sync::atomic::Ordering::Relaxed;

const SECRET: u64 = 1;
const CLOCK: u64 = 2;

/// Hands a device secret over, as a boot stage does.
fn hand_over(bench: &Bench, device: [u8; 32]) {
    let bytes = [&HANDOVER_MAGIC[..], &device].concat();
    let places = &bench.look().log_area.header.handover;
    for (place, word) in places.iter().zip(bytes.as_chunks::<4>().0) {
        place.store(u32::from_ne_bytes(*word), Relaxed);
    }
}

/// Gives a partition its secret and a clock.
fn owner(part: Part, number: u32) -> Part {
    part.cap(SECRET as u32, ObjectKind::Secret, number, Rights::READ)
        .cap(CLOCK as u32, ObjectKind::Timer, 0, Rights::READ)
        .with(|part| part.payload = b"program".to_vec())
}

/// Binds all secrets to this.
fn bind(image: &mut ImageBuilder, bound: u32) {
    for record in &mut image.capabilities {
        if record.kind.get() == ObjectKind::Secret as u32 {
            record.detail = bound.into();
        }
    }
}

fn take() -> Action {
    call(Operation::SecretTake, &[SECRET])
}

/// Returns the marks of partition 0 that takes its secret, on a device with this secret, and under the class
/// binary with this digest.
fn taken(image: &ImageBuilder, device: u8, class_binary: u8) -> Vec<u64> {
    let mut image = image.build().unwrap();
    seal(&mut image, [class_binary; 32]);
    let mut bench = Bench::with_image(1, image);
    hand_over(&bench, [device; 32]);
    bench.program(0, |_| marking(vec![take()]));
    bench.run(100_000);
    bench.marks(0)
}

fn two() -> Vec<Part> {
    vec![owner(vm("first", &[(0, 9)]), 0), owner(task("second", 0, 5), 1)]
}

#[test]
fn a_secret_is_taken_once_by_a_vm_and_by_a_task_and_differs() {
    let mut bench = Bench::new(1, &two());
    hand_over(&bench, [7; 32]);
    for vcpu in [0, 1] {
        bench.program(vcpu, |_| marking(vec![take(), take()]));
    }
    bench.run(100_000);
    let handed_over = &bench.look().log_area.header.handover;
    assert!(handed_over.iter().all(|word| word.load(Relaxed) == 0));
    let (first, second) = (bench.marks(0), bench.marks(1));
    for marks in [&first, &second] {
        assert_eq!(marks.len(), 5, "{:?}", bench.log());
        assert_eq!(marks[4], error_mark(Error::NoCapability));
        assert!(marks[..4].iter().all(|word| *word != 0));
    }
    assert_ne!(first[..4], second[..4]);
}

#[test]
fn a_secret_changes_with_what_it_is_bound_to() {
    let make = |bound: u32, change: fn(&mut ImageBuilder)| {
        let mut image = tables(1, &two());
        bind(&mut image, bound);
        change(&mut image);
        image
    };
    let changes: [fn(&mut ImageBuilder); 3] = [
        |image| image.payloads[0].bytes[0] ^= 1,
        |image| image.payloads[1].bytes[0] ^= 1,
        |image| image.partitions[0].uuid[0] ^= 1,
    ];
    for (bound, by_changes, by_binary) in [
        (SECRET_OF_DEVICE, [false, false, true], false),
        (SECRET_OF_PROGRAM, [true, false, true], false),
        (SECRET_OF_SYSTEM, [true, true, true], true),
    ] {
        let image = make(bound, |_| {});
        let before = taken(&image, 7, 1);
        assert_eq!(before.len(), 4);
        assert_eq!(taken(&image, 7, 1), before, "the next boot");
        assert_ne!(taken(&image, 8, 1), before, "another device");
        assert_eq!(taken(&image, 7, 2) != before, by_binary, "another class binary");
        for (number, (change, changed)) in changes.into_iter().zip(by_changes).enumerate() {
            let after = taken(&make(bound, change), 7, 1);
            assert_eq!(after != before, changed, "bound {bound}, change {number}");
        }
    }
}

#[test]
fn each_life_takes_the_same_secret_again() {
    for mode in [StartMode::Warm, StartMode::Cold] {
        let mut bench = Bench::new(1, &[owner(vm("first", &[(0, 9)]), 0)]);
        hand_over(&bench, [7; 32]);
        let again = StartOptions {
            mode,
            alternative: None,
            is_health: false,
        };
        bench.program(0, move |_| {
            marking(vec![
                take(),
                sleep(CLOCK, 50_000),
                call(Operation::PartitionRestart, &[0, again.encode()]),
            ])
        });
        bench.run(60_000);
        let marks = bench.marks(0);
        let lives: Vec<&[u64]> = marks.chunks(4).take(1).collect();
        assert!(
            marks.windows(4).filter(|window| *window == lives[0]).count() >= 2,
            "{marks:x?}"
        );
    }
}

#[test]
fn nothing_is_derived_granted_or_guessed() {
    let parts = [
        owner(vm("first", &[(0, 9)]), 0).cap(3, ObjectKind::Partition, 1, Rights::ALL),
        vm("second", &[(0, 5)]),
    ];
    let mut bench = Bench::new(1, &parts);
    hand_over(&bench, [7; 32]);
    bench.program(0, |_| {
        let right = u64::from(Rights::READ.0);
        marking(vec![
            call(Operation::CapabilityDerive, &[SECRET, right]),
            call(Operation::CapabilityGrant, &[3, SECRET, right]),
            call(Operation::CapabilityDelete, &[SECRET]),
            take(),
        ])
    });
    bench.program(1, |_| {
        marking(
            (0..3)
                .map(|index| call(Operation::SecretTake, &[index]))
                .collect(),
        )
    });
    bench.run(200_000);
    let wrong = error_mark(Error::WrongKind);
    let marks = bench.marks(0);
    assert_eq!(marks[..2], [wrong, wrong]);
    assert_eq!(marks.last(), Some(&error_mark(Error::NoCapability)));
    let none = error_mark(Error::NoCapability);
    assert_eq!(bench.marks(1), [wrong, none, none]);
}

#[test]
fn a_measurement_needs_the_right_to_look_at_the_partition() {
    let parts = [
        owner(vm("first", &[(0, 9)]), 0)
            .cap(3, ObjectKind::Partition, 1, Rights::READ)
            .cap(4, ObjectKind::Partition, 1, Rights::CONTROL),
        owner(vm("second", &[(0, 5)]), 1),
    ];
    let mut bench = Bench::new(1, &parts);
    hand_over(&bench, [7; 32]);
    let measure = |index: u64, what: u64| call(Operation::PartitionMeasure, &[index, what]);
    bench.program(0, move |_| {
        marking(vec![
            measure(0, Measurement::Partition as u64),
            measure(3, Measurement::Partition as u64),
            measure(3, Measurement::System as u64),
            measure(4, 0),
            measure(3, 3),
        ])
    });
    bench.run(100_000);
    let marks = bench.marks(0);
    assert_eq!(marks.len(), 14, "{marks:x?}");
    assert_eq!(marks[..4], marks[4..8], "both have the same program");
    assert_ne!(marks[4..8], marks[8..12]);
    let errors = [Error::NoRight, Error::InvalidArgument].map(error_mark);
    assert_eq!(marks[12..], errors);
}

#[test]
fn without_a_device_secret_nothing_runs() {
    let mut bench = Bench::new(1, &two());
    bench.program(0, |_| marking(vec![take()]));
    bench.run(100_000);
    assert!(
        bench.logged("LOCKDOWN: no device secret was handed over"),
        "{:?}",
        bench.log()
    );
    assert!(bench.marks(0).is_empty());
    let mut bench = Bench::new(1, &two());
    hand_over(&bench, [0; 32]);
    bench.run(100_000);
    assert!(bench.logged("LOCKDOWN: no device secret was handed over"));
    let mut bench = Bench::new(1, &[vm("first", &[(0, 9)])]);
    bench.program(0, |_| marking(vec![call(Operation::Version, &[])]));
    bench.run(100_000);
    assert!(!bench.marks(0).is_empty(), "a system without secrets needs none");
}

#[test]
fn a_forged_record_of_a_secret_is_refused() {
    let refused = |change: &dyn Fn(&mut ImageBuilder)| {
        let mut image = tables(1, &two());
        change(&mut image);
        assert!(image.build().is_err());
    };
    refused(&|image| image.capabilities[0].object = 1.into());
    refused(&|image| image.capabilities[0].detail = 3.into());
    refused(&|image| image.capabilities[0].rights = 3.into());
    refused(&|image| {
        let mut second = image.capabilities[0];
        second.index = 5.into();
        second.name = Name::new("second").unwrap();
        image.capabilities.insert(1, second);
    });
    refused(&|image| image.board.parts = 0.into());
}
