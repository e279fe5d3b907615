// SPDX-License-Identifier: Apache-2.0
//! A decoder of the instructions that a guest uses on device registers, and of moves to and from control
//! registers (AMD APM volume 3). The processor reports the address; the decoder finds the direction, the
//! size, the register, and the length.
//!
//! It is ours because the crates that decode all of x86 need a heap or tables of hundreds of kilobytes on
//! the target. A property test compares it with `iced-x86`.

/// The longest instruction.
pub const MAX_LENGTH: usize = 15;

/// The default sizes of code at the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// 16 bits.
    Bits16,
    /// 32 bits.
    Bits32,
    /// 64-bit mode.
    Bits64,
}

/// The use that an instruction makes of its operand in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Loads a register.
    Load {
        /// The register, and its size in bytes.
        register: Register,
        /// The size of the register that is written.
        into: u8,
        /// True if the value is extended with its sign.
        signed: bool,
    },
    /// Stores a register.
    StoreRegister(Register),
    /// Stores a constant.
    StoreValue(u64),
    /// Compares with a constant, or ANDs with it, and only sets flags: a load.
    Test {
        /// The other operand.
        with: Operand,
        /// CMP if true, else TEST.
        compares: bool,
    },
}

/// An operand that is not in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A register.
    Register(Register),
    /// A constant.
    Value(u64),
}

/// A part of a general register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    /// Its number in the order of instructions: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8...
    pub number: u8,
    /// True if it is bits 15:8 (AH, CH, DH, BH).
    pub is_high: bool,
}

/// An access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Bytes of the instruction.
    pub length: u8,
    /// Bytes of memory: 1, 2, 4 or 8.
    pub size: u8,
    /// The use of the operand.
    pub operation: Operation,
}

/// A move to or from a control register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlMove {
    /// Bytes of the instruction.
    pub length: u8,
    /// The control register.
    pub control: u8,
    /// The general register.
    pub general: u8,
}

/// Bytes of an instruction, from the first on.
#[derive(Clone, Copy)]
struct Reader<'b> {
    bytes: &'b [u8],
    used: u8,
    mode: Mode,
    rex: u8,
    operand_prefix: bool,
    address_prefix: bool,
    repeats: bool,
}

impl<'b> Reader<'b> {
    fn new(bytes: &'b [u8], mode: Mode) -> Self {
        Self {
            bytes: bytes.get(..MAX_LENGTH).unwrap_or(bytes),
            used: 0,
            mode,
            rex: 0,
            operand_prefix: false,
            address_prefix: false,
            repeats: false,
        }
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = self.bytes.get(usize::from(self.used)).copied()?;
        self.used = self.used.wrapping_add(1);
        Some(byte)
    }

    /// Reads prefixes, and returns the first byte of the operation. A REX prefix counts only right before
    /// it.
    fn opcode(&mut self) -> Option<u8> {
        for _ in 0..MAX_LENGTH {
            let byte = self.byte()?;
            match byte {
                0x66 => self.operand_prefix = true,
                0x67 => self.address_prefix = true,
                // Segments; LOCK.
                0x26 | 0x2E | 0x36 | 0x3E | 0x64 | 0x65 | 0xF0 => {}
                0xF2 | 0xF3 => self.repeats = true,
                0x40..0x50 if self.mode == Mode::Bits64 => {
                    self.rex = byte;
                    continue;
                }
                _ => return Some(byte),
            }
            self.rex = 0;
        }
        None
    }

    const fn operand_size(&self) -> u8 {
        if self.rex & 8 != 0 {
            return 8;
        }
        match (self.mode, self.operand_prefix) {
            (Mode::Bits16, false) | (Mode::Bits32 | Mode::Bits64, true) => 2,
            _ => 4,
        }
    }

    fn immediate(&mut self, size: u8) -> Option<u64> {
        let mut value = 0;
        for place in 0..size {
            value |= u64::from(self.byte()?) << u32::from(place).wrapping_mul(8);
        }
        Some(value)
    }

    /// Reads a constant of the operand's size; one of 8 bytes is 4 bytes with their sign.
    fn operand_value(&mut self, size: u8) -> Option<u64> {
        let value = self.immediate(size.min(4))?;
        Some(if size == 8 { extend(value, 4) } else { value })
    }

    /// Reads ModRM and everything after it that belongs to the address. Returns the field `reg`; `None` if
    /// the operand is no memory.
    fn memory(&mut self) -> Option<u8> {
        let modrm = self.byte()?;
        let (form, reg, rm) = (modrm >> 6, modrm >> 3 & 7, modrm & 7);
        if form == 3 {
            return None;
        }
        let is_16 = match self.mode {
            Mode::Bits16 => !self.address_prefix,
            Mode::Bits32 => self.address_prefix,
            Mode::Bits64 => false,
        };
        let displacement = if is_16 {
            match (form, rm) {
                (0, 6) | (2, _) => 2,
                (1, _) => 1,
                _ => 0,
            }
        } else {
            let base = if rm == 4 { self.byte()? & 7 } else { rm };
            match (form, base) {
                (0, 5) | (2, _) => 4,
                (1, _) => 1,
                _ => 0,
            }
        };
        self.immediate(displacement)?;
        Some(reg)
    }

    const fn register(&self, reg: u8, size: u8) -> Register {
        if size == 1 && self.rex == 0 && reg >= 4 {
            return Register {
                number: reg & 3,
                is_high: true,
            };
        }
        Register {
            number: reg | (self.rex & 4) << 1,
            is_high: false,
        }
    }

    const fn plain(number: u8) -> Register {
        Register {
            number,
            is_high: false,
        }
    }
}

/// Returns `value` of `size` bytes with its sign in all 64 bits.
#[must_use]
pub const fn extend(value: u64, size: u8) -> u64 {
    let unused = 64_u32.saturating_sub((size as u32).wrapping_mul(8)) & 63;
    (value << unused)
        .cast_signed()
        .wrapping_shr(unused)
        .cast_unsigned()
}

/// Decodes an instruction with an operand in memory: MOV in all its forms, MOVZX, MOVSX, MOVSXD, CMP and
/// TEST. `None`: it is another one.
#[must_use]
pub fn access(bytes: &[u8], mode: Mode) -> Option<Access> {
    let mut code = Reader::new(bytes, mode);
    let opcode = code.opcode()?;
    if code.repeats {
        return None;
    }
    let wide = code.operand_size();
    let size = if opcode & 1 == 0 { 1 } else { wide };
    let (size, operation) = match opcode {
        0x88 | 0x89 => {
            let reg = code.memory()?;
            (size, Operation::StoreRegister(code.register(reg, size)))
        }
        0x8A | 0x8B => {
            let reg = code.memory()?;
            (size, load(code.register(reg, size), size, false))
        }
        // MOVSXD.
        0x63 if mode == Mode::Bits64 => {
            let reg = code.memory()?;
            let from = if wide == 2 { 2 } else { 4 };
            (from, load(code.register(reg, wide), wide, true))
        }
        0xA0..=0xA3 => {
            let bytes = match (mode, code.address_prefix) {
                (Mode::Bits64, false) => 8,
                (Mode::Bits16, false) | (Mode::Bits32, true) => 2,
                _ => 4,
            };
            code.immediate(bytes)?;
            let accumulator = Reader::plain(0);
            if opcode < 0xA2 {
                (size, load(accumulator, size, false))
            } else {
                (size, Operation::StoreRegister(accumulator))
            }
        }
        0xC6 | 0xC7 => {
            if code.memory()? != 0 {
                return None;
            }
            (size, Operation::StoreValue(code.operand_value(size)?))
        }
        0x0F => return two_bytes(code, wide),
        _ => (size, test(&mut code, opcode, size)?),
    };
    Some(Access {
        length: code.used,
        size,
        operation,
    })
}

const fn load(register: Register, into: u8, signed: bool) -> Operation {
    Operation::Load {
        register,
        into,
        signed,
    }
}

/// Decodes MOVZX and MOVSX.
fn two_bytes(mut code: Reader<'_>, wide: u8) -> Option<Access> {
    let opcode = code.byte()?;
    let (size, signed) = match opcode {
        0xB6 => (1, false),
        0xB7 => (2, false),
        0xBE => (1, true),
        0xBF => (2, true),
        _ => return None,
    };
    let reg = code.memory()?;
    let register = Reader::plain(code.register(reg, wide).number);
    Some(Access {
        length: code.used,
        size,
        operation: load(register, wide, signed),
    })
}

/// Decodes CMP and TEST.
fn test(code: &mut Reader<'_>, opcode: u8, size: u8) -> Option<Operation> {
    let (with, compares) = match opcode {
        0x38 | 0x39 | 0x84 | 0x85 => {
            let reg = code.memory()?;
            (Operand::Register(code.register(reg, size)), opcode < 0x40)
        }
        0xF6 | 0xF7 => {
            if code.memory()? > 1 {
                return None;
            }
            (Operand::Value(code.operand_value(size)?), false)
        }
        0x80 | 0x81 | 0x83 => {
            if code.memory()? != 7 {
                return None;
            }
            let value = if opcode == 0x83 {
                extend(code.immediate(1)?, 1)
            } else {
                code.operand_value(size)?
            };
            (Operand::Value(value), true)
        }
        _ => return None,
    };
    Some(Operation::Test { with, compares })
}

/// Decodes a move between a general and a control register.
#[must_use]
pub fn control_move(bytes: &[u8], mode: Mode) -> Option<ControlMove> {
    let mut code = Reader::new(bytes, mode);
    if code.opcode()? != 0x0F || !matches!(code.byte()?, 0x20 | 0x22) {
        return None;
    }
    let modrm = code.byte()?;
    Some(ControlMove {
        length: code.used,
        control: modrm >> 3 & 7 | (code.rex & 4) << 1,
        general: modrm & 7 | (code.rex & 1) << 3,
    })
}

/// Returns the length of an instruction with an opcode of two bytes and nothing after it but prefixes in
/// front, such as CPUID; `None` if it is another one.
#[must_use]
pub fn plain_length(bytes: &[u8], mode: Mode, second: u8) -> Option<u8> {
    let mut code = Reader::new(bytes, mode);
    let is_it = code.opcode()? == 0x0F && code.byte()? == second;
    is_it.then_some(code.used)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn register(number: u8) -> Register {
        Register {
            number,
            is_high: false,
        }
    }

    #[test]
    fn moves_of_linux_to_its_apics() {
        // mov %esi,-0xa04000(%rdi); mov 0x10(%rax),%eax; movl $0x0,0xb0(%rip).
        let store = access(&[0x89, 0xB7, 0, 0xC0, 0x5F, 0xFF], Mode::Bits64).unwrap();
        assert_eq!((store.length, store.size), (6, 4));
        assert_eq!(store.operation, Operation::StoreRegister(register(6)));
        let fetched = access(&[0x8B, 0x40, 0x10, 0x90], Mode::Bits64).unwrap();
        assert_eq!((fetched.length, fetched.size), (3, 4));
        assert_eq!(fetched.operation, load(register(0), 4, false));
        let constant = access(&[0xC7, 0x05, 0xB0, 0, 0, 0, 0x78, 0x56, 0x34, 0x12], Mode::Bits64).unwrap();
        assert_eq!((constant.length, constant.size), (10, 4));
        assert_eq!(constant.operation, Operation::StoreValue(0x1234_5678));
    }

    #[test]
    fn prefixes_and_high_bytes() {
        let high = access(&[0x88, 0x20], Mode::Bits64).unwrap();
        let ah = Register {
            number: 0,
            is_high: true,
        };
        assert_eq!(high.operation, Operation::StoreRegister(ah));
        let low = access(&[0x40, 0x88, 0x20], Mode::Bits64).unwrap();
        assert_eq!(low.operation, Operation::StoreRegister(register(4)));
        let wide = access(&[0x4C, 0x8B, 0x00], Mode::Bits64).unwrap();
        assert_eq!((wide.size, wide.operation), (8, load(register(8), 8, false)));
        let extended = access(&[0x0F, 0xBE, 0x00], Mode::Bits32).unwrap();
        assert_eq!(
            (extended.size, extended.operation),
            (1, load(register(0), 4, true))
        );
        assert_eq!(
            access(&[0x48, 0x66, 0x8B, 0x00], Mode::Bits64).unwrap().size,
            2,
            "REX is void"
        );
    }

    #[test]
    fn other_instructions_are_refused() {
        for bytes in [
            &[0x89, 0xC0][..],
            &[0xF3, 0xA4],
            &[0x0F, 0x10, 0],
            &[0x90],
            &[0x89],
            &[],
            &[0x66; 15],
        ] {
            assert_eq!(access(bytes, Mode::Bits64), None, "{bytes:x?}");
        }
    }

    #[test]
    fn control_registers() {
        let found = control_move(&[0x0F, 0x22, 0xE0], Mode::Bits64);
        let cr4 = ControlMove {
            length: 3,
            control: 4,
            general: 0,
        };
        assert_eq!(found, Some(cr4));
        let found = control_move(&[0x45, 0x0F, 0x20, 0xC7], Mode::Bits64).unwrap();
        assert_eq!((found.length, found.control, found.general), (4, 8, 15));
        assert_eq!(plain_length(&[0x66, 0x0F, 0xA2], Mode::Bits64, 0xA2), Some(3));
    }

    #[test]
    fn signs() {
        assert_eq!(extend(0x80, 1), 0xFFFF_FFFF_FFFF_FF80);
        assert_eq!(extend(0x7FFF, 2), 0x7FFF);
        assert_eq!(extend(u64::MAX, 8), u64::MAX);
    }
}
