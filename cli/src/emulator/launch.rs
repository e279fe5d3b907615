// SPDX-License-Identifier: Apache-2.0
//! From a prepared system to a session: the emulator's command line, the flashable file on disk, limits.

use crate::class;
use crate::emulator::session::{self, Input, Limits, Memory, Outcome, Watched};
use crate::problem::Problem;
use crate::serial::consoles::Observer;
use crate::serial::framing::VirtualTime;
use bulkhead_abi::log::{HANDOVER, HANDOVER_MAGIC, SECRET_LEN};
use bulkhead_manifest::board::Emulator;
use bulkhead_manifest::{Class, System};
use std::fs;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The way in which a system is run.
#[derive(Debug, Clone, Default)]
pub struct Launch {
    /// One instruction takes one nanosecond.
    pub deterministic: bool,
    /// The board's clock waits for real time while all of its CPUs wait, although instructions are counted:
    /// a person types.
    pub paced: bool,
    /// Limit on the board's clock, in seconds.
    pub virtual_seconds: Option<f64>,
    /// Limit on the wall clock, in seconds.
    pub real_seconds: Option<f64>,
    /// Wait for a debugger on this port.
    pub gdb: Option<u16>,
    /// Address of the hypervisor's log. The log is read at the end, if the board's emulator allows it.
    pub log_base: Option<u64>,
    /// Collect the trace. This needs `log_base`.
    pub trace: bool,
    /// Stretches of the board's memory that are read at the end: address and bytes. This needs `log_base`.
    pub kept: Vec<(u64, usize)>,
    /// The class of the board, whose guests are watched then.
    pub class: Option<Class>,
    /// The secret of the device, which a boot stage hands over. This needs `log_base`.
    pub device_secret: Option<DeviceSecret>,
}

/// The secret of a device.
pub type DeviceSecret = [u8; SECRET_LEN];

impl Launch {
    /// Lets the tool read the log of a system, and watch its guests.
    pub fn look_at(&mut self, system: &System) {
        self.log_base = Some(system.log_base());
        self.class = Some(system.board().class);
    }

    /// Returns the limits of the session. A system that hangs prints nothing, and then the tool does not see
    /// its clock. A limit on the board's clock therefore brings one on the wall clock with it.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let implied = self.virtual_seconds.map(|seconds| 30.0 + 10.0 * seconds);
        Limits {
            virtual_time: self.virtual_seconds.map(|seconds| VirtualTime {
                micros: (seconds * 1e6) as u64,
            }),
            real: self.real_seconds.or(implied).map(Duration::from_secs_f64),
        }
    }

    /// Returns the command line of the emulator.
    #[must_use]
    pub fn command(
        &self,
        emulator: &Emulator,
        image: &Path,
        cpus: usize,
        monitor: Option<&Path>,
    ) -> Vec<String> {
        let mut command = vec![emulator.program.clone()];
        command.extend(emulator.arguments.iter().cloned());
        if self.deterministic {
            let pace = |argument: &String| {
                if self.paced {
                    argument.replace("sleep=off", "sleep=on")
                } else {
                    argument.clone()
                }
            };
            command.extend(emulator.deterministic.iter().map(pace));
        }
        if self.gdb.is_some() {
            command.extend(emulator.gdb.iter().cloned());
        }
        if monitor.is_some() {
            command.extend(emulator.monitor.iter().cloned());
        }
        let monitor = monitor.map(|path| path.display().to_string()).unwrap_or_default();
        let port = self.gdb.unwrap_or_default().to_string();
        let image = image.display().to_string();
        for argument in &mut command {
            *argument = argument
                .replace("{cpus}", &cpus.to_string())
                .replace("{port}", &port);
            *argument = argument.replace("{image}", &image).replace("{monitor}", &monitor);
        }
        command
    }
}

/// A device secret for the emulator: the file that is handed over, and the arguments that do so.
struct Handover {
    arguments: Vec<String>,
    /// The file lives as long as the emulator, which reads it at each reset.
    _file: TemporaryFile,
}

impl Launch {
    /// Prepares the device secret for the emulator of a board.
    fn handover(&self, emulator: &Emulator) -> Result<Option<Handover>, Problem> {
        let (Some(secret), Some(log)) = (&self.device_secret, self.log_base) else {
            return Ok(None);
        };
        if emulator.device_secret.is_empty() {
            return Err(
                Problem::new("the emulator of this board hands over no device secret")
                    .remedy("its board file needs `device-secret` in the table `emulator`"),
            );
        }
        let file = TemporaryFile::write("secret", &[&HANDOVER_MAGIC[..], secret].concat())?;
        let address = format!("{:#x}", log.saturating_add(HANDOVER as u64));
        let path = file.path().display().to_string().replace(',', ",,");
        let fill = |text: &String| text.replace("{address}", &address).replace("{secret}", &path);
        Ok(Some(Handover {
            arguments: emulator.device_secret.iter().map(fill).collect(),
            _file: file,
        }))
    }
}

/// A file for the emulator. The file is deleted when this value is dropped.
#[derive(Debug)]
pub struct TemporaryFile(PathBuf);

impl TemporaryFile {
    /// Writes `bytes` to a file of its own whose name ends in `.extension`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(extension: &str, bytes: &[u8]) -> Result<Self, Problem> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("bulkhead-{}-{number}.{extension}", std::process::id()));
        let file = Self(path);
        fs::write(&file.0, bytes).map_err(Problem::io(file.0.display()))?;
        Ok(file)
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // Only disk space is at stake.
        let _ = fs::remove_file(&self.0);
    }
}

/// Removes this process's temporary files when a signal ends it. A command that listens to signals itself has
/// no need of this.
///
/// # Errors
/// The signals cannot be caught.
pub fn clean_up_when_killed() -> Result<(), Problem> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals =
        signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(Problem::io("signals"))?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            let own = format!("bulkhead-{}-", std::process::id());
            for entry in fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
                if entry.file_name().to_string_lossy().starts_with(&own) {
                    // Only disk space is at stake.
                    let _ = fs::remove_file(entry.path());
                }
            }
            // The process ends by the signal, as its caller expects; else by the code that says so.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

/// The board that a system runs on.
#[derive(Clone, Copy)]
pub struct Board<'a> {
    /// Its emulator.
    pub emulator: &'a Emulator,
    /// The CPUs that the system uses.
    pub cpus: usize,
}

/// Runs `flash` on a board's emulator.
///
/// # Errors
/// The emulator cannot be run.
pub fn run(
    launch: &Launch,
    board: Board<'_>,
    flash: &[u8],
    observer: &mut dyn Observer,
    input: &mut dyn Input,
    signals: Option<BorrowedFd<'_>>,
) -> Result<Outcome, Problem> {
    let file = TemporaryFile::write("bin", flash)?;
    let socket = (launch.log_base.is_some() && !board.emulator.monitor.is_empty())
        .then(crate::emulator::monitor::socket_path);
    let mut command = launch.command(board.emulator, file.path(), board.cpus, socket.as_deref());
    let handover = launch.handover(board.emulator)?;
    command.extend(handover.iter().flat_map(|handover| handover.arguments.clone()));
    let memory = socket.map(|socket| Memory {
        socket,
        log_base: launch.log_base,
        trace: launch.trace,
        kept: launch.kept.clone(),
        watch: launch.gdb.is_none().then_some(Watched {
            counted: launch.deterministic && !board.emulator.deterministic.is_empty(),
            class: launch.class.map(class::named),
        }),
    });
    let mut outcome = session::run(&command, launch.limits(), memory, observer, input, signals)?;
    outcome.messages = worth_reading(&outcome.messages, &board.emulator.ignore);
    Ok(outcome)
}

/// Returns the emulator's messages without those that the board file calls harmless.
fn worth_reading(messages: &str, ignore: &[String]) -> String {
    let is_harmless = |line: &&str| ignore.iter().any(|part| line.contains(part));
    let kept: Vec<&str> = messages.lines().filter(|line| !is_harmless(line)).collect();
    kept.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_in() {
        let board = bulkhead_manifest::boards()
            .into_iter()
            .find(|board| board.name == "qemu-virt-aarch64")
            .unwrap();
        let emulator = board.emulator.unwrap();
        let launch = Launch {
            deterministic: true,
            gdb: Some(1234),
            ..Launch::default()
        };
        let command = launch.command(&emulator, Path::new("/x/y z.bin"), 3, Some(Path::new("/x/m")));
        assert_eq!(command[0], "qemu-system-aarch64");
        assert!(
            command.windows(2).any(|pair| pair == ["-smp", "3"]),
            "{command:?}"
        );
        assert!(
            command.windows(2).any(|pair| pair == ["-kernel", "/x/y z.bin"]),
            "{command:?}"
        );
        assert!(command.contains(&"tcp:127.0.0.1:1234".to_owned()), "{command:?}");
        assert!(
            command.contains(&"unix:/x/m,server=on,wait=off".to_owned()),
            "{command:?}"
        );
        assert!(command.contains(&"-icount".to_owned()), "{command:?}");
        assert!(
            !command.iter().any(|argument| argument.contains('{')),
            "{command:?}"
        );
    }

    #[test]
    fn a_board_that_somebody_types_to_does_not_run_ahead_of_the_real_time() {
        for board in bulkhead_manifest::boards() {
            let Some(emulator) = board.emulator else { continue };
            let launch = Launch {
                deterministic: true,
                paced: true,
                ..Launch::default()
            };
            let command = launch.command(&emulator, Path::new("/x"), 1, None).join(" ");
            assert!(!command.contains("sleep=off"), "{command}");
        }
    }

    #[test]
    fn harmless_messages_are_left_out() {
        let ignore = ["no peer".to_owned()];
        assert_eq!(
            worth_reading("hub has no peer\ndisk is full\nno peer", &ignore),
            "disk is full"
        );
        assert_eq!(worth_reading("a\nb", &[]), "a\nb");
    }

    #[test]
    fn a_virtual_limit_implies_a_real_one() {
        assert_eq!(Launch::default().limits().real, None);
        let launch = Launch {
            virtual_seconds: Some(2.0),
            ..Launch::default()
        };
        assert_eq!(launch.limits().real, Some(Duration::from_secs(50)));
    }
}
