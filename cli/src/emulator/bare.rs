// SPDX-License-Identifier: Apache-2.0
//! A program on the bare board. A microcontroller starts from the vector table at address 0, so the tool puts
//! the first two words of the program there. On a class with a [starter](class::Starter) the board starts the
//! starter, which is told where the program's vector table is.

use super::launch::{Launch, TemporaryFile};
use super::session::{self, Limits, NoInput};
use crate::build::artifacts::Workspace;
use crate::class;
use crate::problem::Problem;
use crate::serial::consoles::Observer;
use crate::ui::progress::Progress;
use bulkhead_manifest::Board;
use bulkhead_manifest::board::Emulator;
use object::{Object, ObjectSegment};
use std::path::Path;

/// A program on the bare board.
pub struct Bare {
    emulator: Emulator,
    image: std::path::PathBuf,
    cpus: usize,
    vectors: Option<TemporaryFile>,
    /// Further programs and words, as the emulator's arguments.
    loaded: Vec<String>,
}

impl Bare {
    /// Returns the program of a microcontroller in the ELF file `image`, whose vector table comes first.
    ///
    /// # Errors
    /// The file cannot be read, or is no program with a vector table.
    pub fn new(emulator: &Emulator, image: &Path) -> Result<Self, Problem> {
        let bytes = crate::input::read(image, "the program for the bare board")?;
        Ok(Self {
            vectors: Some(TemporaryFile::write("bin", &vector_table(&bytes)?.1)?),
            ..Self::as_it_is(emulator, image)
        })
    }

    /// Returns the program of a microcontroller in the ELF file `image`, which finds the CPU as in a VM of
    /// the board's class. Builds the class's starter, if it has one.
    ///
    /// # Errors
    /// See [`Bare::new`]. The starter cannot be built.
    pub fn of_a_vm(
        board: &Board,
        emulator: &Emulator,
        image: &Path,
        progress: &Progress,
    ) -> Result<Self, Problem> {
        let Some(starter) = class::of(board).starter() else {
            return Self::new(emulator, image);
        };
        let workspace = Workspace::locate()?;
        workspace.build_once(&[starter.program.to_owned()], progress)?;
        let bytes = crate::input::read(image, "the program for the bare board")?;
        let (vectors, _) = vector_table(&bytes)?;
        let loaded = [
            format!("loader,file={}", image.display()),
            format!(
                "loader,addr={:#x},data={vectors:#x},data-len=4",
                starter.vectors_at
            ),
        ];
        Ok(Self {
            loaded: loaded
                .into_iter()
                .flat_map(|what| ["-device".to_owned(), what])
                .collect(),
            ..Self::as_it_is(emulator, &workspace.program(starter.program))
        })
    }

    /// Returns the program in `image`, which the emulator loads and starts by itself.
    #[must_use]
    pub fn as_it_is(emulator: &Emulator, image: &Path) -> Self {
        let mut bare = emulator.clone();
        bare.arguments.clone_from(&emulator.bare);
        Self {
            emulator: bare,
            image: image.to_owned(),
            cpus: 1,
            vectors: None,
            loaded: Vec::new(),
        }
    }

    /// Lets the board have this many CPUs instead of one.
    #[must_use]
    pub fn with_cpus(self, cpus: usize) -> Self {
        Self { cpus, ..self }
    }

    /// Runs the program until `observer` has seen enough or a limit of `launch` is reached, with further
    /// `plugs` in the emulator. The bare board's clock is not known, so its limit is the one of real time.
    ///
    /// # Errors
    /// The emulator does not start.
    pub fn run(
        &self,
        launch: &Launch,
        plugs: Vec<String>,
        observer: &mut dyn Observer,
    ) -> Result<(), Problem> {
        let limits = Limits {
            virtual_time: None,
            ..launch.limits()
        };
        let command = [self.command(launch), plugs].concat();
        session::run(&command, limits, None, observer, &mut NoInput, None)?;
        Ok(())
    }

    /// Returns the command line of the emulator.
    #[must_use]
    pub fn command(&self, launch: &Launch) -> Vec<String> {
        let mut command = launch.command(&self.emulator, &self.image, self.cpus, None);
        if let Some(vectors) = &self.vectors {
            command.push("-device".to_owned());
            command.push(format!(
                "loader,file={},addr=0,force-raw=on",
                vectors.path().display()
            ));
        }
        command.extend(self.loaded.iter().cloned());
        command
    }
}

/// Returns the address of an image's vector table, and its first two words: the stack pointer and the reset
/// vector. The lowest segment begins with the table.
fn vector_table(elf: &[u8]) -> Result<(u64, Vec<u8>), Problem> {
    let file = object::File::parse(elf).map_err(|error| Problem::new(error.to_string()))?;
    let first = file.segments().min_by_key(ObjectSegment::address);
    let words = first.and_then(|segment| {
        let words = segment.data().ok()?.get(..8).map(<[u8]>::to_vec)?;
        Some((segment.address(), words))
    });
    words.ok_or_else(|| Problem::new("the image has no vector table"))
}
