// SPDX-License-Identifier: Apache-2.0
//! A program on the bare board. A microcontroller starts from the vector table at address 0, so the tool puts
//! the first two words of the program there.

use super::launch::{Launch, TemporaryFile};
use super::session::{self, Limits, NoInput};
use crate::problem::Problem;
use crate::serial::consoles::Observer;
use bulkhead_manifest::board::Emulator;
use object::{Object, ObjectSegment};
use std::path::Path;

/// A program on the bare board.
pub struct Bare {
    emulator: Emulator,
    image: std::path::PathBuf,
    cpus: usize,
    vectors: Option<TemporaryFile>,
}

impl Bare {
    /// Returns the program of a microcontroller in the ELF file `image`, whose vector table comes first.
    ///
    /// # Errors
    /// The file cannot be read, or is no program with a vector table.
    pub fn new(emulator: &Emulator, image: &Path) -> Result<Self, Problem> {
        let bytes = crate::input::read(image, "the program for the bare board")?;
        Ok(Self {
            vectors: Some(TemporaryFile::write("bin", &reset_words(&bytes)?)?),
            ..Self::as_it_is(emulator, image)
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
        command
    }
}

/// Returns the stack pointer and the reset vector, with which the lowest segment of an image begins.
fn reset_words(elf: &[u8]) -> Result<Vec<u8>, Problem> {
    let file = object::File::parse(elf).map_err(|error| Problem::new(error.to_string()))?;
    let first = file.segments().min_by_key(ObjectSegment::address);
    let words = first.and_then(|segment| segment.data().ok()?.get(..8).map(<[u8]>::to_vec));
    words.ok_or_else(|| Problem::new("the image has no vector table"))
}
