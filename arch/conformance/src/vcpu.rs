// SPDX-License-Identifier: Apache-2.0
//! vCPUs: what makes them exit, how exits are answered, interrupts, faults, reset, and turns.

use crate::{At, Bench, Ground, Outcome, Role, Step, ensure};
use bulkhead_abi::Error;
use bulkhead_arch_api::{AccessKind, Exit, FaultReport, Reply, Vcpus};

const VM: Role = Role::Vm;
const CALL: u16 = 0x123;

fn first_argument<B: Bench>(ground: &mut Ground<'_, B>, role: Role) -> Result<u64, &'static str> {
    match ground.run(role)? {
        Exit::Hypercall(call) if call.operation == CALL => Ok(call.arguments.first().copied().unwrap_or(0)),
        Exit::Hypercall(_) => Err("a hypercall arrives with another number"),
        _ => Err("a hypercall does not arrive"),
    }
}

/// Checks that the next exit is a load of `size` bytes, so many after nowhere; it takes `value`, and the
/// next hypercall shows it.
fn takes_answer<B: Bench>(ground: &mut Ground<'_, B>, size: u8, offset: u64, value: u64) -> Outcome {
    let nowhere = ground.address(VM, At::Nowhere(offset));
    let Exit::Access(access) = ground.run(VM)? else {
        return Err("a load from nowhere is no access exit");
    };
    ensure(access.kind == AccessKind::Read, "a load arrives as a store")?;
    ensure(access.size == size, "a load arrives with another size")?;
    ensure(access.address == nowhere, "a load arrives with another address")?;
    ground.reply(VM, Reply::Read(value));
    ensure(
        first_argument(ground, VM)? == value,
        "the guest does not get the value it was given",
    )?;
    ground.reply(VM, Reply::Hypercall(Err(Error::NoRight)));
    Ok(())
}

pub(crate) fn load_exits<B: Bench>(ground: &mut Ground<'_, B>) -> Outcome {
    ground.start(
        VM,
        &[
            Step::Load(At::Nowhere(3), 1),
            Step::Call(CALL),
            Step::Load(At::Nowhere(6), 2),
            Step::Call(CALL),
            Step::Load(At::Nowhere(12), 4),
            Step::Call(CALL),
        ],
    )?;
    takes_answer(ground, 1, 3, 0xF1)?;
    takes_answer(ground, 2, 6, 0xF1F2)?;
    takes_answer(ground, 4, 12, 0xF1F2_F3F4)
}

pub(crate) fn wide_load_exits<B: Bench>(ground: &mut Ground<'_, B>) -> Outcome {
    ground.start(VM, &[Step::Load(At::Nowhere(24), 8), Step::Call(CALL)])?;
    takes_answer(ground, 8, 24, 0xF1F2_F3F4_F5F6_F7F8)
}

/// Checks that the next exit is a store of `size` bytes of `value` to nowhere.
fn stores<B: Bench>(ground: &mut Ground<'_, B>, size: u8, value: u64) -> Outcome {
    let nowhere = ground.address(VM, At::Nowhere(0));
    let Exit::Access(access) = ground.run(VM)? else {
        return Err("a store to nowhere is no access exit");
    };
    ensure(
        access.kind == AccessKind::Write(value),
        "a store arrives with another value",
    )?;
    ensure(access.size == size, "a store arrives with another size")?;
    ensure(access.address == nowhere, "a store arrives with another address")?;
    ground.reply(VM, Reply::Written);
    Ok(())
}

pub(crate) fn store_exits<B: Bench>(ground: &mut Ground<'_, B>) -> Outcome {
    ground.start(
        VM,
        &[
            Step::Store(At::Nowhere(0), 1, 0xA1),
            Step::Store(At::Nowhere(0), 2, 0xA1A2),
            Step::Store(At::Nowhere(0), 4, 0xA1A2_A3A4),
            Step::Call(CALL),
        ],
    )?;
    stores(ground, 1, 0xA1)?;
    stores(ground, 2, 0xA1A2)?;
    stores(ground, 4, 0xA1A2_A3A4)?;
    first_argument(ground, VM).map(|_| ())
}

pub(crate) fn wide_store_exits<B: Bench>(ground: &mut Ground<'_, B>) -> Outcome {
    const VALUE: u64 = 0xA1A2_A3A4_A5A6_A7A8;
    ground.start(VM, &[Step::Store(At::Nowhere(0), 8, VALUE), Step::Call(CALL)])?;
    stores(ground, 8, VALUE)?;
    first_argument(ground, VM).map(|_| ())
}

pub(crate) fn hypercall<B: Bench>(ground: &mut Ground<'_, B>) -> Outcome {
    const RESULT: u64 = 0x1234_5678_9ABC_DEF0;
    let seen = RESULT & u64::MAX >> 64_u32.saturating_sub(ground.bench.register_bits());
    for role in [VM, Role::Task] {
        ground.start(role, &[Step::Call(CALL), Step::Call(CALL), Step::Call(CALL)])?;
        ensure(
            first_argument(ground, role)? == 0,
            "a hypercall arrives with another argument",
        )?;
        ground.reply(role, Reply::Hypercall(Ok([RESULT, 0, 0, 0])));
        ensure(
            first_argument(ground, role)? == seen,
            "the first result does not arrive",
        )?;
        ground.reply(role, Reply::Hypercall(Err(Error::NoRight)));
        ensure(
            first_argument(ground, role)? == seen,
            "a call that failed has a result",
        )?;
    }
    Ok(())
}

fn a_report(access: &Exit) -> Result<FaultReport, &'static str> {
    match access {
        Exit::Access(access) => Ok(access.report),
        Exit::Fault(report) => Ok(*report),
        _ => Err("an access to nowhere does not exit"),
    }
}

pub(crate) fn fault_in_vm<B: Bench>(ground: &mut Ground<'_, B>) -> Outcome {
    ground.start(VM, &[Step::Load(At::Nowhere(0), 4)])?;
    let exit = ground.run(VM)?;
    let report = a_report(&exit)?;
    ensure(
        report.address == Some(ground.address(VM, At::Nowhere(0))),
        "the report of an access names another address",
    )?;
    ensure(
        ground.machine().fault(VM.vcpu(), &report),
        "a fault cannot be reflected into a VM",
    )
}

pub(crate) fn fault_in_task<B: Bench>(ground: &mut Ground<'_, B>) -> Outcome {
    ground.start(Role::Task, &[Step::Load(At::Nowhere(0), 4)])?;
    let exit = ground.run(Role::Task)?;
    let report = a_report(&exit)?;
    ensure(
        !ground.machine().fault(Role::Task.vcpu(), &report),
        "a fault was reflected into a task, which has nowhere to take it",
    )
}

pub(crate) fn idle_and_inject<B: Bench>(ground: &mut Ground<'_, B>) -> Outcome {
    let (of, vcpu, line) = (VM.partition(), VM.vcpu(), ground.bench.line());
    ground.start(VM, &[Step::Accept, Step::Idle, Step::Idle, Step::Call(CALL)])?;
    ensure(!ground.machine().has_work(vcpu), "a fresh vCPU has work")?;
    ensure(
        matches!(ground.run(VM)?, Exit::Idle { .. }),
        "a guest without work does not exit as idle",
    )?;
    let wake = ground.machine().inject(of, line);
    ensure(wake.contains(vcpu), "the interrupt wakes somebody else")?;
    ensure(ground.machine().has_work(vcpu), "an interrupt is no work")
}

pub(crate) fn withdraws<B: Bench>(ground: &mut Ground<'_, B>) -> Outcome {
    let (of, vcpu, line) = (VM.partition(), VM.vcpu(), ground.bench.line());
    ground.start(VM, &[Step::Accept, Step::Idle, Step::Idle])?;
    ground.run(VM)?;
    ground.machine().inject(of, line);
    ground.machine().withdraw(of, line);
    ensure(
        !ground.machine().has_work(vcpu),
        "an interrupt that is gone is work",
    )?;
    ensure(
        matches!(ground.run(VM)?, Exit::Idle { .. }),
        "an interrupt that is gone ends waiting",
    )
}

pub(crate) fn reset_shared<B: Bench>(ground: &mut Ground<'_, B>) -> Outcome {
    const STEPS: &[Step] = &[Step::Accept, Step::Idle];
    let (of, vcpu, line) = (VM.partition(), VM.vcpu(), ground.bench.line());
    ground.start(VM, STEPS)?;
    ground.run(VM)?;
    ground.machine().inject(of, line);
    ensure(ground.machine().has_work(vcpu), "an interrupt is no work")?;
    ground.machine().detach(vcpu);
    ground.reset_all_shared(VM);
    ground.reset(VM, STEPS);
    ensure(
        !ground.machine().has_work(vcpu),
        "an interrupt outlives the reset",
    )?;
    ensure(
        matches!(ground.run(VM)?, Exit::Idle { .. }),
        "an interrupt outlives the reset until it is accepted",
    )
}

pub(crate) fn starts_anew<B: Bench>(ground: &mut Ground<'_, B>) -> Outcome {
    const STEPS: &[Step] = &[
        Step::Store(At::Nowhere(0), 4, 1),
        Step::Store(At::Nowhere(0), 4, 2),
    ];
    ground.start(VM, STEPS)?;
    for value in [1, 2] {
        let exit = ground.run(VM)?;
        ensure(
            matches!(exit, Exit::Access(access) if access.kind == AccessKind::Write(value)),
            "the guest does not go on",
        )?;
        if value == 1 {
            ground.reply(VM, Reply::Written);
        }
    }
    // The second exit stays unanswered: the reset drops it.
    ground.start(VM, STEPS)?;
    let exit = ground.run(VM)?;
    ensure(
        matches!(exit, Exit::Access(access) if access.kind == AccessKind::Write(1)),
        "the guest does not start anew",
    )
}

pub(crate) fn take_turns<B: Bench>(ground: &mut Ground<'_, B>) -> Outcome {
    const STEPS: &[Step] = &[
        Step::Call(CALL),
        Step::Call(CALL),
        Step::Call(CALL),
        Step::Call(CALL),
    ];
    for pair in [(VM, 0x100), (Role::Task, 0x300)].map(|other| [other, (Role::Other, 0x200)]) {
        for (role, _) in pair {
            ground.start(role, STEPS)?;
        }
        for turn in 0..4 {
            for (role, own) in pair {
                let expected = if turn == 0 { 0 } else { own + turn };
                ensure(
                    first_argument(ground, role)? == expected,
                    "a register changed while another vCPU ran",
                )?;
                ground.reply(role, Reply::Hypercall(Ok([own + turn + 1, 0, 0, 0])));
            }
        }
    }
    Ok(())
}

pub(crate) fn asks_for_reset<B: Bench>(ground: &mut Ground<'_, B>) -> Outcome {
    ground.start(VM, &[Step::Reset])?;
    ensure(
        matches!(ground.run(VM)?, Exit::Reset(_)),
        "the wish for a reset does not arrive",
    )
}

pub(crate) fn switches_off<B: Bench>(ground: &mut Ground<'_, B>) -> Outcome {
    ground.start(VM, &[Step::Off])?;
    ensure(
        matches!(ground.run(VM)?, Exit::CpuOff),
        "a vCPU that switches itself off does not say so",
    )
}
