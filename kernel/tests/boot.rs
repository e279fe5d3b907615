// SPDX-License-Identifier: Apache-2.0
//! The way from power-on to running partitions, and to lockdown.

use crate::support::{self, Bench, RAM, UART, tables, task, vm};
use bulkhead_arch_api::{PartitionId, PcpuId};
use bulkhead_arch_sim::{Action, What, script};
use bulkhead_arch_sim::{LikeAarch64, SimClass};
use bulkhead_image::layout::NONE;

fn two() -> Vec<support::Part> {
    vec![
        vm("first", &[(0, 5)]).with(|part| part.payload = (1..=200).collect()),
        task("second", 1, 5),
    ]
}

#[test]
fn two_partitions_start_on_two_pcpus() {
    let mut bench = Bench::new(2, &two());
    bench.program(0, |reset| {
        script([Action::Mark(reset.entry.0), Action::Mark(reset.stack)])
    });
    bench.program(1, |reset| {
        script([Action::Mark(reset.argument), Action::Mark(reset.stack)])
    });
    bench.run(1_000_000);
    assert_eq!(bench.marks(0), [RAM, 0]);
    assert_eq!(bench.marks(1), [RAM, RAM + 0x4000]);
    assert!(bench.logged("partition first: running"));
    assert!(bench.logged("partition second: running"));
    assert!(bench.logged("Bulkhead test"));
}

#[test]
fn memory_is_cleared_and_payloads_are_in_place_before_the_first_instruction() {
    let mut bench = Bench::new(2, &two());
    bench.program(0, |_| {
        let mut step = 0;
        move |last, _| {
            step += 1;
            match (step, last) {
                (1, _) => Action::Read {
                    address: RAM,
                    size: 8,
                },
                (2, bulkhead_arch_sim::Outcome::Value(value)) => Action::Mark(value),
                (3, _) => Action::Read {
                    address: RAM + 196,
                    size: 8,
                },
                (4, bulkhead_arch_sim::Outcome::Value(value)) => Action::Mark(value),
                _ => Action::Idle,
            }
        }
    });
    bench.run(1_000_000);
    assert_eq!(bench.marks(0), [0x0807_0605_0403_0201, 0x0000_0000_c8c7_c6c5]);
}

#[test]
fn a_vm_prints_through_its_uart_and_a_task_by_hypercall() {
    let mut bench = Bench::new(1, &[vm("vm", &[(0, 5)])]);
    bench.program(0, |_| {
        script(b"hello\n".map(|byte| Action::Write {
            address: UART,
            size: 4,
            value: byte.into(),
        }))
    });
    bench.run(1_000_000);
    assert_eq!(bench.console("vm"), "hello\n");
}

#[test]
fn a_flipped_bit_ends_in_lockdown_before_anything_runs() {
    let mut bytes = tables(2, &two()).build().unwrap();
    let last = bytes.iter().rposition(|byte| *byte == 200).unwrap();
    bytes[last] ^= 1;
    let mut bench = Bench::with_image(2, bytes);
    bench.run(1_000_000);
    assert!(bench.logged("LOCKDOWN: payload 0 \"first\""), "{:?}", bench.log());
    assert!(bench.records(|what| !matches!(what, What::Arm(_))).is_empty());
    assert_eq!(bench.look().halted.len(), 1);
}

#[test]
fn a_truncated_image_and_one_of_another_class_end_in_lockdown() {
    let bytes = tables(2, &two()).build().unwrap();
    let mut bench = Bench::with_image(2, bytes[..bytes.len() - 1].to_vec());
    bench.run(1_000);
    assert!(
        bench.log().iter().any(|line| line.starts_with("LOCKDOWN: ")),
        "{:?}",
        bench.log()
    );

    let mut other = tables(2, &two());
    other.class = LikeAarch64::FACTS;
    let mut bench = Bench::with_image(2, other.build_unchecked());
    bench.run(1_000);
    assert!(
        bench
            .log()
            .iter()
            .any(|line| line.starts_with("LOCKDOWN: ") && line.contains("class 1,")),
        "{:?}",
        bench.log()
    );
}

#[test]
fn a_space_that_cannot_be_built_and_a_pcpu_that_does_not_start_end_in_lockdown() {
    let mut bench = Bench::new(2, &two());
    bench.world().build_error = Some(PartitionId(1));
    bench.run(1_000_000);
    assert!(bench.logged("LOCKDOWN: space of partition 1: no memory left for translation tables"));

    let mut bench = Bench::new(2, &two());
    bench.world().start_error = Some(PcpuId(1));
    bench.run(1_000_000);
    assert!(bench.logged("LOCKDOWN: pCPU 1 did not start, firmware says -2"));
    assert!(
        bench.records(|what| matches!(what, What::Switch(_))).is_empty(),
        "nothing has run"
    );
}

#[test]
fn with_all_partitions_stopped_the_board_goes_off() {
    let mut bench = Bench::new(2, &two());
    bench.program(0, |_| {
        script([
            Action::Compute(500),
            Action::Reset(bulkhead_arch_api::ResetKind::Off),
        ])
    });
    bench.program(1, |_| script([Action::Compute(90_000), Action::CpuOff]));
    bench.run(10_000_000);
    assert!(bench.look().powered_off);
    assert_eq!(bench.log().last().unwrap(), "all partitions stopped");
    assert!(bench.logged("partition first: stopped"));
}

#[test]
fn a_system_without_autostart_has_nothing_to_do() {
    let parts: Vec<_> = two()
        .into_iter()
        .map(|part| part.with(|part| part.autostart = false))
        .collect();
    let mut bench = Bench::new(2, &parts);
    bench.run(10_000_000);
    assert!(bench.look().powered_off);
    assert!(bench.logged("all partitions stopped"));
}

#[test]
fn the_time_limit_ends_the_run() {
    let mut image = tables(1, &[vm("busy", &[(0, 1)])]);
    assert_eq!(image.board.stop_after_ms.get(), NONE);
    image.board.stop_after_ms = 2.into();
    let mut bench = Bench::with_image(1, image.build().unwrap());
    bench.program(0, |_| |_, _| Action::Compute(1_000));
    bench.run(10_000_000);
    assert!(bench.look().powered_off);
    assert_eq!(bench.log().last().unwrap(), "stopping: time limit");
    let off = bench.records(|what| *what == What::PowerOff);
    assert!((2_000_000..2_010_000).contains(&off[0].time), "{off:?}");
}
