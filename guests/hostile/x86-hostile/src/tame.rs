// SPDX-License-Identifier: Apache-2.0
//! Operations of one instruction, after which the program can go on.

use bulkhead_guest::pc::{apic, attempt, cpu};
use bulkhead_guest::random::Random;

/// Model-specific registers with operations of their own.
const EFER: u32 = 0xC000_0080;
const APIC_BASE: u32 = 0x1B;
/// Ports that end the machine or reset it, as they should.
const POWER: core::ops::Range<u16> = 0x600..0x610;
const RESET: core::ops::Range<u16> = 0xCF9..0xCFA;
const KEYBOARD: u16 = 0x64;
/// Long mode, its switch, and CR0 and CR4 as the loader leaves them.
const LONG_MODE: u64 = 0x500;
const PLAIN_CR0: u64 = 0x8000_0011;
const PLAIN_CR4: u64 = 0x20;
/// The lower half of a register, and CR0.NW.
const LOWER: u64 = 0xFFFF_FFFF;
const NOT_WRITE_THROUGH: u64 = 1 << 29;
/// CR4.SMEP and SMAP, with which the program could not go on: its pages are a user's.
const PREVENTION: u64 = 3 << 20;
/// Registers of the UART without which nothing of this program is seen, and their usual values: line control,
/// interrupts, modem control.
const UART: [(u16, u8); 3] = [(0x3FB, 3), (0x3F9, 0), (0x3FC, 3)];
/// The page where a start-up IPI lets another processor begin: it stops.
const STOP_PAGE: u64 = 0x1_2000;
/// The vector of the non-maskable interrupt in real mode, and the same page as a segment.
const NMI_VECTOR: u64 = 8;
const STOP_SEGMENT: u64 = STOP_PAGE << 12;
/// HLT, and a jump back to it.
const STOP_CODE: u64 = 0xFD_EBF4;
/// APIC_BASE in x2APIC mode, of the first processor.
const BASE: u64 = 0xFEE0_0000 | 1 << 8 | 3 << 10;

/// Draws a value that is often near a border.
fn value(random: &mut Random) -> u64 {
    match random.below(5) {
        0 => 0,
        1 => u64::MAX,
        2 => 1 << random.below(64),
        3 => random.draw() & 0xFFFF,
        _ => random.draw(),
    }
}

/// Reads or writes any model-specific register.
pub fn register(random: &mut Random) -> bool {
    let number = match random.below(5) {
        0 => random.draw() as u32,
        1 => 0xC000_0080 + random.below(0x90) as u32,
        2 => 0xC001_0000 + random.below(0x200) as u32,
        3 => 0x800 + random.below(0x100) as u32,
        _ => random.below(0x700) as u32,
    };
    if random.below(2) == 0 {
        attempt::read_msr(number).is_err()
    } else {
        attempt::write_msr(number, value(random)).is_err()
    }
}

/// Reads or writes any port, but those that end the machine.
pub fn port(random: &mut Random) -> bool {
    let port = match random.below(3) {
        0 => random.draw() as u16,
        1 => random.below(0x100) as u16,
        _ => 0x3F8 + random.below(8) as u16,
    };
    let size = 1 << random.below(3);
    let ends = POWER.contains(&port) || RESET.contains(&port) || port == KEYBOARD;
    // A byte for the UART would be a line of this program.
    if ends || port == 0x3F8 || random.below(2) == 0 {
        attempt::read_port(port, size).is_err()
    } else {
        attempt::write_port(port, size, random.draw() as u32).is_err()
    }
}

/// Reads any leaf of CPUID. One that shows AMD-V is an end.
pub fn cpuid(random: &mut Random) -> bool {
    let leaf = match random.below(4) {
        0 => random.draw() as u32,
        1 => 0x4000_0000 + random.below(0x100) as u32,
        2 => 0x8000_0000 + random.below(0x40) as u32,
        _ => random.below(0x40) as u32,
    };
    let found = cpu::cpuid(leaf, random.below(8) as u32);
    let [_, _, features, _] = cpu::cpuid(0x8000_0001, 0);
    if features & 1 << 2 != 0 {
        bulkhead_guest::println!("hostile: damage: CPUID {leaf:#x} {found:x?}");
    }
    false
}

/// Writes a control register, a debug register or EFER. Bits that end long mode stay as they are. QEMU 7.2
/// takes values of CR0, DR6 and DR7 that a processor refuses by #GP, and VMRUN then refuses the state of the
/// vCPU, which ends the partition: the upper halves, and CR0.NW without CR0.CD, are left out.
pub fn control(random: &mut Random) -> bool {
    let drawn = value(random);
    let done = match random.below(10) {
        0 | 1 => attempt::write_control(0, drawn & LOWER & !NOT_WRITE_THROUGH | PLAIN_CR0),
        2 => attempt::write_control(3, cpu::cr3() | drawn & 0xFFF),
        3 => attempt::write_control(4, drawn & !PREVENTION | PLAIN_CR4),
        4 => attempt::write_control(4, 1 << random.below(32) & !PREVENTION | PLAIN_CR4),
        5 => attempt::write_control(8, drawn & 0x1F),
        6 => attempt::write_msr(EFER, drawn | LONG_MODE),
        // No breakpoints: they would be this program's own.
        7 => attempt::write_control(7, drawn & LOWER & !0xFF),
        8 => attempt::write_control(5, drawn & LOWER),
        _ => attempt::write_control(1 + random.below(2) as u8, drawn),
    };
    done.is_err()
}

/// Loads or stores a register of an APIC, by any instruction of any size. The local APIC is in memory for it
/// every other time.
pub fn apic(random: &mut Random) -> bool {
    let window = if random.below(2) == 0 {
        0xFEC0_0000
    } else {
        0xFEE0_0000
    };
    if random.below(2) == 0 {
        let _ = attempt::write_msr(APIC_BASE, BASE & !(3 << 10));
        let _ = attempt::write_msr(APIC_BASE, BASE & !(1 << 10));
    }
    let offset = match random.below(3) {
        0 => random.below(0x1000),
        1 => random.below(0x40) * 16,
        _ => random.below(2) * 16,
    };
    access(random, window + offset)
}

/// Loads or stores anywhere in the first 4 GiB beyond the program's own RAM.
pub fn memory(random: &mut Random) -> bool {
    let address = 0x40_0000 + random.below((4 << 30) - 0x40_0010);
    access(random, address)
}

fn access(random: &mut Random, address: u64) -> bool {
    let size = 1 << random.below(4);
    match random.below(5) {
        0 | 1 => attempt::load(address, size).is_err(),
        2 | 3 => attempt::store(address, size, value(random)).is_err(),
        _ => attempt::add(address, random.draw() as u32).is_err(),
    }
}

/// Accesses the configuration space of a PCI function: any bus, device, function and register.
pub fn pci(random: &mut Random) -> bool {
    let address = 1 << 31 | random.below(1 << 24) as u32;
    let chosen = attempt::write_port(0xCF8, 4, address).is_err();
    let port = 0xCFC + random.below(4) as u16;
    let size = 1 << random.below(3);
    let done = if random.below(2) == 0 {
        attempt::read_port(port, size).map(drop)
    } else {
        attempt::write_port(port, size, random.draw() as u32)
    };
    chosen | done.is_err()
}

/// Sends a message of any kind to any processors: interrupts, INIT, start-up and non-maskable ones. A
/// processor that starts stops at once.
pub fn message(random: &mut Random) -> bool {
    let _ = attempt::store(STOP_PAGE, 8, STOP_CODE);
    let _ = attempt::store(NMI_VECTOR, 4, STOP_SEGMENT);
    let mut command = random.draw() as u32 & 0xC_FF00 | random.below(256) as u32;
    // The program's handlers of vectors below 32 expect what exceptions push.
    if command & 0xF0 == 0x10 {
        command ^= 0x30;
    }
    if command >> 8 & 7 == 6 {
        command = command & !0xFF | (STOP_PAGE >> 12) as u32;
    }
    let target = match random.below(4) {
        0 => random.draw() as u32,
        1 => u32::MAX,
        _ => random.below(4) as u32,
    };
    let done = attempt::write_msr(0x830, u64::from(target) << 32 | u64::from(command));
    cpu::open();
    done.is_err()
}

/// Executes an instruction that only the hypervisor may use.
pub fn privileged(random: &mut Random) -> bool {
    attempt::privileged(random.below(12)).is_err()
}

/// Makes the machine usable again.
pub fn mend() {
    let _ = attempt::write_control(0, PLAIN_CR0);
    let _ = attempt::write_control(4, PLAIN_CR4);
    let _ = attempt::write_msr(EFER, LONG_MODE);
    if attempt::read_msr(APIC_BASE) != Ok(BASE) {
        let _ = attempt::write_msr(APIC_BASE, BASE & !(3 << 10));
        let _ = attempt::write_msr(APIC_BASE, BASE & !(1 << 10));
        let _ = attempt::write_msr(APIC_BASE, BASE);
    }
    for (port, value) in UART {
        cpu::write_port8(port, value);
    }
    apic::enable();
    apic::write(apic::TASK_PRIORITY, 0);
    // No timer, and no storm that goes on by itself.
    apic::write(apic::TIMER, 1 << 16);
    apic::write(apic::INITIAL, 0);
}
