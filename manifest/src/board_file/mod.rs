// SPDX-License-Identifier: Apache-2.0
//! Board files: the ones that come with the tool, and the files of the user.
//!
//! The boards of the repository (`boards/*.toml`) are compiled in, so that the tool works from anywhere. A
//! manifest can also name a board file of its own. A new board needs a data file and one line in `EMBEDDED`.
#![deny(clippy::arithmetic_side_effects)]

mod keys;
pub(crate) mod measurement;
mod read;

use std::path::Path;

use crate::board::Board;
use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::nearest::nearest;
use crate::payload::{ordinary_file, reason};
pub(crate) use keys::SCHEMA;
pub use measurement::is_day;
use read::read;

/// The board files that come with the tool.
const EMBEDDED: &[(&str, &str)] = &[
    (
        "qemu-virt-aarch64",
        include_str!("../../../boards/qemu-virt-aarch64.toml"),
    ),
    (
        "qemu-virt-aarch64-gicv2",
        include_str!("../../../boards/qemu-virt-aarch64-gicv2.toml"),
    ),
    ("mps2-an386", include_str!("../../../boards/mps2-an386.toml")),
    ("mps2-an500", include_str!("../../../boards/mps2-an500.toml")),
    ("mps2-an505", include_str!("../../../boards/mps2-an505.toml")),
    ("mps2-an521", include_str!("../../../boards/mps2-an521.toml")),
    ("ref405ep", include_str!("../../../boards/ref405ep.toml")),
    (
        "qemu-q35-x86_64",
        include_str!("../../../boards/qemu-q35-x86_64.toml"),
    ),
    (
        "raspberry-pi-4",
        include_str!("../../../boards/raspberry-pi-4.toml"),
    ),
    ("xlnx-versal", include_str!("../../../boards/xlnx-versal.toml")),
    ("xlnx-zcu102", include_str!("../../../boards/xlnx-zcu102.toml")),
];

/// Returns the names of the boards that come with the tool.
#[must_use]
pub fn board_names() -> Vec<&'static str> {
    EMBEDDED.iter().map(|(name, _)| *name).collect()
}

/// Returns the boards that come with the tool. A board that fails its own checks is left out; a test sees to
/// it that there is no such board.
#[must_use]
pub fn boards() -> Vec<Board> {
    let mut report = Report::default();
    EMBEDDED
        .iter()
        .filter_map(|(name, text)| read(Path::new(name), text, &mut report))
        .collect()
}

/// Largest size of a board file. Larger ones are refused.
const BOARD_MAX: u64 = 1 << 20;

/// Reads and checks the text of the board file at `path`, as the check of a system that names the file does.
///
/// # Errors
/// The findings of that check, if one is an error.
pub fn read_board(path: &Path, text: &str) -> Result<Board, Report> {
    let mut report = Report::default();
    let board = read(path, text, &mut report);
    report.sort();
    board.ok_or(report)
}

/// Returns the board that a manifest names at `place`. `base` is the folder of the manifest.
pub(crate) fn find(name: &str, place: Place, base: &Path, report: &mut Report) -> Option<Board> {
    if let Some((_, text)) = EMBEDDED.iter().find(|(embedded, _)| *embedded == name) {
        return read(Path::new(&format!("boards/{name}.toml")), text, report);
    }
    if !name.ends_with(".toml") {
        let message = format!("there is no board `{name}`");
        let help = match nearest(name, board_names()) {
            Some(nearest) => format!(
                "did you mean \"{nearest}\"? A board file of your own is named by its path, ending in .toml"
            ),
            None => format!(
                "known boards: {}; a board file of your own is named by its path, ending in .toml",
                board_names().join(", ")
            ),
        };
        report.push(Diagnostic::at(Code::UnknownBoard, place, message).help(help));
        return None;
    }
    let text = ordinary_file(&base.join(name), BOARD_MAX)
        .and_then(|bytes| String::from_utf8(bytes).map_err(|_| std::io::ErrorKind::InvalidData.into()));
    match text {
        Ok(text) => read(&base.join(name), &text, report),
        Err(error) => {
            let message = format!("board file `{name}` cannot be read: {}", reason(&error));
            report.push(
                Diagnostic::at(Code::Unreadable, place, message)
                    .help("the path is relative to the folder of the manifest"),
            );
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{board_names, boards};
    use crate::driver::{CADENCE_UART, GIC_V2, GIC_V3, Role};
    use crate::window::Window;

    #[test]
    fn embedded_boards_pass_their_checks() {
        assert_eq!(boards().len(), board_names().len());
    }

    #[test]
    fn virt_has_its_transports() {
        let boards = boards();
        let board = &boards[0];
        let last = board.device("virtio-mmio-31").expect("transport 31");
        assert_eq!(
            last.registers[0],
            Window {
                base: 0x0a00_3e00,
                size: 0x200
            }
        );
        assert_eq!(last.interrupts[0].line.get(), 79);
        assert_eq!(board.page_neighbours(last).count(), 7);
        assert_eq!(board.load_address, 0x4020_0000);
    }

    #[test]
    fn one_machine_with_two_controllers_differs_in_nothing_else() {
        let boards = boards();
        let (v3, v2) = (&boards[0], &boards[1]);
        let (of_v3, of_v2) = (v3.driven(Role::Interrupts), v2.driven(Role::Interrupts));
        let (of_v3, of_v2) = (of_v3.expect("a GICv3"), of_v2.expect("a GICv2"));
        assert_eq!((of_v3.driver, of_v2.driver), (&GIC_V3, &GIC_V2));
        assert_eq!(of_v3.lines, of_v2.lines);
        assert_eq!(v3.cpus, v2.cpus);
        assert_eq!(v3.ram, v2.ram);
        assert_eq!(v3.load_address, v2.load_address);
        assert_eq!(v3.devices.len(), v2.devices.len());
    }

    #[test]
    fn a_board_without_ram_at_the_usual_place() {
        let boards = boards();
        let board = boards
            .iter()
            .find(|board| board.name == "xlnx-zcu102")
            .expect("compiled in");
        assert_eq!(
            board.ram,
            [Window {
                base: 0,
                size: 2 << 30
            }]
        );
        assert_eq!(board.load_address, 0x20_0000);
        let console = board.driven(Role::Console);
        assert_eq!(console.map(|console| console.driver), Some(&CADENCE_UART));
        let controller = board.driven(Role::Interrupts).expect("a GICv2");
        assert_eq!(controller.windows.len(), 4);
        assert_eq!(board.hypervisor_devices().len(), 5);
    }
}
