// SPDX-License-Identifier: Apache-2.0
//! Notices a board whose clock stands still although its emulator computes.
//!
//! A run that counts instructions takes its clock from their number. An instruction that faults is not
//! counted. So a guest whose exception vectors cannot be fetched takes exception after exception and never
//! finishes an instruction. On hardware the hypervisor's timer interrupts such a guest. In such a run the
//! timer never comes, and all neighbours stand still with the guest. No CPU of the board tells that, so the
//! tool asks the emulator how many instructions it has counted.

use crate::emulator::monitor::Monitor;
use crate::log::log_area::{self, LogArea};
use std::time::{Duration, Instant};

/// The interval between two looks, and the silence of the board before the first one.
const EVERY: Duration = Duration::from_secs(1);
/// The processor time without a counted instruction from which on the clock is said to stand still. No
/// instruction takes so long, and no turn of a CPU: the longest has 100 ms of virtual time.
const ENOUGH: Duration = Duration::from_secs(5);
/// The ticks of `/proc/PID/stat` per second (`USER_HZ`, proc(5)).
const TICKS_PER_SECOND: u64 = 100;

/// A clock that stands still.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stall {
    /// The pCPUs on which a vCPU runs, each with the name of its partition and the address of the
    /// instruction, if the emulator tells it.
    pub running: Vec<Running>,
}

/// A vCPU that has a pCPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// The pCPU.
    pub pcpu: usize,
    /// The name of the partition.
    pub partition: String,
    /// The address of the instruction.
    pub pc: Option<u64>,
}

impl Stall {
    /// Returns the warning. The function `place` describes an address of a partition.
    #[must_use]
    pub fn text(&self, mut place: impl FnMut(&str, u64) -> Option<String>) -> String {
        let mut who = |running: &Running| {
            let Running { pcpu, partition, pc } = running;
            let at = match pc {
                Some(pc) => format!(
                    " at {pc:#x}{}",
                    place(partition, *pc).map_or(String::new(), |place| format!(" ({place})"))
                ),
                None => String::new(),
            };
            format!("pCPU {pcpu} runs `{partition}`{at}")
        };
        let all: Vec<String> = self.running.iter().map(&mut who).collect();
        let who = match all.as_slice() {
            [] => String::new(),
            [one] => format!(": {one}"),
            several => format!(": {}; one of them is to blame", several.join(", ")),
        };
        format!(
            "warning: the board's clock stands still, and so do all partitions{who}\n  \
             an instruction that faults again and again is never counted, such as the first one of a vector \
             table that the guest has not mapped\n  \
             this run counts instructions (docs/bugs.md): correct the guest's vectors, or let the clock and \
             the neighbours go on with --realtime"
        )
    }
}

/// Looks at the clock of a run.
#[derive(Debug)]
pub(super) struct ClockWatch {
    /// The emulator's process.
    pid: u32,
    /// When the board was looked at, or was heard, last.
    last: Instant,
    seen: Seen,
}

/// The findings of the looks.
#[derive(Debug, Default)]
struct Seen {
    /// Instructions counted at the last look that found more than the one before, and the processor time
    /// that the emulator had used then.
    progress: Option<(u64, Duration)>,
    /// True once the clock was found to stand still.
    is_told: bool,
}

impl Seen {
    /// Takes note of a look. Returns whether the clock has stood still for long, once.
    fn look(&mut self, instructions: u64, used: Duration) -> bool {
        let (before, since) = *self.progress.get_or_insert((instructions, used));
        if before != instructions {
            self.progress = Some((instructions, used));
            return false;
        }
        let stands = !self.is_told && used.saturating_sub(since) >= ENOUGH;
        self.is_told |= stands;
        stands
    }
}

impl ClockWatch {
    /// Watches the emulator of that process.
    pub(super) fn new(pid: u32) -> Self {
        Self {
            pid,
            last: Instant::now(),
            seen: Seen::default(),
        }
    }

    /// Notes that the board said something.
    pub(super) fn heard(&mut self) {
        self.last = Instant::now();
    }

    /// Returns the time until the next look.
    pub(super) fn patience(&self) -> Duration {
        EVERY.saturating_sub(self.last.elapsed())
    }

    /// Looks whether the clock stands still, and tells so once. `log_base` is the address of the log area.
    pub(super) fn look(&mut self, monitor: &mut Monitor, log_base: Option<u64>) -> Option<Stall> {
        if !self.patience().is_zero() || self.seen.is_told || monitor.is_off {
            return None;
        }
        self.last = Instant::now();
        // An emulator that does not say how much it counted cannot be watched.
        let instructions = monitor.instructions().ok()?;
        // The emulator's other threads are busy, too, if the board sleeps and no timer is armed.
        let threads = monitor.cpu_threads().ok()?.into_iter();
        let used = threads
            .map(|thread| processor_time(self.pid, thread))
            .sum::<Option<Duration>>()?;
        if !self.seen.look(instructions, used) {
            return None;
        }
        // With one CPU a turn can be longer than any limit. It ends here, and then the count is exact.
        let now = monitor.freeze().and_then(|()| monitor.instructions());
        monitor.go_on().ok()?;
        if now.ok()? != instructions {
            self.seen = Seen::default();
            return None;
        }
        Some(Stall {
            running: running(monitor, log_base),
        })
    }
}

/// Returns who has the pCPUs, by the log area and by the emulator's view of its CPUs.
fn running(monitor: &mut Monitor, log_base: Option<u64>) -> Vec<Running> {
    let area =
        log_base.and_then(|base| log_area::read(base, &mut |at, length| monitor.memory(at, length)).ok());
    let Some(area) = area.as_deref().and_then(LogArea::at_start) else {
        return Vec::new();
    };
    let pcs = monitor
        .registers()
        .map(|text| program_counters(&text))
        .unwrap_or_default();
    let names = area.running().into_iter().enumerate();
    let running = |(pcpu, partition): (usize, Option<String>)| {
        Some(Running {
            pcpu,
            partition: partition?,
            pc: pcs.get(pcpu).copied().flatten(),
        })
    };
    names.filter_map(running).collect()
}

/// Returns the processor time that a thread of a process has used, in user mode and for the user in the
/// operating system.
fn processor_time(pid: u32, thread: u32) -> Option<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/stat")).ok()?;
    // The name of the program, in parentheses, can hold anything.
    let (_, fields) = text.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let ticks = |field: usize| fields.get(field)?.parse::<u64>().ok();
    // Fields 14 and 15 of the line; the one behind the name is field 3.
    let ticks = ticks(11)?.checked_add(ticks(12)?)?;
    Some(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
}

/// Returns the program counter of each CPU in the emulator's list of registers. Each architecture has its own
/// word for it.
fn program_counters(text: &str) -> Vec<Option<u64>> {
    let of_cpu = |part: &str| {
        let mut words = part
            .split(['\\', ' ', '=', '\r', '\n'])
            .filter(|word| !word.is_empty());
        while let Some(word) = words.next() {
            // The editors of lines leave the `r` and `n` of "\r\n" in front of a word.
            let name = word.trim_start_matches(['r', 'n']);
            if ["PC", "RIP", "EIP", "NIP", "R15"].contains(&name) {
                return words.next().and_then(|value| u64::from_str_radix(value, 16).ok());
            }
        }
        None
    };
    text.split("CPU#").skip(1).map(of_cpu).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_stands_still_if_the_emulator_computes_and_counts_nothing() {
        let at = Duration::from_secs;
        let mut seen = Seen::default();
        assert!(!seen.look(7, at(1)));
        assert!(!seen.look(8, at(90)), "it counts");
        assert!(!seen.look(8, at(94)), "not long enough");
        assert!(seen.look(8, at(95)));
        assert!(!seen.look(8, at(200)), "once is enough");
        // A board that waits uses no processor time, whatever a clock on the wall says.
        let mut waiting = Seen::default();
        assert!((0..1000).all(|_| !waiting.look(8, at(3))));
    }

    #[test]
    fn every_architectures_program_counter_is_found() {
        let arm = r#"{"return": "\r\nCPU#0\r\n PC=0000000040300200 X00=0000000040202000\r\n\r\nCPU#1\r\n PC=0000000000000004 X00=1\r\n"}"#;
        assert_eq!(program_counters(arm), [Some(0x4030_0200), Some(4)]);
        let small =
            r#"{"return": "\r\nCPU#0\r\nR00=00000000 R01=0\r\nR12=0 R13=1 R14=2 R15=0000c0de\r\nXPSR=0"}"#;
        assert_eq!(program_counters(small), [Some(0xc0de)]);
        let pc = r#"{"return": "\r\nCPU#0\r\nRAX=0 RBX=0\r\nRIP=0000000000100000 RFL=00000002"}"#;
        assert_eq!(program_counters(pc), [Some(0x10_0000)]);
        let power = r#"{"return": "\r\nCPU#0\r\nNIP fffffffc   LR 00000000 CTR 0"}"#;
        assert_eq!(program_counters(power), [Some(0xffff_fffc)]);
        assert_eq!(program_counters("CPU#0 nothing"), [None]);
    }

    #[test]
    fn the_warning_says_who_where_and_what_to_do() {
        let running = |pcpu| Running {
            pcpu,
            partition: "f".to_owned(),
            pc: Some(0x200),
        };
        let stall = Stall {
            running: vec![running(0)],
        };
        let text = stall.text(|_, _| Some("vectors".to_owned()));
        assert!(text.contains("pCPU 0 runs `f` at 0x200 (vectors)\n"), "{text}");
        assert!(
            text.contains("--realtime") && !text.contains("one of them"),
            "{text}"
        );
        let stall = Stall {
            running: vec![running(0), running(1)],
        };
        assert!(
            stall
                .text(|_, _| None)
                .contains("pCPU 1 runs `f` at 0x200; one of them is to blame")
        );
        assert!(
            Stall { running: vec![] }
                .text(|_, _| None)
                .contains("all partitions\n")
        );
    }
}
