// SPDX-License-Identifier: Apache-2.0
//! Demands of manifests against the analysis and the simulator. Accepted demands keep their deadlines. The
//! remedy of a refusal mends the manifest. A suggestion is accepted.

mod support;

use std::path::Path;

use bulkhead_manifest::timing::{self, PcpuTiming};
use bulkhead_manifest::{Report, System, load_text};
use bulkhead_sched::Slot;
use bulkhead_sched::analysis::Steps;
use bulkhead_sched::simulate::{Simulator, Source, SourceState};

fn system(pcpu: &str, partitions: &[(&str, &str, &str)]) -> System {
    let mut text = format!("board = \"qemu-virt-aarch64\"\n{pcpu}\n");
    for (name, vcpu, tasks) in partitions {
        text.push_str(&format!(
            "[partition.{name}]\nkind = \"vm\"\nimage = \"payloads/raw.bin\"\nmemory = \"2M\"\n\
             vcpus = [{{ pcpu = 0, {vcpu} }}]\n"
        ));
        if !tasks.is_empty() {
            text.push_str(&format!("demand.tasks = [{tasks}]\n"));
        }
    }
    let path = support::root().join("tests/config-bad/timing.toml");
    load_text(Path::new(&path), &text, &support::resolve).unwrap_or_else(|report| panic!("{report}"))
}

fn pcpu(system: &System) -> PcpuTiming {
    timing::pcpus(system).remove(0)
}

/// Returns the number of deadlines missed in a second.
fn missed(pcpu: &PcpuTiming) -> u64 {
    let sources: Vec<Source> = pcpu
        .vcpus
        .iter()
        .flat_map(|vcpu| vcpu.sources.iter().map(|(_, source)| *source))
        .collect();
    let mut states = vec![SourceState::default(); sources.len()];
    let mut simulator = Simulator::new(pcpu.policy(0).unwrap(), &sources, &mut states, pcpu.overheads, 1);
    for (slot, vcpu) in (0..).map(Slot).zip(&pcpu.vcpus) {
        simulator.set_scheduler(slot, vcpu.scheduler);
    }
    assert!(simulator.run(1_000_000_000, 10_000_000, &mut ()));
    states.iter().map(|state| state.statistics.missed).sum()
}

const TASK_A: &str = r#"{ name = "a", period = "10ms", wcet = "2ms" }"#;
const TASK_B: &str = r#"{ name = "b", period = "20ms", wcet = "5ms" }"#;

#[test]
fn response_times_under_fixed_priorities_are_those_of_the_book() {
    let system = system(
        "",
        &[("high", "priority = 9", TASK_A), ("low", "priority = 5", TASK_B)],
    );
    let mut pcpu = pcpu(&system);
    pcpu.overheads = Default::default();
    let bounds: Vec<_> = pcpu.verdicts().iter().map(|verdict| verdict.bound).collect();
    // The first task alone; the second with one job of the other.
    assert_eq!(bounds, [Ok(2_000_000), Ok(7_000_000)]);
    assert_eq!(missed(&pcpu), 0);
}

#[test]
fn the_hypervisor_is_charged() {
    let system = system(
        "",
        &[("high", "priority = 9", TASK_A), ("low", "priority = 5", TASK_B)],
    );
    let pcpu = pcpu(&system);
    assert!(pcpu.overheads.event() > 0, "the board knows what it costs");
    for verdict in pcpu.verdicts() {
        let without = if verdict.slot == 0 { 2_000_000 } else { 7_000_000 };
        let bound = verdict.bound.unwrap();
        assert!(
            bound > without + pcpu.overheads.written(without)
                && bound < without + pcpu.overheads.written(bound) + 50 * pcpu.overheads.event(),
            "{bound}"
        );
    }
}

#[test]
fn a_window_is_worth_what_the_worst_phase_leaves_of_it() {
    let schedule = "[pcpu.0]\npolicy = \"arinc653\"\n[pcpu.0.schedule.only]\nframe = \"10ms\"\n\
        windows = [{ partition = \"own\", offset = \"3ms\", duration = \"2ms\" }]";
    let system = system(
        schedule,
        &[(
            "own",
            "priority = 8",
            r#"{ name = "a", period = "20ms", wcet = "3ms" }"#,
        )],
    );
    let mut pcpu = pcpu(&system);
    pcpu.overheads = Default::default();
    // Released at the end of a window: 8 ms until the next one, 2 of 3 ms of work in it, 8 ms to the one
    // after.
    assert_eq!(pcpu.verdicts()[0].bound, Ok(8_000_000 + 10_000_000 + 1_000_000));
}

#[test]
fn a_refusal_names_a_change_that_helps() {
    let system = system(
        "[pcpu.0]\npolicy = \"edf\"",
        &[("own", r#"budget = "1ms", period = "10ms""#, TASK_A)],
    );
    let report = timing::judge(&system);
    let [finding] = &report.diagnostics[..] else {
        panic!("{report}")
    };
    let budget = finding.help.split('"').nth(1).expect("a budget in quotes");
    let vcpu = format!("budget = \"{budget}\", period = \"10ms\"");
    let mended = self::system("[pcpu.0]\npolicy = \"edf\"", &[("own", &vcpu, TASK_A)]);
    assert!(!timing::judge(&mended).has_errors(), "{budget} is not enough");
    assert_eq!(missed(&pcpu(&mended)), 0);
}

#[test]
fn who_declares_nothing_is_not_judged() {
    let system = system("", &[("noise", "priority = 31", "")]);
    assert!(!timing::judge(&system).has_errors());
    assert!(timing::suggest(&pcpu(&system)).is_none());
}

#[test]
fn above_a_vcpu_that_declares_nothing_nothing_is_promised_below() {
    let system = system(
        "",
        &[("noise", "priority = 9", ""), ("own", "priority = 5", TASK_A)],
    );
    let report = timing::judge(&system);
    assert!(
        report.diagnostics[0].message.contains("may never be done"),
        "{report}"
    );
    assert!(report.diagnostics[0].help.contains("priority = 10"), "{report}");
}

#[test]
fn suggestions_pass() {
    let edf = system(
        "[pcpu.0]\npolicy = \"edf\"",
        &[
            ("one", r#"budget = "1ms", period = "10ms""#, TASK_A),
            ("two", "priority = 8", TASK_B),
        ],
    );
    let lines = timing::suggest(&pcpu(&edf)).expect("there is room");
    assert_eq!(lines.len(), 2);
    let given = |line: &String| {
        line.split_once("{ pcpu = 0, ")
            .map(|(_, rest)| rest.trim_end_matches(" }").to_owned())
    };
    let (one, two) = (given(&lines[0]).unwrap(), given(&lines[1]).unwrap());
    let mended = system(
        "[pcpu.0]\npolicy = \"edf\"",
        &[("one", &one, TASK_A), ("two", &two, TASK_B)],
    );
    assert!(!timing::judge(&mended).has_errors(), "{lines:?}");
}

/// Checks that the remedy is a smaller budget if budgets take the whole pCPU and leave nothing for the
/// hypervisor. Its output takes less than 1 %.
#[test]
fn full_reservations_are_mended_by_a_little_less() {
    let edf = "[pcpu.0]\npolicy = \"edf\"";
    let judged = |first: &str| {
        let all = [
            (
                "first",
                &*format!("budget = \"{first}\", period = \"10ms\""),
                TASK_A,
            ),
            ("second", "budget = \"5ms\", period = \"10ms\"", TASK_B),
        ];
        let report = timing::judge(&system(edf, &all));
        report.diagnostics.first().map(|finding| finding.help.clone())
    };
    let help = judged("5ms").expect("nothing is left for the hypervisor");
    let budget = help.split('"').nth(1).unwrap();
    assert!(
        help.starts_with("with budget = \"49") && help.contains("(now 5ms) for `first`"),
        "{help}"
    );
    assert_eq!(judged(budget), None);
}

#[test]
fn who_has_no_budget_under_edf_is_told_one() {
    let edf = "[pcpu.0]\npolicy = \"edf\"";
    let judged = |vcpu: &str| {
        let report = timing::judge(&system(edf, &[("only", vcpu, TASK_A)]));
        report.diagnostics.first().map(|finding| finding.help.clone())
    };
    let help = judged("priority = 8").expect("it is promised nothing");
    let proposed = help
        .strip_prefix("with ")
        .and_then(|rest| rest.split(" (now none)").next());
    let proposed = proposed.unwrap_or_else(|| panic!("{help}"));
    assert!(proposed.ends_with("period = \"10ms\""), "{help}");
    assert_eq!(judged(proposed), None);
}

#[test]
fn stops_that_another_pcpu_can_order_are_charged() {
    let boss = |pcpu: u32, rights: &str| {
        format!(
            "[partition.boss]\nkind = \"vm\"\nimage = \"payloads/raw.bin\"\nmemory = \"2M\"\n\
             vcpus = [{{ pcpu = {pcpu}, priority = 1 }}]\n\
             capabilities.low = {{ partition = \"low\", rights = [{rights}] }}\n"
        )
    };
    let bound = |header: &str| {
        let parts = [("high", "priority = 9", TASK_A), ("low", "priority = 5", TASK_B)];
        let pcpu = pcpu(&system(header, &parts));
        (pcpu.verdicts()[0].bound.unwrap(), pcpu.overheads)
    };
    let (calm, _) = bound(&boss(1, "\"read\""));
    let (disturbed, overheads) = bound(&boss(1, "\"control\""));
    assert_eq!(disturbed, calm + overheads.ordered(disturbed));
    // The holder orders in its own time, no matter which partition it can pass its right on to.
    let (here, _) = bound(&boss(0, "\"control\""));
    let (reading, _) = bound(&boss(0, "\"read\""));
    assert_eq!(here, reading);
    // With a message the right can go to a partition on another pCPU.
    let port = "capabilities.box = { port = \"box\", rights = [\"write\", \"grant\"] }\n[port.box]\n";
    let (sent, overheads) = bound(&(boss(0, "\"control\"") + port));
    assert_eq!(sent, here + overheads.ordered(sent));
}

/// Returns an overloaded pCPU under `edf`. The budgets of 20 vCPUs are short of what their two tasks need,
/// and the periods have no common divisor. Without a limit the search for remedies took minutes.
fn overloaded() -> System {
    const PERIODS: [u64; 20] = [
        4999, 5003, 5009, 5011, 5021, 5023, 5039, 5051, 5059, 5077, 5081, 5087, 5099, 5101, 5107, 5113, 5119,
        5147, 5153, 5167,
    ];
    let partition = |(number, period): (usize, &u64)| {
        let wcet = period * 3 / 100;
        let vcpu = format!(r#"budget = "{}us", period = "{period}us""#, wcet * 3 / 2);
        let task = |name: &str, period: u64| {
            format!(r#"{{ name = "{name}", period = "{period}us", wcet = "{wcet}us" }}"#)
        };
        let tasks = [task("t", *period), task("u", 2 * period + 2)].join(", ");
        (format!("p{number}"), vcpu, tasks)
    };
    let all: Vec<_> = PERIODS.iter().enumerate().map(partition).collect();
    let all: Vec<_> = all
        .iter()
        .map(|(name, vcpu, tasks)| (name.as_str(), vcpu.as_str(), tasks.as_str()))
        .collect();
    system("[pcpu.0]\npolicy = \"edf\"", &all)
}

#[test]
fn a_search_for_remedies_ends_after_a_number_of_steps_and_says_so() {
    let system = overloaded();
    let without = timing::judge_within(&system, &Steps::new(0));
    for limit in [100_000, 3_000_000] {
        let steps = Steps::new(limit);
        let report = timing::judge_within(&system, &steps);
        assert_eq!(steps.left(), 0, "the search takes longer than {limit} steps");
        // Work that was under way when the steps ended asks for some more, and gets none.
        assert!(steps.drawn() < limit + limit / 4, "{} of {limit}", steps.drawn());
        let messages = |report: &Report| -> Vec<String> {
            let all = report.diagnostics.iter();
            all.map(|finding| finding.message.clone()).collect()
        };
        assert_eq!(
            messages(&report),
            messages(&without),
            "the errors do not depend on the search"
        );
        let mut helps = report.diagnostics.iter().map(|finding| &finding.help);
        assert!(
            helps.any(|help| help.contains("was given up; it is left to try: ")),
            "{report}"
        );
    }
}

#[test]
fn each_late_vcpu_has_a_part_of_the_steps() {
    // The first search cannot take what the others need: each of them gets as far as the one before.
    let system = overloaded();
    let report = timing::judge_within(&system, &Steps::new(3_000_000));
    let helps: Vec<_> = report
        .diagnostics
        .iter()
        .map(|finding| finding.help.as_str())
        .collect();
    let left = |help: &str| {
        help.split("left to try: ")
            .nth(1)
            .map(|left| left.split(", ").count())
    };
    let least = helps.iter().filter_map(|help| left(help)).min();
    let most = helps.iter().filter_map(|help| left(help)).max();
    assert!(
        least.is_some() && most <= least.map(|least| least + 1),
        "{helps:#?}"
    );
}

#[test]
fn no_remedy_proposes_a_budget_that_a_manifest_cannot_have() {
    let mut proposals = 0;
    let budgets = (9_300..9_400).step_by(3);
    for (budget, rest) in budgets.flat_map(|budget| [70, 80, 90, 130].map(|rest| (budget, rest))) {
        let vcpu = format!(r#"budget = "{budget}us", period = "10ms""#);
        let task = format!(
            r#"{{ name = "a", period = "10ms", wcet = "{}us" }}"#,
            budget - rest
        );
        // Only almost all of this one's budget would be enough for the first. Output takes 60 us of it.
        let second = r#"budget = "540us", period = "10ms""#;
        let system = system(
            "[pcpu.0]\npolicy = \"edf\"",
            &[("first", &vcpu, &task), ("second", second, "")],
        );
        for finding in timing::judge(&system).diagnostics {
            let Some(proposed) = finding.help.split("budget = \"").nth(1) else {
                continue;
            };
            let proposed = proposed.split('"').next().unwrap_or_default();
            let time: f64 = proposed.trim_end_matches(char::is_alphabetic).parse().unwrap();
            let unit = proposed.trim_start_matches(|c: char| !c.is_alphabetic());
            let micros = time
                * match unit {
                    "ns" => 0.001,
                    "us" => 1.0,
                    "ms" => 1000.0,
                    _ => 1e6,
                };
            assert!(micros >= 10.0, "{}", finding.help);
            proposals += 1;
        }
    }
    assert!(
        proposals > 0,
        "some of these systems can be mended by another budget"
    );
}
