// SPDX-License-Identifier: Apache-2.0
//! The systems of class `armv8m` that are measured: a partition that measures, the *client*, and another one.
//!
//! Both run `guests/bench/world-side`. Its file says which capability makes which part.

use super::stretches::Side;
use bulkhead::build::artifacts::Workspace;
use bulkhead::problem::Problem;

/// A kind of partition, with its programs: one for the client, and one for the other partition.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    /// The name of the kind, as a manifest and the keys of rows have it.
    pub(super) name: &'static str,
    programs: [&'static str; 2],
    memory: &'static str,
}

/// A task.
pub(super) const TASK: Kind = Kind {
    name: "task",
    programs: ["world-side-task", "world-side-task-b"],
    memory: "8K",
};
/// A VM.
pub(super) const VM: Kind = Kind {
    name: "vm",
    programs: ["world-side", "world-side-b"],
    memory: "64K",
};
/// The pairs of both kinds.
pub(super) const PAIRS: [[Kind; 2]; 4] = [[TASK, TASK], [VM, TASK], [TASK, VM], [VM, VM]];

/// The names of both partitions.
const NAMES: [&str; 2] = ["client", "other"];

/// The keys of the vCPU of each partition besides its pCPU, and the capabilities of each.
struct Both {
    vcpus: [&'static str; 2],
    capabilities: [&'static str; 2],
}

/// Returns the code of the client, and of the other partition if there is one.
pub(super) fn sides(kinds: &[Kind]) -> Result<Vec<Side>, Problem> {
    let workspace = Workspace::locate()?;
    let names = kinds
        .iter()
        .enumerate()
        .filter_map(|(number, kind)| kind.programs.get(number));
    names
        .map(|name| Side::of(&workspace.program(&format!("guest-{name}"))))
        .collect()
}

/// Returns the system in which both have turns of half a millisecond.
pub(super) fn turns(board: &str, kinds: [Kind; 2]) -> String {
    let domain = |name| format!("[pcpu.0.domain.{name}]\nbudget = \"500us\"\n");
    let both = Both {
        vcpus: NAMES.map(|name| {
            if name == "client" {
                "domain = \"client\""
            } else {
                "domain = \"other\""
            }
        }),
        capabilities: [OTHER, CLIENT],
    };
    format!(
        "board = \"{board}\"\n[pcpu.0]\npolicy = \"domains\"\n{}{}",
        domain("client"),
        domain("other")
    ) + &partitions(kinds, &both)
}

/// The capabilities of a VM and of a task that wait for interrupts.
const CLOCK: &str = "clock = { timer = true }\n";
const EVENTS: &str = "clock = { timer = true }\nevents = { event-gate = \"client\", rights = [\"read\"] }\n";
/// The capabilities of a VM that has interrupts while it computes.
const OWN: &str = "own = { partition = \"client\", rights = [\"control\"] }\n";
/// The capabilities of a partition that computes.
const OTHER: &str = "status = { partition = \"other\", rights = [\"read\"] }\n";
const CLIENT: &str = "status = { partition = \"client\", rights = [\"read\"] }\n";

/// Returns the system in which the client waits for an interrupt while the other one computes.
pub(super) fn late(board: &str, kinds: [Kind; 2]) -> String {
    let [Kind { name, .. }, _] = kinds;
    let waiting = if name == TASK.name { EVENTS } else { CLOCK };
    let both = Both {
        vcpus: ["priority = 20", "priority = 10"],
        capabilities: [waiting, CLIENT],
    };
    format!("board = \"{board}\"\n") + &partitions(kinds, &both)
}

/// Returns the system of a VM that has interrupts while it computes.
pub(super) fn busy(board: &str) -> String {
    format!("board = \"{board}\"\n") + &partition(VM, 0, "", OWN)
}

/// Returns the system in which the client calls the other one, with the priorities of both.
pub(super) fn messages(board: &str, kinds: [Kind; 2], vcpus: [&'static str; 2]) -> String {
    let both = Both {
        vcpus,
        capabilities: [
            "own = { port = \"own\", rights = [\"read\", \"write\"] }\n\
             requests = { port = \"requests\", rights = [\"write\"] }\n",
            "requests = { port = \"requests\", rights = [\"read\"] }\n",
        ],
    };
    format!(
        "board = \"{board}\"\n[port.own]\nmessage-size = 320\ndepth = 1\n\
         [port.requests]\nmessage-size = 320\ndepth = 1\n"
    ) + &partitions(kinds, &both)
}

/// Returns the tables of a VM with a program of an RTOS. A test of Thread-Metric ends after a number of
/// ticks, and must not lose any in the other VM's turn.
pub(super) fn rtos(image: &str) -> String {
    let time = if image == "thread-metric" {
        "frozen"
    } else {
        "real"
    };
    format!(
        "[partition.rtos]\nkind = \"vm\"\nimage = \"@guests/world-{image}\"\nmemory = \"128K\"\n\
         vcpus = [{{ pcpu = 0 }}]\ndevices = [\"timer1\"]\ntime = \"{time}\"\n"
    )
}

/// Returns the tables of a VM that computes beside it.
pub(super) fn other() -> String {
    partition(
        VM,
        1,
        "",
        "status = { partition = \"rtos\", rights = [\"read\"] }\n",
    )
}

fn partitions(kinds: [Kind; 2], both: &Both) -> String {
    let Both { vcpus, capabilities } = both;
    let each = kinds.into_iter().zip(vcpus).zip(capabilities).enumerate();
    each.map(|(number, ((kind, vcpu), capabilities))| partition(kind, number, vcpu, capabilities))
        .collect()
}

/// Returns the tables of the client (0) or the other partition (1).
fn partition(kind: Kind, number: usize, vcpu: &str, capabilities: &str) -> String {
    let Kind {
        name,
        programs,
        memory,
    } = kind;
    let (Some(own), Some(program)) = (NAMES.get(number), programs.get(number)) else {
        return String::new();
    };
    let has_timer = [CLOCK, EVENTS, OWN].contains(&capabilities);
    let devices = if has_timer { "devices = [\"timer1\"]\n" } else { "" };
    format!(
        "[partition.{own}]\nkind = \"{name}\"\nimage = \"@guests/{program}\"\nmemory = \"{memory}\"\n{devices}\
         vcpus = [{{ pcpu = 0, {vcpu} }}]\n[partition.{own}.capabilities]\n{capabilities}"
    )
}
