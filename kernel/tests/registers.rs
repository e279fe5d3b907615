// SPDX-License-Identifier: Apache-2.0
//! Device registers that share a page: the partitions that reach each register, and the stop of a device when
//! its owner ends.

use crate::support::{Bench, tables, vm};
use bulkhead_abi::HealthClass;
use bulkhead_arch_api::{Reply, ResetKind};
use bulkhead_arch_sim::{Action, Outcome, What};
use bulkhead_image::layout::{HealthAction, REGISTERS_FORWARDED, REGISTERS_QUIESCED, RegistersRecord};

/// The address at which both partitions see the page with the registers.
const PAGE: u64 = 0x0a00_3000;
/// The address of the page on the bus.
const BUS: u64 = 0x2000_3000;
const SIZE: u64 = 0x200;
const STATUS: u64 = 0x70;

/// Returns two partitions. Partition 0 owns the registers at 0x200, partition 1 those at 0x400. A write of 7
/// to STATUS stops a device.
fn bench() -> Bench {
    let parts =
        ["first", "second"].map(|name| vm(name, &[(0, 4)]).action(HealthClass::Memory, HealthAction::Log));
    let mut image = tables(1, &parts);
    for (partition, offset) in [(0_u32, SIZE), (1, 2 * SIZE)] {
        image.registers.push(RegistersRecord {
            partition: partition.into(),
            flags: (REGISTERS_FORWARDED | REGISTERS_QUIESCED).into(),
            guest: (PAGE + offset).into(),
            host: (BUS + offset).into(),
            size: SIZE.into(),
            quiesce_offset: (STATUS as u32).into(),
            quiesce_value: 7.into(),
            gate_offset: 0.into(),
            gate_bit: 0.into(),
        });
    }
    Bench::with_image(1, image.build().unwrap())
}

/// Does the actions one after the other, marks the values read, then idles.
fn accesses(actions: Vec<Action>) -> impl FnMut(Outcome, u64) -> Action {
    let mut actions = actions.into_iter();
    move |last, _| match last {
        Outcome::Replied(Reply::Read(value)) => Action::Mark(value),
        _ => actions.next().unwrap_or(Action::Idle),
    }
}

fn write(address: u64, size: u8, value: u64) -> Action {
    Action::Write { address, size, value }
}

fn read(address: u64, size: u8) -> Action {
    Action::Read { address, size }
}

#[test]
fn an_owner_reaches_its_registers_and_nothing_beside_them() {
    let mut bench = bench();
    bench.program(0, |_| {
        accesses(vec![
            write(PAGE + SIZE, 4, 0x1234_5678),
            read(PAGE + SIZE, 4),
            read(PAGE + SIZE, 1),
            write(PAGE + 2 * SIZE - 8, 8, 9),
            // Registers of the neighbours on both sides, accesses across the end, and one that is not
            // aligned: none is its own.
            write(PAGE + SIZE - 4, 4, 1),
            write(PAGE + 2 * SIZE, 4, 2),
            write(PAGE + 2 * SIZE - 4, 8, 3),
            write(PAGE + SIZE + 2, 4, 4),
            read(PAGE, 4),
        ])
    });
    bench.program(1, |_| accesses(vec![write(PAGE + 2 * SIZE, 4, 5)]));
    bench.run(1_000_000);
    assert_eq!(bench.marks(0), [0x1234_5678, 0x78, 0]);
    let registers = bench.look().registers.clone();
    let stops = [BUS + SIZE + STATUS, BUS + 2 * SIZE + STATUS];
    let written: Vec<(u64, u64)> = registers
        .into_iter()
        .filter(|(register, _)| !stops.contains(register))
        .collect();
    assert_eq!(
        written,
        [
            (BUS + SIZE, 0x1234_5678),
            (BUS + 2 * SIZE - 8, 9),
            (BUS + 2 * SIZE, 5)
        ]
    );
    // Four writes and one read were health events, and were only logged.
    let events = bench.log();
    let events = events
        .iter()
        .filter(|line| line.contains("health: partition=first"));
    assert_eq!(events.count(), 5, "{:?}", bench.log());
}

#[test]
fn a_device_is_stopped_before_its_owner_is_loaded_again() {
    let mut bench = bench();
    let status = PAGE + SIZE + STATUS;
    bench.program(0, move |_| {
        let mut step = 0;
        move |last, _| {
            step += 1;
            match (step, last) {
                (1, _) => read(status, 4),
                (2, Outcome::Replied(Reply::Read(value))) => Action::Mark(value),
                (3, _) => write(status, 4, 0xf),
                (4, _) => Action::Compute(1_000),
                _ => Action::Reset(ResetKind::Cold),
            }
        }
    });
    bench.program(1, move |_| {
        accesses(vec![write(PAGE + 2 * SIZE + STATUS, 4, 0xf)])
    });
    bench.run(300_000);
    let marks = bench.marks(0);
    assert!(marks.len() > 2, "{marks:?}");
    assert!(marks.iter().all(|mark| *mark == 7), "{marks:?}");
    assert!(
        bench
            .records(|what| matches!(what, What::Reset(vcpu) if vcpu.0 == 0))
            .len()
            > 2
    );
    assert_eq!(
        bench.look().registers[&(BUS + 2 * SIZE + STATUS)],
        0xf,
        "the neighbour's goes on"
    );
}
