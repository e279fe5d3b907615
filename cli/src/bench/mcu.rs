// SPDX-License-Identifier: Apache-2.0
//! The measurement of class armv7m: one C image (`guests/mcu-bench`) on the bare board and as the only partition.
//!
//! It measures what an RTOS does all the time, with a kernel of its own. A bare chip starts from the vector table at address 0: what is
//! put there are the first two words of the image's own.

use super::ping;
use super::rows::{Row, row};
use super::runs::{Reader, Results, launch, prepare, run};
use crate::artifacts::Workspace;
use crate::consoles::Observer;
use crate::launch::{Launch, TemporaryFile};
use crate::problem::Problem;
use crate::progress::Progress;
use crate::session::{self, Limits, NoInput};
use bulkhead_manifest::board::{Board, Emulator};
use object::{Object, ObjectSegment};
use std::path::Path;
use std::time::Duration;

/// Everything that is measured, in the order of the table.
pub(super) const ROWS: &[Row] = &[
    row("read-primask", "MRS PRIMASK", Some(150)),
    row("read-basepri", "MRS BASEPRI", Some(150)),
    row("write-basepri", "MSR BASEPRI", Some(150)),
    row("read-psp", "MRS PSP", Some(150)),
    row("write-psp", "MSR PSP", Some(150)),
    row("cps-pair", "CPSID or CPSIE", Some(150)),
    row("read-private", "load of a register of the CPU (ICSR)", None),
    row("read-systick", "load of the SysTick counter", None),
    row(
        "write-private",
        "store to a register of the CPU (NVIC_ISER)",
        None,
    ),
    row("write-priority", "store of an interrupt's priority, a byte", None),
    row("call", "SVC, its handler and its return", None),
    row("pendsv", "PendSV by ICSR, its handler and its return", None),
    row(
        "interrupt",
        "interrupt by NVIC_ISPR, its handler and its return",
        None,
    ),
    row("critical-section", "critical section of the RTOS (BASEPRI)", None),
    row("mutex", "mutex of the RTOS, locked and unlocked", None),
    row("rtos-switch", "context switch of the RTOS", None),
    row("rtos-semaphore", "semaphore to a more urgent task and back", None),
    row("rtos-message", "message to a more urgent task and back", None),
    row("rtos-interrupt", "interrupt to a more urgent task and back", None),
    ping::ROWS[0],
    ping::ROWS[1],
    ping::ROWS[2],
    ping::ROWS[3],
];

/// Longest run on the wall.
const REAL_LIMIT: Duration = Duration::from_secs(120);

/// Measures on the emulator of a board.
pub(super) fn measure(board: &Board, emulator: &Emulator, progress: &Progress) -> Result<Results, Problem> {
    let manifest = format!(
        "board = \"{}\"\n[partition.bench]\nkind = \"vm\"\nimage = \"@guests/mcu-bench\"\nmemory = \"64K\"\n\
         vcpus = [{{ pcpu = 0 }}]\ndevices = [\"timer1\"]\n",
        board.name
    );
    let system = prepare(&manifest, progress)?;
    let mut results = Results::default();
    progress.step("measuring on the bare board", || {
        let image = Workspace::locate()?.program("guest-mcu-bench");
        let mut reader = Reader::default();
        Bare::new(emulator, &image)?.run(Vec::new(), &mut reader)?;
        results.bare = reader.figures()?;
        Ok(())
    })?;
    progress.step("measuring in a VM", || {
        results.hypervised = run(emulator, &system)?;
        Ok(())
    })?;
    let figures = (&mut results.bare, &mut results.hypervised);
    ping::measure(board, emulator, progress, figures)?;
    system.class_binary().clone_into(&mut results.class_binary);
    Ok(results)
}

/// A program on the bare board.
pub(super) struct Bare {
    emulator: Emulator,
    image: std::path::PathBuf,
    vectors: TemporaryFile,
}

impl Bare {
    /// The program in the ELF file `image`, whose vector table comes first.
    pub(super) fn new(emulator: &Emulator, image: &Path) -> Result<Self, Problem> {
        let bytes = std::fs::read(image).map_err(Problem::io(image.display()))?;
        let mut bare = emulator.clone();
        bare.arguments.clone_from(&emulator.bare);
        Ok(Self {
            emulator: bare,
            image: image.to_owned(),
            vectors: TemporaryFile::write("bin", &reset_words(&bytes)?)?,
        })
    }

    /// Runs it, with what is plugged into the emulator besides.
    pub(super) fn run(&self, plugs: Vec<String>, observer: &mut dyn Observer) -> Result<(), Problem> {
        let limits = Limits {
            virtual_time: None,
            real: Some(REAL_LIMIT),
        };
        let command = [self.command(&launch()), plugs].concat();
        session::run(&command, limits, None, observer, &mut NoInput, None)?;
        Ok(())
    }

    /// The command line of the emulator.
    pub(super) fn command(&self, launch: &Launch) -> Vec<String> {
        let mut command = launch.command(&self.emulator, &self.image, 1, None);
        let vectors = self.vectors.path().display();
        command.push("-device".to_owned());
        command.push(format!("loader,file={vectors},addr=0,force-raw=on"));
        command
    }
}

/// Stack pointer and reset vector: what the lowest segment of an image begins with.
fn reset_words(elf: &[u8]) -> Result<Vec<u8>, Problem> {
    let file = object::File::parse(elf).map_err(|error| Problem::new(error.to_string()))?;
    let first = file.segments().min_by_key(ObjectSegment::address);
    let words = first.and_then(|segment| segment.data().ok()?.get(..8).map(<[u8]>::to_vec));
    words.ok_or_else(|| Problem::new("the image has no vector table"))
}
