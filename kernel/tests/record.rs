// SPDX-License-Identifier: Apache-2.0
//! The record that the hypervisor leaves in RAM, and its use by the next life.

use crate::support::{Bench, NOWHERE, caller, log_text, vm};
use bulkhead_abi::log::{
    Area, CRASH_LOCKDOWN, CRASH_NEW, CRASH_TOLD, ENTRIES, ENTRY_SIZE, LINE_MAX, MAGIC, NONE, RING_SIZE,
};
use bulkhead_abi::{HealthClass, PartitionState};
use bulkhead_arch_sim::Action;
use bulkhead_image::layout::HealthAction;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

const READ: Action = Action::Read {
    address: NOWHERE,
    size: 4,
};

fn bench(area: &'static Area) -> Bench {
    let parts = [
        vm("one", &[(0, 5)]).action(HealthClass::Memory, HealthAction::Log),
        vm("two", &[(0, 4)]),
    ];
    let bench = Bench::new(1, &parts);
    bench.world().log_area = area;
    bench.program(0, |_| caller(vec![READ, Action::Compute(1000), READ]));
    bench
}

fn area() -> &'static Area {
    Box::leak(Box::new(Area::new()))
}

fn noise(area: &Area) {
    for (place, value) in area.ring.iter().flatten().zip(1_u64..) {
        place.store(value.wrapping_mul(0x9E37_79B9_7F4A_7C15), Relaxed);
    }
    area.header.written.store(u64::MAX - 3, Relaxed);
    area.header.reserved.store(77, Relaxed);
    area.header.boots.store(12345, Relaxed);
    area.crash.state.store(CRASH_NEW, Relaxed);
}

#[test]
fn the_ring_holds_what_the_console_showed_and_a_reset_keeps_it() {
    let area = area();
    let mut first = bench(area);
    first.run(1_000_000);
    let lines = log_text(area);
    for line in first.console("bulkhead").lines() {
        assert!(lines.contains(line), "{line}\nis not in\n{lines}");
    }
    assert_eq!(area.header.boots.load(Relaxed), 1);
    assert!(
        !first.logged("boot 1"),
        "nothing is worth telling of the first life"
    );
    let mut second = bench(area);
    second.run(1_000_000);
    assert!(
        second.logged("boot 2, the log of earlier ones is kept"),
        "{:?}",
        second.log()
    );
    assert!(log_text(area).starts_with(&lines));
    assert_eq!(area.header.boots.load(Relaxed), 2);
}

#[test]
fn garbage_is_not_taken_for_a_log() {
    let area = area();
    noise(area);
    let mut bench = bench(area);
    bench.run(100_000);
    assert_eq!(area.header.magic.load(Relaxed), MAGIC);
    assert_eq!(area.header.boots.load(Relaxed), 1);
    assert!(!bench.logged("crashed"));
    assert!(log_text(area).starts_with("[0.000000] Bulkhead test class sim\n"));
}

#[test]
fn a_line_that_power_loss_cut_off_leaves_only_whole_ones() {
    let area = area();
    bench(area).run(100_000);
    let before = log_text(area);
    let header = &area.header;
    let written = header.written.load(Relaxed);
    header.reserved.store(written + 2 * ENTRY_SIZE as u64, Relaxed);
    area.ring[written as usize / ENTRY_SIZE % ENTRIES][1].store(u64::MAX, Relaxed);
    bench(area).run(100_000);
    let after = log_text(area);
    let rest = after.strip_prefix(&before).unwrap();
    assert!(rest.starts_with("[0.000000] Bulkhead"), "{rest}");
    header.reserved.store(
        header.written.load(Relaxed) + (LINE_MAX + ENTRY_SIZE) as u64,
        Relaxed,
    );
    bench(area).run(100_000);
    assert_eq!(header.boots.load(Relaxed), 1, "positions that make no sense");
}

#[test]
fn a_full_ring_loses_its_oldest_lines() {
    let area = area();
    for _ in 0..200 {
        bench(area).run(20_000);
    }
    let lines = log_text(area);
    let written = area.header.written.load(Relaxed);
    assert!(written > 2 * RING_SIZE as u64, "{written}");
    assert!(lines.contains("boot 200, ") && !lines.contains("boot 2, "));
    assert!(
        lines.lines().skip(1).all(|line| line.starts_with("[0.")),
        "{lines}"
    );
}

#[test]
fn counters_tell_what_happened() {
    let area = area();
    bench(area).run(1_000_000);
    let (partition, vcpu) = (&area.partitions[0], &area.vcpus[0]);
    assert_eq!(partition.events[HealthClass::Memory as usize].load(Relaxed), 2);
    assert_eq!(partition.state.load(Relaxed), PartitionState::Running as u32);
    let name: Vec<u8> = partition
        .name
        .iter()
        .map(|byte: &AtomicU8| byte.load(Relaxed))
        .collect();
    assert!(name.starts_with(b"one\0"));
    assert_eq!(vcpu.exits.accesses.load(Relaxed), 2);
    assert!(vcpu.exits.idle.load(Relaxed) >= 1);
    let (ran, idle) = (vcpu.ran.load(Relaxed), area.pcpus[0].idle.load(Relaxed));
    assert!(ran >= 1000, "{ran}");
    assert_eq!(area.pcpus[0].running.load(Relaxed), NONE);
    let since = area.pcpus[0].since.load(Relaxed);
    assert!(ran + idle <= since, "{ran} + {idle} of {since}");
}

#[test]
fn a_lockdown_is_told_in_the_next_life_once() {
    let area = area();
    let mut broken = Bench::with_image(1, vec![0; 4096]);
    broken.world().log_area = area;
    broken.run(100_000);
    assert_eq!(area.crash.state.load(Relaxed), CRASH_NEW);
    assert_eq!(area.crash.kind.load(Relaxed), CRASH_LOCKDOWN);
    assert!(log_text(area).contains("LOCKDOWN: "));
    let mut next = bench(area);
    next.run(100_000);
    assert!(
        next.logged("the hypervisor crashed in boot 1: LOCKDOWN: "),
        "{:?}",
        next.log()
    );
    assert_eq!(area.crash.state.load(Relaxed), CRASH_TOLD);
    let mut after = bench(area);
    after.run(100_000);
    assert!(!after.logged("crashed"));
}

#[test]
fn registers_that_find_no_room_are_left_out() {
    let area = area();
    let parts = ["a", "b", "c", "d", "e", "f"]
        .map(|name| vm(name, &[(0, 5)]).action(HealthClass::Memory, HealthAction::Log));
    let mut bench = Bench::new(1, &parts);
    bench.world().log_area = area;
    bench.world().transmitter_depth = 0;
    for vcpu in 0..6 {
        bench.program(vcpu, |_| caller(vec![READ; 16]));
    }
    bench.run(10_000_000);
    let lines = log_text(area);
    let count = |what: &str| lines.matches(what).count();
    let (whole, left_out) = (count(" pc="), count(" left out, others are being written\n"));
    assert!(count("health: ") >= 50, "the oldest are overwritten");
    assert!(left_out != 0 && whole >= 30, "{whole} and {left_out}\n{lines}");
}
