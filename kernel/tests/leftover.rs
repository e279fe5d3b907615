// SPDX-License-Identifier: Apache-2.0
//! Output and lines that are left for later leave in time, even if something interrupts between a decision
//! and its step.

use crate::support::{Bench, NOWHERE, UART, task, vm};
use bulkhead_abi::HealthClass;
use bulkhead_arch_sim::{Action, Guest, Outcome, script};
use bulkhead_image::layout::HealthAction;
use bulkhead_kernel::dispatch::Next;

/// Computes for so many ticks, writes a prompt without an end of line, and computes on.
fn prompting(ticks: u64) -> impl Guest {
    let mut step = 0;
    move |_: Outcome, _| {
        step += 1;
        match step {
            1 => Action::Compute(ticks),
            2 => Action::Write {
                address: UART,
                size: 4,
                value: u64::from(b'#'),
            },
            _ => Action::Compute(1_000_000_000),
        }
    }
}

#[test]
fn a_prompt_appears_although_a_key_is_pressed_just_then() {
    let mut bench = Bench::new(1, &[vm("vm", &[(0, 5)])]);
    bench.program(0, |_| prompting(5_000_000));
    bench.run(5_500_000);
    let mut keys = 1;
    bench.disturb(move |next| next == Next::Chore && std::mem::take(&mut keys) == 1);
    bench.run(100_000_000);
    assert_eq!(bench.console("vm"), "#");
}

/// Boots a VM that prints a prompt, a partition that fails three times, and `watchers` tasks that are told of
/// its states, on one pCPU. The prompt comes after `ticks`. `disturbs` presses keys. Returns the board after
/// all is over.
fn noisy((watchers, ticks): (usize, u64), disturbs: impl FnMut(Next) -> bool + 'static) -> Bench {
    let names = ["w1", "w2", "w3", "w4", "w5", "w6", "w7", "w8", "w9", "wa"];
    let failing = vm("failing", &[(0, 20)])
        .action(HealthClass::Memory, HealthAction::Restart)
        .with(|part| part.restart_limit = 3);
    let mut parts = vec![vm("vm", &[(0, 5)]), failing];
    for name in &names[..watchers] {
        parts.push(task(name, 0, 10).with(|part| part.watches = vec![1]));
    }
    let mut bench = Bench::new(1, &parts);
    bench.program(0, move |_| prompting(ticks));
    bench.program(1, |_| {
        script(vec![
            Action::Compute(1_700_000),
            Action::Read {
                address: NOWHERE,
                size: 4,
            },
        ])
    });
    bench.disturb(disturbs);
    bench.run(100_000_000);
    bench
}

#[test]
fn no_line_and_no_prompt_is_left_behind_by_random_keys() {
    let quiet = noisy((7, 1_000), |_| false);
    assert!(quiet.logged("partition failing: failed"), "{:?}", quiet.log());
    for shape in [(0, 1_000), (1, 1_000), (5, 1_000), (7, 9_000_000), (10, 1_000)] {
        let lines = noisy(shape, |_| false).log();
        for seed in 1..40_u64 {
            let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let bench = noisy(shape, move |_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state.is_multiple_of(2 + seed % 5)
            });
            assert_eq!(bench.console("vm"), "#", "seed {seed}, {shape:?}");
            assert_eq!(
                bench.log().len(),
                lines.len(),
                "seed {seed}, {shape:?}: {:?}",
                bench.log()
            );
        }
    }
}
