// SPDX-License-Identifier: Apache-2.0
//! The special registers as MRS and MSR name them (Arm DDI 0403E.e, B5.2.1).

/// A special register, by the field SYSm of the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Special(pub u8);

impl Special {
    pub(crate) const IPSR: u8 = 5;
    pub(crate) const MSP: u8 = 8;
    /// The process stack pointer.
    pub const PSP: u8 = 9;
    /// PRIMASK.
    pub const PRIMASK: u8 = 16;
    /// BASEPRI.
    pub const BASEPRI: u8 = 17;
    pub(crate) const BASEPRI_MAX: u8 = 18;
    pub(crate) const FAULTMASK: u8 = 19;
    pub(crate) const CONTROL: u8 = 20;
}
