// SPDX-License-Identifier: Apache-2.0
//! The causes of faults as the physical CPU tells them (Arm DDI 0403E.e, B3.2.15), decoded: whose business a
//! fault is, and what of it the guest's own processor would report.

use crate::exception::Exception;
use crate::fault::{Fault, UsageStatus};
use crate::status::{
    BFARVALID, DACCVIOL, IACCVIOL, IBUSERR, IMPRECISERR, MMARVALID, MSTKERR, MUNSTKERR, PRECISERR, STKERR,
    UNDEFINSTR, UNSTKERR,
};

const USAGE_BITS: u32 = 0xFFFF_0000;
const MEMORY_BITS: u32 = 0xFF;
const BUS_BITS: u32 = 0xFF00;
/// A frame could not be pushed or popped.
const FRAME: u32 = MSTKERR | STKERR | MUNSTKERR | UNSTKERR;

/// The report of the physical CPU about a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The exception it was.
    pub exception: Exception,
    /// CFSR.
    pub status: u32,
    /// MMFAR or BFAR, if one is valid.
    pub address: Option<u32>,
}

/// The subject of a fault, which decides who answers the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A frame could not be pushed or popped.
    Frame,
    /// An instruction that cannot be executed.
    Undefined,
    /// An instruction could not be fetched.
    Fetch,
    /// A load or store was refused.
    Access,
    /// A store was refused some instructions later.
    LateStore,
    /// A breakpoint that no debugger has taken.
    Breakpoint,
    /// A fault that only the guest's own processor reports.
    Own,
    /// None of these.
    Unknown,
}

impl Cause {
    /// Returns the cause of `exception` by CFSR. MMFAR and BFAR are read if they are valid.
    #[inline(always)]
    pub fn read(
        exception: Exception,
        status: u32,
        memory_address: impl FnOnce() -> u32,
        bus_address: impl FnOnce() -> u32,
    ) -> Self {
        let address = if status & MMARVALID != 0 {
            Some(memory_address())
        } else if status & BFARVALID != 0 {
            Some(bus_address())
        } else {
            None
        };
        Self {
            exception,
            status,
            address,
        }
    }

    /// Tells whether one of these bits of CFSR is set.
    #[must_use]
    pub const fn has(&self, bits: u32) -> bool {
        self.status & bits != 0
    }

    /// Tells what the fault is about. A frame that could not be pushed comes first: nothing else is known
    /// without the frame.
    #[inline(always)]
    #[must_use]
    pub const fn subject(&self) -> Subject {
        match self.exception {
            Exception::MEMORY_FAULT
            | Exception::BUS_FAULT
            | Exception::USAGE_FAULT
            | Exception::HARD_FAULT
                if self.has(FRAME) =>
            {
                Subject::Frame
            }
            Exception::HARD_FAULT => Subject::Breakpoint,
            Exception::USAGE_FAULT if self.has(UNDEFINSTR) => Subject::Undefined,
            Exception::USAGE_FAULT => Subject::Own,
            Exception::MEMORY_FAULT | Exception::BUS_FAULT if self.has(IACCVIOL | IBUSERR) => Subject::Fetch,
            Exception::MEMORY_FAULT | Exception::BUS_FAULT if self.has(DACCVIOL | PRECISERR) => {
                Subject::Access
            }
            Exception::MEMORY_FAULT | Exception::BUS_FAULT if self.has(IMPRECISERR) => Subject::LateStore,
            _ => Subject::Unknown,
        }
    }

    /// Returns the fault as the guest's own processor would report it.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        let address = self.address;
        if self.has(USAGE_BITS) {
            Fault::Usage(UsageStatus(self.status & USAGE_BITS))
        } else if self.has(BUS_BITS) {
            Fault::Bus {
                status: self.status & BUS_BITS & !BFARVALID,
                address,
            }
        } else {
            Fault::Memory {
                status: self.status & MEMORY_BITS & !MMARVALID,
                address,
            }
        }
    }

    /// Returns the fault of a frame that could not be pushed or popped. The other bits that are noted there
    /// mostly say why there was to be a frame: that an instruction traps, which it does not on the guest's
    /// own processor. Only an access that the protection unit refused is its own.
    #[must_use]
    pub const fn frame_fault(&self) -> Fault {
        let (kept, valid) = if self.has(MSTKERR | MUNSTKERR) {
            (MEMORY_BITS, MMARVALID)
        } else {
            (BUS_BITS, BFARVALID)
        };
        Self {
            exception: self.exception,
            status: self.status & kept,
            address: if self.has(valid) { self.address } else { None },
        }
        .fault()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(exception: Exception, status: u32) -> Cause {
        Cause::read(exception, status, || 0x2000_0010, || 0xE000_ED08)
    }

    #[test]
    fn a_frame_comes_before_everything_else() {
        for exception in [
            Exception::HARD_FAULT,
            Exception::MEMORY_FAULT,
            Exception::BUS_FAULT,
            Exception::USAGE_FAULT,
        ] {
            for bit in [MSTKERR, STKERR, MUNSTKERR, UNSTKERR] {
                let all = bit | IACCVIOL | DACCVIOL | PRECISERR | UNDEFINSTR;
                assert_eq!(
                    cause(exception, all).subject(),
                    Subject::Frame,
                    "{exception:?} {bit:#x}"
                );
            }
        }
        assert_eq!(
            cause(Exception::DEBUG_MONITOR, MSTKERR).subject(),
            Subject::Unknown
        );
    }

    #[test]
    fn every_fault_has_its_subject() {
        let table = [
            (Exception::MEMORY_FAULT, IACCVIOL, Subject::Fetch),
            (Exception::BUS_FAULT, IBUSERR, Subject::Fetch),
            (Exception::MEMORY_FAULT, DACCVIOL | MMARVALID, Subject::Access),
            (Exception::BUS_FAULT, PRECISERR | BFARVALID, Subject::Access),
            (Exception::BUS_FAULT, IMPRECISERR, Subject::LateStore),
            (Exception::BUS_FAULT, IMPRECISERR | PRECISERR, Subject::Access),
            (Exception::BUS_FAULT, 0, Subject::Unknown),
            (Exception::USAGE_FAULT, UNDEFINSTR, Subject::Undefined),
            (Exception::USAGE_FAULT, 1 << 25, Subject::Own),
            (Exception::HARD_FAULT, 0, Subject::Breakpoint),
        ];
        for (exception, status, subject) in table {
            assert_eq!(
                cause(exception, status).subject(),
                subject,
                "{exception:?} {status:#x}"
            );
        }
    }

    #[test]
    fn an_address_is_read_only_where_it_is_valid() {
        assert_eq!(
            cause(Exception::MEMORY_FAULT, MMARVALID).address,
            Some(0x2000_0010)
        );
        assert_eq!(cause(Exception::BUS_FAULT, BFARVALID).address, Some(0xE000_ED08));
        let both = cause(Exception::BUS_FAULT, BFARVALID | MMARVALID);
        assert_eq!(both.address, Some(0x2000_0010), "the unit's fault comes first");
        let never = || unreachable!("not valid");
        assert_eq!(
            Cause::read(Exception::BUS_FAULT, PRECISERR, never, never).address,
            None
        );
    }

    #[test]
    fn the_guest_is_told_its_own_bits_without_the_valid_one() {
        let bus = cause(Exception::BUS_FAULT, PRECISERR | BFARVALID).fault();
        assert_eq!(bus, Fault::bus(0xE000_ED08));
        let memory = cause(Exception::MEMORY_FAULT, DACCVIOL | MMARVALID).fault();
        let address = Some(0x2000_0010);
        assert_eq!(
            memory,
            Fault::Memory {
                status: DACCVIOL,
                address
            }
        );
        let usage = cause(Exception::USAGE_FAULT, 1 << 25 | DACCVIOL).fault();
        assert_eq!(usage, Fault::Usage(UsageStatus(1 << 25)));
    }

    #[test]
    fn a_frame_that_fails_does_not_tell_why_there_was_to_be_one() {
        let trapped = cause(
            Exception::MEMORY_FAULT,
            MSTKERR | UNDEFINSTR | PRECISERR | BFARVALID,
        );
        let expected = Fault::Memory {
            status: MSTKERR,
            address: None,
        };
        assert_eq!(trapped.frame_fault(), expected);
        let refused = cause(Exception::MEMORY_FAULT, MSTKERR | DACCVIOL | MMARVALID);
        let expected = Fault::Memory {
            status: MSTKERR | DACCVIOL,
            address: Some(0x2000_0010),
        };
        assert_eq!(refused.frame_fault(), expected);
        let bus = cause(Exception::BUS_FAULT, STKERR | UNDEFINSTR);
        let expected = Fault::Bus {
            status: STKERR,
            address: None,
        };
        assert_eq!(bus.frame_fault(), expected);
    }
}
