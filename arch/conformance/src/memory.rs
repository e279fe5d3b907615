// SPDX-License-Identifier: Apache-2.0
//! Spaces: build, copy, clear, protect, and what the guest sees of it.

use crate::{At, Bench, Ground, Outcome, PAGE, RAM_SIZE, RECORDS, Role, Step, behind, ensure};
use bulkhead_arch_api::{
    Arch, BuildError, CopyError, Exit, GuestPhys, PartitionId, Permissions, Region, Reply, SpacePlan, Spaces,
};

const VM: Role = Role::Vm;

fn at(base: GuestPhys, offset: u64) -> GuestPhys {
    GuestPhys(base.0.wrapping_add(offset))
}

fn store<B: Bench>(ground: &mut Ground<'_, B>, role: Role, to: At, bytes: &[u8]) -> Outcome {
    let to = ground.address(role, to);
    let stored = ground.machine().copy_out(role.partition(), to, bytes);
    stored.map_err(|_| "a copy out was refused")
}

/// Clears all of `length` bytes, a part at a time.
fn clear_all<A: Spaces>(
    machine: &mut A,
    of: PartitionId,
    from: GuestPhys,
    length: u64,
) -> Result<(), CopyError> {
    let mut done = 0;
    while done < length {
        // A part is never empty; if it were, the check of parts would say so.
        done += machine.clear(of, at(from, done), length - done)?.max(1);
    }
    Ok(())
}

/// Builds a space of these regions, for a partition without devices.
fn build<B: Bench>(
    ground: &mut Ground<'_, B>,
    of: PartitionId,
    regions: &[Region],
) -> Result<(), BuildError> {
    let plan = SpacePlan { regions, lines: 0 };
    ground.machine().build(of, &plan, core::iter::empty())
}

fn fetch<B: Bench>(ground: &mut Ground<'_, B>, role: Role, from: At, bytes: &mut [u8]) -> Outcome {
    let from = ground.address(role, from);
    let fetched = ground.machine().copy_in(role.partition(), from, bytes);
    fetched.map_err(|_| "a copy in was refused")
}

pub(crate) fn copies<B: Bench>(ground: &mut Ground<'_, B>) -> Outcome {
    ground.build(VM)?;
    for (offset, length) in [(0, 1), (3, 7), (PAGE - 5, 11), (2 * PAGE - 1, 2), (0, 64)] {
        let sent: [u8; 64] = core::array::from_fn(|index| index as u8 ^ 0x5A);
        let sent = sent.get(..length).unwrap_or(&[]);
        store(ground, VM, At::Ram(offset), sent)?;
        let mut got = [0; 64];
        let got = got.get_mut(..length).unwrap_or(&mut []);
        fetch(ground, VM, At::Ram(offset), got)?;
        ensure(sent == got, "a copy changed its bytes")?;
    }
    store(ground, VM, At::Constant(0), b"constant")
        .map_err(|_| "the hypervisor cannot write what the partition may only read")
}

pub(crate) fn copy_bounds<B: Bench>(ground: &mut Ground<'_, B>) -> Outcome {
    ground.build(VM)?;
    let of = VM.partition();
    for (from, first_bad) in [
        (At::Ram(RAM_SIZE - 4), At::Ram(RAM_SIZE)),
        (At::Ram(RAM_SIZE), At::Ram(RAM_SIZE)),
        (At::Nowhere(0), At::Nowhere(0)),
        (At::Ram(u64::MAX), At::Ram(u64::MAX)),
        (At::Constant(PAGE - 1), At::Constant(PAGE)),
    ] {
        let (from, first_bad) = (ground.address(VM, from), ground.address(VM, first_bad));
        let mut bytes = [0; 16];
        let refused = |result: Result<(), CopyError>| result.is_err_and(|error| error.address == first_bad);
        let machine = ground.machine();
        ensure(
            refused(machine.copy_in(of, from, &mut bytes)),
            "a copy in across a border is not refused at it",
        )?;
        ensure(
            refused(machine.copy_out(of, from, &bytes)),
            "a copy out across a border is not refused at it",
        )?;
        ensure(
            refused(clear_all(machine, of, from, 16)),
            "clearing across a border is not refused at it",
        )?;
    }
    let last = GuestPhys(u64::MAX - 3);
    ensure(
        ground.machine().copy_in(of, last, &mut [0; 16]).is_err(),
        "a copy in across the end of all addresses is not refused",
    )?;
    fetch(ground, VM, At::Ram(RAM_SIZE - 16), &mut [0; 16]).map_err(|_| "a copy up to a border is refused")
}

/// Checks that RAM around a stretch that has been cleared is as [`fill`] made it, and the stretch zero.
fn is_clear<B: Bench>(ground: &mut Ground<'_, B>, (start, length): (u64, u64), around: u64) -> Outcome {
    for offset in start - around..start + length + around {
        let mut byte = [0x77];
        fetch(ground, VM, At::Ram(offset), &mut byte)?;
        let inside = offset >= start && offset < start + length;
        ensure(
            byte == [if inside { 0 } else { 0xFF }],
            "clearing missed its borders",
        )?;
    }
    Ok(())
}

fn fill<B: Bench>(ground: &mut Ground<'_, B>, (start, length): (u64, u64), around: u64) -> Outcome {
    for offset in start - around..start + length + around {
        store(ground, VM, At::Ram(offset), &[0xFF])?;
    }
    Ok(())
}

pub(crate) fn clears<B: Bench>(ground: &mut Ground<'_, B>) -> Outcome {
    const STRETCH: (u64, u64) = (PAGE - 9, 21);
    ground.build(VM)?;
    fill(ground, STRETCH, 11)?;
    let start = ground.address(VM, At::Ram(STRETCH.0));
    clear_all(ground.machine(), VM.partition(), start, STRETCH.1).map_err(|_| "clearing was refused")?;
    is_clear(ground, STRETCH, 11)
}

pub(crate) fn clears_in_parts<B: Bench>(ground: &mut Ground<'_, B>) -> Outcome {
    const STRETCH: (u64, u64) = (PAGE - 3, 700);
    ground.build(VM)?;
    fill(ground, STRETCH, 5)?;
    let mut done = 0;
    while done < STRETCH.1 {
        let next = ground.address(VM, At::Ram(STRETCH.0 + done));
        let part = ground
            .machine()
            .clear(VM.partition(), next, STRETCH.1 - done)
            .map_err(|_| "clearing a part was refused")?;
        ensure(part != 0, "clearing a part cleared nothing")?;
        done += part;
    }
    ensure(done == STRETCH.1, "clearing in parts cleared too much")?;
    is_clear(ground, STRETCH, 5)
}

/// The rights of a partition to a byte of its space, as the kernel asks for them.
#[derive(PartialEq)]
enum Rights {
    None,
    Load,
    LoadAndStore,
    StoreOnly,
}

fn rights<B: Bench>(ground: &mut Ground<'_, B>, guest: GuestPhys) -> Rights {
    let machine = ground.machine();
    match [false, true].map(|is_store| machine.may_access(VM.partition(), guest, 1, is_store)) {
        [false, false] => Rights::None,
        [true, false] => Rights::Load,
        [true, true] => Rights::LoadAndStore,
        [false, true] => Rights::StoreOnly,
    }
}

pub(crate) fn accesses<B: Bench>(ground: &mut Ground<'_, B>) -> Outcome {
    ground.build(VM)?;
    for offset in [0, 1, PAGE - 1, PAGE, RAM_SIZE - 1] {
        let inside = ground.address(VM, At::Ram(offset));
        ensure(
            rights(ground, inside) == Rights::LoadAndStore,
            "a partition may not access its RAM",
        )?;
    }
    let constant = ground.address(VM, At::Constant(8));
    ensure(
        rights(ground, constant) == Rights::Load,
        "a partition has other rights to its second region than it was given",
    )?;
    for nothing in [
        ground.address(VM, At::Ram(u64::MAX)),
        ground.address(VM, At::Ram(RAM_SIZE)),
        ground.address(VM, At::Nowhere(0)),
        ground.address(VM, At::Constant(PAGE)),
        GuestPhys(u64::MAX),
    ] {
        ensure(
            rights(ground, nothing) == Rights::None,
            "a partition may access an address outside all regions",
        )?;
    }
    Ok(())
}

pub(crate) fn refuses<B: Bench>(ground: &mut Ground<'_, B>) -> Outcome {
    let good = ground.space(Role::Refused).ram;
    let of = Role::Refused.partition();
    let limit = <B::Machine as Arch>::CAPS.guest_address_limit;
    let to = |guest| Region { guest, ..good };
    let bad = [
        Region { size: 0, ..good },
        Region {
            size: good.size + 1,
            ..good
        },
        to(at(good.guest, 8)),
        Region {
            host: behind(good.host, 8),
            ..good
        },
        Region {
            guest: at(good.guest, 8),
            host: behind(good.host, 8),
            ..good
        },
        to(GuestPhys(limit)),
        to(GuestPhys(limit - PAGE)),
        to(GuestPhys(0_u64.wrapping_sub(PAGE))),
    ];
    for region in bad {
        ensure(
            build(ground, of, &[region]) == Err(BuildError::BadRegion(region.guest)),
            "a bad region is not refused as such",
        )?;
    }
    let second = Region {
        guest: at(good.guest, good.size - PAGE),
        host: behind(good.host, good.size - PAGE),
        ..good
    };
    ensure(
        matches!(build(ground, of, &[good, second]), Err(BuildError::Overlap(_))),
        "overlapping regions are not refused as such",
    )
}

pub(crate) fn protects<B: Bench>(ground: &mut Ground<'_, B>) -> Outcome {
    const PROTECTED: At = At::Constant(8);
    const NOTHING: Permissions = Permissions {
        read: false,
        write: false,
        execute: false,
    };
    let of = VM.partition();
    ground.start(
        VM,
        &[Step::Load(PROTECTED, 4), Step::Call(7), Step::Load(PROTECTED, 4)],
    )?;
    // The guest has used the mapping before its rights go, so that a stale translation would show.
    ensure(
        matches!(ground.run(VM)?, Exit::Hypercall(_)),
        "memory made the guest exit",
    )?;
    ground.reply(VM, Reply::Hypercall(Ok([0; 4])));
    let page = ground.address(VM, At::Constant(0));
    let address = ground.address(VM, PROTECTED);
    ground.machine().protect(of, page, PAGE, NOTHING);
    ensure(
        rights(ground, address) == Rights::None,
        "a partition may access what it has no rights to",
    )?;
    store(ground, VM, PROTECTED, b"kept").map_err(|_| "a copy asks for the partition's rights")?;
    match ground.run(VM)? {
        Exit::Access(access) => ensure(access.address == address, "the exit names another address")?,
        Exit::Fault(_) => {}
        _ => return Err("the guest still reads what it has no rights to"),
    }
    let before = ground.space(VM).constant.permissions;
    ground.machine().protect(of, page, PAGE, before);
    ground.start(VM, &[Step::Load(PROTECTED, 4), Step::Call(7)])?;
    let Exit::Hypercall(call) = ground.run(VM)? else {
        return Err("rights that came back made the guest exit");
    };
    let [first, ..] = call.arguments;
    let mut word = *b"kept";
    in_order(ground, &mut word);
    ensure(
        first == u64::from(u32::from_be_bytes(word)),
        "the guest does not see what was copied out meanwhile",
    )
}

/// Turns a number whose high byte is first into what a guest has in memory, and back.
fn in_order<B: Bench>(ground: &Ground<'_, B>, number: &mut [u8]) {
    if !ground.bench.is_big_endian() {
        number.reverse();
    }
}

pub(crate) fn guest_sees_memory<B: Bench>(ground: &mut Ground<'_, B>) -> Outcome {
    const FROM: At = At::Ram(0x108);
    const TO: u64 = 0x110;
    ground.start(
        VM,
        &[
            Step::Store(At::Ram(TO), 4, 0x5566_7788),
            Step::Store(At::Ram(TO + 4), 2, 0x3344),
            Step::Store(At::Ram(TO + 6), 1, 0x22),
            Step::Store(At::Ram(TO + 7), 1, 0x11),
            Step::Load(FROM, 4),
            Step::Call(7),
        ],
    )?;
    let mut word = 0xDEAD_BEEF_u32.to_be_bytes();
    in_order(ground, &mut word);
    store(ground, VM, FROM, &word)?;
    let Exit::Hypercall(call) = ground.run(VM)? else {
        return Err("memory made the guest exit");
    };
    let [first, ..] = call.arguments;
    ensure(first == 0xDEAD_BEEF, "the guest does not see what was copied out")?;
    let mut bytes = [0; 8];
    fetch(ground, VM, At::Ram(TO), &mut bytes)?;
    let [word @ .., third, fourth, fifth, sixth] = &mut bytes;
    in_order(ground, word);
    let mut half = [*third, *fourth];
    in_order(ground, &mut half);
    ensure(
        (*word, half, *fifth, *sixth) == ([0x55, 0x66, 0x77, 0x88], [0x33, 0x44], 0x22, 0x11),
        "a copy in does not see what the guest stored",
    )
}

pub(crate) fn read_only<B: Bench>(ground: &mut Ground<'_, B>) -> Outcome {
    const WHERE: At = At::Constant(8);
    ground.start(
        VM,
        &[Step::Load(WHERE, 4), Step::Call(7), Step::Store(WHERE, 4, 0xBAD)],
    )?;
    store(ground, VM, WHERE, b"constant")?;
    let Exit::Hypercall(call) = ground.run(VM)? else {
        return Err("what may be read made the guest exit");
    };
    let [first, ..] = call.arguments;
    let mut word = *b"cons";
    in_order(ground, &mut word);
    ensure(
        first == u64::from(u32::from_be_bytes(word)),
        "the guest does not see what it may read",
    )?;
    ground.reply(VM, Reply::Hypercall(Ok([0; 4])));
    let exit = ground.run(VM)?;
    ensure(
        matches!(exit, Exit::Access(_) | Exit::Fault(_)),
        "a forbidden store does not exit",
    )?;
    let mut bytes = [0; 8];
    fetch(ground, VM, WHERE, &mut bytes)?;
    ensure(&bytes == b"constant", "a forbidden store took effect")
}

pub(crate) fn foreign<B: Bench>(ground: &mut Ground<'_, B>) -> Outcome {
    const SECRET: &[u8; 4] = b"mine";
    const LOADS: &[Step] = &[Step::Load(At::Foreign(RECORDS + 0xF00), 4)];
    const STORES: &[Step] = &[Step::Store(At::Foreign(RECORDS + 0xF00), 4, 0xBAD)];
    // The other VM has run, and is current, when this one reaches for its memory.
    ground.start(Role::Other, &[Step::Call(7)])?;
    store(ground, Role::Other, At::Ram(RECORDS + 0xF00), SECRET)?;
    for role in [VM, Role::Task] {
        for steps in [LOADS, STORES] {
            ground.start(Role::Other, &[Step::Call(7)])?;
            ground.run(Role::Other)?;
            ground.start(role, steps)?;
            let exit = ground.run(role)?;
            ensure(
                matches!(exit, Exit::Access(_) | Exit::Fault(_)),
                "an access to another partition's memory does not exit",
            )?;
        }
    }
    let mut bytes = [0; 4];
    fetch(ground, Role::Other, At::Ram(RECORDS + 0xF00), &mut bytes)?;
    ensure(&bytes == SECRET, "another partition's memory has changed")
}
