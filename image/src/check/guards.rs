// SPDX-License-Identifier: Apache-2.0
//! Controllers that say which world of the processor reaches memory and devices.

use super::{earlier, require};
use crate::error::{Fault, Table};
use crate::layout::{
    CONTROLLER_IOTKIT_SECURITY, ControllerRecord, MEMORY_SHARED, MemoryRecord, REGISTERS_GATED,
    RegistersRecord,
};
use crate::reader::Image;
use crate::span::Span;
use bulkhead_arch_api::class;

/// Tells whether this build serves a class whose controllers guard memory. The code for such controllers is
/// not in other class binaries.
pub(super) const GUARDED: bool = class::may_guard_memory();

/// Tells whether gates decide who reaches the devices of partitions, the devices of tasks included.
pub(super) fn guards_devices(image: &Image<'_>) -> bool {
    GUARDED && image.facts().guards_memory()
}

/// Tells whether a controller guards memory, which is its second window then.
pub(super) fn guards(image: &Image<'_>, controller: &ControllerRecord) -> bool {
    let number = controller.compatible.get();
    let mut drivers = image.facts().drivers.iter();
    GUARDED && drivers.any(|driver| driver.guards && driver.number == number)
}

/// Distance from the register with the gates of VMs to the one with the gates of tasks (Arm ECM0601256,
/// section 4.4.2).
const FOR_TASKS: u64 = 0x40;

/// Returns the memory that a controller guards. Checks that no controller before it guards the same.
pub(super) fn memory(image: &Image<'_>, index: u16, record: &ControllerRecord) -> Result<Span, Fault> {
    let memory = memory_of(record)?;
    for (other, other_index) in earlier(image.controllers(), index) {
        let both = guards(image, other) && memory_of(other)?.overlaps(memory);
        require(!both, Fault::Overlaps(Table::Controllers, other_index))?;
    }
    Ok(memory)
}

/// Returns the memory that a controller guards.
fn memory_of(controller: &ControllerRecord) -> Result<Span, Fault> {
    let ([_, base, ..], [_, size, ..]) = (controller.base, controller.size);
    Span::new(base.get(), size.get())
}

/// Tells whether a gate decides who reaches the registers.
pub(super) const fn is_gated(record: &RegistersRecord) -> bool {
    record.flags.get() & REGISTERS_GATED != 0
}

/// Tells whether a mapping is the window of a side. All sides of a device that is lent have its registers,
/// and one record has its gate.
pub(super) fn is_of_side(mapping: &MemoryRecord) -> bool {
    GUARDED && mapping.flags.get() & MEMORY_SHARED != 0
}

/// Tells whether a register of the security controller, at this offset in bytes, has gates of VMs (Arm
/// ECM0601256, section 4.4.2).
#[must_use]
pub const fn has_gates(offset: u32) -> bool {
    offset.is_multiple_of(4) && matches!(offset, 0x50 | 0x60..=0x6C | 0x70 | 0x74 | 0x80..=0x8C)
}

/// Checks that a gate is a bit of a register of the board's security controller, and that no device of
/// another partition has the same.
pub(super) fn gate(image: &Image<'_>, index: u16, record: &RegistersRecord) -> Result<(), Fault> {
    let (offset, bit) = (record.gate_offset.get(), record.gate_bit.get());
    if !GUARDED || !is_gated(record) {
        // Nothing on the target reads the fields then.
        let is_empty = offset == 0 && bit == 0;
        return require(is_empty || !cfg!(feature = "writer"), Fault::Reserved);
    }
    let mut controllers = image.controllers().iter();
    let security = controllers
        .find(|controller| controller.compatible.get() == CONTROLLER_IOTKIT_SECURITY)
        .ok_or(Fault::NoSuch(Table::Controllers))?;
    let [size, ..] = security.size;
    require(offset.is_multiple_of(4), Fault::Unaligned)?;
    // The register for tasks follows the one for VMs at this distance.
    let is_inside = u64::from(offset).saturating_add(FOR_TASKS + 4) <= size.get();
    require(
        is_inside && has_gates(offset) && bit < u32::BITS,
        Fault::OutOfRange,
    )?;
    for (other, other_index) in earlier(image.registers(), index) {
        let is_same = is_gated(other) && (other.gate_offset.get(), other.gate_bit.get()) == (offset, bit);
        let is_alone = !is_same || other.partition == record.partition;
        require(is_alone, Fault::SameAs(other_index))?;
    }
    Ok(())
}
