// SPDX-License-Identifier: Apache-2.0
//! Families that flood: interrupts to oneself, power states of CPUs, waiting.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bulkhead_guest::random::Random;
use bulkhead_guest::vm::psci::{self, Conduit, function};
use bulkhead_guest::vm::timer::{self, Timer};
use bulkhead_guest::vm::{bus, cpu, exception, gic, smp};

use crate::Attack;
use crate::crowd;
use crate::words::{self, pick};

/// Registers of interrupts with a bit or more per line.
const ARRAYS: &[u64] = &[
    gic::offset::GROUP,
    gic::offset::SET_ENABLE,
    gic::offset::CLEAR_ENABLE,
    gic::offset::SET_PENDING,
    gic::offset::CLEAR_PENDING,
    gic::offset::SET_ACTIVE,
    gic::offset::CLEAR_ACTIVE,
    gic::offset::PRIORITY,
    gic::offset::CONFIGURATION,
];
/// Registers that only a GICv2 has: targets, and software-generated interrupts by sender (Arm IHI 0048B
/// section 4.3).
const ARRAYS_VERSION2: &[u64] = &[0x0800, 0x0F10, 0x0F20];
/// GICR_PROPBASER and GICR_PENDBASER: tables of LPIs, which this controller does not have (Arm IHI 0069
/// section 12.11).
const LPI_REGISTERS: &[u64] = &[0x0070, 0x0078];

static TAKEN: AtomicU64 = AtomicU64::new(0);

/// Takes each interrupt that comes and ends it in one of several ways, right and wrong ones.
fn take() {
    let taken = TAKEN.load(Relaxed) + 1;
    TAKEN.store(taken, Relaxed);
    Timer::Virtual.disarm();
    Timer::Physical.disarm();
    let line = gic::acknowledge();
    match taken % 8 {
        0 => gic::end(line ^ 1),
        1 => {
            gic::end(line);
            gic::end(line);
        }
        _ => gic::end(line),
    }
    // Something must calm a storm: an interrupt that comes too often is switched off.
    if taken.is_multiple_of(16) && line < gic::FIRST_SPECIAL {
        gic::disable(line);
        gic::clear_pending(line);
    }
}

/// Makes one operation on the interrupt controller or a timer, and lets interrupts in afterwards.
pub fn interrupts(attack: &mut Attack) {
    exception::set_interrupt_handler(take);
    let random = &mut attack.random;
    let value = random.draw();
    match random.below(14) {
        0 => gic::send_as(value),
        1 | 2 => gic::send(value as u32 & 15, 1),
        3 => gic::set_mask(value as u8),
        4 => gic::set_group_enable(value & 3 != 0),
        5 => gic::deactivate(value as u32 & 0x3FF),
        6 => gic::set_end_mode(value & 3 == 0),
        7 => Timer::Virtual.arm(value),
        8 => Timer::Virtual.arm_relative(value as u32 & 0xFF),
        9 => Timer::Physical.arm(0),
        10 if !gic::is_version2() => {
            bus::write_u64(gic::REDISTRIBUTORS + pick(random, LPI_REGISTERS), value);
        }
        10 => {
            let address = gic::DISTRIBUTOR + pick(random, ARRAYS_VERSION2) + 4 * random.below(16);
            bus::write_u32(address, value as u32);
        }
        11 => gic::set_active_priorities(0),
        _ => array(random),
    }
    let before = TAKEN.load(Relaxed);
    cpu::unmask_interrupts();
    cpu::relax();
    cpu::mask_interrupts();
    attack.seen.interrupted += TAKEN.load(Relaxed) - before;
    if attack.random.below(8) == 0 {
        quieten();
        gic::init_cpu();
        bus::write_u32(gic::private_registers() + gic::offset::SET_ENABLE, u32::MAX);
    }
}

/// Uses one word of a register array, of the own redistributor or the distributor.
fn array(random: &mut Random) {
    let frame = if random.below(2) == 0 {
        gic::private_registers()
    } else {
        gic::DISTRIBUTOR
    };
    let address = frame + pick(random, ARRAYS) + 4 * random.below(32);
    bus::write_u32(address, random.draw() as u32);
}

/// Runs on the other CPUs: does nothing, or starts the next one.
fn other(argument: u64) {
    if argument & 1 == 1 {
        let next = (cpu::index() + 1) as u64;
        psci::call(
            Conduit::Hvc,
            function::CPU_ON,
            [next, smp::entry(), argument >> 1],
        );
    }
    if argument & 2 == 2 {
        cpu::wait_for_event();
    }
}

/// Calls any function of PSCI and its neighbours, with good and bad arguments. CPUs go on and off.
pub fn psci(attack: &mut Attack) {
    let random = &mut attack.random;
    let wide = (random.below(2) as u32) << 30;
    let number = random.below(0x20) as u32;
    let function = if random.below(2) == 0 {
        function::CPU_ON
    } else {
        function::VERSION | wide | number
    };
    let spared = matches!(
        function & !(1 << 30),
        // 0x12 is SYSTEM_RESET2.
        function::CPU_OFF | function::SYSTEM_OFF | function::SYSTEM_RESET | 0x8400_0012
    );
    if spared {
        return;
    }
    let target = match random.below(4) {
        0 => random.draw(),
        1 => 0,
        _ => 1 + random.below(smp::MAX_CPUS as u64 - 1),
    };
    let entry = match random.below(8) {
        0 => random.draw(),
        1 => random.below(1 << 40),
        _ => smp::entry(),
    };
    if let 1..4 = target {
        // An attacker that has not begun yet, or has been off, must be one when it comes on.
        let program = if crowd::is_on() { crowd::attack } else { other };
        smp::prepare(target as usize, program);
    }
    if function & !(1 << 30) == function::CPU_SUSPEND_32 {
        wake_soon(random);
    }
    let entry = if function & !(1 << 30) == function::AFFINITY_INFO_32 {
        random.below(2)
    } else {
        entry
    };
    let conduit = pick(random, &[Conduit::Hvc, Conduit::Smc]);
    // A power-down that really resumed at an entry of ours would find no stack of its own.
    let [code, ..] = psci::call(conduit, function, [target, entry, random.draw()]);
    if code.cast_signed() < 0 {
        attack.seen.other += 1;
    } else {
        attack.seen.finished += 1;
    }
    if attack.random.below(16) == 0 {
        // Lets the others run where they share the pCPU.
        wake_soon(&mut attack.random);
        cpu::wait_for_interrupt();
    }
    Timer::Virtual.disarm();
}

/// WFI, WFE, SEV and YIELD in any order, with an interrupt due now, soon or already there.
pub fn wait(attack: &mut Attack) {
    let random = &mut attack.random;
    attack.seen.finished += 1;
    wake_soon(random);
    for _ in 0..random.below(4) {
        match pick(random, &[words::WFI, words::WFE, words::YIELD, words::SEV]) {
            words::WFI => cpu::wait_for_interrupt(),
            words::WFE => {
                cpu::send_event();
                cpu::wait_for_event();
            }
            words::YIELD => cpu::relax(),
            _ => cpu::send_event(),
        }
    }
    Timer::Virtual.disarm();
}

/// Makes the virtual timer's interrupt pending now or within some microseconds.
fn wake_soon(random: &mut Random) {
    gic::set_mask(0xFF);
    gic::set_group_enable(true);
    gic::clear_active(Timer::Virtual.line());
    gic::set_group(Timer::Virtual.line(), !gic::is_version2());
    gic::enable(Timer::Virtual.line());
    let later = timer::ticks(random.below(20));
    Timer::Virtual.arm(Timer::Virtual.now().wrapping_add(later));
}

/// Turns off the timer and clears the state of the interrupt controller.
pub fn quieten() {
    Timer::Virtual.disarm();
    Timer::Physical.disarm();
    gic::set_end_mode(false);
    gic::set_active_priorities(0);
    bus::write_u32(gic::private_registers() + gic::offset::CLEAR_ACTIVE, u32::MAX);
    for _ in 0..64 {
        let line = gic::acknowledge();
        if line >= gic::FIRST_SPECIAL {
            break;
        }
        gic::end(line);
    }
}
