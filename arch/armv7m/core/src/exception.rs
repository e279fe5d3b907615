// SPDX-License-Identifier: Apache-2.0
//! Numbers of exceptions and the value that ends one (Arm DDI 0403E.e, B1.5.2 and B1.5.8).

/// An exception, by its number in the vector table: 1 to 15 are the system's, 16 and up are lines of
/// the interrupt controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Exception(pub u8);

impl Exception {
    /// Not maskable.
    pub const NMI: Self = Self(2);
    /// The exception that any other fault becomes which cannot be taken itself.
    pub const HARD_FAULT: Self = Self(3);
    /// A violation of the memory protection unit.
    pub const MEMORY_FAULT: Self = Self(4);
    /// An error on the bus.
    pub const BUS_FAULT: Self = Self(5);
    /// An instruction that cannot be executed.
    pub const USAGE_FAULT: Self = Self(6);
    /// The SVC instruction.
    pub const SUPERVISOR_CALL: Self = Self(11);
    /// The debug monitor.
    pub const DEBUG_MONITOR: Self = Self(12);
    /// A call that waits until nothing more urgent is to do.
    pub const PENDSV: Self = Self(14);
    /// The system timer.
    pub const SYSTICK: Self = Self(15);

    /// Returns the exception of line `line` of the interrupt controller.
    #[must_use]
    pub const fn of_line(line: u8) -> Self {
        Self(line.saturating_add(16))
    }

    /// Returns the line of the interrupt controller that this exception is, if it is one.
    #[must_use]
    pub const fn line(self) -> Option<u8> {
        self.0.checked_sub(16)
    }

    /// Address of its vector, relative to the table.
    #[must_use]
    pub const fn vector_offset(self) -> u32 {
        (self.0 as u32) << 2
    }
}

/// One of the two stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// MSP.
    Main,
    /// PSP.
    Process,
}

/// The value a handler finds in LR and branches to when it is done (B1.5.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExcReturn(pub u32);

/// The state that an [`ExcReturn`] asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// To a handler, else to a thread.
    pub handler: bool,
    /// Where the frame is.
    pub stack: Stack,
}

impl ExcReturn {
    /// Lowest address whose execution in Handler mode is an exception return.
    pub const LOWEST: u32 = 0xF000_0000;

    /// Returns what an exception that interrupts code in this state finds in LR.
    #[must_use]
    pub const fn new(target: Target, extended: bool) -> Self {
        let base = match target {
            Target { handler: true, .. } => 0xFFFF_FFF1,
            Target {
                stack: Stack::Main, ..
            } => 0xFFFF_FFF9,
            Target { .. } => 0xFFFF_FFFD,
        };
        Self(if extended { base & !0x10 } else { base })
    }

    /// Returns what the value asks for; `None` for a value that is not valid. Bits \[27:5\] should be ones;
    /// CPUs do not check them, nor is it done here.
    #[must_use]
    pub const fn target(self) -> Option<Target> {
        match self.0 & 0xF {
            0x1 => Some(Target {
                handler: true,
                stack: Stack::Main,
            }),
            0x9 => Some(Target {
                handler: false,
                stack: Stack::Main,
            }),
            0xD => Some(Target {
                handler: false,
                stack: Stack::Process,
            }),
            _ => None,
        }
    }

    /// Tells whether the frame has a floating-point part.
    #[must_use]
    pub const fn extended(self) -> bool {
        self.0 & 0x10 == 0
    }
}

/// Returns the number of bytes of an exception frame without and with floating-point registers (B1.5.7).
#[must_use]
pub const fn frame_size(extended: bool) -> u32 {
    if extended { 0x68 } else { 0x20 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_its_value_and_back() {
        let states = [
            (true, Stack::Main, 0xFFFF_FFF1),
            (false, Stack::Main, 0xFFFF_FFF9),
            (false, Stack::Process, 0xFFFF_FFFD),
        ];
        for (handler, stack, value) in states {
            let target = Target { handler, stack };
            assert_eq!(ExcReturn::new(target, false).0, value);
            assert_eq!(ExcReturn::new(target, true).0, value & !0x10);
            assert_eq!(ExcReturn(value).target(), Some(target));
            assert!(ExcReturn(value & !0x10).extended());
        }
        assert_eq!(ExcReturn(0xFFFF_FFF5).target(), None);
    }
}
