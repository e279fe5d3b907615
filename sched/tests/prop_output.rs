// SPDX-License-Identifier: Apache-2.0
//! Steps of output and the analysis: the hypervisor writes lines of others in the time of the vCPU that runs.
//!
//! **Model.** A step comes like a job of a vCPU above all others. So each random system is simulated with such
//! a vCPU, and the analysis is told of steps of output in its place. No response may be longer than its bound.
//! Without the steps, some are longer.

#[allow(dead_code, reason = "each test uses a part of it")]
mod systems;

use bulkhead_sched::VcpuParameters;
use bulkhead_sched::analysis::{Output, Overheads, Task, TaskScheduler};
use systems::{Kind, Numbers, Run, System, SystemVcpu};

/// Returns a random system whose hypervisor costs nothing but steps of output.
fn random(kind: Kind, number: u64) -> System {
    let mut numbers = Numbers::new(number);
    let output = Output {
        step: numbers.within(1, 4),
        space: numbers.within(10, 40),
    };
    let overheads = Overheads {
        output,
        ..Overheads::default()
    };
    System {
        overheads,
        ..System::random(kind, number)
    }
}

/// Returns the system with a vCPU in the place of the steps.
fn with_writer(system: &System) -> System {
    let Output { step, space } = system.overheads.output;
    let mut system = system.clone();
    system.overheads = Overheads::default();
    system.vcpus.push(SystemVcpu {
        parameters: VcpuParameters {
            priority: 30,
            ..VcpuParameters::default()
        },
        scheduler: TaskScheduler::FixedPriority,
        tasks: vec![Task::new(space, step)],
        critical: 0,
    });
    system
}

fn prove(kind: Kind) {
    let (mut accepted, mut late_without) = (0, 0);
    for number in 0..500 {
        let system = random(kind, number);
        let silent = System {
            overheads: Overheads::default(),
            ..system.clone()
        };
        let (bounds, without) = (system.analyse(), silent.analyse());
        let written = with_writer(&system);
        let observed: Vec<_> = Run::ALL
            .iter()
            .flat_map(|run| written.simulate(*run).into_iter().enumerate())
            .collect();
        let is_accepted = bounds.iter().flatten().all(Result::is_ok);
        accepted += u32::from(is_accepted);
        let (bounds, without): (Vec<_>, Vec<_>) = bounds
            .into_iter()
            .flatten()
            .zip(without.into_iter().flatten())
            .unzip();
        for (task, statistics) in observed {
            let Some((bound, without)) = bounds.get(task).zip(without.get(task)) else {
                continue;
            };
            if is_accepted {
                assert!(
                    statistics.missed == 0 && bound.is_ok_and(|bound| statistics.longest <= bound),
                    "system {number} of {kind:?}, task {task}: {bound:?}, {statistics:?}\n{system:#?}"
                );
            }
            late_without += u32::from(without.is_ok_and(|bound| statistics.longest > bound));
        }
    }
    assert!(accepted > 20, "only {accepted} accepted");
    assert!(late_without > 0, "nothing need be charged");
}

#[test]
fn under_fixed_priorities() {
    prove(Kind::FixedPriority);
}

#[test]
fn among_equals() {
    prove(Kind::RoundRobin);
}

#[test]
fn with_servers() {
    prove(Kind::Servers);
}
