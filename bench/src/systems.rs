// SPDX-License-Identifier: Apache-2.0
//! The systems that are measured: the smallest one for each part of the guest, and pCPUs with more and more
//! vCPUs under each policy.
//!
//! On a shared pCPU, the two vCPUs of the guest are before all others wherever the policy can say so. The
//! others are ready all the time: they fill the policy's queues and never run in between.

use std::fmt::Write;
use std::path::Path;

/// vCPUs of a pCPU that is measured.
const SIZES: [usize; 3] = [2, 8, 32];
/// Number of domains beside the guest's own. There can be 16 domains.
const OTHER_DOMAINS: usize = 15;

/// A policy: its name, the further keys of its pCPU, the keys of the guest's two vCPUs, and the keys of each
/// other vCPU.
struct Shared {
    policy: &'static str,
    pcpu: fn(usize) -> String,
    own: [&'static str; 2],
    other: fn(usize) -> String,
}

const POLICIES: &[Shared] = &[
    Shared {
        policy: "fixed-priority",
        pcpu: |_| String::new(),
        own: [", priority = 20"; 2],
        other: |_| ", priority = 4".to_owned(),
    },
    Shared {
        policy: "edf",
        pcpu: |_| String::new(),
        // The first vCPU of the two is always the more urgent.
        own: [
            ", budget = \"2ms\", period = \"10ms\", deadline = \"5ms\"",
            ", budget = \"4ms\", period = \"10ms\"",
        ],
        other: |number| format!(", budget = \"1ms\", period = \"{}ms\"", 1000 + number),
    },
    Shared {
        policy: "arinc653",
        pcpu: windows,
        own: [""; 2],
        other: |_| String::new(),
    },
    Shared {
        policy: "domains",
        pcpu: domains,
        own: [", domain = \"own\""; 2],
        other: |number| format!(", domain = \"d{}\"", number % OTHER_DOMAINS),
    },
];

/// Returns the system for a part of the guest.
pub(super) fn manifest(board: &str, part: &str, vcpus: &str, ballast: Option<&Path>) -> String {
    let guest = Guest {
        image: "@guests/bench",
        memory: "1M",
    };
    of_guest(&guest, board, part, vcpus, ballast)
}

/// A guest that measures: its image and its memory, as a manifest has them.
pub(super) struct Guest {
    pub image: &'static str,
    pub memory: &'static str,
}

/// Returns the system for a part of a guest.
pub(super) fn of_guest(
    guest: &Guest,
    board: &str,
    part: &str,
    vcpus: &str,
    ballast: Option<&Path>,
) -> String {
    let Guest { image, memory } = guest;
    let mut text = format!(
        "board = \"{board}\"\n[partition.bench]\nkind = \"vm\"\nimage = \"{image}\"\nmemory = \"{memory}\"\n\
         vcpus = [{vcpus}]\nbootargs = \"part={part}\"\n"
    );
    if let Some(path) = ballast {
        text.push_str(&format!(
            "capabilities = {{ ballast = {{ partition = \"ballast\", rights = [\"control\"] }} }}\n\
             [partition.ballast]\nkind = \"vm\"\nimage = {path:?}\nmemory = \"8M\"\nvcpus = [{{ pcpu = 0 }}]\nautostart = false\n"
        ));
    }
    text
}

/// Returns the systems in which two vCPUs of the guest share a pCPU with others, by policy and size.
pub(super) fn shared(board: &str) -> Vec<(String, String)> {
    let each = POLICIES
        .iter()
        .flat_map(|policy| SIZES.map(|size| (policy, size)));
    each.map(|(policy, size)| (format!("{}-{size}", policy.policy), one(board, policy, size)))
        .collect()
}

fn one(board: &str, shared: &Shared, size: usize) -> String {
    let others = size.saturating_sub(2);
    let [first, second] = shared.own;
    let own = format!("{{ pcpu = 0{first} }}, {{ pcpu = 0{second} }}");
    let mut text = manifest(board, "switch", &own, None);
    let mut add = |part: std::fmt::Arguments<'_>| text.write_fmt(part).unwrap_or(());
    add(format_args!(
        "[pcpu.0]\npolicy = \"{}\"\n{}",
        shared.policy,
        (shared.pcpu)(others)
    ));
    for number in 0..others {
        add(format_args!(
            "[partition.other{number}]\nkind = \"vm\"\nimage = \"@guests/noisy\"\nmemory = \"1M\"\n\
             vcpus = [{{ pcpu = 0{} }}]\n",
            (shared.other)(number)
        ));
    }
    text
}

/// Returns the system of the guest with further measurements.
pub(super) fn more(board: &str) -> String {
    let guest = Guest {
        image: MORE[1],
        memory: "1M",
    };
    of_guest(&guest, board, "busy", "{ pcpu = 0 }", None)
}

/// Returns the system of a VM with a device that a task on the same pCPU serves.
pub(super) fn served(board: &str) -> String {
    let guest = Guest {
        image: MORE[1],
        memory: "1M",
    };
    let client = of_guest(&guest, board, "served", "{ pcpu = 0, priority = 10 }", None);
    client
        + "[service.random]\npartition = \"server\"\nkind = \"entropy\"\nclient = [{ partition = \"bench\" }]\n\
           [partition.server]\nkind = \"task\"\nimage = \"@guests/device-server\"\nmemory = \"4M\"\n\
           vcpus = [{ pcpu = 0, priority = 20 }]\n[partition.server.capabilities]\nwindows = { service = true }\n\
           events = { event-gate = \"server\", rights = [\"read\"] }\nconsole = { console = true }\n"
}

/// Returns the system in which a VM whose timer wakes it shares a pCPU with other VMs, all of which do this
/// part of the guest.
pub(super) fn timer(board: &str, size: usize, rest: &str) -> String {
    let mut text = manifest(board, "timer", "{ pcpu = 0 }", None);
    for number in 1..size {
        text.push_str(&format!(
            "[partition.other{number}]\nkind = \"vm\"\nimage = \"@guests/bench\"\nmemory = \"1M\"\n\
             vcpus = [{{ pcpu = 0 }}]\nbootargs = \"part={rest}\"\n"
        ));
    }
    text
}

/// Returns the system in which an urgent VM starts beside one with 64 MiB of memory.
pub(super) fn beside(board: &str) -> String {
    let own = manifest(board, "timer", "{ pcpu = 0, priority = 20 }", None);
    own + "[partition.large]\nkind = \"vm\"\nimage = \"@guests/bench\"\nmemory = \"64M\"\n\
           vcpus = [{ pcpu = 0, priority = 4 }]\nbootargs = \"part=rest\"\n"
}

/// Returns the windows. The guest's window is long enough for all its work, and each other partition has a
/// window of its own.
fn windows(others: usize) -> String {
    let mut text = "[pcpu.0.schedule.only]\nframe = \"200ms\"\nwindows = [\n\
                    { partition = \"bench\", offset = \"0ms\", duration = \"100ms\" },\n"
        .to_owned();
    for number in 0..others {
        let window = format!(
            "{{ partition = \"other{number}\", offset = \"{}ms\", duration = \"1ms\" }},\n",
            100 + number
        );
        text.push_str(&window);
    }
    text.push_str("]\n");
    text
}

fn domains(others: usize) -> String {
    let mut text = "[pcpu.0.domain.own]\nbudget = \"100ms\"\n".to_owned();
    for number in 0..others.min(OTHER_DOMAINS) {
        text.push_str(&format!("[pcpu.0.domain.d{number}]\nbudget = \"1ms\"\n"));
    }
    text
}

/// A kind of partition that measures messages or serves: its name in a figure's, and its image for both.
const SIDES: [(&str, &str); 2] = [("task", "@guests/bench-ports"), ("vm", "@guests/bench")];
/// The images with further measurements, for the same kinds.
const MORE: [&str; 2] = ["@guests/bench-more-ports", "@guests/bench-more"];

/// Returns the systems in which one partition calls another, both on one pCPU, by the kinds of both.
pub(super) fn ports(board: &str) -> Vec<(String, String)> {
    let each = SIDES
        .iter()
        .flat_map(|client| SIDES.iter().map(move |server| (client, server)));
    each.map(|(client, server)| {
        (
            format!("{}-{}", client.0, server.0),
            messages(board, client.1, server.1),
        )
    })
    .collect()
}

/// Returns the system of a task that reads a channel, and one that is mapped only while the task holds it.
pub(super) fn held(board: &str) -> String {
    let channel = |name: &str, key: &str| {
        format!(
            "[channel.{name}]\nsize = \"4K\"\n[[channel.{name}.side]]\npartition = \"client\"\n{key}\
             [[channel.{name}.side]]\npartition = \"other\"\n"
        )
    };
    let side = |name, vcpu, capabilities| Side {
        name,
        image: "@guests/bench-ports",
        part: "",
        vcpu,
        capabilities,
    };
    let capabilities = "free = { channel = \"free\" }\ngated = { channel = \"gated\" }\n";
    let client = side("client", "priority = 20", capabilities);
    let other = side("other", "priority = 10", "");
    format!("board = \"{board}\"\n")
        + &channel("free", "")
        + &channel("gated", "held = true\n")
        + &client.partition()
        + &other.partition()
}

/// One of two partitions that share a pCPU.
struct Side<'a> {
    name: &'a str,
    image: &'a str,
    /// The part of a VM's program. A task looks at its capabilities instead.
    part: &'a str,
    /// The keys of the vCPU besides its pCPU.
    vcpu: &'a str,
    capabilities: &'a str,
}

impl Side<'_> {
    /// Returns the tables of the manifest.
    fn partition(&self) -> String {
        let Self {
            name,
            image,
            part,
            vcpu,
            capabilities,
        } = self;
        let is_task = image.ends_with("-ports");
        let (kind, bootargs, console) = if is_task {
            ("task", String::new(), "console = { console = true }\n")
        } else {
            ("vm", format!("bootargs = \"part={part}\"\n"), "")
        };
        format!(
            "[partition.{name}]\nkind = \"{kind}\"\nimage = \"{image}\"\nmemory = \"1M\"\n\
             vcpus = [{{ pcpu = 0, {vcpu} }}]\n{bootargs}[partition.{name}.capabilities]\n{capabilities}{console}"
        )
    }
}

fn messages(board: &str, client: &str, server: &str) -> String {
    let client = Side {
        name: "client",
        image: client,
        part: "ports",
        vcpu: "priority = 10",
        capabilities: "own = { port = \"own\", rights = [\"read\", \"write\"] }\n\
                       requests = { port = \"requests\", rights = [\"write\"] }\n",
    };
    with_server(board, &client, server, "priority = 20")
}

/// Returns the systems in which a partition sends to one that waits and is less urgent, by the kinds of both.
pub(super) fn waiting(board: &str) -> Vec<(String, String)> {
    let clients = SIDES.iter().zip(MORE);
    let each = clients.flat_map(|(side, client)| SIDES.iter().map(move |server| (side.0, client, server)));
    let systems = each.map(|(kind, client, server)| {
        let client = Side {
            name: "client",
            image: client,
            part: "calls",
            vcpu: "priority = 20",
            capabilities: "server = { port = \"requests\", rights = [\"write\"] }\n",
        };
        let text = with_server(board, &client, server.1, "priority = 10");
        (format!("{kind}-{}", server.0), text)
    });
    systems.collect()
}

/// Returns the system of a client, and a server with this program and these keys of its vCPU.
fn with_server(board: &str, client: &Side<'_>, server: &str, vcpu: &str) -> String {
    let server = Side {
        name: "server",
        image: server,
        part: "serve",
        vcpu,
        capabilities: "requests = { port = \"requests\", rights = [\"read\"] }\n",
    };
    format!(
        "board = \"{board}\"\n[port.own]\nmessage-size = 320\ndepth = 1\n[port.requests]\nmessage-size = 320\ndepth = 1\n"
    ) + &client.partition()
        + &server.partition()
}

/// Returns the systems in which a partition has its turn after another one, by the kinds of both.
pub(super) fn turns(board: &str) -> Vec<(String, String)> {
    let domain = |name: &str| format!("[pcpu.0.domain.{name}]\nbudget = \"1ms\"\n");
    let policy = "[pcpu.0]\npolicy = \"domains\"\n".to_owned() + &domain("first") + &domain("second");
    beside_busy(
        board,
        SIDES.map(|(_, image)| image),
        |image| Side {
            name: "client",
            image,
            part: "turns",
            vcpu: "domain = \"second\"",
            capabilities: "turns = { channel = \"stamps\" }\n",
        },
        "domain = \"first\"",
        &policy,
    )
}

/// Returns the systems in which a partition preempts another one, by the kinds of the one that is preempted
/// and of the one that is on time.
pub(super) fn late(board: &str) -> Vec<(String, String)> {
    late_of(board, SIDES.map(|(_, image)| image))
}

/// Returns the same systems for the spread of many times.
pub(super) fn late_often(board: &str) -> Vec<(String, String)> {
    late_of(board, MORE)
}

fn late_of(board: &str, images: [&'static str; 2]) -> Vec<(String, String)> {
    beside_busy(
        board,
        images,
        |image| Side {
            name: "client",
            image,
            part: "late",
            vcpu: "priority = 20",
            capabilities: "clock = { timer = true }\n",
        },
        "priority = 10",
        "",
    )
}

/// Returns the systems of a partition that measures and one that is always ready, by the kinds of both. The
/// one that is always ready is the first in their names. The images are for a task and for a VM that
/// measures.
fn beside_busy(
    board: &str,
    images: [&'static str; 2],
    client: fn(&'static str) -> Side<'static>,
    vcpu: &str,
    policy: &str,
) -> Vec<(String, String)> {
    let side = |name: &str| format!("[[channel.stamps.side]]\npartition = \"{name}\"\n");
    let channel = format!("board = \"{board}\"\n{policy}[channel.stamps]\nsize = \"4K\"\n");
    let channel = channel + &side("client") + &side("busy");
    let each = SIDES.iter().flat_map(|busy| {
        SIDES
            .iter()
            .zip(images)
            .map(move |(own, image)| (busy, own.0, image))
    });
    let systems = each.map(|(busy, own, image)| {
        let name = format!("{}-{own}", busy.0);
        let busy = Side {
            name: "busy",
            image: busy.1,
            part: "stamps",
            vcpu,
            capabilities: "stamps = { channel = \"stamps\" }\n",
        };
        (
            name,
            channel.clone() + &client(image).partition() + &busy.partition(),
        )
    });
    systems.collect()
}

/// Returns the systems in which one VM rings at another: on another pCPU, and on the same one.
pub(super) fn doorbells(board: &str) -> [(&'static str, String); 2] {
    let side = |name: &str| format!("[[channel.bell.side]]\npartition = \"{name}\"\ninterrupt = 48\n");
    let partition = |name: &str, part: &str, pcpu: u32, priority: u32| {
        format!(
            "[partition.{name}]\nkind = \"vm\"\nimage = \"@guests/bench\"\nmemory = \"1M\"\n\
             bootargs = \"part={part}\"\nvcpus = [{{ pcpu = {pcpu}, priority = {priority} }}]\n\
             capabilities = {{ bell = {{ channel = \"bell\" }} }}\n"
        )
    };
    let channel = format!("board = \"{board}\"\n[channel.bell]\nsize = \"4K\"\n");
    let channel = channel + &side("client") + &side("server");
    let system = |part: &str, pcpu: u32| {
        channel.clone() + &partition("client", part, 0, 10) + &partition("server", "doorbell-serve", pcpu, 20)
    };
    [
        ("far", system("doorbell", 1)),
        ("near", system("doorbell-near", 0)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_is_measured_with_every_size() {
        let systems = shared("qemu-virt-aarch64");
        assert_eq!(systems.len(), 12);
        for (name, text) in systems {
            let size: usize = name.rsplit('-').next().unwrap().parse().unwrap();
            assert_eq!(text.matches("{ pcpu = 0").count(), size, "{name}");
        }
    }
}
