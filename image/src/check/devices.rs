// SPDX-License-Identifier: Apache-2.0
//! Virtual devices and interrupt lines. Relies on the rules of `memory` and `partitions`.

use super::board::runs_in_place;
use super::memory::guest_span;
use super::{at, earlier, require};
use crate::error::{Fault, Table};
use crate::layout::{
    CONTROLLER_GIC_V2, CONTROLLER_GIC_V3, CONTROLLER_NVIC, INTERRUPT_CRITICAL, MAX_LATENCY_NS, NONE,
    PARTITION_VM, PartitionRecord, ROLE_INTERRUPTS, TRIGGER_EDGE, TRIGGER_LEVEL, VIRTUAL_CMSDK_UART,
    VIRTUAL_EVENT_GATE, VIRTUAL_GIC_V2, VIRTUAL_GIC_V3, VIRTUAL_LAN9118, VIRTUAL_PL011, VirtualDeviceRecord,
};
use crate::reader::{Image, record as record_at};
use crate::span::Span;
use core::ops::Range;

/// First interrupt line of a GIC that is shared by all CPUs; those below belong to a CPU each
/// (Arm IHI 0069 section 2.2, table 2-1).
const FIRST_SHARED_LINE: u32 = 32;
/// First INTID that is no line of a device (same table).
const FIRST_SPECIAL_LINE: u32 = 1020;
/// Bytes of a GICv3 distributor's registers (Arm IHI 0069 section 12.8).
const DISTRIBUTOR_SIZE: u64 = 0x1_0000;
/// Bytes of a GICv2 distributor's registers (Arm IHI 0048B, section 4.1.2).
const DISTRIBUTOR_V2_SIZE: u64 = 0x1000;
/// Bytes of a GICv2 CPU interface's registers (Arm IHI 0048B, section 4.1.3: `GICC_DIR` is at 0x1000).
const CPU_INTERFACE_SIZE: u64 = 0x2000;
/// Bytes of a UART's registers (Arm DDI 0183G, section 3.2; Arm DDI 0479D, section 4.3).
const UART_SIZE: u64 = 0x1000;
/// Bytes of a LAN9118's registers (datasheet, 5.3).
const NIC_REGISTERS: u64 = 0x100;
/// Bytes of one GICv3 redistributor's registers: two frames (Arm IHI 0069 section 12.10).
const REDISTRIBUTOR_SIZE: u64 = 0x2_0000;

pub(super) fn device(image: &Image<'_>, index: u16) -> Result<(), Fault> {
    let record = at(image.virtual_devices(), index)?;
    let owner = machine(image, record.partition.get())?;
    shape(image, owner, record)?;
    controller_is_the_boards(image, record.kind.get())?;
    apart(image, index, record)?;
    for line in lines(record) {
        virtual_line(image, owner, line)?;
    }
    Ok(())
}

/// The partition that owns virtual hardware, which must be a VM.
pub(super) fn machine<'a>(image: &Image<'a>, partition: u32) -> Result<&'a PartitionRecord, Fault> {
    let owner = record_at(image.partitions(), partition).ok_or(Fault::NoSuch(Table::Partitions))?;
    require(owner.kind.get() == PARTITION_VM, Fault::NotForTask)?;
    Ok(owner)
}

/// The line, if there is one, is a shared line of the partition's virtual controller.
fn virtual_line(image: &Image<'_>, owner: &PartitionRecord, line: u32) -> Result<(), Fault> {
    let limit = owner.virtual_lines.get().min(FIRST_SPECIAL_LINE);
    require((first_line(image)..limit).contains(&line), Fault::OutOfRange)
}

/// The first line that devices can have. The numbers of an NVIC are those of its external interrupts.
fn first_line(image: &Image<'_>) -> u32 {
    if runs_in_place(image) {
        0
    } else {
        FIRST_SHARED_LINE
    }
}

/// Number and size of the windows are those of the device.
fn shape(image: &Image<'_>, owner: &PartitionRecord, record: &VirtualDeviceRecord) -> Result<(), Fault> {
    require(record.reserved.get() == 0, Fault::Reserved)?;
    let [first, second] = record.size;
    let [least_first, least_second] = match record.kind.get() {
        VIRTUAL_GIC_V3 => [
            DISTRIBUTOR_SIZE,
            REDISTRIBUTOR_SIZE.saturating_mul(owner.vcpu_count.get().into()),
        ],
        VIRTUAL_GIC_V2 => [DISTRIBUTOR_V2_SIZE, CPU_INTERFACE_SIZE],
        VIRTUAL_PL011 | VIRTUAL_CMSDK_UART => [UART_SIZE, 0],
        VIRTUAL_LAN9118 => {
            require(
                super::nics::has_one(image, record.partition.get()),
                Fault::NoSuch(Table::Nics),
            )?;
            [NIC_REGISTERS, 0]
        }
        VIRTUAL_EVENT_GATE => {
            require(record.virtual_line.get() != NONE, Fault::OutOfRange)?;
            [0, 0]
        }
        _ => return Err(Fault::UnknownKind),
    };
    require(
        first.get() >= least_first && second.get() >= least_second,
        Fault::WindowTooSmall,
    )?;
    for ((least, base), size) in [least_first, least_second]
        .into_iter()
        .zip(record.base)
        .zip(record.size)
    {
        let unused = least == 0;
        require(!unused || (size.get() == 0 && base.get() == 0), Fault::OutOfRange)?;
    }
    let is_controller = matches!(record.kind.get(), VIRTUAL_GIC_V2 | VIRTUAL_GIC_V3);
    require(
        !is_controller || owner.virtual_lines.get() != 0,
        Fault::OutOfRange,
    )
}

/// A virtual interrupt controller works with a physical one of its own version, and a UART is that of the class.
fn controller_is_the_boards(image: &Image<'_>, kind: u32) -> Result<(), Fault> {
    let needed = match kind {
        VIRTUAL_GIC_V2 => CONTROLLER_GIC_V2,
        VIRTUAL_GIC_V3 => CONTROLLER_GIC_V3,
        VIRTUAL_CMSDK_UART => CONTROLLER_NVIC,
        _ => return Ok(()),
    };
    let physical = image
        .controllers()
        .iter()
        .find(|record| record.role.get() == ROLE_INTERRUPTS);
    let same = physical.is_none_or(|record| record.compatible.get() == needed);
    require(same, Fault::UnknownKind)
}

fn windows(image: &Image<'_>, record: &VirtualDeviceRecord) -> impl Iterator<Item = Result<Span, Fault>> {
    let granule = image.granule();
    let windows = record.base.into_iter().zip(record.size);
    windows
        .filter(|(_, size)| size.get() != 0)
        .map(move |(base, size)| Span::granules(base.get(), size.get(), granule))
}

/// Whether a window of the device shares an address with `span`.
#[inline(never)]
pub(super) fn touches(image: &Image<'_>, record: &VirtualDeviceRecord, span: Span) -> Result<bool, Fault> {
    for window in windows(image, record) {
        if window?.overlaps(span) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The lines of the partition's virtual controller that the device raises.
fn lines(record: &VirtualDeviceRecord) -> Range<u32> {
    let first = record.virtual_line.get();
    let count = match record.kind.get() {
        _ if first == NONE => 0,
        VIRTUAL_CMSDK_UART => 2,
        _ => 1,
    };
    first..first.saturating_add(count)
}

/// One device of a kind, and nothing else of the partition where its windows are.
fn apart(image: &Image<'_>, index: u16, record: &VirtualDeviceRecord) -> Result<(), Fault> {
    if let (Some(first), Some(second)) = (windows(image, record).next(), windows(image, record).nth(1)) {
        require(
            !first?.overlaps(second?),
            Fault::Overlaps(Table::VirtualDevices, index),
        )?;
    }
    for window in windows(image, record) {
        let window = window?;
        for (mapping, other_index) in image.memory().iter().zip(0..) {
            let same = mapping.partition == record.partition;
            require(
                !same || !window.overlaps(guest_span(image, mapping)?),
                Fault::Overlaps(Table::Memory, other_index),
            )?;
        }
    }
    let siblings =
        earlier(image.virtual_devices(), index).filter(|(other, _)| other.partition == record.partition);
    for (other, other_index) in siblings {
        require(other.kind != record.kind, Fault::SameAs(other_index))?;
        let (own, taken) = (lines(record), lines(other));
        let taken = own.start < taken.end && taken.start < own.end;
        require(!taken, Fault::LineTaken(Table::VirtualDevices, other_index))?;
        for window in windows(image, record) {
            require(
                !touches(image, other, window?)?,
                Fault::Overlaps(Table::VirtualDevices, other_index),
            )?;
        }
    }
    Ok(())
}

pub(super) fn interrupt(image: &Image<'_>, index: u16) -> Result<(), Fault> {
    let record = at(image.interrupts(), index)?;
    let owner = machine(image, record.partition.get())?;
    require(
        matches!(record.trigger.get(), TRIGGER_LEVEL | TRIGGER_EDGE),
        Fault::UnknownKind,
    )?;
    require(record.latency.get() <= MAX_LATENCY_NS, Fault::OutOfRange)?;
    require(record.flags.get() & !INTERRUPT_CRITICAL == 0, Fault::BadFlags)?;
    let (line, seen_as) = (record.line.get(), record.virtual_line.get());
    virtual_line(image, owner, seen_as)?;
    require(
        (first_line(image)..FIRST_SPECIAL_LINE).contains(&line),
        Fault::OutOfRange,
    )?;
    for (controller, other_index) in image.controllers().iter().zip(0..) {
        let own = controller.lines.contains(&record.line);
        require(!own, Fault::LineTaken(Table::Controllers, other_index))?;
    }
    for (device, other_index) in image.virtual_devices().iter().zip(0..) {
        let taken = device.partition == record.partition && lines(device).contains(&seen_as);
        require(!taken, Fault::LineTaken(Table::VirtualDevices, other_index))?;
    }
    for (other, other_index) in earlier(image.interrupts(), index) {
        let taken = other.partition == record.partition && other.virtual_line == record.virtual_line;
        require(
            other.line != record.line && !taken,
            Fault::LineTaken(Table::Interrupts, other_index),
        )?;
    }
    Ok(())
}
