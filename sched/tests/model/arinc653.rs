// SPDX-License-Identifier: Apache-2.0
//! Oracle of `arinc653`. The oracle walks the frame tick by tick.

use crate::model::{Freedom, Oracle, Pcpu, Verdict, World, check};
use bulkhead_sched::{
    AnyPolicy, Arinc653Parameters, Schedule, Signals, SlotSet, Ticks, VcpuParameters, Window,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Arinc653 {
    priorities: Vec<u8>,
    schedules: Vec<(Ticks, Vec<Window>)>,
    current: usize,
    frame_start: Ticks,
    /// The starts that are due by now and have not been signalled.
    due: Signals,
    /// The schedule that had been asked for when the last tick began.
    wanted: u8,
    /// The moment whose boundaries have been looked at.
    passed: Option<Ticks>,
    has_changed: bool,
}

impl Arinc653 {
    /// Passes the boundaries at `now`. Each boundary is met once.
    fn pass_boundaries(&mut self, world: &World) {
        if self.passed == Some(world.now) {
            return;
        }
        self.passed = Some(world.now);
        if world.now == self.frame_start + self.schedules[self.current].0 {
            self.frame_start = world.now;
            self.current = usize::from(self.wanted);
        }
        let at = world.now - self.frame_start;
        for window in &self.schedules[self.current].1 {
            if window.offset == at {
                self.due.window_start.0 |= window.slots.0;
                self.due.period_start.0 |= if window.period_start { window.slots.0 } else { 0 };
            }
        }
    }
}

impl Oracle for Arinc653 {
    fn decided(&mut self, world: &World, signals: Signals) -> Verdict {
        let changed = usize::from(world.schedule.current) != self.current;
        if changed != signals.schedule_changed {
            return Err("a change of schedule is not signalled, or signalled without being one");
        }
        self.has_changed |= changed;
        self.pass_boundaries(world);
        if usize::from(world.schedule.current) != self.current {
            return Err("the schedule in force is not the one asked for before the frame");
        }
        let expected = std::mem::take(&mut self.due);
        if (signals.window_start, signals.period_start) != (expected.window_start, expected.period_start) {
            return Err("the starts of windows and periods are not those that are signalled");
        }
        Ok(())
    }

    fn tick(&mut self, world: &World) -> Verdict {
        self.pass_boundaries(world);
        self.wanted = world.wish;
        if world.schedule.next != world.wish {
            return Err("the policy does not know which schedule was asked for");
        }
        if self.due != Signals::default() {
            return Err("a window has started without a decision");
        }
        let at = world.now - self.frame_start;
        if at >= self.schedules[self.current].0 {
            return Err("a frame has ended without a decision");
        }
        let open = |window: &&Window| (window.offset..window.offset + window.duration).contains(&at);
        let window = self.schedules[self.current].1.iter().find(open);
        let priority = |slot: u8| self.priorities[usize::from(slot)];
        let slots = (0..self.priorities.len() as u8).filter(|slot| {
            world.is_runnable(*slot) && window.is_some_and(|window| window.slots.0 >> slot & 1 == 1)
        });
        let best = slots.clone().map(priority).max();
        let mut may_run = slots
            .filter(|slot| Some(priority(*slot)) == best)
            .map(|slot| world.end(slot));
        match world.running {
            None if best.is_some() => Err("the pCPU idles in the window of one that is ready"),
            Some(_) if !may_run.any(|end| end == world.running) => {
                Err("one runs outside its window or before a more important one of its partition")
            }
            _ => Ok(()),
        }
    }

    fn has_seen_all(&self) -> bool {
        self.schedules.len() == 1 || self.has_changed
    }
}

fn window(slots: u32, offset: Ticks, duration: Ticks, period_start: bool) -> Window {
    Window {
        slots: SlotSet(slots),
        offset,
        duration,
        period_start,
    }
}

pub fn model(
    priorities: &[u8],
    tables: &[(Ticks, Vec<Window>)],
    freedom: Freedom,
    horizon: Ticks,
) -> Pcpu<AnyPolicy, Arinc653> {
    let vcpus: Vec<_> = priorities
        .iter()
        .map(|priority| VcpuParameters {
            priority: *priority,
            ..VcpuParameters::default()
        })
        .collect();
    let windows: Vec<_> = tables.iter().flat_map(|(_, windows)| windows.clone()).collect();
    let mut first_window = 0;
    let mut schedules = Vec::new();
    for (frame, windows) in tables {
        schedules.push(Schedule {
            frame: *frame,
            first_window,
            window_count: windows.len() as u8,
        });
        first_window += windows.len() as u8;
    }
    let parameters = Arinc653Parameters {
        windows: &windows,
        schedules: &schedules,
        initial: 0,
        start: 0,
        quantum: 2,
    };
    let oracle = Arinc653 {
        priorities: priorities.to_vec(),
        schedules: tables.to_vec(),
        current: 0,
        frame_start: 0,
        due: Signals::default(),
        wanted: 0,
        passed: None,
        has_changed: false,
    };
    Pcpu {
        policy: AnyPolicy::arinc653(&vcpus, parameters).unwrap(),
        slots: priorities.len() as u8,
        freedom,
        oracle,
        horizon,
    }
}

fn search(name: &str, priorities: &[u8], tables: &[(Ticks, Vec<Window>)], freedom: Freedom, horizon: Ticks) {
    check(name, model(priorities, tables, freedom, horizon));
}

#[test]
fn windows_belong_to_their_partitions_in_every_schedule() {
    let tables = [
        (
            6,
            vec![
                window(0b011, 0, 2, true),
                window(0b100, 2, 2, true),
                window(0b011, 5, 1, false),
            ],
        ),
        (4, vec![window(0b100, 1, 3, true)]),
    ];
    let freedom = Freedom {
        schedules: 2,
        yields: true,
        withdraws: true,
        ..Freedom::default()
    };
    search("arinc653", &[3, 3, 1], &tables, freedom, 14);
}

#[test]
fn donations_stay_within_the_donor_s_window() {
    let tables = [(5, vec![window(0b001, 0, 2, true), window(0b110, 2, 3, true)])];
    let freedom = Freedom {
        donates: true,
        ..Freedom::default()
    };
    search("arinc653 donation", &[1, 2, 1], &tables, freedom, 7);
}
