// SPDX-License-Identifier: Apache-2.0
//! The everyday work of Linux, measured by a program that is its first process.
//!
//! The operations are from the usual micro-benchmarks of operating systems (McVoy and Staelin, "lmbench:
//! Portable Tools for Performance Analysis", USENIX 1996, section 6). On an emulator that counts instructions
//! as time, the figures of the bare machine and of a VM differ by what the hypervisor adds: the exits of the
//! tick, of timers and of waiting. Each figure is the mean of many, so that such exits have their share of
//! it.
#![no_std]
#![no_main]

mod linux;

use linux::{File, fork, now, say, wait};

/// A file that is there and small.
const PATH: &core::ffi::CStr = c"/dev/null";
/// Pages that are mapped at a time.
const PAGES: usize = 64;
/// The number of times the pages are mapped, to touch them.
const TOUCHED: u64 = 200;
/// A sleep, in nanoseconds.
const PAUSE: u64 = 1_000_000;
const PAUSES: u64 = 100;
/// The other process of a pair ends when it reads this.
const END: u8 = 0xFF;

/// Prints the mean of `count` times of an operation, in nanoseconds, after some that are not measured.
fn measure(name: &str, count: u64, mut operation: impl FnMut()) {
    for _ in 0..count.div_ceil(8) {
        operation();
    }
    let begun = now();
    for _ in 0..count {
        operation();
    }
    report(name, (now() - begun) / count);
}

fn report(name: &str, nanoseconds: u64) {
    say(format_args!("bench {name} {nanoseconds}\n"));
}

/// Sends a byte to another process and back. `ours` and `theirs` are what each reads and writes.
fn round_trip(name: &str, ours: [File; 2], theirs: [File; 2]) {
    fork(|| {
        let [from, to] = theirs;
        loop {
            let byte = from.read();
            if byte == END {
                return;
            }
            to.write(&[byte]);
        }
    });
    let [from, to] = ours;
    measure(name, 1000, || {
        to.write(&[0]);
        from.read();
    });
    to.write(&[END]);
    wait();
}

fn calls() {
    measure("syscall", 50_000, linux::parent);
    let (zero, null) = (File::open(c"/dev/zero"), File::open(PATH));
    measure("read", 20_000, || {
        zero.read();
    });
    measure("write", 20_000, || {
        null.write(&[0]);
    });
    measure("stat", 10_000, || linux::status(PATH));
    measure("open", 5000, || File::open(PATH).close());
}

fn memory() {
    measure("map", 5000, || linux::map(PAGES, false));
    let begun = now();
    for _ in 0..TOUCHED {
        linux::map(PAGES, true);
    }
    report("fault", (now() - begun) / (TOUCHED * PAGES as u64));
}

fn signals() {
    measure("signal-install", 10_000, linux::handle_signals);
    measure("signal", 5000, linux::signal_first);
}

fn processes() {
    let (there, back) = (linux::pipe(), linux::pipe());
    round_trip("pipe", [back[0], there[1]], [there[0], back[1]]);
    let [one, other] = linux::sockets();
    round_trip("socket", [one, one], [other, other]);
    measure("fork", 200, || {
        fork(|| ());
        wait();
    });
    measure("exec", 100, || {
        fork(linux::execute);
        wait();
    });
}

/// Measures how late the end of a sleep is. The CPU waits meanwhile.
fn sleeps() {
    linux::be_punctual();
    let begun = now();
    for _ in 0..PAUSES {
        linux::sleep(PAUSE);
    }
    report("sleep", (now() - begun) / PAUSES - PAUSE);
}

/// `is_again` if the program has executed itself, which is all that was to be measured of it.
fn main(is_again: bool) -> ! {
    if is_again {
        linux::exit(0);
    }
    linux::mount_devices();
    linux::wait_for_randomness();
    calls();
    signals();
    memory();
    processes();
    sleeps();
    say(format_args!("bench done\n"));
    linux::power_off()
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    linux::exit(2)
}
