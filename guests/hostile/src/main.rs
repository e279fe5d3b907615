// SPDX-License-Identifier: Apache-2.0
//! A hostile VM: random accesses to its virtual devices, to addresses it does not have, to system registers, and
//! random hypercalls. Nothing of it may disturb anybody else; whatever it is answered, it goes on.
//!
//! Bootargs: `count=N` operations (10000), `seed=N` (1). The same seed makes the same accesses.
//! Ends with `hostile: done N, exceptions M`.
//!
//! It spares what would only end itself: PSCI's CPU and system functions, requests to stop its own partition, and
//! the registers that say where its own memory is. Its memory and system health actions should be `inject` or `log`.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::abi::Operation;
use bulkhead_guest::random::Random;
use bulkhead_guest::vm::encoded::Encoding;
use bulkhead_guest::vm::psci::{self, Conduit};
use bulkhead_guest::vm::timer::Timer;
use bulkhead_guest::vm::{Machine, bus, exception, gic, pl011};
use bulkhead_guest::{arguments, hypercall, println};

bulkhead_guest::vm_main!(main);

/// Windows of its virtual devices, and some where nothing should be: base and size.
const WINDOWS: &[(u64, u64)] = &[
    (gic::DISTRIBUTOR, 0x1_0000),
    (gic::REDISTRIBUTORS, 0x4_0000),
    (pl011::BASE, 0x1000),
    (0x0801_0000, 0x1_0000),
    (0x0A00_0000, 0x4000),
    (0x0000_0000, 0x1000),
    (0x8000_0000, 0x1000_0000),
    (0xFF_FFFF_0000, 0x1_0000),
];

/// Operations on its own partition that would only end it.
const SPARED: &[Operation] = &[
    Operation::PartitionStop,
    Operation::PartitionRestart,
    Operation::EventWait,
    Operation::TimerSleep,
];

fn main(machine: Machine) {
    let count = arguments::number(machine.bootargs(), "count", 10_000);
    let mut random = Random::new(arguments::number(machine.bootargs(), "seed", 1));
    println!("hostile: start");
    let mut exceptions = 0;
    for _ in 0..count {
        let survived = match random.below(8) {
            0..4 => exception::probe(|| access(&mut random)).is_ok(),
            4 | 5 => register(&mut random),
            6 => exception::probe(|| call(&mut random)).is_ok(),
            _ => exception::probe(|| interrupt_controller(&mut random)).is_ok(),
        };
        exceptions += u64::from(!survived);
    }
    quieten();
    println!("hostile: done {count}, exceptions {exceptions}");
}

/// One load or store, of any width and mostly aligned.
fn access(random: &mut Random) {
    let (base, size) = WINDOWS[random.below(WINDOWS.len() as u64) as usize];
    let width = 1 << random.below(4);
    let unaligned = random.below(16) == 0;
    let offset = random.below(size);
    let address = base + if unaligned { offset } else { offset & !(width - 1) };
    let value = random.draw();
    match (random.below(2) == 0, width) {
        (true, 1) => drop(bus::read_u8(address)),
        (true, 2) => drop(bus::read_u16(address)),
        (true, 4) => drop(bus::read_u32(address)),
        (true, _) => drop(bus::read_u64(address)),
        (false, 1) => bus::write_u8(address, value as u8),
        (false, 2) => bus::write_u16(address, value as u16),
        (false, 4) => bus::write_u32(address, value as u32),
        (false, _) => bus::write_u64(address, value),
    }
}

/// One system register of any encoding; whether it existed.
fn register(random: &mut Random) -> bool {
    let encoding = Encoding {
        op0: 2 + random.below(2) as u8,
        op1: random.below(8) as u8,
        crn: random.below(16) as u8,
        crm: random.below(16) as u8,
        op2: random.below(8) as u8,
    };
    if random.below(2) == 0 {
        encoding.read().is_ok()
    } else {
        encoding.write(random.draw()).is_ok()
    }
}

/// One hypercall or firmware call, mostly with numbers that exist.
fn call(random: &mut Random) {
    let number = if random.below(4) == 0 {
        random.below(0x1_0000) as u16
    } else {
        Operation::ALL[random.below(Operation::ALL.len() as u64) as usize] as u16
    };
    if Operation::from_number(number).is_some_and(|operation| SPARED.contains(&operation)) {
        return;
    }
    let mut arguments = [0; 6];
    for argument in &mut arguments {
        *argument = if random.below(2) == 0 {
            random.below(70)
        } else {
            random.draw()
        };
    }
    if random.below(4) == 0 {
        // Above all functions of PSCI that exist (Arm DEN 0022 section 5: up to 0x1F).
        let function = random.draw() as u32 | 0x8000_0020;
        psci::call(
            if random.below(2) == 0 {
                Conduit::Hvc
            } else {
                Conduit::Smc
            },
            function,
            [0; 3],
        );
    } else {
        hypercall::raw(0xC600_0000 | u64::from(number), arguments);
    }
}

/// One operation on the CPU interface and the timers.
fn interrupt_controller(random: &mut Random) {
    let value = random.draw();
    match random.below(10) {
        0 => gic::write_sgi_register(value),
        1 => gic::send(value as u32 & 15, value as u16),
        2 => gic::set_mask(value as u8),
        3 => gic::set_group_enable(value & 1 == 1),
        4 => drop(gic::acknowledge()),
        5 => gic::end(value as u32 & 0x3FF),
        6 => gic::deactivate(value as u32 & 0x3FF),
        7 => gic::set_end_mode(value & 1 == 1),
        8 => Timer::Virtual.arm(value),
        _ => Timer::Physical.arm(value),
    }
}

/// Makes the console usable again for the last line.
fn quieten() {
    Timer::Virtual.disarm();
    Timer::Physical.disarm();
    pl011::reset();
}
