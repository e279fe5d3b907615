// SPDX-License-Identifier: Apache-2.0
//! Notices a guest that takes exception after exception, and the clock of the board that it holds up.
//!
//! A run that counts instructions takes its clock from their number. An instruction that faults is not
//! counted, or takes as long as a hundred others. So a guest whose exception vectors cannot be fetched takes
//! exception after exception and never finishes an instruction, and a guest whose handler returns to the same
//! fault finishes very few. On hardware the hypervisor's timer interrupts such a guest. In such a run the
//! timer comes late or never, and all neighbours wait with the guest. No CPU of the board tells that, so the
//! tool asks the emulator how many instructions it has counted.
//!
//! In a run in real time such a guest harms no other. Still the user would not see why it says nothing, so
//! the tool looks whether there is an instruction at its program counter.

use crate::class::Tool;
use crate::emulator::cpu_registers;
use crate::emulator::monitor::Monitor;
use crate::emulator::stall::{Kind, Nothing, Running, Stall};
use crate::log::log_area::{self, LogArea};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The interval between two looks.
const EVERY: Duration = Duration::from_secs(1);
/// The processor time that a judgement of the clock is about. No instruction takes so long, and no turn of a
/// CPU: the longest has 100 ms of virtual time.
const ENOUGH: Duration = Duration::from_secs(5);
/// Instructions in a second of processor time below which a clock creeps. On one computer a loop of
/// exceptions had 1.5 to 3.9 million, a loop of YIELD, which ends the emulator's work as well, 7 million, one
/// that polls a device 20 million, and other programs 80 million and more.
const SLOW: u64 = 5_000_000;
/// The most addresses at which a loop of exceptions is seen in the looks of one judgement.
const FEW: usize = 4;
/// The looks in a row that find no instruction at the same program counter before that is told.
const LOOKS: usize = 3;
/// The ticks of `/proc/PID/stat` per second (`USER_HZ`, proc(5)).
const TICKS_PER_SECOND: u64 = 100;

/// The class of a board, as far as a watch needs it.
pub(super) type Class = Option<&'static dyn Tool>;

/// Looks at a run from time to time.
#[derive(Debug)]
pub(super) struct Watch {
    /// The emulator's process.
    pid: u32,
    /// The run counts instructions.
    is_counted: bool,
    /// When the board was looked at last.
    last: Instant,
    seen: Seen,
    empty: Empty,
    /// One warning in a run is enough.
    is_told: bool,
}

/// A look at the clock.
#[derive(Clone, Debug)]
struct Look {
    /// The instructions that were counted.
    instructions: u64,
    /// The processor time that the emulator's CPUs had used.
    used: Duration,
    /// The program counters of those that run a vCPU.
    places: Vec<(usize, u64)>,
}

/// The looks of the last [`ENOUGH`], the oldest first.
#[derive(Debug, Default)]
struct Seen(VecDeque<Look>);

impl Seen {
    /// Takes note of a look. Returns the kind of the stall, if the looks show one.
    fn look(&mut self, look: Look) -> Option<Kind> {
        self.0.push_back(look);
        let newest = self.0.back()?.used;
        let is_old = |look: &Look| newest.saturating_sub(look.used) >= ENOUGH;
        while self.0.get(1).is_some_and(is_old) {
            self.0.pop_front();
        }
        let (first, last) = (self.0.front()?, self.0.back()?);
        if !is_old(first) {
            return None;
        }
        let counted = last.instructions.saturating_sub(first.instructions);
        if counted == 0 {
            return Some(Kind::Stands);
        }
        let micros = last.used.saturating_sub(first.used).as_micros().max(1) as u64;
        let rate = counted.saturating_mul(1_000_000) / micros;
        (rate < SLOW && self.stays()).then_some(Kind::Creeps(rate))
    }

    /// Tells whether every CPU that runs a vCPU was at a few addresses in all these looks.
    fn stays(&self) -> bool {
        let mut places: Vec<(usize, u64)> = self.0.iter().flat_map(|look| look.places.clone()).collect();
        places.sort_unstable();
        places.dedup();
        let cpus = places.chunk_by(|one, other| one.0 == other.0);
        !places.is_empty() && { cpus }.all(|of_cpu| of_cpu.len() <= FEW)
    }
}

/// The program counters at which no instruction was found, with the looks in a row that found that.
#[derive(Debug, Default)]
struct Empty(Vec<(usize, u64, usize)>);

impl Empty {
    /// Takes note of the places of a look. Returns the CPUs that have been at one for long.
    fn look(&mut self, places: &[(usize, u64)]) -> Vec<usize> {
        let looks = |place: &(usize, u64)| {
            let before = self.0.iter().find(|(cpu, pc, _)| (*cpu, *pc) == *place);
            before.map_or(1, |(_, _, looks)| looks + 1)
        };
        let now = places.iter().map(|place| (place.0, place.1, looks(place)));
        self.0 = now.collect();
        let is_long = |(cpu, _, looks): &(usize, u64, usize)| (*looks >= LOOKS).then_some(*cpu);
        self.0.iter().filter_map(is_long).collect()
    }
}

impl Watch {
    /// Watches the emulator of that process, whose run counts instructions or not.
    pub(super) fn new(pid: u32, is_counted: bool) -> Self {
        Self {
            pid,
            is_counted,
            last: Instant::now(),
            seen: Seen::default(),
            empty: Empty::default(),
            is_told: false,
        }
    }

    /// Returns the time until the next look.
    pub(super) fn patience(&self) -> Duration {
        if self.is_told {
            return Duration::MAX;
        }
        EVERY.saturating_sub(self.last.elapsed())
    }

    /// Looks at the board, and tells once what is wrong. `log_base` is the address of the log area.
    pub(super) fn look(
        &mut self,
        monitor: &mut Monitor,
        log_base: Option<u64>,
        class: Class,
    ) -> Option<Stall> {
        if !self.patience().is_zero() || monitor.is_off {
            return None;
        }
        self.last = Instant::now();
        let mut running = running(monitor, log_base);
        note_nothing(&mut running, monitor, class);
        let stall = self.stuck(&running).or_else(|| {
            let kind = self.is_counted.then(|| self.clock(monitor, &running))??;
            Some(Stall { kind, running })
        })?;
        self.is_told = true;
        Some(stall)
    }

    /// Finds vCPUs that have been where no instruction is. A clock that stands still with them is told as
    /// such, so in a run that counts instructions one at zeros alone is told here.
    fn stuck(&mut self, running: &[Running]) -> Option<Stall> {
        let is_told_here = |one: &&Running| match one.nothing {
            Some(Nothing::Unmapped) => !self.is_counted,
            Some(Nothing::Zeros) => true,
            None => false,
        };
        let nowhere = running.iter().filter(is_told_here);
        let places: Vec<(usize, u64)> = nowhere.filter_map(Running::place).collect();
        let cpus = self.empty.look(&places);
        let running = running.iter().filter(|one| cpus.contains(&one.pcpu));
        let running: Vec<Running> = running.cloned().collect();
        (!running.is_empty()).then_some(Stall {
            kind: Kind::Stuck,
            running,
        })
    }

    fn clock(&mut self, monitor: &mut Monitor, running: &[Running]) -> Option<Kind> {
        // An emulator that does not say how much it counted cannot be watched.
        let instructions = monitor.instructions().ok()?;
        // The emulator's other threads are busy, too, if the board sleeps and no timer is armed.
        let threads = monitor.cpu_threads().ok()?.into_iter();
        let used = threads
            .map(|thread| processor_time(self.pid, thread))
            .sum::<Option<Duration>>()?;
        let kind = self.seen.look(Look {
            instructions,
            used,
            places: running.iter().filter_map(Running::place).collect(),
        })?;
        if kind == Kind::Stands {
            // With one CPU a turn can be longer than any limit. It ends here, and then the count is exact.
            let now = monitor.freeze().and_then(|()| monitor.instructions());
            monitor.go_on().ok()?;
            if now.ok()? != instructions {
                self.seen = Seen::default();
                return None;
            }
        }
        Some(kind)
    }
}

impl Running {
    /// Returns its pCPU and its address.
    fn place(&self) -> Option<(usize, u64)> {
        Some((self.pcpu, self.pc?))
    }
}

/// Returns who has the pCPUs, by the log area and by the emulator's view of its CPUs.
fn running(monitor: &mut Monitor, log_base: Option<u64>) -> Vec<Running> {
    let area =
        log_base.and_then(|base| log_area::read(base, &mut |at, length| monitor.memory(at, length)).ok());
    let Some(area) = area.as_deref().and_then(LogArea::at_start) else {
        return Vec::new();
    };
    let registers = monitor
        .registers()
        .map(|text| cpu_registers::read(&text))
        .unwrap_or_default();
    let names = area.running().into_iter().enumerate();
    let running = |(pcpu, partition): (usize, Option<String>)| {
        let registers = registers.get(pcpu).copied().unwrap_or_default();
        Some(Running {
            pcpu,
            partition: partition?,
            pc: registers.pc,
            link: registers.link,
            ..Running::default()
        })
    };
    names.filter_map(running).collect()
}

/// Notes of each vCPU whether there is no instruction where it is.
fn note_nothing(running: &mut [Running], monitor: &mut Monitor, class: Class) {
    let Some(class) = class.filter(|class| class.faults_at_zeros()) else {
        return;
    };
    for one in running {
        let Some(pc) = one.pc else { continue };
        one.nothing = match monitor.words(one.pcpu, pc) {
            Ok(Some([0, 0])) => Some(Nothing::Zeros),
            Ok(None) => Some(Nothing::Unmapped),
            _ => None,
        };
        one.vector = one.nothing.and_then(|_| class.vector(pc));
    }
}

/// Returns the processor time that a thread of a process has used, in user mode and for the user in the
/// operating system.
fn processor_time(pid: u32, thread: u32) -> Option<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/stat")).ok()?;
    // The name of the program, in parentheses, can hold anything.
    let (_, fields) = text.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let ticks = |field: usize| fields.get(field)?.parse::<u64>().ok();
    // Fields 14 and 15 of the line; the one after the name is field 3.
    let ticks = ticks(11)?.checked_add(ticks(12)?)?;
    Some(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(instructions: u64, used: u64, places: &[(usize, u64)]) -> Look {
        Look {
            instructions,
            used: Duration::from_secs(used),
            places: places.to_vec(),
        }
    }

    #[test]
    fn a_clock_stands_still_if_the_emulator_computes_and_counts_nothing() {
        let mut seen = Seen::default();
        assert_eq!(seen.look(look(7, 1, &[])), None);
        assert_eq!(seen.look(look(900_000_000, 90, &[])), None, "it counts");
        assert_eq!(seen.look(look(900_000_000, 94, &[])), None, "not long enough");
        assert_eq!(seen.look(look(900_000_000, 95, &[])), Some(Kind::Stands));
        // A board that waits uses no processor time, however long it waits.
        let mut waiting = Seen::default();
        assert!((0..1000).all(|_| waiting.look(look(8, 3, &[])).is_none()));
    }

    /// Looks once a second at a CPU that counts so many instructions in a second, at an address that depends
    /// on the look.
    fn seconds(rate: u64, at: impl Fn(u64) -> Vec<(usize, u64)>) -> Option<Kind> {
        let mut seen = Seen::default();
        (0..20).find_map(|second| seen.look(look(second * rate, second, &at(second))))
    }

    #[test]
    fn a_clock_creeps_if_few_instructions_are_counted_at_few_addresses() {
        let in_a_loop = |second: u64| vec![(0, 0x200 + second % 3 * 4)];
        assert_eq!(seconds(2_000_000, in_a_loop), Some(Kind::Creeps(2_000_000)));
        assert_eq!(seconds(SLOW, in_a_loop), None, "a program that waits busily");
        let everywhere = |second: u64| vec![(0, 0x200 + second * 4)];
        assert_eq!(seconds(2_000_000, everywhere), None, "a slow computer");
        let beside = |second: u64| vec![(0, 0x200), (1, 0x200 + second * 4)];
        assert_eq!(seconds(2_000_000, beside), None, "the other CPU gets on");
        assert_eq!(seconds(2_000_000, |_| vec![]), None, "no vCPU runs");
    }

    #[test]
    fn a_guest_is_stuck_that_is_at_no_instruction_look_after_look() {
        let mut empty = Empty::default();
        let here = [(0, 0x200), (1, 0x300)];
        assert!(empty.look(&here).is_empty());
        assert!(empty.look(&here).is_empty());
        assert_eq!(empty.look(&here[..1]), [0], "the other one went on");
        assert!(empty.look(&[(0, 0x204)]).is_empty(), "it goes on");
        assert!(empty.look(&here).is_empty());
    }
}
