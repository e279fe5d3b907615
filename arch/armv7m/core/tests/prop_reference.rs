// SPDX-License-Identifier: Apache-2.0
//! The virtual processor against the manual's pseudocode: the same program, the same interrupts, and after
//! every instruction the same registers, stacks and status registers.
//!
//! The program is a random sequence of what concerns the processor itself: stores to its registers, MSR, CPS,
//! SVC, exception returns with right and wrong values, undefined instructions, floating-point use, stack
//! moves; lines rise and fall in between.

#[path = "machine/changes.rs"]
mod changes;
#[path = "machine/early.rs"]
mod early;
#[path = "machine/float.rs"]
mod float;
#[path = "machine/hypercall.rs"]
mod hypercall;
mod machine;
#[path = "machine/masks.rs"]
mod masks;

use bulkhead_arch_armv7m_core::decode::{narrow_replacement, wide_replacement};
use bulkhead_arch_armv7m_core::masks::{BASEPRI, LOOK, PRIMASK, PROCESS_STACK};
use bulkhead_arch_armv7m_core::{Fault, Next, Special, UsageStatus, VirtualCore};
use machine::native::{Locked, Native};
use machine::trapped::Trapped;
use machine::{MAIN_TOP, Memory, PROCESS_TOP, RAM};
use proptest::prelude::*;

/// The bits of xPSR that say that an IT block goes on (B1.4.2).
const IT_STATE: u32 = 0x0600_FC00;

#[derive(Clone, Copy, Debug)]
enum Operation {
    /// STR r1, [r0] or STRB.
    Store {
        address: u32,
        byte: bool,
        value: u32,
    },
    /// MSR of a register that is no stack pointer.
    Write {
        special: u8,
        value: u32,
    },
    /// MSR of MSP or PSP: down by this many bytes.
    MoveStack {
        process: bool,
        bytes: u32,
    },
    /// MSR CONTROL.
    Control {
        value: u32,
    },
    /// CPS.
    Masks {
        disable: bool,
        primask: bool,
        faultmask: bool,
    },
    /// MRS r2.
    Read {
        special: u8,
    },
    Call,
    Undefined,
    Return {
        value: u32,
    },
    /// BX LR.
    ReturnRight,
    /// Uses a floating-point register.
    Float {
        value: u32,
    },
    /// SUB SP or ADD SP.
    Push {
        words: u32,
    },
    SetRegister {
        number: usize,
        value: u32,
    },
    Level {
        line: u8,
        high: bool,
    },
    Pulse {
        line: u8,
    },
}

fn store() -> impl Strategy<Value = Operation> {
    let address = prop_oneof![
        3 => Just(0xE000_E100_u32),
        1 => Just(0xE000_E180),
        3 => Just(0xE000_E200),
        1 => Just(0xE000_E280),
        2 => (0..32_u32).prop_map(|n| 0xE000_E400 + n),
        2 => (0..12_u32).prop_map(|n| 0xE000_ED18 + n),
        3 => Just(0xE000_ED04),
        3 => Just(0xE000_ED24),
        1 => Just(0xE000_ED14),
        1 => Just(0xE000_ED28),
        1 => Just(0xE000_ED0C),
        1 => Just(0xE000_E284),
    ];
    (address, any::<u32>(), 0..4_u8, any::<bool>()).prop_map(|(address, random, thin, byte)| {
        let byte = byte && !(0xE000_ED00..0xE000_ED18).contains(&address) && address < 0xE000_ED24
            || address & 3 != 0;
        let value = match address {
            0xE000_ED0C => 0x05FA_0000 | random & 0x0700,
            // Which exceptions are active is changed less often: it ends most programs.
            0xE000_ED24 if thin != 0 => random & 0x0007_0000,
            0xE000_E100 => random,
            _ if thin == 0 => random,
            0xE000_ED18..=0xE000_ED23 | 0xE000_E400..=0xE000_E41F => random & 0xC0C0_C0C0,
            _ => 1 << (random & 31),
        };
        Operation::Store { address, byte, value }
    })
}

fn operation() -> impl Strategy<Value = Operation> {
    let special = prop_oneof![Just(0_u8), Just(16), Just(17), Just(17), Just(18), Just(19)];
    let any_special = prop_oneof![
        Just(3_u8),
        Just(5),
        Just(8),
        Just(9),
        Just(16),
        Just(17),
        Just(18),
        Just(19),
        Just(20)
    ];
    let value = prop_oneof![any::<u32>(), Just(0), Just(0x40), Just(0x80)];
    let returns = prop_oneof![
        Just(0xFFFF_FFF1_u32),
        Just(0xFFFF_FFF9),
        Just(0xFFFF_FFFD),
        Just(0xFFFF_FFE1),
        Just(0xFFFF_FFE9),
        Just(0xFFFF_FFED),
        Just(0xFFFF_FFF5),
        Just(0xFFFF_FFF3),
        Just(0xF000_0009)
    ];
    prop_oneof![
        12 => store(),
        4 => (special, value).prop_map(|(special, value)| Operation::Write { special, value }),
        2 => (any::<bool>(), 0..9_u32).prop_map(|(process, words)| Operation::MoveStack { process, bytes: words * 4 }),
        2 => (0..8_u32).prop_map(|value| Operation::Control { value }),
        2 => (any::<bool>(), any::<bool>(), any::<bool>())
            .prop_map(|(disable, primask, faultmask)| Operation::Masks { disable, primask, faultmask }),
        2 => any_special.prop_map(|special| Operation::Read { special }),
        3 => Just(Operation::Call),
        1 => Just(Operation::Undefined),
        1 => returns.prop_map(|value| Operation::Return { value }),
        8 => Just(Operation::ReturnRight),
        1 => any::<u32>().prop_map(|value| Operation::Float { value }),
        2 => (0..9_u32).prop_map(|words| Operation::Push { words }),
        2 => (0..13_usize, any::<u32>()).prop_map(|(number, value)| Operation::SetRegister { number, value }),
        3 => (0..4_u8, any::<bool>()).prop_map(|(line, high)| Operation::Level { line, high }),
        5 => (0..32_u8).prop_map(|line| Operation::Pulse { line }),
    ]
}

struct Pair {
    native: Native,
    trapped: Trapped,
    /// The masks are in words of the guest's memory.
    has_words: bool,
}

impl Pair {
    fn new(has_words: bool) -> Self {
        let memory = Memory::new();
        let mut native = Native::new(memory.clone(), MAIN_TOP);
        let mut trapped = Trapped::new(memory, MAIN_TOP);
        native.sp[1] = PROCESS_TOP;
        trapped
            .trap(|core, guest| Ok(core.write_special(guest, Special(9), 0, PROCESS_TOP)))
            .map(|done| assert!(done))
            .unwrap();
        Self {
            native,
            trapped,
            has_words,
        }
    }

    fn set(&mut self, number: usize, value: u32) {
        self.native.registers.general[number] = value;
        self.trapped.registers.general[number] = value;
    }

    /// Runs an instruction that the host tool replaced.
    fn replaced(&mut self, code: (u16, u16)) -> Result<(), ()> {
        self.trapped.code = [code.0, code.1];
        self.trapped
            .trap(|core, guest| core.replaced_instruction(guest).expect("a replaced one"))
            .map(|_| ())
            .map_err(|_| ())
    }

    /// Does what the code in the place of MRS or MSR does with the mask words. False if it needs the trap.
    fn by_words(&mut self, write: bool, register: u16, special: u8) -> bool {
        let Trapped { core, registers, .. } = &mut self.trapped;
        let shown = core.shown_masks();
        let value = registers.general[usize::from(register)];
        let mut words = shown;
        let offset = match special {
            9 => PROCESS_STACK,
            16 => PRIMASK,
            17 => BASEPRI,
            _ => return false,
        };
        let is_stack = offset == PROCESS_STACK;
        if registers.flags & IT_STATE != 0 || is_stack && words.process_stack == 0 {
            return false;
        }
        if !write {
            registers.general[usize::from(register)] = if is_stack {
                words.process_stack
            } else {
                words.masks >> (8 * offset) & 0xFF
            };
            return true;
        }
        if is_stack {
            words.process_stack = value & !3;
            core.take_masks(shown.masks, || words);
            return words.process_stack != 0;
        }
        let bits = if offset == PRIMASK {
            1
        } else {
            core.priority_bits()
        };
        words.masks = words.masks & !(0xFF << (8 * offset)) | (value & bits) << (8 * offset);
        core.take_masks(shown.masks, || words);
        words.masks & 0xFF << (8 * LOOK) == 0
    }

    fn special(&mut self, write: bool, register: u16, special: u8) -> Result<(), ()> {
        if self.has_words && self.by_words(write, register, special) {
            self.trapped.registers.pc = self.trapped.registers.pc.wrapping_add(4);
            return Ok(());
        }
        let encoding = if write {
            (0xF380 | register, 0x8800)
        } else {
            (0xF3EF, 0x8000 | register << 8)
        };
        match wide_replacement(encoding.0, encoding.1 | u16::from(special)) {
            Some(code) => self.replaced(code),
            // The flags: what hardware does by itself.
            None => {
                let value = self.trapped.registers.general[usize::from(register)];
                let flags = &mut self.trapped.registers.flags;
                *flags = *flags & 0x07FF_FFFF | value & 0xF800_0000;
                self.trapped.registers.pc = self.trapped.registers.pc.wrapping_add(4);
                *flags = machine::next_it(*flags);
                Ok(())
            }
        }
    }

    /// Does one operation on both; returns whether both go on.
    fn run(&mut self, operation: Operation) -> bool {
        let (native, trapped) = self.both(operation);
        assert_eq!(
            native.is_err(),
            trapped.is_err(),
            "one of them stops: {operation:?}"
        );
        if native.is_ok() {
            self.native.settle();
        }
        native.is_ok()
    }

    fn both(&mut self, operation: Operation) -> (Result<(), Locked>, Result<(), ()>) {
        let locked = |result: Result<_, _>| result.map(|_| ()).map_err(|_| ());
        match operation {
            Operation::Store { address, byte, value } => self.store(address, byte, value),
            Operation::Write { special, value } => {
                self.set(3, value);
                self.native.write_special(special.into(), value);
                self.native.step(4);
                (Ok(()), self.special(true, 3, special))
            }
            Operation::MoveStack { process, bytes } => self.move_stack(process, bytes),
            Operation::Control { value } => {
                self.set(3, value);
                self.native.write_special(20, value);
                self.native.step(4);
                (Ok(()), self.special(true, 3, 20))
            }
            Operation::Masks {
                disable,
                primask,
                faultmask,
            } => {
                let bits = u16::from(disable) << 4 | u16::from(primask) << 1 | u16::from(faultmask);
                if self.native.privileged() {
                    if primask {
                        self.native.primask = disable;
                    }
                    if faultmask {
                        self.native.mask_faults(disable);
                    }
                }
                self.native.step(2);
                let code = narrow_replacement(0xB660 | bits).unwrap();
                (Ok(()), self.replaced((code, 0)))
            }
            Operation::Read { special } => {
                self.native.registers.general[2] = self.native.read_special(special.into());
                self.native.step(4);
                (Ok(()), self.special(false, 2, special))
            }
            Operation::Call => (
                self.native.raise(11),
                locked(
                    self.trapped
                        .trap(|core, guest| core.supervisor_call(guest).map(|()| Next::Run)),
                ),
            ),
            Operation::Undefined => {
                self.native.cfsr |= 1 << 16;
                let fault = Fault::Usage(UsageStatus::UNDEFINED);
                (
                    self.native.raise(6),
                    locked(
                        self.trapped
                            .trap(|core, guest| core.raise(guest, fault).map(|()| Next::Run)),
                    ),
                )
            }
            Operation::Return { value } => self.exception_return(value),
            Operation::ReturnRight => match self.native.registers.lr {
                value if value >= 0xF000_0000 && value & 1 == 1 => self.exception_return(value),
                _ => (Ok(()), Ok(())),
            },
            other => {
                self.outside(other);
                (Ok(()), Ok(()))
            }
        }
    }

    /// Takes a physical interrupt that concerns the guest.
    fn interrupt(&mut self, change: impl FnOnce(&mut VirtualCore)) {
        let trap = self.trapped.trap(|core, _| {
            change(core);
            Ok(())
        });
        trap.unwrap();
    }

    /// Does what needs no trap, or happens outside the processor.
    fn outside(&mut self, operation: Operation) {
        match operation {
            Operation::Float { value } => {
                self.native.registers.float[(value & 15) as usize] = value;
                self.trapped.registers.float[(value & 15) as usize] = value;
                self.native.fpca = true;
                self.trapped.fpca = true;
            }
            Operation::Push { words } => {
                let live = self.native.live();
                let old = self.native.sp[live];
                let new = old - words * 4;
                self.native.memory.fill(new, old);
                self.trapped.memory.fill(new, old);
                self.native.sp[live] = new;
                self.trapped.psp = new;
            }
            Operation::SetRegister { number, value } => self.set(number, value),
            Operation::Level { line, high } => {
                let state = &mut self.native.exceptions[16 + usize::from(line)];
                state.pending |= high && !state.level && !state.active;
                state.level = high;
                self.interrupt(|core| core.set_line(line, high));
            }
            Operation::Pulse { line } => {
                self.native.exceptions[16 + usize::from(line)].pending = true;
                self.interrupt(|core| core.pulse_line(line));
            }
            _ => {}
        }
    }

    fn store(&mut self, address: u32, byte: bool, value: u32) -> (Result<(), Locked>, Result<(), ()>) {
        self.set(0, address);
        self.set(1, value);
        let size = if byte { 1 } else { 4 };
        self.trapped.code = [if byte { 0x7001 } else { 0x6001 }, 0];
        let trapped = self.trapped.trap(|core, guest| core.access_trapped(guest, 0));
        let native = if self.native.store(address, size, value) {
            self.native.step(2);
            Ok(())
        } else {
            self.native.cfsr |= 0x8200;
            self.native.raise(5)
        };
        (native, trapped.map(|_| ()).map_err(|_| ()))
    }

    fn exception_return(&mut self, value: u32) -> (Result<(), Locked>, Result<(), ()>) {
        let native = self.native.branch_to_return(value);
        self.trapped.registers.pc = value & !1;
        let trapped = self.trapped.trap(|core, guest| core.exception_return(guest));
        (native, trapped.map(|_| ()).map_err(|_| ()))
    }

    fn move_stack(&mut self, process: bool, bytes: u32) -> (Result<(), Locked>, Result<(), ()>) {
        let index = usize::from(process);
        let old = self.native.sp[index];
        let new = old - bytes;
        if self.native.privileged() {
            self.native.memory.fill(new, old);
        }
        self.set(3, new);
        let special = 8 + u8::from(process);
        self.native.write_special(special.into(), new);
        self.native.step(4);
        let trapped = self.special(true, 3, special);
        if self.native.privileged() {
            self.trapped.memory.fill(new, old);
        }
        (Ok(()), trapped)
    }

    fn compare(&mut self) {
        let (native, trapped) = (&self.native, &self.trapped);
        assert_eq!(native.registers, trapped.registers);
        assert_eq!(native.ipsr, u32::from(trapped.core.handler()));
        assert_eq!(
            native.execution_priority(),
            i32::from(trapped.core.execution_priority())
        );
        let numbers = [3, 5, 8, 9, 16, 17, 19, 20];
        let shown =
            trapped.peek(|core, guest| numbers.map(|number| core.read_special(guest, Special(number))));
        assert_eq!(
            numbers.map(|number| native.read_special(number.into())),
            shown,
            "{numbers:?}"
        );
        assert_eq!(native.sp[native.live()], trapped.psp);
        for (sp, end) in [
            (native.sp[0], MAIN_TOP + 0x4000),
            (native.sp[1], PROCESS_TOP + 0x4000),
        ] {
            let both = native
                .memory
                .words(sp, end)
                .iter()
                .zip(trapped.memory.words(sp, end));
            for (address, (native, trapped)) in (sp..).step_by(4).zip(both) {
                assert_eq!(native, trapped, "on the stack at {address:#x}");
            }
        }
        let mut core: VirtualCore = trapped.core.clone();
        if native.privileged() {
            let mut read = |address| core.read(address, 4, 0).unwrap();
            let shown = [0xE000_ED04, 0xE000_ED24, 0xE000_E100, 0xE000_E200, 0xE000_E300].map(&mut read);
            assert_eq!(native.status(), shown);
            assert_eq!((native.cfsr, native.hfsr), (read(0xE000_ED28), read(0xE000_ED2C)));
        }
    }

    /// Tells whether the stacks are far enough from the ends of memory to go on.
    fn inside(&self) -> bool {
        self.native.sp[0] > RAM + 0x1000
            && self.native.sp[0] < MAIN_TOP + 0x3000
            && self.native.sp[1] > MAIN_TOP + 0x4400
            && self.native.sp[1] < PROCESS_TOP + 0x3000
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_guest_sees_what_the_manual_says(
        program in proptest::collection::vec(operation(), 1..80),
        has_words in any::<bool>(),
    ) {
        let mut pair = Pair::new(has_words);
        // Everything enabled, so that exceptions nest.
        pair.run(Operation::Store { address: 0xE000_E100, byte: false, value: u32::MAX });
        for operation in program {
            if !pair.inside() || !pair.run(operation) {
                break;
            }
            pair.compare();
        }
    }
}
