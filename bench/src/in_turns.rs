// SPDX-License-Identifier: Apache-2.0
//! Programs of an RTOS on the bare board, in a VM, and in a VM that shares its pCPU in turns with another VM
//! that is always busy: Thread-Metric (`guests/bench/thread-metric`, threads that do one thing over and over)
//! and the automotive programs of MiBench (`guests/bench/mibench`).
//!
//! Only the VM's own half of the time counts. So a turn loses the switch, and the ticks that the RTOS makes
//! up for. A test of Thread-Metric runs for a multiple of the frame of the turns, so exactly half of its time
//! is the VM's. The programs of MiBench run to their end, and each begins at the end of a turn.

use super::runs::{Figures, Results, counting, measure_bare, prepare, run};
use bulkhead::build::artifacts::Workspace;
use bulkhead::problem::Problem;
use bulkhead::ui::progress::Progress;
use bulkhead_manifest::Board;
use bulkhead_manifest::board::Emulator;

/// A program with several tests.
struct Program {
    /// The name of its image.
    image: &'static str,
    /// The title for people.
    title: &'static str,
    /// The beginning of the name of each of its figures.
    test: &'static str,
    /// Returns the VM's own share of a time, by the milliseconds of a turn.
    own: fn(u64, u32) -> u64,
}

const PROGRAMS: [Program; 2] = [
    Program {
        image: "thread-metric",
        title: "Thread-Metric",
        test: "thread-metric-",
        own: |ticks, _| ticks / 2,
    },
    Program {
        image: "mibench",
        title: "MiBench",
        test: "mibench-",
        own: after_a_turn,
    },
];

/// The end of the beginning of the keys of the means.
const MEAN: &str = "mean";
/// The mean on the bare board, in whose parts the other means are.
const WHOLE: u64 = 100_000;
/// Lengths of a turn, in milliseconds. The time of a test of Thread-Metric is a multiple of twice each of
/// them.
const TURNS: [u32; 4] = [20, 10, 5, 1];
/// Ticks of the counter in a millisecond.
const MILLISECOND: u64 = 1_000_000;

/// Returns the VM's own share of a time that begins at the end of its turn, if each has turns of so many
/// milliseconds.
fn after_a_turn(ticks: u64, turn: u32) -> u64 {
    let turn = u64::from(turn) * MILLISECOND;
    let (frames, rest) = (ticks / (2 * turn), ticks % (2 * turn));
    frames * turn + rest.saturating_sub(turn)
}

/// The machine that runs the programs, bare and as a VM.
pub(crate) struct Setting<'a> {
    pub(crate) board: &'a Board,
    pub(crate) emulator: &'a Emulator,
    pub(crate) progress: &'a Progress,
    /// Returns the tables of a VM with a program of this name. The VM is `rtos`.
    pub(crate) vm: fn(&str) -> String,
    /// The tables of the busy VM, which is `other`.
    pub(crate) other: &'a str,
    /// Runs a program of this name on the bare board.
    pub(crate) bare: &'a dyn Fn(&str) -> Result<Figures, Problem>,
}

/// Adds the figures of the tests of all programs, and the means.
pub(super) fn measure(
    board: &Board,
    emulator: &Emulator,
    progress: &Progress,
    results: &mut Results,
) -> Result<(), Problem> {
    let mut clocked = emulator.clone();
    clocked.bare = counting(emulator, &emulator.bare).arguments;
    let setting = Setting {
        board,
        emulator,
        progress,
        vm: |image| partition("rtos", image, "16M"),
        other: &partition("other", "noisy", "1M"),
        bare: &|image| {
            let program = Workspace::locate()?.program(&format!("guest-{image}"));
            measure_bare(&clocked, &program, &[1])
        },
    };
    measure_on(&setting, results)
}

/// Adds the figures of the programs on the machine of a class.
pub(crate) fn measure_on(setting: &Setting<'_>, results: &mut Results) -> Result<(), Problem> {
    let mut programs = PROGRAMS.iter();
    programs.try_for_each(|program| program.measure(setting, results))
}

impl Program {
    fn measure(&self, setting: &Setting<'_>, results: &mut Results) -> Result<(), Problem> {
        let alone = prepare(&self.system(setting, None), setting.progress)?;
        let mut shared = Vec::new();
        for turn in TURNS {
            shared.push((
                turn,
                prepare(&self.system(setting, Some(turn)), setting.progress)?,
            ));
        }
        let emulator = setting.emulator;
        setting.progress.step(&format!("measuring {}", self.title), || {
            let bare = (setting.bare)(self.image)?;
            let hypervised = run(emulator, &alone)?;
            let mut means = vec![("alone".to_owned(), self.mean(&bare, &hypervised, |ticks| ticks))];
            for (turn, system) in &shared {
                let own = |ticks| (self.own)(ticks, *turn);
                means.push((
                    format!("{turn}ms"),
                    self.mean(&bare, &run(emulator, system)?, own),
                ));
            }
            for (name, mean) in means {
                let key = format!("{}{MEAN}-{name}", self.test);
                results.bare.insert(key.clone(), WHOLE);
                results.hypervised.insert(key, mean?);
            }
            results.bare.extend(bare);
            results.hypervised.extend(hypervised);
            Ok(())
        })
    }

    /// Returns the mean of the VM's `own` shares of the times that tests take, each as a part of its time on
    /// the bare board.
    fn mean(&self, bare: &Figures, hypervised: &Figures, own: impl Fn(u64) -> u64) -> Result<u64, Problem> {
        let tests = bare.iter().filter(|(name, _)| name.starts_with(self.test));
        let parts = tests.map(|(name, bare)| {
            let found = hypervised.get(name).filter(|_| *bare > 0);
            let found = found.ok_or_else(|| Problem::new(format!("the guest did not report `{name}`")))?;
            Ok(own(*found) * WHOLE / bare)
        });
        let parts = parts.collect::<Result<Vec<_>, Problem>>()?;
        let count = parts.len().max(1) as u64;
        Ok(parts.iter().sum::<u64>() / count)
    }

    /// Returns the system: the VM alone, or in turns of so many milliseconds.
    fn system(&self, setting: &Setting<'_>, turn: Option<u32>) -> String {
        let mut text = format!("board = \"{}\"\n{}", setting.board.name, (setting.vm)(self.image));
        if let Some(turn) = turn {
            text += setting.other;
            text += &format!(
                "[pcpu.0]\npolicy = \"arinc653\"\n[pcpu.0.schedule.only]\nframe = \"{}ms\"\nwindows = [\n\
                 {{ partition = \"rtos\", offset = \"0ms\", duration = \"{turn}ms\" }},\n\
                 {{ partition = \"other\", offset = \"{turn}ms\", duration = \"{turn}ms\" }},\n]\n",
                turn.saturating_mul(2)
            );
        }
        text
    }
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
        let [program, _] = PROGRAMS;
        let mean = |found, own: fn(u64) -> u64| program.mean(&bare, found, own);
        // The first test takes 2 % more, the second 4 %.
        let shared = figures([2_040_000, 2_080]);
        assert_eq!(mean(&shared, |ticks| ticks / 2).unwrap(), 103_000);
        assert!(mean(&Figures::new(), |ticks| ticks).is_err());
    }

    #[test]
    fn a_time_after_a_turn_has_the_other_ones_turn_first() {
        for (ticks, own) in [
            (900_000, 0),
            (1_200_000, 200_000),
            (2_000_000, 1_000_000),
            (2_700_000, 1_000_000),
            (5_500_000, 2_500_000),
        ] {
            assert_eq!(after_a_turn(ticks, 1), own, "{ticks}");
        }
    }
}
