// SPDX-License-Identifier: Apache-2.0
//! The parts that this build of the kernel has.
//!
//! A part is reached from the core at few places: a group of commands ([`crate::hypercall::Command`]), a kind
//! of wait, an access to a register, a life that begins or ends. Each such place asks [`has`]. The answer is
//! a constant, so a part that a build lacks costs no instruction. A table of the part keeps one entry, which
//! is not used.

use bulkhead_abi::parts::PARTS;
pub(crate) use bulkhead_abi::parts::Part;

/// True if vCPUs wait for each other: at ports, or for locks.
pub(crate) const HAS_SEATS: bool = has(Part::Ports) || has(Part::Locks);

/// Tells whether this build has a part.
pub(crate) const fn has(part: Part) -> bool {
    PARTS.has(part)
}

/// Returns the entries of a table that belongs to a part. Without the part there is one entry, which is not
/// used.
pub(crate) const fn entries(part: Part, most: usize) -> usize {
    if has(part) && most != 0 { most } else { 1 }
}
