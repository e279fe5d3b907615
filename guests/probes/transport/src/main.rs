// SPDX-License-Identifier: Apache-2.0
//! Looks at virtio-mmio transports of the board (virtio 1.2, section 4.2.2): its own and, at the end,
//! another's.
//!
//! Bootargs: `own=NUMBER` is its own transport, `kind=NUMBER` the virtio device type of it,
//! `foreign=NUMBER` a transport that is not its own (none). At the end it powers off. With `restart=1` it
//! asks for a restart instead, and the next life shows whether the device was stopped meanwhile.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::report::Report;
use bulkhead_guest::vm::{Machine, bus, psci};
use bulkhead_guest::{arguments, println};

bulkhead_guest::vm_main!(main);

/// The address of transport 0 on the board, and the distance to the next transport.
const BASE: u64 = 0x0a00_0000;
const STRIDE: u64 = 0x200;
/// Registers: virtio 1.2, table 4.1.
const MAGIC: u64 = 0x000;
const VERSION: u64 = 0x004;
const DEVICE: u64 = 0x008;
const STATUS: u64 = 0x070;
const CONFIG: u64 = 0x100;
/// "virt".
const MAGIC_VALUE: u64 = 0x7472_6976;
/// Status: ACKNOWLEDGE and DRIVER (virtio 1.2, section 2.1).
const DRIVER: u32 = 1 | 2;
/// No transport.
const NONE: u64 = u64::MAX;

fn main(machine: Machine) {
    let number = |key, default| arguments::number(machine.bootargs(), key, default);
    let own = BASE + STRIDE * number("own", 31);
    let read = |register| u64::from(bus::read_u32(own + register));
    let mut report = Report::new();
    report.equal("it is a transport", read(MAGIC), MAGIC_VALUE);
    report.equal("it is not a legacy one", read(VERSION), 2);
    report.equal("the device behind it", read(DEVICE), number("kind", 2));
    println!("transport: status {} at the start", read(STATUS));
    bus::write_u32(own + STATUS, DRIVER);
    report.equal("what is written is there", read(STATUS), u64::from(DRIVER));
    let bytes = [0, 1, 2, 3].map(|byte| bus::read_u8(own + CONFIG + byte));
    let halves = [0, 2].map(|byte| u32::from(bus::read_u16(own + CONFIG + byte)));
    let word = bus::read_u32(own + CONFIG);
    report.equal("bytes make the word", u32::from_le_bytes(bytes), word);
    report.equal("halves make the word", halves[0] | halves[1] << 16, word);
    report.finish();
    let foreign = number("foreign", NONE);
    if foreign != NONE {
        println!("transport: reading transport {foreign}");
        println!(
            "transport: it says {:#x}",
            bus::read_u32(BASE + STRIDE * foreign + MAGIC)
        );
    }
    if number("restart", 0) != 0 {
        psci::system_reset(psci::Conduit::Hvc);
    }
}
