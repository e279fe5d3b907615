// SPDX-License-Identifier: Apache-2.0
//! Calls of a debugger: the console, the name and the end of a VM.

use crate::support::{Bench, RAM, tables_of, vm};
use bulkhead_arch_api::{GuestPhys, HostCall, Reply};
use bulkhead_arch_sim::{Action, External, LikeArmv7m, Outcome, script};
use bulkhead_sched::AnyPolicy;

/// Stores a text at the beginning of RAM, then makes `calls`, and marks each answer.
fn caller(text: &'static [u8; 8], calls: &'static [HostCall]) -> impl FnMut(Outcome, u64) -> Action {
    let mut step = 0;
    let mut marks = std::collections::VecDeque::new();
    move |last, _| {
        if let Outcome::Replied(Reply::Host(answer)) = last {
            marks.push_back(Action::Mark(answer.into()));
        }
        if let Some(mark) = marks.pop_front() {
            return mark;
        }
        step += 1;
        match step {
            1 => Action::Write {
                address: RAM,
                size: 8,
                value: u64::from_le_bytes(*text),
            },
            step => calls
                .get(step - 2)
                .map_or(Action::Idle, |call| Action::Host(*call)),
        }
    }
}

#[test]
fn what_a_vm_writes_is_on_its_console() {
    let mut bench = Bench::new(1, &[vm("vm", &[(0, 5)])]);
    const CALLS: &[HostCall] = &[
        HostCall::Write(GuestPhys(RAM), 8),
        HostCall::Write(GuestPhys(RAM + 4), 4),
        HostCall::Name(GuestPhys(RAM), 32),
        HostCall::Write(GuestPhys(RAM), 2),
        HostCall::Name(GuestPhys(RAM), 2),
        HostCall::Write(GuestPhys(RAM), 1),
    ];
    bench.program(0, |_| caller(b"a line.\n", CALLS));
    bench.run(100_000_000);
    assert_eq!(bench.marks(0), [8, 4, 3, 2, 2, 1]);
    assert_eq!(bench.console("vm"), "a line.\nne.\nvmv");
}

#[test]
fn who_has_no_input_waits_and_others_run() {
    let parts = [vm("reads", &[(0, 9)]), vm("other", &[(0, 5)])];
    let mut bench = Bench::new(1, &parts);
    bench.program(0, |_| {
        caller(b"........", &[HostCall::ReadByte, HostCall::Failed(9)])
    });
    bench.program(1, |_| script([Action::Compute(10_000), Action::Mark(1)]));
    bench.run(100_000_000);
    assert_eq!(bench.marks(1), [1]);
    assert!(!bench.logged("exit code"));
}

#[test]
fn what_is_typed_between_a_line_and_the_first_read_is_kept() {
    let image = tables_of::<LikeArmv7m>(1, &[vm("vm", &[(0, 5)])])
        .build()
        .unwrap();
    let mut bench = Bench::<AnyPolicy, LikeArmv7m>::with_policies(1, image);
    bench.program(0, |_| {
        let mut step = 0;
        move |last: Outcome, _| {
            step += 1;
            match (step, last) {
                (1, _) => Action::Host(HostCall::Write(GuestPhys(RAM), 8)),
                (2, _) => Action::Compute(1_000_000),
                (3, _) => Action::Host(HostCall::ReadByte),
                (4, Outcome::Replied(Reply::Host(byte))) => Action::Mark(byte.into()),
                _ => Action::Idle,
            }
        }
    });
    for (byte, n) in b"\x1evm\x1fk".iter().zip(0..) {
        let time = 500_000 + n * 1_000;
        bench.world().schedule(time, External::Input(*byte));
    }
    bench.run(100_000_000);
    assert_eq!(bench.marks(0), [u64::from(b'k')]);
}

#[test]
fn a_vm_that_ends_with_an_error_has_failed() {
    let mut bench = Bench::new(1, &[vm("vm", &[(0, 5)])]);
    bench.program(0, |_| caller(b"........", &[HostCall::Failed(0x2_0023)]));
    bench.run(1_000_000);
    assert!(
        bench.logged("partition vm: exit code 0x20023"),
        "{:?}",
        bench.log()
    );
    assert!(bench.logged("partition vm: failed"));
}
