// SPDX-License-Identifier: Apache-2.0
//! The board file that a measurement is written into.
//!
//! The file is a person's work, and systems are checked with it. So a file that the check refuses stays as it
//! is, and none is left that the check would refuse.

use super::table::{Measured, put};
use bulkhead::build::prepare::refusal;
use bulkhead::input::read_text;
use bulkhead::problem::Problem;
use bulkhead::ui::terminal;
use bulkhead_manifest::{Board, read_board};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A board file that the check accepts.
#[derive(Debug)]
pub(super) struct BoardFile {
    /// The path without links: the file is replaced, and a link to it stays one.
    path: PathBuf,
    text: String,
    pub board: Board,
}

impl BoardFile {
    /// Reads and checks a board file.
    pub(super) fn read(path: &Path) -> Result<Self, Problem> {
        let text = read_text(path, "a board file")?;
        let board = read_board(path, &text).map_err(|report| refusal(&report))?;
        let path = path.canonicalize().map_err(Problem::io(path.display()))?;
        Ok(Self { path, text, board })
    }

    /// Reads and checks the file that a measurement of `board` is to be written into.
    pub(super) fn target(path: &Path, board: &Board) -> Result<Self, Problem> {
        let file = Self::read(path)?;
        let (own, other) = (&board.name, &file.board.name);
        if own != other || board.class != file.board.class {
            return Err(Problem::usage(format!(
                "the file to write is of the board `{other}`, and the measurement of `{own}`; nothing is written"
            ))
            .remedy(format!("measure with `--board {}`, or write into a file of `{own}`", path.display())));
        }
        let permissions = fs::metadata(&file.path)
            .map_err(Problem::io(path.display()))?
            .permissions();
        if permissions.readonly() {
            return Err(Problem::usage(format!("{} may not be written", path.display()))
                .remedy("change its permissions, or write into a copy"));
        }
        Ok(file)
    }

    /// Writes the file with the measured values, if the check accepts that.
    pub(super) fn write(&self, tables: &[Measured; 2]) -> Result<(), Problem> {
        let new = put(&self.text, tables)?;
        if let Err(report) = read_board(&self.path, &new) {
            let findings = report.render(terminal::has_colour());
            return Err(Problem::new(format!(
                "the check would refuse the board file with these figures; nothing is written\n{}",
                findings.trim_end()
            ))
            .remedy("correct what the finding names in the arguments or in the file, and write again"));
        }
        replace(&self.path, new.as_bytes()).map_err(Problem::io(self.path.display()))
    }
}

/// Replaces a file as a whole: a reader sees the old text or the new one.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".{}.new", std::process::id()));
    let draft = PathBuf::from(draft);
    let write = || {
        let mut file = File::create_new(&draft)?;
        file.write_all(bytes)?;
        file.set_permissions(fs::metadata(path)?.permissions())?;
        file.sync_all()?;
        fs::rename(&draft, path)
    };
    let written = write();
    if written.is_err() {
        // The draft may be there or not: the first failure is the one to tell.
        let _ = fs::remove_file(&draft);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::super::readings::Costs;
    use super::super::table::{Origin, measured};
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    const BOARD: &str = include_str!("../../../boards/xlnx-zcu102.toml");
    const COSTS: Costs = Costs {
        switch: 2400,
        interrupt: 2424,
        decision: 1200,
        counter_hz: 100_000_000,
        runs: 1000,
    };

    /// A folder of a test, with the file `mine.toml`.
    struct Folder(PathBuf);

    impl Folder {
        fn with(name: &str, text: &str) -> Self {
            let path = std::env::temp_dir().join(format!("bulkhead-calibrate-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("mine.toml"), text).unwrap();
            Self(path)
        }

        fn file(&self) -> PathBuf {
            self.0.join("mine.toml")
        }

        fn text(&self) -> String {
            fs::read_to_string(self.file()).unwrap()
        }

        /// Tells whether the file is the only one, and has this text.
        fn is_only(&self, text: &str) -> bool {
            self.text() == text && fs::read_dir(&self.0).unwrap().count() == 1
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn tables(costs: &Costs, date: &str) -> [Measured; 2] {
        let origin = Origin {
            machine: "box 7",
            date,
            margin: 20,
        };
        measured(costs, &origin)
    }

    fn board() -> Board {
        read_board(Path::new("a board"), BOARD).unwrap()
    }

    #[test]
    fn a_measurement_is_written_and_all_else_stays() {
        let folder = Folder::with("written", BOARD);
        fs::set_permissions(folder.file(), fs::Permissions::from_mode(0o640)).unwrap();
        let link = folder.0.join("link.toml");
        symlink("mine.toml", &link).unwrap();
        let target = BoardFile::target(&link, &board()).unwrap();
        target.write(&tables(&COSTS, "2026-12-03")).unwrap();
        assert!(link.is_symlink());
        assert_eq!(
            fs::metadata(folder.file()).unwrap().permissions().mode() & 0o777,
            0o640
        );
        let new = BoardFile::read(&folder.file()).unwrap().board;
        let (old, costs) = (board().costs.unwrap(), new.costs.unwrap());
        assert_eq!(costs.switch.get(), COSTS.switch);
        assert_eq!(new.measurement.unwrap().machine, "box 7");
        assert_eq!(costs.longest, old.longest);
        assert_eq!(costs.longest_per_vcpu, old.longest_per_vcpu);
        assert_eq!(costs.output, old.output);
        let text = folder.text();
        let comments = BOARD.lines().filter(|line| line.starts_with('#'));
        for comment in comments {
            assert!(text.contains(comment), "{comment}");
        }
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 2, "no draft is left");
    }

    #[test]
    fn a_file_that_the_check_refuses_stays_as_it_is() {
        for text in [
            format!("nonsense = 1\n{BOARD}"),
            format!("{BOARD}\n[overheads]\n"),
            String::new(),
        ] {
            let folder = Folder::with("refused", &text);
            assert!(BoardFile::target(&folder.file(), &board()).is_err(), "{text}");
            assert!(folder.is_only(&text));
        }
    }

    #[test]
    fn figures_that_the_check_refuses_are_not_written() {
        let folder = Folder::with("figures", BOARD);
        let target = BoardFile::target(&folder.file(), &board()).unwrap();
        let absurd = Costs {
            counter_hz: 1 << 40,
            ..COSTS
        };
        for tables in [tables(&COSTS, "2026-13-45"), tables(&absurd, "2026-12-03")] {
            let problem = target.write(&tables).unwrap_err().to_string();
            assert!(problem.contains("nothing is written"), "{problem}");
            assert!(folder.is_only(BOARD));
        }
    }

    #[test]
    fn a_file_of_another_board_is_refused() {
        let other = BOARD.replace("name = \"xlnx-zcu102\"", "name = \"mine\"");
        let folder = Folder::with("other", &other);
        let problem = BoardFile::target(&folder.file(), &board())
            .unwrap_err()
            .to_string();
        assert!(problem.contains("of the board `mine`"), "{problem}");
        assert!(folder.is_only(&other));
    }

    #[test]
    fn a_file_that_may_not_be_written_is_refused() {
        let folder = Folder::with("readonly", BOARD);
        fs::set_permissions(folder.file(), fs::Permissions::from_mode(0o444)).unwrap();
        let problem = BoardFile::target(&folder.file(), &board())
            .unwrap_err()
            .to_string();
        assert!(problem.contains("may not be written"), "{problem}");
        assert!(folder.is_only(BOARD));
    }
}
