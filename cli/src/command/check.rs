// SPDX-License-Identifier: Apache-2.0
//! `bulkhead check`: the meaning of a manifest as tables, or the errors in it.

use super::timing::{caveats, deadlines, hypervisor_time, processor_time};
use super::{CheckArgs, check_json, reach, schedule};
use crate::build::prepare;
use crate::build::tables::table;
use crate::json;
use crate::problem::{Code, Problem};
use crate::ui::progress::Progress;
use bulkhead_abi::hypercall::DEVICE_EVENT;
use bulkhead_manifest::board::Trigger;
use bulkhead_manifest::{Policy, System, format_duration, format_size, timing};
use comfy_table::Table;
use serde_json::{Value, json};
use std::path::Path;

/// The verdict about one manifest, for people or for programs, and the exit code.
struct Answer {
    text: String,
    complaint: Option<Problem>,
    json: Value,
}

pub(super) fn run(args: &CheckArgs) -> Result<Code, Problem> {
    if args.schema {
        super::print(&bulkhead_manifest::schema())?;
        return Ok(Code::Done);
    }
    let mut worst = Code::Done;
    let mut systems = Vec::new();
    for path in &args.systems {
        let answer = answer(path, args)?;
        if !args.json {
            if args.systems.len() > 1 && !args.dot {
                super::print(&format!("== {}\n", path.display()))?;
            }
            super::print(&answer.text)?;
        }
        systems.push(answer.json);
        if let Some(problem) = answer.complaint {
            worst = problem.code();
            if !args.json {
                crate::ui::terminal::tell(problem.display());
            }
        }
    }
    if args.json {
        super::print(&json::document("check", json!({ "systems": systems })))?;
    }
    Ok(worst)
}

/// Checks one manifest. The next manifest is checked even if this one is refused.
fn answer(path: &Path, args: &CheckArgs) -> Result<Answer, Problem> {
    let progress = Progress::new();
    let refused = |complaint: Problem, json| Answer {
        text: String::new(),
        complaint: Some(complaint),
        json,
    };
    let system = match prepare::inspect(path, &progress) {
        Ok(Ok(system)) => system,
        Ok(Err(report)) => {
            let json = check_json::refused(path, &report);
            return Ok(refused(prepare::refusal(&report), json));
        }
        Err(problem) => {
            let json = check_json::failed(path, &problem.to_string());
            return Ok(refused(problem, json));
        }
    };
    drop(progress);
    if !args.json {
        prepare::warn(&system);
    }
    let late = timing::judge(&system);
    let mut text = if args.dot {
        reach::dot(&path.display().to_string(), &system)
    } else {
        report(&system)
    };
    if args.suggest {
        text.push_str(&suggestions(&system));
    }
    Ok(Answer {
        text,
        complaint: late.has_errors().then(|| prepare::refusal(&late)),
        json: check_json::checked(path, &system, &late),
    })
}

/// Suggests, per pCPU, values that would be enough for everything that is declared.
fn suggestions(system: &System) -> String {
    let mut text = "\nSuggestions\n".to_owned();
    for pcpu in timing::pcpus(system) {
        text.push_str(&format!(" pCPU {}, {}\n", pcpu.number, pcpu.policy_name()));
        let lines = timing::suggest(&pcpu).unwrap_or_else(|| {
            let declares = pcpu.vcpus.iter().any(|vcpu| vcpu.tasks.is_some());
            let why = if !declares {
                "nothing is declared"
            } else if pcpu.policy == Policy::Pinned {
                "its vCPU has all of it"
            } else {
                "nothing found: declare less, choose another policy, or move a partition"
            };
            vec![why.to_owned()]
        });
        for line in lines {
            text.push_str(&format!("   {line}\n"));
        }
    }
    text
}

/// Returns all tables.
pub(super) fn report(system: &System) -> String {
    let pcpus = timing::pcpus(system);
    let sections = [
        ("Partitions", partitions(system)),
        ("Objects, all made at boot", objects(system)),
        ("CPU assignment", cpus(system)),
        ("Budgets", schedule::reservations(system)),
        ("Frames", schedule::frames(system)),
        ("Time domains", schedule::domains(system)),
        ("Memory map", memory(system)),
        ("MPU regions", mpu(system)),
        ("Replaced instructions", replaced(system)),
        ("Interrupts", interrupts(system)),
        ("Networks", networks(system)),
        ("Who can touch what, beyond its own memory", touch(system)),
        ("Who can reach whom", reach::direct(system)),
        ("Who could reach whom by grants", reach::by_grants(system)),
        ("Who could hold what by grants", reach::gains(system)),
        ("Health actions", health(system)),
        (
            "Parts of the hypervisor that are used",
            super::parts::parts(system),
        ),
        ("Time that the hypervisor takes", hypervisor_time(&pcpus)),
        ("Processor time", processor_time(system, &pcpus)),
        ("Deadlines", deadlines(&pcpus)),
    ];
    let mut text = format!("Board {}: {}\n", system.board().name, system.board().description);
    for (title, table) in sections {
        if !table.is_empty() {
            text.push_str(&format!("\n{title}\n"));
            for line in table.lines() {
                text.push_str(line.trim_end());
                text.push('\n');
            }
        }
    }
    text.push_str(&format!("\n{}\n", super::parts::variant(system)));
    let caveats = caveats(system, &pcpus);
    if !caveats.is_empty() {
        text.push('\n');
    }
    for caveat in caveats {
        text.push_str(&caveat);
        text.push('\n');
    }
    text
}

/// Returns the accesses that the MPU allows each partition, on boards that have an MPU.
fn mpu(system: &System) -> Table {
    let mut rows = table(&[
        "partition",
        "region",
        "block",
        "size",
        "eighths left out",
        "access",
    ]);
    for (number, partition) in system.partitions().iter().enumerate() {
        for (region, found) in system.mpu_regions(number).iter().enumerate() {
            let left_out: Vec<String> = (0..8)
                .filter(|eighth| found.left_out & 1 << eighth != 0)
                .map(|eighth| eighth.to_string())
                .collect();
            rows.add_row([
                partition.name().to_owned(),
                region.to_string(),
                format!("{:#010x}", found.base),
                format_size(found.size),
                left_out.join(" "),
                found.access.name(),
            ]);
        }
    }
    rows
}

/// Returns the changes in the programs of boards on which programs must be changed.
fn replaced(system: &System) -> Table {
    let mut rows = table(&["partition", "replaced", "undefined of its own"]);
    for (number, partition) in system.partitions().iter().enumerate() {
        if let Some((replaced, undefined)) = system.replaced(number) {
            rows.add_row([
                partition.name().to_owned(),
                replaced.to_string(),
                undefined.to_string(),
            ]);
        }
    }
    rows
}

/// Returns the number of objects of each kind. Kinds without any objects are left out.
fn objects(system: &System) -> Table {
    let counts = crate::log::objects::counts(system);
    let (kinds, numbers): (Vec<&str>, Vec<String>) = counts
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(kind, count)| (kind, count.to_string()))
        .unzip();
    let mut rows = table(&kinds);
    rows.add_row(numbers);
    rows
}

fn partitions(system: &System) -> Table {
    let mut rows = table(&[
        "partition",
        "kind",
        "vCPUs",
        "memory",
        "entry",
        "watchdog",
        "time",
        "starts",
    ]);
    for partition in system.partitions() {
        rows.add_row([
            partition.name().to_owned(),
            partition.kind().name().to_owned(),
            partition.vcpus().len().to_string(),
            format_size(partition.memory_size()),
            format!("{:#x}", partition.entry()),
            partition
                .watchdog_ns()
                .map_or_else(|| "-".to_owned(), format_duration),
            if partition.frozen_time() { "frozen" } else { "real" }.to_owned(),
            if partition.autostart() {
                "at boot"
            } else {
                "when told"
            }
            .to_owned(),
        ]);
    }
    rows
}

fn cpus(system: &System) -> Table {
    let mut rows = table(&["pCPU", "policy", "turn", "vCPUs, most important first (priority)"]);
    for row in system.cpu_assignment() {
        let vcpus: Vec<String> = row
            .vcpus
            .iter()
            .map(|(name, index, priority)| format!("{name}/{index} ({priority})"))
            .collect();
        let turn = if row.pcpu.quantum_ns == 0 {
            "-".to_owned()
        } else {
            format_duration(row.pcpu.quantum_ns)
        };
        rows.add_row([
            row.pcpu.number.to_string(),
            row.pcpu.policy_name().to_owned(),
            turn,
            vcpus.join(", "),
        ]);
    }
    rows
}

fn memory(system: &System) -> Table {
    let mut rows = table(&[
        "bus address",
        "size",
        "owner",
        "what",
        "owner sees it at",
        "access",
    ]);
    for row in system.memory_map() {
        rows.add_row([
            format!("{:#012x}", row.host),
            format_size(row.size),
            row.owner,
            row.what,
            row.guest
                .map_or_else(|| "-".to_owned(), |guest| format!("{guest:#x}")),
            row.access,
        ]);
    }
    rows
}

fn interrupts(system: &System) -> Table {
    let mut rows = table(&["line", "device", "owner", "owner's line", "trigger"]);
    for row in system.interrupts() {
        rows.add_row([
            row.line.to_string(),
            row.device,
            row.owner,
            match row.virtual_line {
                Some(line) => line.to_string(),
                None if row.is_event => format!("event {DEVICE_EVENT}"),
                None => "-".to_owned(),
            },
            match row.trigger {
                Trigger::Level => "level",
                Trigger::Edge => "edge",
            }
            .to_owned(),
        ]);
    }
    rows
}

fn networks(system: &System) -> Table {
    let mut rows = table(&["network", "uplink", "partition", "address", "finds it at", "line"]);
    for row in system.interfaces() {
        rows.add_row([
            row.network,
            row.uplink.unwrap_or_else(|| "-".to_owned()),
            row.partition,
            row.address,
            format!("{:#x}", row.registers.base),
            row.line.map_or_else(|| "-".to_owned(), |line| line.to_string()),
        ]);
    }
    rows
}

fn touch(system: &System) -> Table {
    let mut rows = table(&["partition", "can touch", "how"]);
    for row in system.who_can_touch_what() {
        rows.add_row([row.partition, row.object, row.how]);
    }
    rows
}

fn health(system: &System) -> Table {
    let mut rows = table(&[
        "partition",
        "memory",
        "system",
        "hypercall",
        "watchdog",
        "task",
        "restarts allowed",
    ]);
    for partition in system.partitions() {
        let mut cells = vec![partition.name().to_owned()];
        cells.extend(
            partition
                .health()
                .iter()
                .map(|(_, action)| action.name().to_owned()),
        );
        cells.push(
            partition
                .restart_limit()
                .map_or_else(|| "no limit".to_owned(), |limit| limit.to_string()),
        );
        rows.add_row(cells);
    }
    rows
}
