// SPDX-License-Identifier: Apache-2.0
//! The round trip of a ping, measured with the same program (`guests/bench/mcu-ping`) in several places. The
//! program runs on the bare board, and with the board's Ethernet controller passed through to it. It also
//! runs with a virtual controller in front of the hypervisor's switch, alone and beside a second one. At last
//! it runs with a driver that knows the ring of frames of such a controller (`guests/bench/mcu-ping-ring`,
//! the same sources).
//!
//! The other end is the emulator, which answers at once. The figures therefore count everything that programs
//! and hypervisor execute.

use super::rows::{Row, row};
use super::runs::{Results, counting, launch, prepare};
use bulkhead::build::artifacts::Workspace;
use bulkhead::build::prepare::Prepared;
use bulkhead::emulator::bare::Bare;
use bulkhead::emulator::launch;
use bulkhead::emulator::session::NoInput;
use bulkhead::problem::Problem;
use bulkhead::serial::consoles::{ConsoleLine, Control, Observer};
use bulkhead::ui::progress::Progress;
use bulkhead_manifest::board::{Board, Emulator};

const PASSED_THROUGH: &str = "ping-passed-through";
const BRIDGED: &str = "ping-bridged";
const BRIDGED_PAIR: &str = "ping-bridged-pair";
const NEIGHBOUR: &str = "ping-neighbour";
const RING: &str = "ping-ring";
const RING_PAIR: &str = "ping-ring-pair";
const RING_NEIGHBOUR: &str = "ping-ring-neighbour";

/// The measured operations. The bar of a bridged ping is 15 % of the figure of the bare board.
pub(crate) const ROWS: [Row; 7] = [
    row(PASSED_THROUGH, "ping, controller passed through", None),
    row(BRIDGED, "ping, virtual controller", Some(306)),
    row(BRIDGED_PAIR, "ping, virtual controller beside a second one", None),
    row(
        NEIGHBOUR,
        "ping from one virtual controller to a second one",
        None,
    ),
    row(RING, "ping, virtual controller with a ring of frames", Some(3000)),
    row(
        RING_PAIR,
        "ping, virtual controller with a ring of frames beside a second one",
        None,
    ),
    row(
        RING_NEIGHBOUR,
        "ping from one ring of frames to a second one",
        None,
    ),
];

/// Nanoseconds, and so instructions, of a tick of the program's clock.
const TICK: u64 = 40;

/// A program with its part of a manifest.
struct Program<'a> {
    image: &'a str,
    /// The line that gives the program its controller.
    controller: &'a str,
}

/// Returns the system with the partition that pings.
fn manifest(board: &str, program: &Program<'_>, more: &str) -> String {
    let Program { image, controller } = program;
    format!(
        "board = \"{board}\"\n[pcpu.0]\npolicy = \"fixed-priority\"\n[emulator]\nnetworks = [{{ device = \"ethernet\" }}]\n\
         [partition.ping]\nkind = \"vm\"\nimage = \"@guests/{image}\"\nmemory = \"16K\"\n{controller}\
         vcpus = [{{ pcpu = 0, priority = 10 }}]\n{more}"
    )
}

/// Returns the neighbour that answers pings.
fn neighbour(image: &str, more: &str) -> String {
    format!(
        "[partition.echo]\nkind = \"vm\"\nimage = \"@guests/{image}\"\nmemory = \"16K\"\n{more}\
         network = \"lan\"\nmac = \"02:00:00:00:00:11\"\nvcpus = [{{ pcpu = 0, priority = 12 }}]\n"
    )
}

/// Returns the systems: the key of a ping of the gateway, the key of a ping of the neighbour if there is one,
/// and the manifest.
fn systems(board: &str) -> [(&'static str, Option<&'static str>, String); 5] {
    const LAN: &str = "[network.lan]\nuplink = \"ethernet\"\n";
    const SEEN: &str = "frame-ring = true\n";
    let virtual_one = "network = \"lan\"\nmac = \"02:00:00:00:00:10\"\n";
    let ping = |controller| Program {
        image: "mcu-ping",
        controller,
    };
    let by_ring = format!("{virtual_one}{SEEN}");
    let ring = Program {
        image: "mcu-ping-ring",
        controller: &by_ring,
    };
    let pair = |other: String| format!("{LAN}{other}");
    [
        (
            PASSED_THROUGH,
            None,
            manifest(board, &ping("devices = [\"ethernet\"]\n"), ""),
        ),
        (BRIDGED, None, manifest(board, &ping(virtual_one), LAN)),
        (
            BRIDGED_PAIR,
            Some(NEIGHBOUR),
            manifest(board, &ping(virtual_one), &pair(neighbour("mcu-echo", ""))),
        ),
        (RING, None, manifest(board, &ring, LAN)),
        (
            RING_PAIR,
            Some(RING_NEIGHBOUR),
            manifest(board, &ring, &pair(neighbour("mcu-echo-ring", SEEN))),
        ),
    ]
}

/// Measures on the bare board and in partitions.
pub(crate) fn measure(
    board: &Board,
    emulator: &Emulator,
    progress: &Progress,
    results: &mut Results,
) -> Result<(), Problem> {
    let mut prepared = Vec::new();
    for (gateway, neighbour, text) in systems(&board.name) {
        prepared.push((gateway, neighbour, prepare(&text, progress)?));
    }
    progress.step("measuring pings", || {
        for (gateway, neighbour, system) in &prepared {
            let pings = in_partition(system)?;
            results.hypervised.insert((*gateway).to_owned(), pings.gateway()?);
            if let Some(key) = neighbour {
                results.hypervised.insert((*key).to_owned(), pings.neighbour()?);
            }
        }
        let (.., plugged) = prepared
            .first()
            .ok_or_else(|| Problem::new("nothing to measure"))?;
        let alone = on_board(emulator, plugged)?.gateway()?;
        for row in ROWS {
            results.bare.insert(row.key.to_owned(), alone);
        }
        Ok(())
    })
}

fn in_partition(system: &Prepared) -> Result<Pings, Problem> {
    let mut pings = Pings::default();
    let emulator = system.emulator()?;
    launch::run(
        &launch(),
        system.board_of(&counting(&emulator, &emulator.arguments)),
        system.flash(),
        &mut pings,
        &mut NoInput,
        None,
    )?;
    Ok(pings)
}

/// Runs the program on the bare board, with the network that `system` is plugged into.
fn on_board(emulator: &Emulator, system: &Prepared) -> Result<Pings, Problem> {
    let mut pings = Pings::default();
    let image = Workspace::locate()?.program("guest-mcu-ping");
    let plugs = system.system().attachments().into_iter();
    let plugs = plugs.flat_map(|plug| plug.arguments).collect();
    Bare::new(emulator, &image)?.run(&launch(), plugs, &mut pings)?;
    Ok(pings)
}

/// The program's figures: instructions of a round trip, on the mean.
#[derive(Default)]
struct Pings {
    gateway: Option<u64>,
    neighbour: Option<u64>,
    said: Vec<String>,
}

impl Pings {
    fn gateway(&self) -> Result<u64, Problem> {
        self.gateway.ok_or_else(|| self.failed("gateway"))
    }

    fn neighbour(&self) -> Result<u64, Problem> {
        self.neighbour.ok_or_else(|| self.failed("neighbour"))
    }

    fn failed(&self, whom: &str) -> Problem {
        Problem::new(format!(
            "the guest `mcu-ping` did not reach its {whom}:\n{}",
            self.said.join("\n")
        ))
    }
}

/// Returns the mean in a line of the program, if all its pings were answered.
fn mean(line: &str, whom: &str) -> Option<u64> {
    let rest = line.strip_prefix("ping: ")?.strip_prefix(whom)?;
    let (answered, times) = rest.strip_prefix(": ")?.split_once(" answered;")?;
    let (answered, of) = answered.split_once(" of ")?;
    let (_, sum) = times.split_once("sum ")?;
    let (count, sum): (u64, u64) = (answered.parse().ok()?, sum.parse().ok()?);
    (answered == of).then(|| (sum * TICK).checked_div(count))?
}

impl Observer for Pings {
    fn line(&mut self, line: ConsoleLine<'_>, control: &mut Control) {
        self.gateway = self.gateway.or_else(|| mean(line.text, "gateway"));
        self.neighbour = self.neighbour.or_else(|| mean(line.text, "neighbour"));
        control.stop = line.text == "ping: done";
        self.said.push(line.text.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_is_of_pings_that_were_all_answered() {
        let line = "ping: gateway: 32 of 32 answered; ticks of 40 ns: mean 51, min 51, max 52, sum 1640";
        assert_eq!(mean(line, "gateway"), Some(2050));
        assert_eq!(mean(line, "neighbour"), None);
        assert_eq!(mean(&line.replace("32 of", "31 of"), "gateway"), None);
        assert_eq!(mean("ping: gateway does not answer", "gateway"), None);
    }
}
