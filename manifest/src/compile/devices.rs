// SPDX-License-Identifier: Apache-2.0
//! The records of the devices of a partition: virtual devices, and devices of the board.

use bulkhead_abi::hypercall::DEVICE_EVENT;
use bulkhead_image::ImageBuilder;
use bulkhead_image::layout::{
    INTERRUPT_CRITICAL, INTERRUPT_EARLY, InterruptRecord, MAX_LATENCY_NS, NIC_FRAME_RING, NONE, NicRecord,
    REGISTERS_FORWARDED, REGISTERS_GATED, REGISTERS_QUIESCED, RegistersRecord, TRIGGER_EDGE, TRIGGER_LEVEL,
    VIRTUAL_CFI_FLASH, VIRTUAL_EVENT_GATE, VIRTUAL_LAN9118, VIRTUAL_PCI_BRIDGE, VirtualDeviceRecord,
};

use crate::board::{Quiesce, Trigger};
use crate::class::{self, VirtualController};
use crate::model::devices::{owned, registers};
use crate::model::machine::uart_size;
use crate::model::side::lent;
use crate::model::{Kind, network};
use crate::place::channels::BRIDGE;
use crate::system::System;
use crate::window::Window;

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
        let windows = BRIDGE.map(|(_, window)| window);
        devices.push(virtual_device(number, VIRTUAL_PCI_BRIDGE, windows, NONE));
    }
    interface(system, number, builder);
}

/// Writes the records of a partition's devices, virtual ones first.
pub(super) fn device_records(system: &System, number: u32, builder: &mut ImageBuilder) {
    let spec = &system.manifest.partitions[number as usize];
    let is_task = spec.kind == Kind::Task;
    if !is_task {
        virtual_devices(system, number, builder);
    }
    builder.registers.extend(register_records(system, number));
    let latency = spec
        .early_handlers
        .as_ref()
        .or(spec.interrupt_latency.as_ref())
        .map_or(0, |latency| latency.value.get());
    let latency = u32::try_from(latency).unwrap_or(MAX_LATENCY_NS);
    let early = spec.early_handlers.as_ref().map_or(0, |_| INTERRUPT_EARLY);
    for (name, device) in owned(spec, &system.board) {
        let is_critical = spec.critical.iter().any(|other| other.value == name.value);
        let critical = if is_critical { INTERRUPT_CRITICAL } else { 0 };
        builder
            .interrupts
            .extend(device.lines_for(is_task).map(|interrupt| {
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
                    flags: (critical | early).into(),
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

/// Returns the windows of registers that the hypervisor helps with. It forwards them, or stops a device with
/// them, or opens a gate to them.
pub(super) fn register_records(system: &System, number: u32) -> impl Iterator<Item = RegistersRecord> {
    own_records(system, number).chain(lent_records(system, number))
}

/// Returns the windows of the devices that a partition owns. A record has one register that is written at the
/// end of the partition, so a window with several is several records, in the order of the writes.
fn own_records(system: &System, number: u32) -> impl Iterator<Item = RegistersRecord> {
    let spec = &system.manifest.partitions[number as usize];
    registers(spec, &system.board).flat_map(move |registers| {
        let device = registers.device;
        let first = device.registers.first() == Some(&registers.window);
        let writes: Vec<Quiesce> = device.writes().filter(|_| first).collect();
        // The gate of a device whose registers are not mapped stays closed.
        let gate = device.gate.filter(|_| !registers.forwarded);
        let flags = [
            (registers.forwarded, REGISTERS_FORWARDED),
            (!writes.is_empty(), REGISTERS_QUIESCED),
            (gate.is_some(), REGISTERS_GATED),
        ];
        let flags = flags.iter().filter(|(set, _)| *set);
        let flags = flags.fold(0, |flags, (_, bit)| flags | bit);
        let gate = gate.unwrap_or_default();
        let pieces = pieces(registers.window, &writes).into_iter();
        pieces
            .filter(move |_| flags != 0)
            .map(move |(window, write)| RegistersRecord {
                partition: number.into(),
                flags: flags.into(),
                guest: window.base.into(),
                host: window.base.into(),
                size: window.size.into(),
                quiesce_offset: write.offset.into(),
                quiesce_value: write.value.into(),
                gate_offset: gate.register.into(),
                gate_bit: gate.bit.get().into(),
            })
    })
}

/// Divides a window of registers, so that each piece has one of the registers that are written. Its offset is
/// the one in the piece.
fn pieces(window: Window, writes: &[Quiesce]) -> Vec<(Window, Quiesce)> {
    let ends = |offset: u32| {
        let others = writes.iter().map(|write| write.offset);
        let next = others.filter(|other| *other > offset).min();
        next.map_or(window.size, u64::from)
    };
    let lowest = writes.iter().map(|write| write.offset).min();
    let piece = |write: &Quiesce| {
        let start = if Some(write.offset) == lowest {
            0
        } else {
            write.offset
        };
        let piece = Window {
            base: window.base.saturating_add(start.into()),
            size: ends(write.offset).saturating_sub(start.into()),
        };
        let offset = write.offset.saturating_sub(start);
        (piece, Quiesce { offset, ..*write })
    };
    if writes.is_empty() {
        return vec![(window, Quiesce::default())];
    }
    writes.iter().map(piece).collect()
}

/// Returns the gates of the devices that are lent to a partition before all others. The hypervisor does no
/// more for such a device.
fn lent_records(system: &System, number: u32) -> impl Iterator<Item = RegistersRecord> {
    let (manifest, board) = (&system.manifest, &system.board);
    let spec = &manifest.partitions[number as usize];
    manifest.channels.iter().filter_map(move |channel| {
        let device = lent(channel, board)?;
        let (window, gate) = (device.registers.first()?, device.gate?);
        let first = channel.sides.first()?.partition.as_ref()?;
        (first.value == spec.name.value).then(|| RegistersRecord {
            partition: number.into(),
            flags: REGISTERS_GATED.into(),
            guest: window.base.into(),
            host: window.base.into(),
            size: window.size.into(),
            quiesce_offset: 0.into(),
            quiesce_value: 0.into(),
            gate_offset: gate.register.into(),
            gate_bit: gate.bit.get().into(),
        })
    })
}

/// Writes the interface of a partition to its network: a virtual controller where the board has its own
/// controller, and the record that the switch reads.
fn interface(system: &System, number: u32, builder: &mut ImageBuilder) {
    let spec = &system.manifest.partitions[number as usize];
    let Some(interface) = network::interface(number as usize, spec) else {
        return;
    };
    let number_of = network::number(&system.manifest, &interface.network.value);
    let (Some(network), Some(device)) = (number_of, network::controller(&system.board)) else {
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
    let ring = if *spec.frame_ring { NIC_FRAME_RING } else { 0 };
    builder.nics.push(NicRecord {
        partition: number.into(),
        network: (network | ring).into(),
        address: [a, b, c, d, e, f, 0, 0],
        memory: memory.into(),
    });
}
