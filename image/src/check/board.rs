// SPDX-License-Identifier: Apache-2.0
//! Checks what the image says about the board: the hypervisor's own memory, pCPUs, the address map,
//! controllers.

use super::guards::{self, guards};
use super::{at, earlier, named, require, uses};
use crate::error::{Fault, Table};
use crate::layout::{
    ControllerRecord, MAP_CODE, MAP_DEVICE, MAP_RAM, MemoryRecord, NONE, POLICY_ARINC653, POLICY_DOMAINS,
    POLICY_EDF, POLICY_FIXED_PRIORITY, POLICY_OWN, POLICY_PINNED,
};
use crate::limits::PAGE_SIZE;
use crate::reader::Image;
use crate::span::Span;
use bulkhead_abi::log::Layout;
use bulkhead_abi::own_policy::BUILT_IN;
use bulkhead_abi::parts::{PARTS, Part};
use bulkhead_abi::trace::{RECORD_SIZE, RING_MAX, RING_MIN};

/// I/O ports of a PC (Intel SDM volume 1, section 19.3).
const PORTS: u64 = 1 << 16;

/// Returns the hypervisor's own memory.
fn hypervisor(image: &Image<'_>) -> Result<Span, Fault> {
    let board = image.board();
    Span::granules(
        board.load_address.get(),
        board.hypervisor_size.get(),
        image.granule(),
    )
}

/// Returns the log area.
fn log_area(image: &Image<'_>) -> Result<Span, Fault> {
    let size = Layout::of(image.facts().tables).size;
    Span::granules(image.board().log_base.get(), size as u64, image.granule())
}

/// Returns the pool.
fn pool(image: &Image<'_>) -> Result<Span, Fault> {
    let board = image.board();
    Span::granules(board.pool_base.get(), board.pool_size.get(), image.granule())
}

/// Checks that `span` has nothing of the hypervisor's, the log or the trace.
pub(super) fn not_the_hypervisors(image: &Image<'_>, span: Span) -> Result<(), Fault> {
    for own in [hypervisor(image)?, log_area(image)?, pool(image)?] {
        require(!span.overlaps(own), Fault::InHypervisor)?;
    }
    match trace(image)? {
        Some(trace) => require(!span.overlaps(trace), Fault::InHypervisor),
        None => Ok(()),
    }
}

/// Returns the register windows of a controller that are in use.
fn windows(image: &Image<'_>, controller: &ControllerRecord) -> impl Iterator<Item = Result<Span, Fault>> {
    let registers = match &controller.base {
        [first, ..] if guards(image, controller) => core::slice::from_ref(first),
        all => all,
    };
    let windows = registers.iter().zip(controller.size.iter());
    windows
        .filter(|(_, size)| size.get() != 0)
        .map(|(base, size)| Span::new(base.get(), size.get()))
}

/// Tells whether `span` lies within one stretch of RAM.
pub(super) fn in_ram(image: &Image<'_>, span: Span) -> bool {
    stretches(image, MAP_RAM).any(|stretch| stretch.covers(span))
}

/// Tells whether `span` lies within one stretch of code memory.
pub(super) fn in_code(image: &Image<'_>, span: Span) -> bool {
    stretches(image, MAP_CODE).any(|stretch| stretch.covers(span))
}

/// Tells whether `span` shares an address with RAM or code memory.
fn touches_ram(image: &Image<'_>, span: Span) -> bool {
    let mut all = stretches(image, MAP_RAM).chain(stretches(image, MAP_CODE));
    all.any(|stretch| stretch.overlaps(span))
}

fn stretches(image: &Image<'_>, kind: u32) -> impl Iterator<Item = Span> {
    let granule = image.granule();
    let entries = image.map().iter().filter(move |entry| entry.kind.get() == kind);
    entries.filter_map(move |entry| Span::granules(entry.base.get(), entry.size.get(), granule).ok())
}

pub(super) fn map_entry(image: &Image<'_>, index: u16) -> Result<(), Fault> {
    let record = at(image.map(), index)?;
    let known = match record.kind.get() {
        MAP_RAM | MAP_DEVICE => true,
        MAP_CODE => image.facts().runs_in_place(),
        _ => false,
    };
    require(known, Fault::UnknownKind)?;
    require(record.reserved.get() == 0, Fault::Reserved)?;
    let granule = image.granule();
    let span = Span::granules(record.base.get(), record.size.get(), granule)?;
    for (other, other_index) in earlier(image.map(), index) {
        let other = Span::granules(other.base.get(), other.size.get(), granule)?;
        require(!span.overlaps(other), Fault::Overlaps(Table::Map, other_index))?;
    }
    Ok(())
}

pub(super) fn board(image: &Image<'_>, _index: u16) -> Result<(), Fault> {
    let record = image.board();
    named(image.board_name_record())?;
    let own = hypervisor(image)?;
    let log = log_area(image)?;
    require(in_ram(image, log), Fault::OutsideRam)?;
    let pool = pool(image)?;
    if image.facts().runs_in_place() {
        require(in_code(image, own), Fault::OutsideCode)?;
        require(in_ram(image, pool), Fault::OutsideRam)?;
        require(!log.overlaps(pool), Fault::InHypervisor)?;
    } else {
        require(in_ram(image, own), Fault::OutsideRam)?;
        require(!log.overlaps(own), Fault::InHypervisor)?;
        require(own.covers(pool), Fault::OutsideHypervisor)?;
    }
    let image_start = record.image_base.get();
    require(image_start.is_multiple_of(image.granule()), Fault::Unaligned)?;
    let itself = Span::new(image_start, image.len())?;
    require(own.covers(itself), Fault::OutsideHypervisor)?;
    require(!itself.overlaps(pool), Fault::InHypervisor)?;
    let Some(trace) = trace(image)? else {
        return Ok(());
    };
    require(in_ram(image, trace), Fault::OutsideRam)?;
    let is_apart = ![own, log, pool].iter().any(|other| trace.overlaps(*other));
    require(is_apart, Fault::InHypervisor)
}

/// Returns the rings of the trace, if there are any.
pub(super) fn trace(image: &Image<'_>) -> Result<Option<Span>, Fault> {
    let record = image.board();
    let records = record.trace_records.get();
    require(record.trace_short_exits.get() <= 1, Fault::OutOfRange)?;
    if records == 0 {
        let is_empty = record.trace_base.get() == 0 && record.trace_short_exits.get() == 0;
        require(is_empty, Fault::Empty)?;
        return Ok(None);
    }
    let fits =
        uses(image, Part::Trace) && records.is_power_of_two() && (RING_MIN..=RING_MAX).contains(&records);
    require(fits, Fault::OutOfRange)?;
    let size = u64::from(records)
        .saturating_mul(RECORD_SIZE as u64)
        .saturating_mul(image.pcpus().len() as u64);
    Span::granules(record.trace_base.get(), size, image.granule()).map(Some)
}

pub(super) fn pcpu(image: &Image<'_>, index: u16) -> Result<(), Fault> {
    let record = at(image.pcpus(), index)?;
    for (other, other_index) in earlier(image.pcpus(), index) {
        require(
            other.hardware_id != record.hardware_id,
            Fault::SameAs(other_index),
        )?;
    }
    match record.policy.get() {
        POLICY_PINNED => Ok(()),
        POLICY_FIXED_PRIORITY | POLICY_EDF | POLICY_ARINC653 | POLICY_DOMAINS => {
            require(record.quantum_us.get() != 0, Fault::OutOfRange)
        }
        own if own_policy(own) => require(
            uses(image, Part::OwnPolicy) && record.quantum_us.get() != 0,
            Fault::OutOfRange,
        ),
        _ => Err(Fault::UnknownKind),
    }
}

/// Tells whether this build has the policy of the user's own with this number. The host has them all.
pub(super) const fn own_policy(policy: u32) -> bool {
    PARTS.has(Part::OwnPolicy) && policy & POLICY_OWN != 0 && (policy == BUILT_IN || cfg!(feature = "writer"))
}

pub(super) fn controller(image: &Image<'_>, index: u16) -> Result<(), Fault> {
    let record = at(image.controllers(), index)?;
    let mut drivers = image.facts().drivers.iter();
    let driver = drivers
        .find(|driver| driver.number == record.compatible.get())
        .filter(|driver| driver.role.number() == record.role.get())
        .ok_or(Fault::UnknownKind)?;
    require(record.reserved.get() == 0, Fault::Reserved)?;
    for (index, (base, size)) in record.base.iter().zip(record.size.iter()).enumerate() {
        let least = driver.windows.get(index).copied();
        register_window(
            image.facts().ports && driver.uses_ports,
            least,
            base.get(),
            size.get(),
        )?;
    }
    if guards(image, record) {
        let memory = guards::memory(image, index, record)?;
        require(in_ram(image, memory) || in_code(image, memory), Fault::OutsideRam)?;
    }
    for (position, window) in windows(image, record).enumerate() {
        let window = window?;
        for sibling in windows(image, record).take(position) {
            require(
                !window.overlaps(sibling?),
                Fault::Overlaps(Table::Controllers, index),
            )?;
        }
        only_device(image, window, index)?;
    }
    roles_and_lines(image, index, record)
}

/// Checks that a register window has the size that the driver needs, and consists of pages or of I/O ports.
/// One that the driver does not need is empty.
fn register_window(uses_ports: bool, least: Option<u64>, base: u64, size: u64) -> Result<(), Fault> {
    let Some(least) = least else {
        return require(base == 0 && size == 0, Fault::Empty);
    };
    require(size >= least, Fault::WindowTooSmall)?;
    if uses_ports {
        return require(base.saturating_add(size) <= PORTS, Fault::OutOfRange);
    }
    require((base | size).is_multiple_of(PAGE_SIZE), Fault::Unaligned)
}

/// Checks that `span` has nothing of RAM, of code memory or of the first `controllers` controllers.
#[inline(never)]
pub(super) fn only_device(image: &Image<'_>, span: Span, controllers: u16) -> Result<(), Fault> {
    require(!touches_ram(image, span), Fault::InRam)?;
    for (controller, index) in earlier(image.controllers(), controllers) {
        for window in windows(image, controller) {
            require(
                !span.overlaps(window?),
                Fault::Overlaps(Table::Controllers, index),
            )?;
        }
    }
    Ok(())
}

/// Checks that one controller has a role, unless it guards memory, and that one use of it has an interrupt
/// line.
fn roles_and_lines(image: &Image<'_>, index: u16, record: &ControllerRecord) -> Result<(), Fault> {
    let used = || record.lines.iter().filter(|line| line.get() != NONE);
    for (line, position) in used().zip(0..) {
        require(
            !used().take(position).any(|other| other == line),
            Fault::LineTaken(Table::Controllers, index),
        )?;
    }
    for (other, other_index) in earlier(image.controllers(), index) {
        let may_share = guards(image, record) || guards(image, other);
        require(may_share || other.role != record.role, Fault::SameAs(other_index))?;
        for line in used() {
            require(
                !other.lines.contains(line),
                Fault::LineTaken(Table::Controllers, other_index),
            )?;
        }
    }
    Ok(())
}

/// Returns the addresses at which the partition sees a mapping.
pub(super) fn guest_span(image: &Image<'_>, record: &MemoryRecord) -> Result<Span, Fault> {
    Span::granules(record.guest.get(), record.size.get(), image.granule())
}

pub(super) fn host_span(image: &Image<'_>, record: &MemoryRecord) -> Result<Span, Fault> {
    Span::granules(record.host.get(), record.size.get(), image.granule())
}
