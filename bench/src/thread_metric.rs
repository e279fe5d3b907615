// SPDX-License-Identifier: Apache-2.0
//! Thread-Metric: threads of an RTOS that do one thing over and over (`guests/bench/thread-metric`), on the
//! bare board, in a VM, and in a VM that shares its pCPU in turns with another VM that is always busy.
//!
//! The guest runs each test for a multiple of the frame of the turns, so exactly half of that time is the
//! VM's window. A turn loses the switch, and the ticks that the RTOS makes up for.

use super::runs::{Figures, Results, counting, measure_bare, prepare, run};
use bulkhead::build::artifacts::Workspace;
use bulkhead::problem::Problem;
use bulkhead::ui::progress::Progress;
use bulkhead_manifest::Board;
use bulkhead_manifest::board::Emulator;

/// The program, and the beginning of the name of each of its figures.
const PROGRAM: &str = "guest-thread-metric";
const TEST: &str = "thread-metric-";
/// The beginning of the keys of the means.
const MEAN: &str = "thread-metric-mean";
/// The mean on the bare board, in whose parts the other means are.
const WHOLE: u64 = 100_000;
/// Lengths of a turn, in milliseconds. The time of a test is a multiple of twice each of them.
const TURNS: [u32; 4] = [20, 10, 5, 1];

/// Adds the figures of the tests, and the means.
pub(super) fn measure(
    board: &Board,
    emulator: &Emulator,
    progress: &Progress,
    results: &mut Results,
) -> Result<(), Problem> {
    let alone = prepare(&system(&board.name, None), progress)?;
    let mut shared = Vec::new();
    for turn in TURNS {
        shared.push((turn, prepare(&system(&board.name, Some(turn)), progress)?));
    }
    progress.step("measuring Thread-Metric", || {
        let mut clocked = emulator.clone();
        clocked.bare = counting(emulator, &emulator.bare).arguments;
        let bare = measure_bare(&clocked, &Workspace::locate()?.program(PROGRAM), &[1])?;
        let hypervised = run(emulator, &alone)?;
        let mut means = vec![("alone".to_owned(), mean(&bare, &hypervised, 1))];
        for (turn, system) in &shared {
            means.push((format!("{turn}ms"), mean(&bare, &run(emulator, system)?, 2)));
        }
        for (name, mean) in means {
            results.bare.insert(format!("{MEAN}-{name}"), WHOLE);
            results.hypervised.insert(format!("{MEAN}-{name}"), mean?);
        }
        results.bare.extend(bare);
        results.hypervised.extend(hypervised);
        Ok(())
    })
}

/// Returns the mean of the times that tests take, each as a part of its time on the bare board. The VM has
/// one of so many `shares` of the time.
fn mean(bare: &Figures, hypervised: &Figures, shares: u64) -> Result<u64, Problem> {
    let tests = bare.iter().filter(|(name, _)| name.starts_with(TEST));
    let parts = tests.map(|(name, bare)| {
        let found = hypervised.get(name).filter(|_| *bare > 0);
        let found = found.ok_or_else(|| Problem::new(format!("the guest did not report `{name}`")))?;
        Ok(found / shares * WHOLE / bare)
    });
    let parts = parts.collect::<Result<Vec<_>, Problem>>()?;
    let count = parts.len().max(1) as u64;
    Ok(parts.iter().sum::<u64>() / count)
}

/// Returns the system: the VM alone, or in turns of so many milliseconds.
fn system(board: &str, turn: Option<u32>) -> String {
    let mut text = format!(
        "board = \"{board}\"\n{}",
        partition("rtos", "thread-metric", "16M")
    );
    if let Some(turn) = turn {
        text += &partition("other", "noisy", "1M");
        text += &format!(
            "[pcpu.0]\npolicy = \"arinc653\"\n[pcpu.0.schedule.only]\nframe = \"{}ms\"\nwindows = [\n\
             {{ partition = \"rtos\", offset = \"0ms\", duration = \"{turn}ms\" }},\n\
             {{ partition = \"other\", offset = \"{turn}ms\", duration = \"{turn}ms\" }},\n]\n",
            turn.saturating_mul(2)
        );
    }
    text
}

fn partition(name: &str, image: &str, memory: &str) -> String {
    format!(
        "[partition.{name}]\nkind = \"vm\"\nimage = \"@guests/{image}\"\nmemory = \"{memory}\"\n\
         vcpus = [{{ pcpu = 0 }}]\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_is_of_the_parts_and_not_of_the_times() {
        let figures = |times: [u64; 2]| {
            let named = ["thread-metric-a", "thread-metric-b"].map(str::to_owned);
            named.into_iter().zip(times).collect::<Figures>()
        };
        let bare = figures([1_000_000, 1_000]);
        // The first test takes 2 % more, the second 4 %.
        assert_eq!(mean(&bare, &figures([2_040_000, 2_080]), 2).unwrap(), 103_000);
        assert!(mean(&bare, &Figures::new(), 1).is_err());
    }
}
