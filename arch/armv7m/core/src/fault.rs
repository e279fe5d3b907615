// SPDX-License-Identifier: Apache-2.0
//! Faults of the guest: what its status registers say of them, and what they become when they cannot
//! be taken (Arm DDI 0403E.e, B1.5.14 and B3.2.15 to B3.2.17).

use crate::exception::Exception;
use crate::guest::Guest;
use crate::processor::{VirtualCore, bit};
use crate::status::{BFARVALID, IACCVIOL, IMPRECISERR, MMARVALID, PRECISERR};

const FORCED: u32 = 1 << 30;

/// The cause of a UsageFault: bits of CFSR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageStatus(pub u32);

impl UsageStatus {
    /// UNDEFINSTR.
    pub const UNDEFINED: Self = Self(1 << 16);
    /// INVPC.
    pub const INVALID_RETURN: Self = Self(1 << 18);
}

/// A fault the guest is to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// MemManage: its bits of CFSR (without MMARVALID), and the address if it is known.
    Memory {
        /// Bits \[7:0\] of CFSR.
        status: u32,
        /// The address for MMFAR.
        address: Option<u32>,
    },
    /// BusFault: likewise.
    Bus {
        /// Bits \[15:8\] of CFSR, in place.
        status: u32,
        /// The address for BFAR.
        address: Option<u32>,
    },
    /// UsageFault.
    Usage(UsageStatus),
    /// HardFault without an escalation: its bits of HFSR (BKPT without a debugger: DEBUGEVT).
    Hard {
        /// Bits of HFSR.
        status: u32,
    },
}

impl Fault {
    /// Execution of what can never be executed.
    pub const NO_EXECUTE: Self = Self::Memory {
        status: IACCVIOL,
        address: None,
    };

    /// Describes a load or store that the bus answers with an error.
    #[must_use]
    pub const fn bus(address: u32) -> Self {
        Self::Bus {
            status: PRECISERR,
            address: Some(address),
        }
    }
}

/// Why the CPU would stop for good (B1.5.15). The guest cannot go on; its partition is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lockup {
    /// A fault where not even a HardFault can be taken.
    Escalation {
        /// The exception that could not be taken.
        exception: Exception,
    },
    /// Neither the vector of an exception nor HardFault's vector can be read.
    VectorTable {
        /// The table's address.
        address: u32,
    },
    /// The main stack of the guest is not where it may write.
    HandlerStack {
        /// The exception that could not be taken.
        exception: Exception,
        /// The main stack pointer.
        stack: u32,
    },
}

impl VirtualCore {
    /// Returns the faults that the guest's processor has noted (CFSR, B3.2.15).
    #[must_use]
    pub const fn fault_status(&self) -> u32 {
        self.fault_status
    }

    /// Lets the guest take a fault of the instruction in the live frame.
    ///
    /// # Errors
    /// [`Lockup`] if it can take no fault now.
    pub fn raise(&mut self, guest: &mut impl Guest, fault: Fault) -> Result<(), Lockup> {
        let exception = self.record(&fault);
        let exception = self.escalate(exception)?;
        self.take(guest, exception)
    }

    /// Takes the guest's SVC; the live frame's PC is the instruction after it.
    ///
    /// # Errors
    /// [`Lockup`] if it can take no fault now.
    pub fn supervisor_call(&mut self, guest: &mut impl Guest) -> Result<(), Lockup> {
        let exception = self.escalate(Exception::SUPERVISOR_CALL)?;
        self.take(guest, exception)
    }

    /// Takes the late fault of a store that the bus refused some instructions ago (IMPRECISERR). It is taken
    /// when its priority allows, and becomes a HardFault if BusFault is not enabled (B1.5.14).
    pub fn late_bus_fault(&mut self) {
        self.fault_status |= IMPRECISERR;
        let enabled = self.system_enabled & bit(Exception::BUS_FAULT) != 0;
        if !enabled {
            self.hard_fault_status |= FORCED;
        }
        self.set_pending(if enabled {
            Exception::BUS_FAULT
        } else {
            Exception::HARD_FAULT
        });
    }

    /// Writes a fault into the status registers; which exception it is.
    pub(crate) fn record(&mut self, fault: &Fault) -> Exception {
        match *fault {
            Fault::Memory { status, address } => {
                self.memory_status(status);
                if let Some(address) = address {
                    self.memory_fault_address = address;
                    self.memory_status(MMARVALID);
                }
                Exception::MEMORY_FAULT
            }
            Fault::Bus { status, address } => {
                self.fault_status |= status;
                if let Some(address) = address {
                    self.bus_fault_address = address;
                    self.fault_status |= BFARVALID;
                }
                Exception::BUS_FAULT
            }
            Fault::Usage(status) => {
                self.usage_status(status);
                Exception::USAGE_FAULT
            }
            Fault::Hard { status } => {
                self.hard_fault_status |= status;
                Exception::HARD_FAULT
            }
        }
    }

    pub(crate) const fn memory_status(&mut self, status: u32) {
        self.fault_status |= status;
    }

    pub(crate) const fn usage_status(&mut self, status: UsageStatus) {
        self.fault_status |= status.0;
    }

    /// Returns what a synchronous exception becomes: itself, or HardFault if it is not enabled or not urgent
    /// enough now (B1.5.14).
    pub(crate) fn escalate(&mut self, exception: Exception) -> Result<Exception, Lockup> {
        let now = self.execution_priority();
        let enabled = self.system_enabled & bit(exception) != 0;
        if exception != Exception::HARD_FAULT {
            if enabled && self.group(self.priority(exception)) < now {
                return Ok(exception);
            }
            self.hard_fault_status |= FORCED;
        }
        if now > -1 {
            Ok(Exception::HARD_FAULT)
        } else {
            Err(Lockup::Escalation { exception })
        }
    }
}
