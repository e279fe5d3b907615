// SPDX-License-Identifier: Apache-2.0
//! Spaces: build, translate, copy, clear, revoke, and what the guest sees of it.

use crate::{
    Bench, CONSTANT, NOWHERE, Outcome, PAGE, Place, RAM, RAM_SIZE, Step, build, ensure, regions, run, start,
};
use bulkhead_arch_api::{
    Arch, BuildError, Exit, GuestPhys, HostPhys, PartitionKind, Region, Reply, Spaces, Vcpus,
};

fn at(base: GuestPhys, offset: u64) -> GuestPhys {
    GuestPhys(base.0.wrapping_add(offset))
}

fn behind(base: HostPhys, offset: u64) -> HostPhys {
    HostPhys(base.0.wrapping_add(offset))
}

pub(crate) fn copies<B: Bench>(bench: &mut B, place: Place) -> Outcome {
    build(bench, place)?;
    let machine = bench.machine();
    for (offset, length) in [(0, 1), (3, 7), (PAGE - 5, 11), (2 * PAGE - 1, 2), (0, 64)] {
        let sent: [u8; 64] = core::array::from_fn(|index| index as u8 ^ 0x5A);
        let sent = sent.get(..length).unwrap_or(&[]);
        machine
            .copy_out(place.partition, at(RAM, offset), sent)
            .map_err(|_| "a copy out was refused")?;
        let mut got = [0; 64];
        let got = got.get_mut(..length).unwrap_or(&mut []);
        machine
            .copy_in(place.partition, at(RAM, offset), got)
            .map_err(|_| "a copy in was refused")?;
        ensure(sent == got, "a copy changed its bytes")?;
    }
    machine
        .copy_out(place.partition, CONSTANT, b"constant")
        .map_err(|_| "the hypervisor cannot write what the partition may only read")
}

pub(crate) fn copy_bounds<B: Bench>(bench: &mut B, place: Place) -> Outcome {
    build(bench, place)?;
    let machine = bench.machine();
    let end = at(RAM, RAM_SIZE);
    for (from, first_bad) in [
        (at(RAM, RAM_SIZE - 4), end),
        (end, end),
        (NOWHERE, NOWHERE),
        (at(RAM, u64::MAX), at(RAM, u64::MAX)),
        (at(CONSTANT, PAGE - 1), at(CONSTANT, PAGE)),
    ] {
        let mut bytes = [0; 16];
        let refused = |result: Result<(), bulkhead_arch_api::CopyError>| {
            result.is_err_and(|error| error.address == first_bad)
        };
        ensure(
            refused(machine.copy_in(place.partition, from, &mut bytes)),
            "a copy in across a border is not refused at it",
        )?;
        ensure(
            refused(machine.copy_out(place.partition, from, &bytes)),
            "a copy out across a border is not refused at it",
        )?;
        ensure(
            refused(machine.clear(place.partition, from, 16)),
            "clearing across a border is not refused at it",
        )?;
    }
    let last = GuestPhys(u64::MAX - 3);
    ensure(
        machine.copy_in(place.partition, last, &mut [0; 16]).is_err(),
        "a copy in across the end of all addresses is not refused",
    )?;
    ensure(
        machine
            .copy_in(place.partition, at(RAM, RAM_SIZE - 16), &mut [0; 16])
            .is_ok(),
        "a copy up to a border is refused",
    )
}

pub(crate) fn clears<B: Bench>(bench: &mut B, place: Place) -> Outcome {
    build(bench, place)?;
    let machine = bench.machine();
    let (start, length) = (PAGE - 9, 21);
    for offset in 0..40 {
        machine
            .copy_out(place.partition, at(RAM, PAGE - 20 + offset), &[0xFF])
            .map_err(|_| "a copy out was refused")?;
    }
    machine
        .clear(place.partition, at(RAM, start), length)
        .map_err(|_| "clearing was refused")?;
    for offset in PAGE - 20..PAGE + 20 {
        let mut byte = [0x77];
        machine
            .copy_in(place.partition, at(RAM, offset), &mut byte)
            .map_err(|_| "a copy in was refused")?;
        let inside = offset >= start && offset < start + length;
        ensure(
            byte == [if inside { 0 } else { 0xFF }],
            "clearing missed its borders",
        )?;
    }
    Ok(())
}

pub(crate) fn translates<B: Bench>(bench: &mut B, place: Place) -> Outcome {
    build(bench, place)?;
    let host = bench.memory(place.partition);
    let machine = bench.machine();
    for offset in [0, 1, PAGE - 1, PAGE, RAM_SIZE - 1] {
        ensure(
            machine.translate(place.partition, at(RAM, offset)) == Some(behind(host, offset)),
            "an address translates wrongly",
        )?;
    }
    ensure(
        machine.translate(place.partition, at(CONSTANT, 8)) == Some(behind(host, RAM_SIZE + 8)),
        "an address of the second region translates wrongly",
    )?;
    for address in [
        at(RAM, u64::MAX),
        at(RAM, RAM_SIZE),
        NOWHERE,
        at(CONSTANT, PAGE),
        GuestPhys(u64::MAX),
    ] {
        ensure(
            machine.translate(place.partition, address).is_none(),
            "an address outside all regions translates",
        )?;
    }
    Ok(())
}

pub(crate) fn refuses<B: Bench>(bench: &mut B, place: Place) -> Outcome {
    let [good, _] = regions(bench.memory(place.partition));
    let limit = <B::Machine as Arch>::CAPS.guest_address_limit;
    let bad = [
        Region { size: 0, ..good },
        Region {
            size: good.size + 1,
            ..good
        },
        Region {
            guest: at(good.guest, 8),
            ..good
        },
        Region {
            host: behind(good.host, 8),
            ..good
        },
        Region {
            guest: GuestPhys(limit),
            ..good
        },
        Region {
            guest: GuestPhys(limit - PAGE),
            ..good
        },
        Region {
            guest: GuestPhys(0_u64.wrapping_sub(PAGE)),
            ..good
        },
    ];
    let machine = bench.machine();
    for region in bad {
        ensure(
            machine.build(place.partition, &[region], None) == Err(BuildError::BadRegion(region.guest)),
            "a bad region is not refused as such",
        )?;
    }
    let second = Region {
        guest: at(good.guest, good.size - PAGE),
        ..good
    };
    ensure(
        matches!(
            machine.build(place.partition, &[good, second], None),
            Err(BuildError::Overlap(_))
        ),
        "overlapping regions are not refused as such",
    )
}

pub(crate) fn revokes<B: Bench>(bench: &mut B, place: Place) -> Outcome {
    const GONE: GuestPhys = GuestPhys(RAM.0 + PAGE);
    start(
        bench,
        place,
        PartitionKind::Vm,
        &[
            Step::Load(GONE.0 + 8, 4),
            Step::Call(7),
            Step::Load(GONE.0 + 8, 4),
            Step::Off,
        ],
    )?;
    // The guest has used the mapping before it is gone, so that a stale translation would show.
    ensure(
        matches!(run(bench, place)?, Exit::Hypercall(_)),
        "memory made the guest exit",
    )?;
    bench.machine().reply(place.vcpu, Reply::Hypercall(Ok([0; 4])));
    bench.machine().revoke(place.partition, GONE, PAGE);
    let machine = bench.machine();
    for (offset, there) in [
        (0, true),
        (PAGE - 1, true),
        (PAGE, false),
        (2 * PAGE - 1, false),
        (2 * PAGE, true),
    ] {
        ensure(
            machine.translate(place.partition, at(RAM, offset)).is_some() == there,
            "revoking missed its borders",
        )?;
    }
    ensure(
        machine.copy_in(place.partition, GONE, &mut [0; 4]).is_err(),
        "the hypervisor still reads revoked memory",
    )?;
    match run(bench, place)? {
        Exit::Access(access) => ensure(access.address == at(GONE, 8), "the exit names another address"),
        Exit::Fault(_) => Ok(()),
        _ => Err("the guest still reads revoked memory"),
    }
}

pub(crate) fn guest_sees_memory<B: Bench>(bench: &mut B, place: Place) -> Outcome {
    const FROM: u64 = RAM.0 + 0x108;
    const TO: u64 = RAM.0 + 0x110;
    start(
        bench,
        place,
        PartitionKind::Vm,
        &[
            Step::Store(TO, 8, 0x1122_3344_5566_7788),
            Step::Load(FROM, 4),
            Step::Call(7),
            Step::Off,
        ],
    )?;
    bench
        .machine()
        .copy_out(place.partition, GuestPhys(FROM), &0xDEAD_BEEF_u32.to_le_bytes())
        .map_err(|_| "a copy out was refused")?;
    let Exit::Hypercall(call) = run(bench, place)? else {
        return Err("memory made the guest exit");
    };
    let [first, ..] = call.arguments;
    ensure(first == 0xDEAD_BEEF, "the guest does not see what was copied out")?;
    let mut bytes = [0; 8];
    bench
        .machine()
        .copy_in(place.partition, GuestPhys(TO), &mut bytes)
        .map_err(|_| "a copy in was refused")?;
    ensure(
        u64::from_le_bytes(bytes) == 0x1122_3344_5566_7788,
        "a copy in does not see what the guest stored",
    )
}

pub(crate) fn read_only<B: Bench>(bench: &mut B, place: Place) -> Outcome {
    start(
        bench,
        place,
        PartitionKind::Vm,
        &[Step::Store(CONSTANT.0, 4, 0xBAD), Step::Off],
    )?;
    bench
        .machine()
        .copy_out(place.partition, CONSTANT, b"constant")
        .map_err(|_| "a copy out was refused")?;
    let exit = run(bench, place)?;
    ensure(
        matches!(exit, Exit::Access(_) | Exit::Fault(_)),
        "a forbidden store does not exit",
    )?;
    let mut bytes = [0; 8];
    bench
        .machine()
        .copy_in(place.partition, CONSTANT, &mut bytes)
        .map_err(|_| "a copy in was refused")?;
    ensure(&bytes == b"constant", "a forbidden store took effect")
}
