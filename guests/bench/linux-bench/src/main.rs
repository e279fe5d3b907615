// SPDX-License-Identifier: Apache-2.0
//! The everyday work of Linux, measured by a program that is its first process.
//!
//! The operations are from the usual micro-benchmarks of operating systems (McVoy and Staelin, "lmbench:
//! Portable Tools for Performance Analysis", USENIX 1996, section 6). On an emulator that counts instructions
//! as time, the figures of the bare machine and of a VM differ by what the hypervisor adds: the exits of the
//! tick, of timers and of waiting. Each figure is from means of many, so that such exits have their share of
//! it.
#![no_std]
#![no_main]

/// The kernel for PowerPC is built without the network and the file system that they need.
#[cfg(not(target_arch = "powerpc"))]
mod apps;
#[cfg(not(target_arch = "powerpc"))]
mod disk;
mod linux;
mod round_trips;

use linux::{File, fork, now, say, wait};

/// Means of an operation, of which the middle one counts.
const MEANS: usize = 5;
/// A file that is there and small.
const PATH: &core::ffi::CStr = c"/dev/null";
/// Pages that are mapped at a time.
const PAGES: usize = 64;
/// The number of times the pages are mapped, to touch them.
const TOUCHED: u64 = 200;
/// Pages that are touched again and again: more than a translation buffer of software has entries.
const MANY: usize = 200;
const AGAIN: usize = 16;
/// A sleep, in nanoseconds.
const PAUSE: u64 = 1_000_000;
const PAUSES: u64 = 2000;
/// The longest sleep that is less than a second, in nanoseconds.
const IDLE: u64 = 999_999_999;

/// Prints the mean of an operation, in nanoseconds: of five means the middle one, each of a fifth of `count`
/// times, after some that are not measured. Work of the kernel in the background so falls out, unless it is
/// always there.
fn measure(name: &str, count: u64, mut operation: impl FnMut()) {
    for _ in 0..count.div_ceil(8) {
        operation();
    }
    let part = count.div_ceil(MEANS as u64);
    let mut means = [0; MEANS];
    for mean in &mut means {
        let begun = now();
        for _ in 0..part {
            operation();
        }
        *mean = (now() - begun) / part;
    }
    means.sort_unstable();
    report(name, means[MEANS / 2]);
}

fn report(name: &str, nanoseconds: u64) {
    say(format_args!("bench {name} {nanoseconds}\n"));
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
    measure("map", 5000, || linux::map(PAGES, 0));
    let begun = now();
    for _ in 0..TOUCHED {
        linux::map(PAGES, 1);
    }
    report("fault", (now() - begun) / (TOUCHED * PAGES as u64));
    let [once, often] = [1, 1 + AGAIN].map(|rounds| {
        let begun = now();
        linux::map(MANY, rounds);
        now() - begun
    });
    report("miss", often.saturating_sub(once) / (AGAIN * MANY) as u64);
}

fn signals() {
    measure("signal-install", 10_000, linux::handle_signals);
    measure("signal", 5000, linux::signal_first);
}

fn processes() {
    measure("fork", 500, || {
        fork(|| ());
        wait();
    });
    measure("exec", 100, || {
        fork(linux::execute);
        wait();
    });
}

/// Measures how late the end of a sleep is, as `cyclictest` does: the least, the mean and the most. The CPU
/// waits meanwhile.
fn sleeps() {
    linux::be_punctual();
    let (mut least, mut most, mut sum) = (u64::MAX, 0, 0);
    for _ in 0..PAUSES {
        let begun = now();
        linux::sleep(PAUSE);
        let late = now() - begun - PAUSE;
        (least, most, sum) = (least.min(late), most.max(late), sum + late);
    }
    report("sleep", sum / PAUSES);
    report("sleep-least", least);
    report("sleep-most", most);
}

/// Has nothing to do for a second, and prints how late its end is.
fn idle() {
    let begun = now();
    linux::sleep(IDLE);
    report("idle", now() - begun - IDLE);
}

/// `is_again` if the program has executed itself, which is all that was to be measured of it.
fn main(is_again: bool) -> ! {
    if is_again {
        linux::exit(0);
    }
    linux::mount_devices();
    report("boot", now());
    #[cfg(not(target_arch = "powerpc"))]
    if let Some(disk) = linux::files::disk() {
        disk::measure(disk);
        say(format_args!("bench done\n"));
        linux::power_off()
    }
    idle();
    // The kernel for PowerPC has no stack that moves about, and takes seconds to find random numbers.
    if !cfg!(target_arch = "powerpc") {
        linux::wait_for_randomness();
    }
    calls();
    signals();
    memory();
    // On the bare board for PowerPC, as QEMU 7.2 emulates it, the other process sees an old byte in some
    // builds of this program and then never ends. The reason is not known.
    if !cfg!(target_arch = "powerpc") {
        round_trips::measure();
    }
    processes();
    #[cfg(not(target_arch = "powerpc"))]
    {
        linux::mount(c"tmpfs", c"/tmp");
        apps::measure();
    }
    sleeps();
    say(format_args!("bench done\n"));
    linux::power_off()
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    linux::exit(2)
}
