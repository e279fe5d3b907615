// SPDX-License-Identifier: Apache-2.0
//! A VM at one end of a virtual serial link. Each line that comes is printed, and sent back in capitals.
//!
//! It needs the capability `serial`, a channel at which it is side 1. The line `end` ends it.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bulkhead_guest::channel::Channel;
use bulkhead_guest::println;
use bulkhead_guest::ring::{Broken, Link};
use bulkhead_guest::vm::{Machine, cpu, exception, gic, mmu};

bulkhead_guest::vm_main!(main);

/// The longest line.
const LINE: usize = 80;

/// Interrupts of the doorbell.
static RUNG: AtomicU64 = AtomicU64::new(0);

fn interrupt() {
    let line = gic::acknowledge();
    if line < gic::FIRST_SPECIAL {
        RUNG.store(RUNG.load(Relaxed) + 1, Relaxed);
        gic::end(line);
    }
}

/// A line that is being received.
struct Line {
    bytes: [u8; LINE],
    length: usize,
}

impl Line {
    /// Takes a byte. Returns true at the end of the line. Bytes beyond the longest line are lost.
    fn take(&mut self, byte: u8) -> bool {
        if let Some(place) = self.bytes.get_mut(self.length)
            && byte != b'\n'
        {
            *place = byte;
            self.length += 1;
        }
        byte == b'\n'
    }

    fn text(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

fn main(machine: Machine) {
    mmu::enable();
    let channel = machine
        .capability("serial")
        .and_then(|found| Channel::open(found).ok());
    let (Some(channel), Some(line)) = (channel, machine.doorbell("channel-serial")) else {
        println!("echo: no channel");
        return;
    };
    let Some(mut link) = Link::attach(channel.words(), channel.side() == 0) else {
        println!("echo: no room for a link");
        return;
    };
    gic::init_distributor();
    gic::init_cpu();
    exception::set_interrupt_handler(interrupt);
    gic::set_edge(line, true);
    gic::enable(line);
    if serve(&mut link, &channel).is_err() {
        println!("echo: the link is broken");
    }
}

/// Answers lines until one says `end`.
fn serve(link: &mut Link<'_>, channel: &Channel) -> Result<(), Broken> {
    let mut line = Line {
        bytes: [0; LINE],
        length: 0,
    };
    let (mut byte, mut rung) = ([0], 0);
    loop {
        if link.read(&mut byte)? == 0 {
            cpu::sleep_until(|| RUNG.load(Relaxed) != rung);
            rung = RUNG.load(Relaxed);
            continue;
        }
        if !line.take(byte[0]) {
            continue;
        }
        println!("echo: {}", line.text().escape_ascii());
        if line.text() == b"end" {
            return Ok(());
        }
        line.bytes.make_ascii_uppercase();
        let sent = link.write(line.text())? + link.write(b"\n")?;
        if sent <= line.length {
            println!("echo: no room");
        }
        // The other side may be gone.
        let _ = channel.ring(0);
        line.length = 0;
    }
}
