// SPDX-License-Identifier: Apache-2.0
//! The guest's processor: its machine state and its special purpose registers.

use crate::timers::Timers;
use crate::tlb::Tlb;
use crate::uic::Uic;

/// MSR (User's Manual, section 2.3.5).
pub mod msr {
    /// Wait state.
    pub const WE: u32 = 0x4_0000;
    /// Critical interrupts.
    pub const CE: u32 = 0x2_0000;
    /// External interrupts and interrupts of the timers.
    pub const EE: u32 = 0x8000;
    /// Problem state.
    pub const PR: u32 = 0x4000;
    /// Floating point, which no 405 has.
    pub const FP: u32 = 0x2000;
    /// Machine checks.
    pub const ME: u32 = 0x1000;
    /// Debug wait.
    pub const DWE: u32 = 0x400;
    /// Debug interrupts.
    pub const DE: u32 = 0x200;
    /// Translation of instruction addresses.
    pub const IR: u32 = 0x20;
    /// Translation of data addresses.
    pub const DR: u32 = 0x10;
    /// All bits that the processor has.
    pub const ALL: u32 = WE | CE | EE | PR | FP | ME | DWE | DE | IR | DR;
}

/// ESR (section 5.4.5).
pub mod esr {
    /// Machine check of an instruction.
    pub const MCI: u32 = 0x8000_0000;
    /// Illegal instruction.
    pub const PIL: u32 = 0x0800_0000;
    /// Privileged instruction in problem state.
    pub const PPR: u32 = 0x0400_0000;
    /// Trap instruction.
    pub const PTR: u32 = 0x0200_0000;
    /// Store.
    pub const DST: u32 = 0x0080_0000;
    /// Zone protection.
    pub const DIZ: u32 = 0x0040_0000;
}

/// The version of the processor that guests see: a PPC405EP (PVR).
pub const PVR: u32 = 0x5121_0950;

/// Registers of the program, which are in the CPU while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Frame {
    /// r0 to r31.
    pub general: [u32; 32],
    /// The next instruction.
    pub pc: u32,
    /// CR.
    pub condition: u32,
    /// LR.
    pub link: u32,
    /// CTR.
    pub count: u32,
    /// XER.
    pub xer: u32,
}

impl Frame {
    /// All zero.
    pub const ZERO: Self = Self {
        general: [0; 32],
        pc: 0,
        condition: 0,
        link: 0,
        count: 0,
        xer: 0,
    };

    /// Returns a general register.
    #[inline]
    #[must_use]
    pub fn register(&self, number: u8) -> u32 {
        self.general.get(usize::from(number)).copied().unwrap_or(0)
    }

    /// Sets a general register.
    #[inline]
    pub fn set_register(&mut self, number: u8, value: u32) {
        if let Some(register) = self.general.get_mut(usize::from(number)) {
            *register = value;
        }
    }

    /// Returns RA, or 0 if the field says r0.
    #[inline]
    #[must_use]
    pub fn base(&self, number: u8) -> u32 {
        if number == 0 { 0 } else { self.register(number) }
    }

    /// Goes to the next instruction.
    #[inline]
    pub const fn step(&mut self) {
        self.pc = self.pc.wrapping_add(4);
    }
}

/// The parts of the real processor that have to follow a change of the guest's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Mode of translation, process, or zones.
    pub mode: bool,
    /// Entries of the guest's translation buffer, by number.
    pub entries: u64,
    /// All entries.
    pub all: bool,
    /// SPRG0 or SPRG4 to SPRG7, which a program in problem state can read, or SRR2 or SRR3, which it can read
    /// and write in QEMU 7.2.
    pub visible: bool,
    /// Timers or the interrupt controller: the next event may be another one.
    pub events: bool,
}

/// The guest's processor, except for the registers of the program.
#[derive(Clone, Debug)]
pub struct Cpu {
    /// MSR.
    pub msr: u32,
    /// SRR0, SRR1 of interrupts, SRR2 and SRR3 of critical ones.
    pub saved: [u32; 4],
    /// SPRG0 to SPRG7.
    pub scratch: [u32; 8],
    /// PID.
    pub process: u8,
    /// ZPR.
    pub zones: u32,
    /// ESR.
    pub syndrome: u32,
    /// DEAR.
    pub data_address: u32,
    /// EVPR.
    pub vectors: u32,
    /// Registers that are kept and have no other effect: see [`kept`].
    pub kept: [u32; KEPT],
    /// The timers.
    pub timers: Timers,
    /// The interrupt controller.
    pub uic: Uic,
    /// The translation buffer.
    pub tlb: Tlb,
    /// Changes since the real processor was brought up to date.
    pub changes: Changes,
}

/// Registers that are kept and have no other effect.
pub const KEPT: usize = 19;
/// DBSR.
pub const DEBUG_STATUS: u16 = 1008;
/// The values after a reset that are not 0, as on the emulated board: CCR0, SGR (all storage is
/// guarded), and DBSR, which says that the last reset was one of the system.
const KEPT_AT_RESET: [u32; KEPT] = {
    let mut values = [0; KEPT];
    values[0] = 0x0070_0000;
    values[5] = u32::MAX;
    values[18] = 0x300;
    values
};

/// Returns the place of a special purpose register that is kept and has no other effect. Those are registers
/// of debug facilities, and of caches, which cannot be seen: a guest finds the value that it wrote. Ones that
/// are written to DBSR clear its bits.
#[must_use]
pub const fn kept(spr: u16) -> Option<usize> {
    Some(match spr {
        // CCR0, IAC3, IAC4, DVC1, DVC2, SGR, DCWR, SLER, SU0R, DBCR1.
        947 => 0,
        948 => 1,
        949 => 2,
        950 => 3,
        951 => 4,
        953 => 5,
        954 => 6,
        955 => 7,
        956 => 8,
        957 => 9,
        // DBCR0, IAC1, IAC2, DAC1, DAC2, DCCR, ICCR, USPRG0, DBSR.
        1010 => 10,
        1012 => 11,
        1013 => 12,
        1014 => 13,
        1015 => 14,
        1018 => 15,
        1019 => 16,
        256 => 17,
        DEBUG_STATUS => 18,
        _ => return None,
    })
}

impl Cpu {
    /// Returns the processor after a reset at this time.
    #[must_use]
    pub const fn new(now: u64) -> Self {
        Self {
            msr: 0,
            saved: [0; 4],
            scratch: [0; 8],
            process: 0,
            zones: 0,
            syndrome: 0,
            data_address: 0,
            vectors: 0,
            kept: KEPT_AT_RESET,
            timers: Timers::new(now),
            uic: Uic::new(),
            tlb: Tlb::new(),
            changes: Changes {
                mode: true,
                entries: 0,
                all: true,
                visible: true,
                events: true,
            },
        }
    }

    /// Tells whether the guest runs a program of its own: its problem state.
    #[inline]
    #[must_use]
    pub const fn is_user(&self) -> bool {
        self.msr & msr::PR != 0
    }

    /// Changes MSR, and notes if the real processor has to follow.
    #[inline]
    pub const fn set_msr(&mut self, value: u32) {
        let value = value & msr::ALL;
        if (self.msr ^ value) & (msr::PR | msr::IR | msr::DR) != 0 {
            self.changes.mode = true;
        }
        self.msr = value;
    }

    /// Tells whether the guest can go on as it is: nothing has changed that the real processor has to follow,
    /// and no interrupt is to be taken.
    #[inline]
    #[must_use]
    pub const fn is_calm(&self) -> bool {
        let changes = &self.changes;
        let none = !(changes.mode || changes.all || changes.visible || changes.events);
        none && changes.entries == 0 && !self.has_interrupt() && self.msr & msr::WE == 0
    }

    /// Takes the changes.
    #[inline]
    pub const fn take_changes(&mut self) -> Changes {
        let changes = self.changes;
        self.changes = Changes {
            mode: false,
            entries: 0,
            all: false,
            visible: false,
            events: false,
        };
        changes
    }
}
