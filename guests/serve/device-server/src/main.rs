// SPDX-License-Identifier: Apache-2.0
//! A service partition: a task that serves virtio devices to VMs. The manifest says which ones; the startup
//! page lists them.
//!
//! | kind | what serves it |
//! |---|---|
//! | disk | a part of the board's disk, if the task owns it; else of a disk in the task's own memory |
//! | console | the task's console; each line begins with the name of the client |
//! | entropy | a generator that starts from the time: for demonstrations only, it can be guessed |
//! | Ethernet interface | a switch between the clients of one service |
//!
//! It needs a capability for its windows and one for its own gate. With one for the timer it prints each
//! second what was served, if that has changed: `device-server: disk of linux: 1234 requests`.
//!
//! **A new life.** The hypervisor keeps the registers of each device, and the rings are in the memory of the
//! clients. So the devices go on where they were, and a request that was not answered is done again. A cold
//! start clears a disk in the task's own memory. Each request to such a disk then fails, until the client
//! starts anew.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod back_end;
mod board;
mod client;
mod lives;
mod store;
mod switch;

use board::Board;
use bulkhead_abi::ObjectKind;
use bulkhead_guest::hypercall::{self, Handle};
use bulkhead_guest::startup_page::{Device, StartupPage};
use bulkhead_guest::task::memory;
use bulkhead_guest::{println, service};
use client::Client;
use store::Store;

bulkhead_guest::task_main!(main);

/// Clients that the program has room for.
const CLIENTS: usize = 8;
/// Bytes of the stack. The devices are there.
const STACK: usize = 1 << 20;
/// Accesses that are answered before the queues have their turn.
const ACCESSES: u32 = 16;
/// Chains that a client is served before the next one has its turn.
const CHAINS: u32 = 4;
/// Nanoseconds between two reports.
const SECOND: u64 = 1_000_000_000;

fn main(page: StartupPage<'static>) {
    let first = |kind| page.first(kind).map(|found| Handle(found.index));
    let (Some(service), Some(gate)) = (first(ObjectKind::Service), first(ObjectKind::EventGate)) else {
        println!("device-server: no windows, or no gate");
        return;
    };
    let Some((lives, disk)) = memory::take(&page, STACK).and_then(lives::count_life) else {
        println!("device-server: no memory");
        return;
    };
    back_end::begin();
    let clock = first(ObjectKind::Timer);
    match open(&page, disk, lives == 1, |device, shared| {
        Board::new(device, shared, service, gate, clock)
    }) {
        Some(disk) => store::put(disk),
        None => println!("device-server: the device of the board is no disk"),
    }
    println!(
        "device-server: {} KiB of disk, {lives} lives",
        store::sectors() / 2
    );
    let mut windows = page.windows();
    let mut clients: [Option<Client>; CLIENTS] =
        core::array::from_fn(|_| Some(Client::new(&windows.next()?, service)));
    if windows.next().is_some() {
        println!("device-server: more clients than {CLIENTS}");
    }
    let mut next_report = 0;
    loop {
        let is_busy = turn(service, &mut clients);
        let now = clock.and_then(|clock| hypercall::timer_now(clock).ok());
        if let Some(now) = now.filter(|now| *now >= next_report) {
            clients.iter_mut().flatten().for_each(Client::report);
            next_report = now.saturating_add(SECOND);
        }
        // Without a clock there is nothing to wake up for.
        let until = if clock.is_some() { next_report } else { 0 };
        if !is_busy
            && hypercall::event_wait(gate, until).is_err_and(|error| error != bulkhead_abi::Error::TimedOut)
        {
            println!("device-server: cannot wait");
            return;
        }
    }
}

/// Returns the disk: the board's, which `prepare` makes, if the task has a device, else the task's memory.
fn open(
    page: &StartupPage<'static>,
    memory: &'static mut [u8],
    is_new: bool,
    prepare: impl FnOnce(&Device<'_>, &'static mut [u8]) -> Option<Board>,
) -> Option<Store> {
    let Some(device) = page.devices().next() else {
        return Some(Store::Memory { memory, is_new });
    };
    let (shared, _) = memory.split_at_mut_checked(board::SHARED)?;
    prepare(&device, shared).map(Store::Board)
}

/// Takes what is new, answers accesses, and serves each client a little. Returns whether more is to do.
fn turn(service: Handle, clients: &mut [Option<Client>]) -> bool {
    if let Ok(news) = service::news(service) {
        for client in clients.iter_mut().flatten() {
            client.hear(&news);
        }
    }
    let mut is_busy = true;
    for _ in 0..ACCESSES {
        let Ok(access) = service::take(service) else {
            is_busy = false;
            break;
        };
        let mut all = clients.iter_mut().flatten();
        match all.find(|client| client.number() == access.window) {
            Some(client) => client.answer(&access),
            // Its client then sees what nothing answers.
            None => drop(service::answer(service, access.number, u64::MAX)),
        }
    }
    for client in clients.iter_mut().flatten() {
        is_busy |= client.serve(CHAINS);
    }
    is_busy | switch::carry(clients) | store::take_events()
}
