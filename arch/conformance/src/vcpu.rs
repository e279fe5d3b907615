// SPDX-License-Identifier: Apache-2.0
//! Exits and replies, faults, interrupts, reset.

use crate::{Bench, NOWHERE, Outcome, Place, Step, ensure, run, start};
use bulkhead_abi::Error;
use bulkhead_arch_api::{
    AccessKind, Exit, FaultReport, GuestPhys, PartitionKind, Reply, Spaces, Vcpus, VirtualLine,
};

const LINE: VirtualLine = VirtualLine(40);
const CALL: u16 = 0x123;

fn first_argument<B: Bench>(bench: &mut B, place: Place) -> Result<u64, &'static str> {
    match run(bench, place)? {
        Exit::Hypercall(call) if call.operation == CALL => Ok(call.arguments.first().copied().unwrap_or(0)),
        Exit::Hypercall(_) => Err("a hypercall arrives with another number"),
        _ => Err("a hypercall does not arrive"),
    }
}

pub(crate) fn load_exits<B: Bench>(bench: &mut B, place: Place) -> Outcome {
    start(
        bench,
        place,
        PartitionKind::Vm,
        &[
            Step::Load(NOWHERE.0 + 3, 1),
            Step::Call(CALL),
            Step::Load(NOWHERE.0 + 6, 2),
            Step::Call(CALL),
            Step::Load(NOWHERE.0 + 12, 4),
            Step::Call(CALL),
            Step::Load(NOWHERE.0 + 24, 8),
            Step::Call(CALL),
        ],
    )?;
    for (size, offset, value) in [
        (1, 3, 0xF1),
        (2, 6, 0xF1F2),
        (4, 12, 0xF1F2_F3F4),
        (8, 24, 0xF1F2_F3F4_F5F6_F7F8),
    ] {
        let Exit::Access(access) = run(bench, place)? else {
            return Err("a load from nowhere is no access exit");
        };
        ensure(access.kind == AccessKind::Read, "a load arrives as a store")?;
        ensure(access.size == size, "a load arrives with another size")?;
        ensure(
            access.address == GuestPhys(NOWHERE.0 + offset),
            "a load arrives with another address",
        )?;
        bench.machine().reply(place.vcpu, Reply::Read(value));
        ensure(
            first_argument(bench, place)? == value,
            "the guest does not get the value it was given",
        )?;
        bench.machine().reply(place.vcpu, Reply::Hypercall(Ok([0; 4])));
    }
    Ok(())
}

pub(crate) fn store_exits<B: Bench>(bench: &mut B, place: Place) -> Outcome {
    start(
        bench,
        place,
        PartitionKind::Vm,
        &[
            Step::Store(NOWHERE.0, 1, 0xA1),
            Step::Store(NOWHERE.0, 2, 0xA1A2),
            Step::Store(NOWHERE.0, 4, 0xA1A2_A3A4),
            Step::Store(NOWHERE.0, 8, 0xA1A2_A3A4_A5A6_A7A8),
            Step::Call(CALL),
        ],
    )?;
    for (size, value) in [
        (1, 0xA1),
        (2, 0xA1A2),
        (4, 0xA1A2_A3A4),
        (8, 0xA1A2_A3A4_A5A6_A7A8),
    ] {
        let Exit::Access(access) = run(bench, place)? else {
            return Err("a store to nowhere is no access exit");
        };
        ensure(
            access.kind == AccessKind::Write(value),
            "a store arrives with another value",
        )?;
        ensure(access.size == size, "a store arrives with another size")?;
        bench.machine().reply(place.vcpu, Reply::Written);
    }
    first_argument(bench, place).map(|_| ())
}

pub(crate) fn hypercall<B: Bench>(bench: &mut B, place: Place) -> Outcome {
    start(
        bench,
        place,
        PartitionKind::Task,
        &[Step::Call(CALL), Step::Call(CALL), Step::Call(CALL)],
    )?;
    first_argument(bench, place)?;
    bench
        .machine()
        .reply(place.vcpu, Reply::Hypercall(Ok([0x1234_5678_9ABC, 0, 0, 0])));
    ensure(
        first_argument(bench, place)? == 0x1234_5678_9ABC,
        "the first result does not arrive",
    )?;
    bench
        .machine()
        .reply(place.vcpu, Reply::Hypercall(Err(Error::NoRight)));
    first_argument(bench, place).map(|_| ())
}

fn a_report(access: &Exit) -> Result<FaultReport, &'static str> {
    match access {
        Exit::Access(access) => Ok(access.report),
        Exit::Fault(report) => Ok(*report),
        _ => Err("an access to nowhere does not exit"),
    }
}

pub(crate) fn fault_in_vm<B: Bench>(bench: &mut B, place: Place) -> Outcome {
    start(
        bench,
        place,
        PartitionKind::Vm,
        &[Step::Load(NOWHERE.0, 4), Step::Off],
    )?;
    let exit = run(bench, place)?;
    let report = a_report(&exit)?;
    ensure(
        report.address == Some(NOWHERE),
        "the report of an access names another address",
    )?;
    ensure(
        bench.machine().fault(place.vcpu, &report),
        "a fault cannot be reflected into a VM",
    )
}

pub(crate) fn fault_in_task<B: Bench>(bench: &mut B, place: Place) -> Outcome {
    start(
        bench,
        place,
        PartitionKind::Task,
        &[Step::Load(NOWHERE.0, 4), Step::Off],
    )?;
    let exit = run(bench, place)?;
    let report = a_report(&exit)?;
    ensure(
        !bench.machine().fault(place.vcpu, &report),
        "a fault was reflected into a task, which has nowhere to take it",
    )
}

pub(crate) fn idle_and_inject<B: Bench>(bench: &mut B, place: Place) -> Outcome {
    start(
        bench,
        place,
        PartitionKind::Vm,
        &[Step::Idle, Step::Idle, Step::Off],
    )?;
    bench.accept(place, LINE);
    ensure(!bench.machine().has_work(place.vcpu), "a fresh vCPU has work")?;
    ensure(
        matches!(run(bench, place)?, Exit::Idle { .. }),
        "a guest without work does not exit as idle",
    )?;
    let wake = bench.machine().inject(place.partition, LINE);
    ensure(wake.contains(place.vcpu), "the interrupt wakes somebody else")?;
    ensure(bench.machine().has_work(place.vcpu), "an interrupt is no work")?;
    bench.machine().withdraw(place.partition, LINE);
    ensure(
        !bench.machine().has_work(place.vcpu),
        "an interrupt that is gone is work",
    )
}

/// Resets what the vCPUs share, in as many parts as the backend likes.
pub(crate) fn reset_all_shared<B: Bench>(bench: &mut B, place: Place) {
    let mut part = Some(0);
    while let Some(at) = part {
        part = bench.machine().reset_shared(place.partition, at);
    }
}

pub(crate) fn reset_shared<B: Bench>(bench: &mut B, place: Place) -> Outcome {
    start(bench, place, PartitionKind::Vm, &[Step::Idle])?;
    bench.accept(place, LINE);
    bench.machine().inject(place.partition, LINE);
    bench.machine().detach(place.vcpu);
    reset_all_shared(bench, place);
    let reset = bench.load(place, &[Step::Idle]);
    bench.machine().reset(place.vcpu, &reset);
    ensure(
        !bench.machine().has_work(place.vcpu),
        "an interrupt outlives the reset",
    )
}

pub(crate) fn starts_anew<B: Bench>(bench: &mut B, place: Place) -> Outcome {
    const STEPS: &[Step] = &[Step::Store(NOWHERE.0, 4, 1), Step::Store(NOWHERE.0, 4, 2)];
    start(bench, place, PartitionKind::Vm, STEPS)?;
    for value in [1, 2] {
        let exit = run(bench, place)?;
        ensure(
            matches!(exit, Exit::Access(access) if access.kind == AccessKind::Write(value)),
            "the guest does not go on",
        )?;
        if value == 1 {
            bench.machine().reply(place.vcpu, Reply::Written);
        }
    }
    // The second exit stays unanswered: the reset drops it.
    bench.machine().detach(place.vcpu);
    reset_all_shared(bench, place);
    let reset = bench.load(place, STEPS);
    bench.machine().reset(place.vcpu, &reset);
    let exit = run(bench, place)?;
    ensure(
        matches!(exit, Exit::Access(access) if access.kind == AccessKind::Write(1)),
        "the guest does not start anew",
    )
}
