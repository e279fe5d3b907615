// SPDX-License-Identifier: Apache-2.0
//! The system calls of Linux that the measurements are about.
//!
//! `linux/<architecture>.rs` has the numbers and all else that differs. Structures are the same everywhere:
//! words of the CPU. A call that fails ends the program and prints the name of the call, so that failures are
//! not measured.

#[cfg_attr(target_arch = "aarch64", path = "linux/aarch64.rs")]
#[cfg_attr(target_arch = "x86_64", path = "linux/x86_64.rs")]
#[cfg_attr(target_arch = "powerpc", path = "linux/powerpc.rs")]
mod cpu;
/// The calls of applications. The kernel for PowerPC is built without what applications need.
#[cfg(not(target_arch = "powerpc"))]
pub mod files;
#[cfg(not(target_arch = "powerpc"))]
pub mod network;

use core::ffi::CStr;
use core::fmt::{self, Write};
pub(crate) use cpu::now;
use cpu::{
    CLONE, CLOSE, DUP3, EXECVE, EXIT_GROUP, GETPPID, GETRANDOM, KILL, MMAP, MOUNT, MUNMAP, NANOSLEEP,
    NEWFSTATAT, OPENAT, PIPE2, PRCTL, READ, REBOOT, RT_SIGACTION, WAIT4, WRITE, call,
};

const AT_FDCWD: usize = -100_isize as usize;
const O_RDWR: usize = 2;
/// Rights of a new file or folder for its owner.
const OWNERS: usize = 0o700;
const SIGUSR1: usize = 10;
const SIGCHLD: usize = 17;
const PR_SET_TIMERSLACK: usize = 29;
const PROT_READ_WRITE: usize = 3;
const MAP_PRIVATE_ANONYMOUS: usize = 0x22;
/// The program's name when it has executed itself; the kernel starts it by its path.
const AGAIN: &CStr = c"again";
/// LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2 and LINUX_REBOOT_CMD_POWER_OFF.
const POWER_OFF: [usize; 3] = [0xFEE1_DEAD, 0x2812_1969, 0x4321_FEDC];

/// Runs first: the kernel enters here. The stack holds the number of arguments and a pointer to each. The
/// first argument is the name under which the program was started, and `letter` is its first letter.
extern "C" fn entered(letter: u8) -> ! {
    crate::main(AGAIN.to_bytes().starts_with(&[letter]))
}

/// Returns the result, unless the call failed. The last 4095 numbers are errors, and others addresses.
fn good(what: &str, result: isize) -> usize {
    if (-4095..0).contains(&result) {
        say(format_args!("{what}: error {}\n", -result));
        exit(1)
    }
    result as usize
}

/// An open file.
#[derive(Clone, Copy)]
pub struct File(usize);

impl File {
    /// The console.
    const OUTPUT: Self = Self(1);

    /// Opens a file for reading and writing.
    pub fn open(path: &CStr) -> Self {
        Self::open_with(path, O_RDWR)
    }

    fn open_with(path: &CStr, flags: usize) -> Self {
        let arguments = [AT_FDCWD, path.as_ptr() as usize, flags, OWNERS, 0, 0];
        // SAFETY: the path ends with a zero and is only read.
        Self(good("openat", unsafe { call(OPENAT, arguments) }))
    }

    /// Closes it.
    pub fn close(self) {
        // SAFETY: no memory is involved.
        good("close", unsafe { call(CLOSE, [self.0, 0, 0, 0, 0, 0]) });
    }

    /// Reads one byte.
    pub fn read(self) -> u8 {
        let mut byte = [0_u8];
        self.read_some(&mut byte);
        byte[0]
    }

    /// Reads as much as there is and fits, and returns the number of bytes.
    pub fn read_some(self, into: &mut [u8]) -> usize {
        let arguments = [self.0, into.as_mut_ptr() as usize, into.len(), 0, 0, 0];
        // SAFETY: only the bytes of the slice are written.
        good("read", unsafe { call(READ, arguments) })
    }

    /// Writes all bytes.
    pub fn write_all(self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = rest.get(self.write(rest)..).unwrap_or(&[]);
        }
    }

    /// Writes as much as it takes.
    pub fn write(self, bytes: &[u8]) -> usize {
        let arguments = [self.0, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0];
        // SAFETY: the bytes are only read. A failure cannot be told if this is the console.
        usize::try_from(unsafe { call(WRITE, arguments) }).unwrap_or(bytes.len())
    }
}

struct Output;

impl Write for Output {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        File::OUTPUT.write_all(text.as_bytes());
        Ok(())
    }
}

/// Prints to the console.
pub fn say(text: fmt::Arguments<'_>) {
    // It does not fail.
    let _ = Output.write_fmt(text);
}

/// Waits until the kernel has random numbers. Until then the kernel makes some in every system call, to move
/// its stack about.
pub fn wait_for_randomness() {
    let mut byte = 0_u8;
    // SAFETY: one byte is written, to a variable of ours.
    good("getrandom", unsafe {
        call(GETRANDOM, [&raw mut byte as usize, 1, 0, 0, 0, 0])
    });
}

/// Makes the smallest system call of a kernel.
pub fn parent() {
    // SAFETY: no memory is involved.
    unsafe { call(GETPPID, [0; 6]) };
}

/// Asks what the kernel knows of a file.
pub fn status(path: &CStr) {
    let mut room = [0_u64; 18];
    let arguments = [
        AT_FDCWD,
        path.as_ptr() as usize,
        room.as_mut_ptr() as usize,
        0,
        0,
        0,
    ];
    // SAFETY: `struct stat` has at most 144 bytes, and `room` is ours; the path is only read.
    good("newfstatat", unsafe { call(NEWFSTATAT, arguments) });
}

/// Mounts a file system of this kind.
pub fn mount(kind: &CStr, at: &CStr) {
    let (kind, at) = (kind.as_ptr() as usize, at.as_ptr() as usize);
    // SAFETY: both names are only read.
    good("mount", unsafe { call(MOUNT, [kind, at, kind, 0, 0, 0]) });
}

/// Mounts the file system of devices and opens the console.
pub fn mount_devices() {
    mount(c"devtmpfs", c"/dev");
    let console = File::open(c"/dev/console");
    for number in 0..3 {
        // SAFETY: no memory is involved.
        good("dup3", unsafe { call(DUP3, [console.0, number, 0, 0, 0, 0]) });
    }
}

/// `struct sigaction`.
#[repr(C)]
struct Action {
    handler: extern "C" fn(i32),
    flags: usize,
    restorer: usize,
    mask: [u32; 2],
}

extern "C" fn on_signal(_number: i32) {}

/// Installs a handler.
pub fn handle_signals() {
    let [flags, restorer] = cpu::restorer();
    let action = Action {
        handler: on_signal,
        flags,
        restorer,
        mask: [0; 2],
    };
    let arguments = [SIGUSR1, &raw const action as usize, 0, size_of::<u64>(), 0, 0];
    // SAFETY: the structure is only read, and the handler touches nothing.
    good("rt_sigaction", unsafe { call(RT_SIGACTION, arguments) });
}

/// Sends the first process the signal; returns when the handler has, in that process.
pub fn signal_first() {
    // SAFETY: no memory is involved.
    good("kill", unsafe { call(KILL, [1, SIGUSR1, 0, 0, 0, 0]) });
}

/// Returns the two ends of a pipe: for reading, for writing.
pub fn pipe() -> [File; 2] {
    let mut ends = [0_i32; 2];
    // SAFETY: two words are written, to a variable of ours.
    good("pipe2", unsafe {
        call(PIPE2, [ends.as_mut_ptr() as usize, 0, 0, 0, 0, 0])
    });
    ends.map(|end| File(end as usize))
}

/// Starts a process that does `action` and ends.
pub fn fork(action: impl FnOnce()) {
    // SAFETY: the child goes on with a copy of this process's memory and stack.
    let process = good("clone", unsafe { call(CLONE, [SIGCHLD, 0, 0, 0, 0, 0]) });
    if process == 0 {
        action();
        exit(0);
    }
}

/// Waits until a child has ended. A child that has failed ends the program.
pub fn wait() {
    let any = -1_isize as usize;
    let mut status = 0_i32;
    // SAFETY: one word is written, to a variable of ours.
    good("wait4", unsafe {
        call(WAIT4, [any, &raw mut status as usize, 0, 0, 0, 0])
    });
    if status != 0 {
        fail(format_args!("a child: status {status}"));
    }
}

/// Ends the program, with the reason.
pub fn fail(reason: fmt::Arguments<'_>) -> ! {
    say(format_args!("failed: {reason}\n"));
    exit(1)
}

/// Becomes this program anew, by the name that tells it to end at once.
pub fn execute() {
    let path = c"/init".as_ptr();
    let arguments = [AGAIN.as_ptr(), core::ptr::null()];
    let list = arguments.as_ptr() as usize;
    // SAFETY: path and lists are only read, and both lists end with null.
    good("execve", unsafe {
        call(EXECVE, [path as usize, list, list + size_of::<usize>(), 0, 0, 0])
    });
}

/// Ends the program.
pub fn exit(status: usize) -> ! {
    loop {
        // SAFETY: no memory is involved.
        unsafe { call(EXIT_GROUP, [status, 0, 0, 0, 0, 0]) };
    }
}

/// Switches the machine off.
pub fn power_off() -> ! {
    let [first, second, command] = POWER_OFF;
    // SAFETY: no memory is involved.
    good("reboot", unsafe {
        call(REBOOT, [first, second, command, 0, 0, 0])
    });
    exit(0)
}

/// Makes sleeps end when they should.
pub fn be_punctual() {
    // SAFETY: no memory is involved.
    good("prctl", unsafe {
        call(PRCTL, [PR_SET_TIMERSLACK, 1, 0, 0, 0, 0])
    });
}

/// Sleeps for so many nanoseconds, less than a second.
pub fn sleep(nanoseconds: u64) {
    let time = [0, nanoseconds as usize];
    // SAFETY: the time is only read.
    good("nanosleep", unsafe {
        call(NANOSLEEP, [time.as_ptr() as usize, 0, 0, 0, 0, 0])
    });
}

/// Maps so many pages of 4 KiB, stores a byte into each of them in each of so many rounds, and gives them
/// back.
pub fn map(pages: usize, rounds: usize) {
    let size = pages * 4096;
    let nobody = -1_isize as usize;
    let arguments = [0, size, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, nobody, 0];
    // SAFETY: the kernel chooses addresses that are free.
    let base = good("mmap", unsafe { call(MMAP, arguments) });
    for page in (0..rounds).flat_map(|_| 0..pages) {
        // SAFETY: inside of what has just been mapped, which only this function knows.
        unsafe { ((base + page * 4096) as *mut u8).write_volatile(1) }
    }
    // SAFETY: no code has a reference to it.
    good("munmap", unsafe { call(MUNMAP, [base, size, 0, 0, 0, 0]) });
}
