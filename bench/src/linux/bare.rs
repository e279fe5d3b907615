// SPDX-License-Identifier: Apache-2.0
//! Linux on the bare board.
//!
//! An emulator that knows how Linux starts gets kernel, RAM disk and command line. One that does not gets an
//! ELF file with the very bytes that the memory of the VM has at its start, device tree included, and a few
//! instructions that put the address of the device tree into its register.

use super::setups::Setup;
use crate::runs::{counting, launch};
use bulkhead::build::artifacts::Workspace;
use bulkhead::build::host::cache_folder;
use bulkhead::build::payloads::{Payloads, Request};
use bulkhead::build::prepare::Prepared;
use bulkhead::emulator::launch::TemporaryFile;
use bulkhead::emulator::session::{self, Limits, NoInput};
use bulkhead::problem::Problem;
use bulkhead::serial::consoles::Observer;
use bulkhead::ui::progress::Progress;
use bulkhead_image::{Image, Portable};
use bulkhead_manifest::board::Emulator;
use bulkhead_manifest::with_init;
use std::path::{Path, PathBuf};

/// The first instructions are here, where the VM's memory has ended and the board's has not.
const START: u32 = 0x0600_0000;
/// Bytes of a header of an ELF file, and of a segment's header there.
const HEADER: usize = 52;
const SEGMENT: usize = 32;

/// Runs Linux on the bare board until `observer` stops it.
pub(super) fn run(
    setup: &Setup,
    emulator: &Emulator,
    system: &Prepared,
    observer: &mut dyn Observer,
    progress: &Progress,
) -> Result<(), Problem> {
    match setup.archive {
        Some(archive) => {
            let read = |path: PathBuf| std::fs::read(&path).map_err(Problem::io(path.display()));
            let kernel = payload(setup.kernel, progress)?;
            let archive = read(payload(archive, progress)?)?;
            let program = read(Workspace::locate()?.program(&format!("guest-{}", setup.guest)))?;
            let disk = TemporaryFile::write("cpio", &with_init(&archive, &program))?;
            let disk = disk.path().display().to_string();
            let more = ["-m", setup.memory, "-initrd", &disk, "-append", setup.bootargs];
            start(emulator, &kernel, &more, observer)
        }
        None => {
            let file = TemporaryFile::write("elf", &memory_of(system)?)?;
            start(emulator, file.path(), &[], observer)
        }
    }
}

fn start(
    emulator: &Emulator,
    kernel: &Path,
    more: &[&str],
    observer: &mut dyn Observer,
) -> Result<(), Problem> {
    let bare = counting(emulator, &emulator.bare);
    let launch = launch();
    let mut command = launch.command(&bare, kernel, 1, None);
    command.extend(more.iter().map(|&word| word.to_owned()));
    let limits = Limits {
        virtual_time: None,
        ..launch.limits()
    };
    session::run(&command, limits, None, observer, &mut NoInput, None)?;
    Ok(())
}

/// Returns the file of a payload from Debian.
fn payload(name: &str, progress: &Progress) -> Result<PathBuf, Problem> {
    let request = Request::read(name).ok_or_else(|| Problem::new(format!("no payload `{name}`")))?;
    Payloads::new(cache_folder()).provide(request, progress)
}

/// Returns an ELF file of the bytes with which the first partition's memory begins.
fn memory_of(system: &Prepared) -> Result<Vec<u8>, Problem> {
    let class = system.system().board().class.facts();
    let image = Image::check(system.image(), class, &Portable);
    let image = image.map_err(|error| Problem::new(format!("the image: {error:?}")))?;
    let partition = image.partitions().first();
    let partition = partition.ok_or_else(|| Problem::new("the image has no partition"))?;
    let address = |value: u64| u32::try_from(value).map_err(|_| Problem::new("an address has over 32 bits"));
    let mut segments = Vec::new();
    for load in image.loads_of(0, 0) {
        let (from, size) = (load.offset.get() as usize, load.size.get() as usize);
        let bytes = image.payload(load.payload.get()).get(from..from + size);
        segments.push((address(load.guest.get())?, bytes.unwrap_or_default().to_vec()));
    }
    let code = start_code(
        address(partition.entry.get())?,
        address(partition.argument.get())?,
    );
    segments.push((START, code));
    Ok(elf(&segments))
}

/// Returns the instructions that load the address of the device tree and go to the kernel.
fn start_code(entry: u32, tree: u32) -> Vec<u8> {
    const LIS: u32 = 15 << 26;
    const ORI: u32 = 24 << 26;
    const MTCTR: u32 = 0x7C09_03A6;
    const BCTR: u32 = 0x4E80_0420;
    let load = |register: u32, value: u32| {
        [
            LIS | register << 21 | value >> 16,
            ORI | register << 21 | register << 16 | value & 0xFFFF,
        ]
    };
    let [high, low] = load(4, entry);
    let code = [load(3, tree), [high, low], [MTCTR | 4 << 21, BCTR]];
    code.as_flattened()
        .iter()
        .flat_map(|word| word.to_be_bytes())
        .collect()
}

/// Returns an ELF file for a 32-bit PowerPC with these segments, of which the last one has the entry.
fn elf(segments: &[(u32, Vec<u8>)]) -> Vec<u8> {
    const EXECUTABLE: u32 = 2 << 16;
    const POWERPC: u32 = 20;
    const LOAD: u32 = 1;
    let mut file = b"\x7FELF\x01\x02\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let mut put = |words: &[u32]| file.extend(words.iter().flat_map(|word| word.to_be_bytes()));
    let entry = segments.last().map_or(0, |(address, _)| *address);
    let sizes = (HEADER as u32) << 16 | SEGMENT as u32;
    let count = (segments.len() as u32) << 16;
    put(&[
        EXECUTABLE | POWERPC,
        1,
        entry,
        HEADER as u32,
        0,
        0,
        sizes,
        count,
        0,
    ]);
    let mut offset = HEADER + SEGMENT * segments.len();
    for (address, bytes) in segments {
        let size = bytes.len() as u32;
        put(&[LOAD, offset as u32, *address, *address, size, size, 7, 4]);
        offset += bytes.len();
    }
    for (_, bytes) in segments {
        file.extend(bytes);
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_its_segments_and_starts_at_the_last_one() {
        use object::{Object, ObjectSegment};
        let bytes = elf(&[
            (0x1000, vec![1, 2, 3, 4]),
            (START, start_code(0x1234_5678, 0x9ABC_DEF0)),
        ]);
        let file = object::File::parse(&*bytes).unwrap();
        assert_eq!(file.entry(), u64::from(START));
        let segments: Vec<_> = file.segments().collect();
        assert_eq!(segments[0].data().unwrap(), [1, 2, 3, 4]);
        assert_eq!(segments[1].address(), u64::from(START));
        let code = segments[1].data().unwrap();
        // lis r3, 0x9abc; ori r3, r3, 0xdef0
        assert_eq!(code[..8], [0x3C, 0x60, 0x9A, 0xBC, 0x60, 0x63, 0xDE, 0xF0]);
    }
}
