// SPDX-License-Identifier: Apache-2.0
//! The system calls of Linux for 64-bit Arm that the measurements are about.
//!
//! Numbers and structures are from the kernel's `include/uapi/asm-generic/unistd.h` and
//! `arch/arm64/include/uapi/asm`. A call that fails ends the program and prints the name of the call, so that
//! failures are not measured.

use core::arch::{asm, global_asm};
use core::ffi::CStr;
use core::fmt::{self, Write};

const DUP3: usize = 24;
const MOUNT: usize = 40;
const OPENAT: usize = 56;
const CLOSE: usize = 57;
const PIPE2: usize = 59;
const READ: usize = 63;
const WRITE: usize = 64;
const NEWFSTATAT: usize = 79;
const EXIT_GROUP: usize = 94;
const NANOSLEEP: usize = 101;
const KILL: usize = 129;
const RT_SIGACTION: usize = 134;
const REBOOT: usize = 142;
const PRCTL: usize = 167;
const GETPPID: usize = 173;
const SOCKETPAIR: usize = 199;
const MUNMAP: usize = 215;
const CLONE: usize = 220;
const EXECVE: usize = 221;
const MMAP: usize = 222;
const WAIT4: usize = 260;
const GETRANDOM: usize = 278;

const AT_FDCWD: usize = -100_isize as usize;
const O_RDWR: usize = 2;
const SIGUSR1: usize = 10;
const SIGCHLD: usize = 17;
const PR_SET_TIMERSLACK: usize = 29;
const AF_UNIX: usize = 1;
const SOCK_STREAM: usize = 1;
const PROT_READ_WRITE: usize = 3;
const MAP_PRIVATE_ANONYMOUS: usize = 0x22;
/// The program's name when it has executed itself; the kernel starts it by its path.
const AGAIN: &CStr = c"again";
/// LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2 and LINUX_REBOOT_CMD_POWER_OFF.
const POWER_OFF: [usize; 3] = [0xFEE1_DEAD, 0x2812_1969, 0x4321_FEDC];

global_asm!(
    ".global _start",
    "_start:",
    "    mov x29, xzr",
    "    mov x30, xzr",
    "    ldr x0, [sp, #8]",
    "    ldrb w0, [x0]",
    "    b {main}",
    main = sym entered,
);

/// Runs first: the kernel enters here. The stack holds the number of arguments and a pointer to each. The
/// first argument is the name under which the program was started, and `letter` is its first letter.
extern "C" fn entered(letter: u8) -> ! {
    crate::main(AGAIN.to_bytes().starts_with(&[letter]))
}

/// Makes a system call. The result is negative if the call failed.
///
/// # Safety
/// The arguments point to what the call expects there, and no other code uses the memory that the call
/// writes.
unsafe fn call(number: usize, [x0, x1, x2, x3, x4, x5]: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the kernel changes x0 and, as the caller promises, memory that is the call's.
    unsafe {
        asm!("svc #0", in("x8") number, inout("x0") x0 => result, in("x1") x1, in("x2") x2, in("x3") x3, in("x4") x4,
             in("x5") x5, options(nostack));
    }
    result
}

/// Returns the result, unless the call failed.
fn good(what: &str, result: isize) -> usize {
    usize::try_from(result).unwrap_or_else(|_| {
        say(format_args!("{what}: error {}\n", -result));
        exit(1)
    })
}

/// An open file.
#[derive(Clone, Copy)]
pub struct File(usize);

impl File {
    /// The console.
    const OUTPUT: Self = Self(1);

    /// Opens a file for reading and writing.
    pub fn open(path: &CStr) -> Self {
        let arguments = [AT_FDCWD, path.as_ptr() as usize, O_RDWR, 0, 0, 0];
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
        let mut byte = 0_u8;
        let arguments = [self.0, &raw mut byte as usize, 1, 0, 0, 0];
        // SAFETY: one byte is written, to a variable of ours.
        good("read", unsafe { call(READ, arguments) });
        byte
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
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let taken = File::OUTPUT.write(rest);
            rest = rest.get(taken..).unwrap_or(&[]);
        }
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
    let mut room = [0_u64; 16];
    let arguments = [
        AT_FDCWD,
        path.as_ptr() as usize,
        room.as_mut_ptr() as usize,
        0,
        0,
        0,
    ];
    // SAFETY: `struct stat` has 128 bytes, and `room` is ours; the path is only read.
    good("newfstatat", unsafe { call(NEWFSTATAT, arguments) });
}

/// Mounts the file system of devices.
pub fn mount_devices() {
    let (kind, at) = (c"devtmpfs".as_ptr() as usize, c"/dev".as_ptr() as usize);
    // SAFETY: both names are only read.
    good("mount", unsafe { call(MOUNT, [kind, at, kind, 0, 0, 0]) });
    let console = File::open(c"/dev/console");
    for number in 0..3 {
        // SAFETY: no memory is involved.
        good("dup3", unsafe { call(DUP3, [console.0, number, 0, 0, 0, 0]) });
    }
}

/// `struct sigaction` of 64-bit Arm.
#[repr(C)]
struct Action {
    handler: extern "C" fn(i32),
    flags: usize,
    restorer: usize,
    mask: u64,
}

extern "C" fn on_signal(_number: i32) {}

/// Installs a handler.
pub fn handle_signals() {
    let action = Action {
        handler: on_signal,
        flags: 0,
        restorer: 0,
        mask: 0,
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

/// Returns two connected sockets.
pub fn sockets() -> [File; 2] {
    let mut ends = [0_i32; 2];
    let arguments = [AF_UNIX, SOCK_STREAM, 0, ends.as_mut_ptr() as usize, 0, 0];
    // SAFETY: two words are written, to a variable of ours.
    good("socketpair", unsafe { call(SOCKETPAIR, arguments) });
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

/// Waits until a child has ended.
pub fn wait() {
    let any = -1_isize as usize;
    // SAFETY: nothing is written.
    good("wait4", unsafe { call(WAIT4, [any, 0, 0, 0, 0, 0]) });
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
    let time = [0, nanoseconds];
    // SAFETY: the time is only read.
    good("nanosleep", unsafe {
        call(NANOSLEEP, [time.as_ptr() as usize, 0, 0, 0, 0, 0])
    });
}

/// Maps so many pages of 4 KiB, stores a byte into each of them if `touch` says so, and gives them back.
pub fn map(pages: usize, touch: bool) {
    let size = pages * 4096;
    let nobody = -1_isize as usize;
    let arguments = [0, size, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, nobody, 0];
    // SAFETY: the kernel chooses addresses that are free.
    let base = good("mmap", unsafe { call(MMAP, arguments) });
    for page in 0..if touch { pages } else { 0 } {
        // SAFETY: inside of what has just been mapped, which only this function knows.
        unsafe { ((base + page * 4096) as *mut u8).write_volatile(1) }
    }
    // SAFETY: no code has a reference to it.
    good("munmap", unsafe { call(MUNMAP, [base, size, 0, 0, 0, 0]) });
}

/// Time, in nanoseconds. Linux lets programs read the virtual counter (CNTKCTL_EL1.EL0VCTEN).
pub fn now() -> u64 {
    let (ticks, hertz): (u64, u64);
    // SAFETY: reads two registers. The barrier keeps the counter from being read early (Arm DDI 0487,
    // D11.1.2).
    unsafe {
        asm!("isb", "mrs {ticks}, cntvct_el0", "mrs {hertz}, cntfrq_el0", ticks = out(reg) ticks, hertz = out(reg) hertz,
             options(nomem, nostack));
    }
    (u128::from(ticks) * 1_000_000_000 / u128::from(hertz.max(1))) as u64
}
