// SPDX-License-Identifier: Apache-2.0
//! The phases. An operation is a few accesses at most, so that each finds all lines as another one left them.

use bulkhead_guest::random::Random;
use bulkhead_guest::vm::timer::Timer;
use bulkhead_guest::vm::{bus, cpu, gic, smp};

use crate::lines;

/// Offset of a redistributor's frame of private lines (Arm IHI 0069, 12.10).
const SGI_FRAME: u64 = 0x1_0000;
/// `GICD_ITARGETSR`, `GICD_CPENDSGIR`, `GICD_SPENDSGIR` (Arm IHI 0048B section 4.3).
const TARGETS: u64 = 0x800;
const CLEAR_SENT: u64 = 0xF10;
const SET_SENT: u64 = 0xF20;
/// `GICD_IROUTER.Interrupt_Routing_Mode`: any CPU (IHI 0069, 12.9.22).
const ANY_CPU: u64 = 1 << 31;
/// `ICC_SGI1R_EL1.IRM`: all CPUs but the own one.
const ALL_OTHERS: u64 = 1 << 40;
/// Interrupts that are taken before one is ended: more than there are list registers.
const DEPTH: u32 = 24;
/// A sleep is that long at most, in ticks.
const NAP: u64 = 20_000;

/// The knowledge of a CPU.
pub struct Cpu {
    /// The numbers that it draws.
    pub random: Random,
    /// Its number.
    pub index: usize,
    /// Lines of the controller, private ones included.
    pub lines: u32,
    cpus: usize,
}

/// The state of the CPU after an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The CPU goes on.
    Stay,
    /// The CPU is switched off, and CPU 0 switches it on again.
    Off,
}

type Operation = fn(&mut Cpu) -> Outcome;

/// The phases, in their order.
pub const PHASES: &[(&str, Operation)] = &[
    ("set-pending", |own| own.words(&[gic::offset::SET_PENDING])),
    ("clear-pending", |own| {
        own.words(&[gic::offset::CLEAR_PENDING, gic::offset::SET_PENDING])
    }),
    ("enable", |own| {
        own.words(&[gic::offset::CLEAR_ENABLE, gic::offset::SET_ENABLE])
    }),
    ("group", |own| own.words(&[gic::offset::GROUP])),
    ("active", |own| {
        own.words(&[gic::offset::SET_ACTIVE, gic::offset::CLEAR_ACTIVE])
    }),
    ("priority", Cpu::priority),
    ("configuration", |own| own.words(&[gic::offset::CONFIGURATION])),
    ("route", Cpu::route),
    ("control", Cpu::control),
    ("others", Cpu::others),
    ("interface", Cpu::interface),
    ("take", Cpu::take),
    ("deactivate", Cpu::deactivate),
    ("send", Cpu::send),
    ("read", Cpu::read),
    ("switch", Cpu::switch),
    ("power", Cpu::power),
    ("mixed", Cpu::mixed),
];

/// Draws one of a list.
fn pick<T: Copy>(random: &mut Random, list: &[T]) -> T {
    list[random.below(list.len() as u64) as usize]
}

impl Cpu {
    /// CPU `index` of `cpus`.
    pub fn new(random: Random, index: usize, cpus: usize) -> Self {
        Self {
            random,
            index,
            lines: gic::lines(),
            cpus,
        }
    }

    /// Draws all bits, none, or some.
    fn value(&mut self) -> u32 {
        match self.random.below(4) {
            0 => self.random.draw() as u32,
            1 => 0,
            _ => u32::MAX,
        }
    }

    fn number_of_word(&mut self) -> u64 {
        self.random.below(u64::from(self.lines / 32))
    }

    fn shared_line(&mut self) -> u32 {
        let shared = self.lines.min(gic::FIRST_SPECIAL) - gic::FIRST_SHARED;
        gic::FIRST_SHARED + self.random.below(u64::from(shared)) as u32
    }

    /// Writes a word of each of these registers, all with the mask closed and open.
    fn words(&mut self, registers: &[u64]) -> Outcome {
        if self.random.below(8) == 0 {
            let mask = pick(&mut self.random, &[0, 0, 0x40, 0xFF]);
            gic::set_mask(mask);
        }
        let (number, value) = (self.number_of_word(), self.value());
        for register in registers {
            bus::write_u32(lines::word(*register, number), value);
        }
        Outcome::Stay
    }

    fn priority(&mut self) -> Outcome {
        let number = self.random.below(u64::from(self.lines));
        let frame = if number < u64::from(gic::FIRST_SHARED) {
            gic::private_registers()
        } else {
            gic::DISTRIBUTOR
        };
        let (address, value) = (frame + gic::offset::PRIORITY + number, self.random.draw());
        if self.random.below(2) == 0 {
            bus::write_u8(address, value as u8);
        } else {
            bus::write_u32(address & !3, value as u32);
        }
        Outcome::Stay
    }

    fn route(&mut self) -> Outcome {
        let line = self.shared_line();
        let value = self.random.draw();
        if gic::is_version2() {
            bus::write_u32(gic::DISTRIBUTOR + TARGETS + u64::from(line & !3), value as u32);
            return Outcome::Stay;
        }
        let target = match value % 4 {
            0 => ANY_CPU,
            1 => 0xFF_00FF_FFFF,
            _ => value >> 8 & 3,
        };
        gic::route(line, target);
        Outcome::Stay
    }

    /// Switches the distributor off and on, with one group and with none. The distributor is not left
    /// off for long: nothing else does much then.
    fn control(&mut self) -> Outcome {
        let value = self.random.draw() as u32;
        bus::write_u32(
            gic::DISTRIBUTOR,
            value & if value & 0x100 == 0 { 0b11 } else { u32::MAX },
        );
        bus::write_u32(gic::DISTRIBUTOR, lines::control());
        Outcome::Stay
    }

    /// Private lines of any CPU, and whether it sleeps; on a GICv2 no CPU reaches another's.
    fn others(&mut self) -> Outcome {
        const REGISTERS: &[u64] = &[
            gic::offset::SET_PENDING,
            gic::offset::CLEAR_PENDING,
            gic::offset::GROUP,
            gic::offset::SET_ENABLE,
            gic::offset::SET_ACTIVE,
            gic::offset::CLEAR_ACTIVE,
            gic::offset::PRIORITY,
            gic::offset::CONFIGURATION + 4,
        ];
        let (register, value) = (pick(&mut self.random, REGISTERS), self.value());
        if gic::is_version2() {
            bus::write_u32(gic::DISTRIBUTOR + register, value);
            return Outcome::Stay;
        }
        let cpu = self.random.below(self.cpus as u64) as usize;
        let redistributor = gic::redistributor(cpu);
        bus::write_u32(redistributor + SGI_FRAME + register, value);
        if self.random.below(16) == 0 {
            bus::write_u32(redistributor + gic::offset::WAKER, value & 2);
            bus::write_u32(redistributor + gic::offset::WAKER, 0);
        }
        Outcome::Stay
    }

    /// Changes what the CPU interface lets in: mask, binary point, groups, mode of ending, priorities that
    /// run.
    fn interface(&mut self) -> Outcome {
        let value = self.random.draw();
        let version3 = !gic::is_version2();
        match self.random.below(8) {
            0 | 1 => gic::set_mask(value as u8),
            2 => gic::set_binary_point(value as u8 & 7),
            3 => gic::set_group_enable(value & 3 != 0),
            4 => gic::set_end_mode(value & 1 != 0),
            5 => gic::set_active_priorities(value & value >> 32),
            6 if version3 => gic::set_group0_enable(value & 3 != 0),
            7 if version3 => {
                gic::set_group0_binary_point(value as u8 & 7);
                gic::set_active_priorities0(value & value >> 32);
            }
            _ => gic::set_mask(0xFF),
        }
        if value & 0x70 == 0 {
            gic::set_active_priorities(0);
            gic::set_group_enable(true);
        }
        Outcome::Stay
    }

    /// Takes what comes and ends it, the wrong one now and then; then makes it pending again.
    fn take(&mut self) -> Outcome {
        gic::set_active_priorities(0);
        gic::set_mask(0xFF);
        for _ in 0..self.random.below(6) {
            let line = gic::acknowledge();
            if self.random.below(4) != 0 {
                gic::end(line);
            }
            if !gic::is_version2() && self.random.below(4) == 0 {
                let line = gic::acknowledge_group0();
                gic::end_group0(line ^ (self.random.below(8) == 0) as u32);
            }
        }
        gic::set_mask(0);
        let number = self.number_of_word();
        bus::write_u32(lines::word(gic::offset::SET_PENDING, number), u32::MAX);
        Outcome::Stay
    }

    /// More active interrupts than list registers, each deactivated in another order, and others that never
    /// were active.
    fn deactivate(&mut self) -> Outcome {
        gic::set_end_mode(true);
        gic::set_mask(0xFF);
        let mut taken = [0; DEPTH as usize];
        for line in &mut taken {
            *line = gic::acknowledge();
            gic::end(*line);
        }
        gic::set_mask(0);
        for _ in 0..DEPTH {
            let line = pick(&mut self.random, &taken);
            gic::deactivate(line);
        }
        let line = self.shared_line();
        gic::deactivate(line);
        gic::set_end_mode(false);
        gic::set_active_priorities(0);
        bus::write_u32(lines::word(gic::offset::CLEAR_ACTIVE, 0), u32::MAX);
        Outcome::Stay
    }

    /// Software-generated interrupts, to all CPUs.
    fn send(&mut self) -> Outcome {
        let value = self.random.draw();
        let sgi = value >> 60 << 24;
        if gic::is_version2() {
            let number = value >> 32 & 3;
            match value % 4 {
                0 => bus::write_u32(gic::DISTRIBUTOR + SET_SENT + number * 4, u32::MAX),
                1 => bus::write_u32(gic::DISTRIBUTOR + CLEAR_SENT + number * 4, value as u32),
                // The filters: a list, all others, the own one.
                _ => gic::send_as((value & 3) << 24 | 0xFF_0000 | value >> 60),
            }
            return Outcome::Stay;
        }
        match value % 5 {
            0 => gic::send_as(sgi | ALL_OTHERS),
            1 => gic::send_as(sgi | 0xFFFF),
            2 => gic::write_sgi0_register(sgi | 0xFFFF),
            3 => gic::write_other_sgi_register(sgi | ALL_OTHERS),
            _ => gic::send_as(value),
        }
        Outcome::Stay
    }

    /// Reads the states of lines that other CPUs may have in their list registers.
    fn read(&mut self) -> Outcome {
        const REGISTERS: &[u64] = &[
            gic::offset::SET_PENDING,
            gic::offset::SET_ACTIVE,
            gic::offset::CLEAR_PENDING,
            gic::offset::GROUP,
        ];
        let register = pick(&mut self.random, REGISTERS);
        let number = self.number_of_word();
        let cpu = self.random.below(self.cpus as u64) as usize;
        let address = if number == 0 && !gic::is_version2() {
            gic::redistributor(cpu) + SGI_FRAME + register
        } else {
            lines::word(register, number)
        };
        let _ = bus::read_u32(address);
        gic::set_mask(if self.random.below(2) == 0 { 0xFF } else { 0 });
        let _ = gic::highest_pending();
        Outcome::Stay
    }

    /// Sleeps and wakes with all lines pending. CPU 0 sleeps only where no other CPU could change what wakes
    /// it.
    fn switch(&mut self) -> Outcome {
        let timer = Timer::Virtual;
        bus::write_u32(lines::word(gic::offset::SET_ENABLE, 0), 1 << timer.line());
        bus::write_u32(gic::DISTRIBUTOR, lines::control());
        gic::set_group_enable(true);
        gic::set_active_priorities(0);
        gic::set_priority(timer.line(), 0);
        // Lets in only the timer, or everything.
        let mask = pick(&mut self.random, &[8, 8, 0xFF]);
        gic::set_mask(mask);
        timer.arm(timer.now() + self.random.below(NAP));
        if self.cpus == 1 {
            cpu::wait_for_interrupt();
        } else {
            cpu::relax();
        }
        timer.disarm();
        gic::set_mask(0);
        self.words(&[gic::offset::SET_PENDING])
    }

    /// CPUs go off with all that is pending for them, and come back.
    fn power(&mut self) -> Outcome {
        self.words(&[gic::offset::SET_PENDING]);
        if self.index != 0 {
            return if self.random.below(8) == 0 {
                Outcome::Off
            } else {
                Outcome::Stay
            };
        }
        if self.cpus > 1 {
            let other = 1 + self.random.below(self.cpus as u64 - 1) as usize;
            smp::start(other, crate::attack_for_ever, self.cpus as u64);
        }
        Outcome::Stay
    }

    fn mixed(&mut self) -> Outcome {
        let phases = PHASES.len() as u64 - 1;
        let (_, operation) = PHASES[self.random.below(phases) as usize];
        operation(self)
    }
}
