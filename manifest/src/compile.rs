// SPDX-License-Identifier: Apache-2.0
//! Makes a system image from a checked system.
//!
//! The number of records does not depend on addresses, and the writer tells the image's length from the
//! numbers alone. So the records are made twice: first without places to learn the length, and again when
//! places around an image of this length are found.
#![deny(clippy::arithmetic_side_effects)]

use std::fmt;
use std::rc::Rc;

use bulkhead_abi::hypercall::DEVICE_EVENT;
use bulkhead_image::layout::{
    AlternativeRecord, BoardRecord, CapabilityRecord, DomainRecord, FLAG_AUTOSTART, FLAG_DIRECT,
    FLAG_FROZEN_TIME, FLAG_NO_SEMIHOSTING, FLAG_WINDOW_EVENTS, INTERRUPT_CRITICAL, InterruptRecord,
    LoadRecord, LookalikeRecord, MAP_CODE, MAP_DEVICE, MAP_RAM, MAX_LATENCY_NS, MEMORY_CLEAR, MEMORY_DEVICE,
    MEMORY_EXECUTE, MEMORY_READ, MEMORY_SHARED, MEMORY_WRITE, MapRecord, MemoryRecord, NONE, Name, NicRecord,
    PARTITION_TASK, PARTITION_VM, POLICY_ARINC653, POLICY_DOMAINS, POLICY_EDF, POLICY_FIXED_PRIORITY,
    POLICY_PINNED, PartitionRecord, PcpuRecord, REGISTERS_FORWARDED, REGISTERS_QUIESCED, RegistersRecord,
    ResidentRecord, SERVER_CONSTANT_BANDWIDTH, SERVER_DEFERRABLE, SERVER_NONE, SERVER_SPORADIC,
    ScheduleRecord, TRIGGER_EDGE, TRIGGER_LEVEL, VIRTUAL_CFI_FLASH, VIRTUAL_EVENT_GATE, VIRTUAL_LAN9118,
    VIRTUAL_PCI_BRIDGE, VcpuRecord, VirtualDeviceRecord, WINDOW_PERIOD_START, WatchRecord, WindowRecord,
};
use bulkhead_image::{
    ImageBuilder, ImageError, MAX_ALTERNATIVES_PER_PARTITION, MAX_LOADS, MAX_MEMORY,
    MAX_REGIONS_PER_PARTITION, MAX_REGISTERS, NameError, Payload, Portable, Sha256,
};

use crate::board::Trigger;
use crate::class::{self, VirtualController};
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::driver::Controller;
use crate::guest::{AreaKind, Guest};
use crate::model::{Access, Kind, PartitionSpec, Policy, ServerKind};
use crate::parts;
use crate::payload::{Bytes, blob_name};
use crate::plan::{self, Plan, TraceWish};
use crate::rules::memory::uart_size;
use crate::rules::{channels, networks, owned, ports, registers, services};
use crate::system::{Mapping, MappingKind, Partition, System, Vcpu};
use crate::units::align_up;
use crate::window::Window;

/// The inputs of a system image besides the manifest.
#[derive(Clone, Copy, Debug)]
pub struct CompileInput {
    /// Bytes of the class binary, when it is flattened to its full memory size.
    pub class_binary_len: u64,
    /// Virtual time after which the hypervisor powers the board off.
    pub stop_after_ms: Option<u32>,
    /// Largest number of records in each pCPU's ring of the trace. There are fewer if the RAM that is left
    /// holds fewer. `None`: no trace.
    pub trace_records: Option<u32>,
}

/// The reason why a checked system gives no image.
#[derive(Debug)]
pub enum CompileError {
    /// The class binary is so large that no room is left for the partitions.
    NoRoom(Box<Report>),
    /// The hypervisor would refuse the image: the tool and the hypervisor disagree about a rule.
    Refused(ImageError),
    /// A name does not fit into a record.
    Name(NameError),
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRoom(report) => report.fmt(f),
            Self::Refused(error) => write!(f, "the hypervisor would refuse the system image: {error:?}"),
            Self::Name(error) => write!(f, "a name does not fit the system image: {error:?}"),
        }
    }
}

impl std::error::Error for CompileError {}

impl From<ImageError> for CompileError {
    fn from(error: ImageError) -> Self {
        Self::Refused(error)
    }
}

impl From<NameError> for CompileError {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}

/// Returns the system image. The hypervisor's own checks have passed on this image.
///
/// # Errors
/// [`CompileError`].
pub fn compile(system: &System, input: &CompileInput) -> Result<Vec<u8>, CompileError> {
    let binary = align_up(input.class_binary_len, system.board.class.facts().granule).unwrap_or(u64::MAX);
    let mut report = Report {
        diagnostics: Vec::new(),
        sources: system.report.sources.clone(),
    };
    let Some(plan) = plan(system, binary, input.trace_records, &mut report) else {
        return Err(CompileError::NoRoom(Box::new(report)));
    };
    let placed = System {
        plan,
        ..system.clone()
    };
    let mut builder = records(&placed)?;
    let (budget, period) = networks::intake(&placed.manifest);
    let parts = parts::set_of(&system.parts(input.trace_records.is_some()));
    builder.board = BoardRecord {
        load_address: placed.board.load_address.into(),
        hypervisor_size: placed.plan.hypervisor.size.into(),
        pool_base: placed.plan.pool.base.into(),
        pool_size: placed.plan.pool.size.into(),
        image_base: placed.plan.image_base.into(),
        log_base: placed.plan.log.base.into(),
        stop_after_ms: input.stop_after_ms.unwrap_or(NONE).into(),
        trace_records: placed.plan.trace.map_or(0, |(_, records)| records).into(),
        trace_base: placed.plan.trace.map_or(0, |(base, _)| base).into(),
        trace_short_exits: u32::from(traces_short_exits(&placed)).into(),
        parts: parts.0.into(),
        network_budget_us: budget.into(),
        network_period_us: period.into(),
    };
    Ok(builder.build()?)
}

/// Tells whether the manifest wants records of the exits that the backend answers by itself.
fn traces_short_exits(system: &System) -> bool {
    let asked = system.manifest.trace.as_ref();
    system.plan.trace.is_some() && asked.is_some_and(|asked| asked.short_exits.value)
}

/// Returns the rings that the manifest asks for, or else the rings of this run.
fn trace_wish(system: &System, of_this_run: Option<u32>) -> Option<TraceWish> {
    let asked = system.manifest.trace.as_ref();
    let records = asked.map(|asked| asked.records.get()).or(of_this_run)?;
    Some(TraceWish {
        rings: system.pcpus.len(),
        records,
        asked: asked.map(|asked| asked.records.place.unwrap_or(asked.place)),
    })
}

/// Finds places for a class binary of `binary` bytes; `None` if something was reported.
pub(crate) fn plan(
    system: &System,
    binary: u64,
    trace_records: Option<u32>,
    report: &mut Report,
) -> Option<Plan> {
    let image = records(system).ok()?.len();
    let input = plan::Input {
        board: &system.board,
        specs: &system.manifest.partitions,
        channels: system.manifest.channels.len(),
        guests: &system.guests,
        binary,
        image,
        trace: trace_wish(system, trace_records),
    };
    class::host(system.board.class).plan(&input, report)
}

/// Reports a system with more mappings or pieces of payloads than an image can hold.
pub(crate) fn fits_tables(system: &System, report: &mut Report) -> Option<()> {
    let (mut mappings, mut pieces, mut windows) = (0_usize, 0_usize, 0_usize);
    for (number, partition) in system.partitions().iter().enumerate() {
        let (spec, guest, own) = (partition.spec, partition.guest, partition.mappings().len());
        mappings = mappings.saturating_add(own);
        for guest in std::iter::once(guest).chain(&guest.alternatives) {
            pieces = pieces.saturating_add(guest.pieces.len());
        }
        let alternatives = guest.alternatives.len();
        windows = windows.saturating_add(register_records(system, number as u32).count());
        let (count, limit, what) = if own > MAX_REGIONS_PER_PARTITION {
            (own, MAX_REGIONS_PER_PARTITION, "mappings for one partition")
        } else if mappings > MAX_MEMORY {
            (mappings, MAX_MEMORY, "mappings in all")
        } else if alternatives > MAX_ALTERNATIVES_PER_PARTITION {
            let most = MAX_ALTERNATIVES_PER_PARTITION;
            (alternatives, most, "alternatives for one partition")
        } else if windows > MAX_REGISTERS {
            (windows, MAX_REGISTERS, "windows of device registers in all")
        } else if pieces > MAX_LOADS {
            (pieces, MAX_LOADS, "pieces of payloads in all")
        } else {
            continue;
        };
        let message = format!(
            "partition `{}` makes {count} {what}, more than {limit}",
            spec.name.value
        );
        report.push(
            Diagnostic::at(Code::TooManyMappings, spec.name.place, message)
                .help("merge regions, link ELF files with fewer segments, or drop alternatives"),
        );
        return None;
    }
    Some(())
}

fn records(system: &System) -> Result<ImageBuilder, NameError> {
    let mut builder = ImageBuilder::new(system.board.class.facts(), &system.board.name)?;
    board_records(system, &mut builder);
    schedule_records(system, &mut builder)?;
    for port in &system.manifest.ports {
        builder.ports.push(ports::record(port)?);
    }
    for lock in &system.manifest.locks {
        builder.locks.push(ports::lock_record(lock)?);
    }
    channel_records(system, &mut builder)?;
    builder.served = services::records(&system.manifest);
    let mut blobs = Blobs::default();
    for (number, partition) in system.partitions().iter().enumerate() {
        let record = partition_record(system, partition, builder.vcpus.len())?;
        builder.partitions.push(record);
        let number = number as u32;
        builder
            .vcpus
            .extend(partition.vcpus().iter().map(|vcpu| vcpu_record(number, vcpu)));
        builder.memory.extend(
            partition
                .mappings()
                .iter()
                .filter(|mapping| mapping.kind != MappingKind::Forwarded)
                .map(|mapping| memory_record(number, mapping)),
        );
        let guest = partition.guest;
        load_records(number, guest, &mut blobs, &mut builder);
        residents(number, partition.name(), guest, &mut builder)?;
        alternative_records(system, number, &mut builder)?;
        device_records(system, number, &mut builder);
        access_records(number, partition, &mut builder)?;
    }
    builder.lookalikes = lookalikes(system);
    builder.payloads = blobs.payloads()?;
    Ok(builder)
}

/// Returns the number of records in each table of the system's image, for a class binary that is built for
/// this system alone (`abi/src/size.rs`). `words` are those of the messages that wait in ports.
///
/// # Errors
/// A name does not fit into a record.
pub fn table_counts(system: &System) -> Result<Vec<(&'static str, usize)>, CompileError> {
    let image = records(system)?;
    let of_partition = image
        .partitions
        .iter()
        .map(|partition| partition.vcpu_count.get());
    let words = image.ports.iter().map(|port| port.words() as usize);
    // A line that is lent takes the place of one that is owned.
    let lent = image.sides.iter().filter(|side| side.line.get() != 0).count();
    Ok(vec![
        ("pcpus", image.pcpus.len()),
        // The kernel takes a place in the spaces of all partitions apart by its bits.
        ("partitions", image.partitions.len().next_power_of_two()),
        ("vcpus", image.vcpus.len()),
        ("vcpus_per_partition", of_partition.max().unwrap_or(0) as usize),
        ("ports", image.ports.len()),
        ("words", words.fold(0, usize::saturating_add)),
        ("locks", image.locks.len()),
        ("channels", image.channels.len()),
        ("sides", image.sides.len()),
        ("memory", image.memory.len()),
        ("loads", image.loads.len()),
        ("payloads", image.payloads.len()),
        ("interrupts", image.interrupts.len().saturating_add(lent)),
        ("devices", image.virtual_devices.len()),
        ("registers", image.registers.len()),
    ])
}

/// Writes the records of the channels and their sides.
fn channel_records(system: &System, builder: &mut ImageBuilder) -> Result<(), NameError> {
    let partitions = &system.manifest.partitions;
    for (number, channel) in system.manifest.channels.iter().enumerate() {
        let host = system.plan.channels.get(number).copied().unwrap_or(0);
        let first = builder.sides.len();
        let lent = channels::lent(channel, &system.board);
        builder.channels.push(channels::record(channel, host, first)?);
        for side in &channel.sides {
            let is_it = |spec: &PartitionSpec| {
                let name = side.partition.as_ref();
                name.is_some_and(|name| name.value == spec.name.value)
            };
            let Some(owner) = partitions.iter().position(is_it) else {
                continue;
            };
            let mut areas = system
                .guests
                .get(owner)
                .map_or(&[][..], |guest| &guest.areas)
                .iter();
            let area = areas.find(
                |area| matches!(area.kind, AreaKind::Channel(own) | AreaKind::Lent(own) if own == number),
            );
            let guest = area.map_or(0, |area| area.window.base);
            builder
                .sides
                .push(channels::side_record((number, lent), side, owner, guest));
        }
    }
    Ok(())
}

/// Writes the records of all that is copied: for the partition's own payloads, and for each alternative.
fn load_records(number: u32, guest: &Guest, blobs: &mut Blobs, builder: &mut ImageBuilder) {
    for (guest, alternative) in std::iter::once(guest).chain(&guest.alternatives).zip(0_u32..) {
        for piece in &guest.pieces {
            let payload = blobs.index(&piece.name, &piece.blob);
            builder.loads.push(LoadRecord {
                partition: number.into(),
                payload: payload.into(),
                guest: piece.guest.into(),
                offset: piece.offset.into(),
                size: piece.size.into(),
                alternative: alternative.into(),
                reserved: 0.into(),
            });
        }
    }
}

fn alternative_records(system: &System, number: u32, builder: &mut ImageBuilder) -> Result<(), NameError> {
    let spec = &system.manifest.partitions[number as usize];
    let guests = &system.guests[number as usize].alternatives;
    for (alternative, guest) in spec.alternatives.iter().zip(guests) {
        let (line, _) = system.report.sources.line_column(alternative.name.place);
        builder.alternatives.push(AlternativeRecord {
            name: Name::new(&alternative.name.value)?,
            partition: number.into(),
            manifest_line: line.into(),
            entry: guest.entry.into(),
            argument: guest.argument.into(),
            stack: guest.stack.into(),
        });
    }
    Ok(())
}

/// Blobs without repetition: two partitions that run the same file share one blob.
#[derive(Default)]
struct Blobs {
    all: Vec<(String, Bytes)>,
}

impl Blobs {
    fn index(&mut self, name: &str, blob: &Bytes) -> u32 {
        let same = |other: &Bytes| Rc::ptr_eq(other, blob) || other == blob;
        let found = self.all.iter().position(|(_, other)| same(other));
        found.unwrap_or_else(|| {
            let next = self.all.len();
            self.all.push((name.to_owned(), Rc::clone(blob)));
            next
        }) as u32
    }

    fn payloads(self) -> Result<Vec<Payload>, NameError> {
        let payload = |(name, blob): (String, Bytes)| {
            Ok(Payload {
                name: Name::new(&name)?,
                bytes: blob.to_vec(),
            })
        };
        self.all.into_iter().map(payload).collect()
    }
}

fn board_records(system: &System, builder: &mut ImageBuilder) {
    let board = &system.board;
    builder.pcpus.extend(system.pcpus.iter().map(|pcpu| {
        PcpuRecord {
            hardware_id: pcpu.hardware_id.into(),
            policy: match pcpu.policy {
                Policy::Pinned => POLICY_PINNED,
                Policy::FixedPriority => POLICY_FIXED_PRIORITY,
                Policy::Edf => POLICY_EDF,
                Policy::Arinc653 => POLICY_ARINC653,
                Policy::Domains => POLICY_DOMAINS,
            }
            .into(),
            quantum_us: ((pcpu.quantum_ns / 1000) as u32).into(),
        }
    }));
    let stretch = |window: &Window, kind: u32| MapRecord {
        base: window.base.into(),
        size: window.size.into(),
        kind: kind.into(),
        reserved: 0.into(),
    };
    builder
        .map
        .extend(board.ram.iter().map(|window| stretch(window, MAP_RAM)));
    builder
        .map
        .extend(board.code.iter().map(|window| stretch(window, MAP_CODE)));
    builder.map.extend(
        board
            .hypervisor_devices()
            .iter()
            .map(|(_, window)| stretch(window, MAP_DEVICE)),
    );
    let own = board.controllers.iter().map(Controller::record);
    let uplink = networks::uplink_controller(&system.manifest, board);
    builder.controllers = own.chain(uplink.iter().map(Controller::record)).collect();
}

/// Writes the schedules with their windows, and the time domains, of all pCPUs.
fn schedule_records(system: &System, builder: &mut ImageBuilder) -> Result<(), NameError> {
    for pcpu in &system.pcpus {
        for schedule in &pcpu.schedules {
            builder.schedules.push(ScheduleRecord {
                name: Name::new(&schedule.name)?,
                pcpu: pcpu.number.into(),
                first_window: (builder.windows.len() as u32).into(),
                window_count: (schedule.windows.len() as u32).into(),
                reserved: 0.into(),
                frame_ns: schedule.frame_ns.into(),
            });
            builder.windows.extend(schedule.windows.iter().map(|window| {
                WindowRecord {
                    partition: (window.partition as u32).into(),
                    flags: if window.period_start {
                        WINDOW_PERIOD_START
                    } else {
                        0
                    }
                    .into(),
                    offset_ns: window.offset_ns.into(),
                    duration_ns: window.duration_ns.into(),
                }
            }));
        }
        for domain in &pcpu.domains {
            builder.domains.push(DomainRecord {
                name: Name::new(&domain.name)?,
                pcpu: pcpu.number.into(),
                reserved: 0.into(),
                budget_ns: domain.budget_ns.into(),
            });
        }
    }
    Ok(())
}

fn vcpu_record(partition: u32, vcpu: &Vcpu) -> VcpuRecord {
    let server = vcpu.reservation.map_or(SERVER_NONE, |reservation| {
        if vcpu.deadline_ns != 0 {
            return SERVER_CONSTANT_BANDWIDTH;
        }
        match reservation.server {
            ServerKind::Sporadic => SERVER_SPORADIC,
            ServerKind::Deferrable => SERVER_DEFERRABLE,
        }
    });
    let (budget, period) = vcpu.reservation.map_or((0, 0), |reservation| {
        (reservation.budget_ns, reservation.period_ns)
    });
    VcpuRecord {
        partition: partition.into(),
        pcpu: vcpu.pcpu.into(),
        priority: vcpu.priority.into(),
        server: server.into(),
        domain: vcpu.domain.unwrap_or(NONE).into(),
        reserved: 0.into(),
        budget_ns: budget.into(),
        period_ns: period.into(),
        deadline_ns: vcpu.deadline_ns.into(),
    }
}

fn partition_record(
    system: &System,
    partition: &Partition<'_>,
    first_vcpu: usize,
) -> Result<PartitionRecord, NameError> {
    let vm = partition.kind() == Kind::Vm;
    let autostart = if partition.autostart() { FLAG_AUTOSTART } else { 0 };
    let frozen = if partition.frozen_time() {
        FLAG_FROZEN_TIME
    } else {
        0
    };
    let events = if partition.window_events() {
        FLAG_WINDOW_EVENTS
    } else {
        0
    };
    let direct = if partition.direct() { FLAG_DIRECT } else { 0 };
    let machine = &partition.spec.machine;
    let unheard = if machine.semihosting.value {
        0
    } else {
        FLAG_NO_SEMIHOSTING
    };
    let mut health = [0; 8];
    for (class, action) in partition.health() {
        health[class as usize] = action as u8;
    }
    Ok(PartitionRecord {
        name: Name::new(partition.name())?,
        uuid: uuid(&system.board.name, partition.name()),
        entry: partition.entry().into(),
        argument: partition.argument().into(),
        stack: partition.guest.stack.into(),
        watchdog_ns: partition.watchdog_ns().unwrap_or(0).into(),
        kind: if vm { PARTITION_VM } else { PARTITION_TASK }.into(),
        flags: (autostart | frozen | events | unheard | direct).into(),
        first_vcpu: (first_vcpu as u32).into(),
        vcpu_count: (partition.spec.vcpus.len() as u32).into(),
        manifest_line: partition.line().into(),
        restart_limit: partition.restart_limit().unwrap_or(NONE).into(),
        virtual_lines: if vm { machine.lines() } else { 0 }.into(),
        entry_state: u32::from(partition.entry_state().0).into(),
        health,
    })
}

/// Returns a UUID that depends on board and name only (RFC 9562, version 8: made by a rule of ours).
fn uuid(board: &str, name: &str) -> [u8; 16] {
    let digest = Portable.digest(&[b"bulkhead partition\0", board.as_bytes(), b"\0", name.as_bytes()]);
    let mut uuid: [u8; 16] = std::array::from_fn(|index| digest[index]);
    uuid[6] = uuid[6] & 0x0f | 0x80;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}

fn memory_record(partition: u32, mapping: &Mapping) -> MemoryRecord {
    let Access { read, write, execute } = mapping.access;
    let device = matches!(mapping.kind, MappingKind::Device | MappingKind::Lent);
    let shared = matches!(mapping.kind, MappingKind::Channel | MappingKind::Lent);
    let bits = [
        (read, MEMORY_READ),
        (write, MEMORY_WRITE),
        (execute, MEMORY_EXECUTE),
        (device, MEMORY_DEVICE),
        (
            matches!(
                mapping.kind,
                MappingKind::Ram | MappingKind::Region | MappingKind::Startup
            ),
            MEMORY_CLEAR,
        ),
        (shared, MEMORY_SHARED),
    ];
    let flags = bits
        .iter()
        .filter(|(set, _)| *set)
        .fold(0, |flags, (_, bit)| flags | bit);
    MemoryRecord {
        partition: partition.into(),
        flags: flags.into(),
        guest: mapping.guest.into(),
        host: mapping.host.into(),
        size: mapping.size.into(),
        manifest_line: mapping.line.into(),
        reserved: 0.into(),
    }
}

/// Returns the record of a virtual device with up to two windows.
fn virtual_device(partition: u32, kind: u32, windows: [Window; 2], line: u32) -> VirtualDeviceRecord {
    VirtualDeviceRecord {
        partition: partition.into(),
        kind: kind.into(),
        base: windows.map(|window| window.base.into()),
        size: windows.map(|window| window.size.into()),
        virtual_line: line.into(),
        reserved: 0.into(),
    }
}

/// Adds the records of the virtual devices of a VM.
fn virtual_devices(system: &System, number: u32, builder: &mut ImageBuilder) {
    let spec = &system.manifest.partitions[number as usize];
    let class = class::host(system.board.class);
    let devices = &mut builder.virtual_devices;
    if let Some(VirtualController { kind, windows }) = class.virtual_controller(spec, Some(&system.board)) {
        let window = |index: usize| {
            windows
                .get(index)
                .map_or(Window::default(), |(_, window)| *window)
        };
        devices.push(virtual_device(number, kind, [window(0), window(1)], NONE));
    }
    if spec.console {
        devices.push(virtual_uart(system, number));
    }
    if spec.has_gate_interrupt() {
        let line = spec.machine.gate_line();
        devices.push(virtual_device(
            number,
            VIRTUAL_EVENT_GATE,
            [Window::default(); 2],
            line,
        ));
    }
    if let Some(flash) = &spec.flash {
        devices.push(virtual_device(number, VIRTUAL_CFI_FLASH, flash.banks(), NONE));
    }
    if spec.machine.functions != 0 {
        let windows = channels::BRIDGE.map(|(_, window)| window);
        devices.push(virtual_device(number, VIRTUAL_PCI_BRIDGE, windows, NONE));
    }
    interface(system, number, builder);
}

fn device_records(system: &System, number: u32, builder: &mut ImageBuilder) {
    let spec = &system.manifest.partitions[number as usize];
    let is_task = spec.kind == Kind::Task;
    if !is_task {
        virtual_devices(system, number, builder);
    }
    builder.registers.extend(register_records(system, number));
    let latency = spec
        .interrupt_latency
        .as_ref()
        .map_or(0, |latency| latency.value.get());
    let latency = u32::try_from(latency).unwrap_or(MAX_LATENCY_NS);
    for (name, device) in owned(spec, &system.board) {
        let critical = spec.critical.iter().any(|other| other.value == name.value);
        builder
            .interrupts
            .extend(device.interrupts.iter().map(|interrupt| {
                InterruptRecord {
                    partition: number.into(),
                    line: interrupt.line.get().into(),
                    // The event of a task.
                    virtual_line: if is_task {
                        DEVICE_EVENT
                    } else {
                        interrupt.line.get()
                    }
                    .into(),
                    trigger: match interrupt.trigger {
                        Trigger::Level => TRIGGER_LEVEL,
                        Trigger::Edge => TRIGGER_EDGE,
                    }
                    .into(),
                    flags: if critical { INTERRUPT_CRITICAL } else { 0 }.into(),
                    latency: latency.into(),
                }
            }));
    }
}

/// Returns the UART of a VM's console, which is the one that software of the board expects.
fn virtual_uart(system: &System, number: u32) -> VirtualDeviceRecord {
    let machine = &system.manifest.partitions[number as usize].machine;
    let console = system.board.class.facts().console();
    VirtualDeviceRecord {
        partition: number.into(),
        kind: console.map_or(0, |(device, _)| device.number).into(),
        base: [machine.uart.base.get().into(), 0.into()],
        size: [uart_size(system.board.class.facts()).into(), 0.into()],
        virtual_line: machine.uart.line.get().into(),
        reserved: 0.into(),
    }
}

/// Returns the windows of registers that the hypervisor helps with: those that it forwards, and those with
/// which it stops a device.
fn register_records(system: &System, number: u32) -> impl Iterator<Item = RegistersRecord> {
    let spec = &system.manifest.partitions[number as usize];
    registers(spec, &system.board).filter_map(move |registers| {
        let device = registers.device;
        let first = device.registers.first() == Some(&registers.window);
        let quiesce = device.quiesce.filter(|_| first);
        let bits = [
            (registers.forwarded, REGISTERS_FORWARDED),
            (quiesce.is_some(), REGISTERS_QUIESCED),
        ];
        let flags = bits
            .iter()
            .filter(|(set, _)| *set)
            .fold(0, |flags, (_, bit)| flags | bit);
        let quiesce = quiesce.unwrap_or_default();
        (flags != 0).then(|| RegistersRecord {
            partition: number.into(),
            flags: flags.into(),
            guest: registers.window.base.into(),
            host: registers.window.base.into(),
            size: registers.window.size.into(),
            quiesce_offset: quiesce.offset.into(),
            quiesce_value: quiesce.value.into(),
        })
    })
}

fn access_records(
    number: u32,
    partition: &Partition<'_>,
    builder: &mut ImageBuilder,
) -> Result<(), NameError> {
    // The kernel gives every partition the capability for itself.
    for capability in partition.capabilities().iter().skip(1) {
        builder.capabilities.push(CapabilityRecord {
            partition: number.into(),
            index: capability.index.into(),
            kind: u32::from(capability.kind as u8).into(),
            object: (capability.object as u32).into(),
            rights: u32::from(capability.rights.0).into(),
            detail: (capability.room | capability.event.map_or(0, |event| event.saturating_add(1)) << 8)
                .into(),
            name: Name::new(&capability.name)?,
        });
    }
    builder
        .watches
        .extend(partition.watches().iter().map(|watched| WatchRecord {
            watcher: number.into(),
            watched: (*watched as u32).into(),
        }));
    Ok(())
}

/// Writes the interface of a partition to its network: a virtual controller where the board has its own
/// controller, and the record that the switch reads.
fn interface(system: &System, number: u32, builder: &mut ImageBuilder) {
    let spec = &system.manifest.partitions[number as usize];
    let Some(interface) = networks::interface(number as usize, spec) else {
        return;
    };
    let network = networks::number(&system.manifest, &interface.network.value);
    let (Some(network), Some(device)) = (network, networks::controller(&system.board)) else {
        return;
    };
    let window = device.registers.first().copied().unwrap_or_default();
    let line = device
        .interrupts
        .first()
        .map_or(NONE, |interrupt| interrupt.line.get());
    builder.virtual_devices.push(VirtualDeviceRecord {
        partition: number.into(),
        kind: VIRTUAL_LAN9118.into(),
        base: [window.base.into(), 0.into()],
        size: [window.size.into(), 0.into()],
        virtual_line: line.into(),
        reserved: 0.into(),
    });
    let [a, b, c, d, e, f] = interface.address;
    let mut frames = system.plan.frames.iter();
    let memory = frames
        .find(|(owner, _)| *owner == number as usize)
        .map_or(0, |(_, base)| *base);
    builder.nics.push(NicRecord {
        partition: number.into(),
        network: network.into(),
        address: [a, b, c, d, e, f, 0, 0],
        memory: memory.into(),
    });
}

/// Returns the code memory of a partition.
fn residents(
    number: u32,
    partition: &str,
    guest: &Guest,
    builder: &mut ImageBuilder,
) -> Result<(), NameError> {
    for stretch in &guest.residents {
        builder.residents.push(ResidentRecord {
            name: Name::new(&blob_name(partition, "program"))?,
            partition: number.into(),
            reserved: 0.into(),
            address: stretch.address.into(),
            size: (stretch.bytes.len() as u64).into(),
            digest: Portable.digest(&[&stretch.bytes]),
        });
    }
    Ok(())
}

/// Returns the places in the programs of all partitions that look like a replaced instruction.
fn lookalikes(system: &System) -> Vec<LookalikeRecord> {
    let mut addresses: Vec<u32> = system
        .guests
        .iter()
        .flat_map(|guest| guest.lookalikes.iter().copied())
        .collect();
    addresses.sort_unstable();
    let record = |address: u32| LookalikeRecord {
        address: address.into(),
    };
    addresses.into_iter().map(record).collect()
}
