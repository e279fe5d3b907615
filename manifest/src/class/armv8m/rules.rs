// SPDX-License-Identifier: Apache-2.0
//! The rules for boards of class `armv8m`: controllers say which world reaches memory and devices.

use super::lines;
use crate::board::{Board, Device};
use crate::class::Refuse;
use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::driver::Role;
use crate::model::devices::owned;
use crate::model::side::lent;
use crate::model::{CapabilitySpec, ChannelSpec, Kind, Manifest, PartitionSpec, Placed};
use crate::place::channels::sides_of;
use crate::window::Window;
use bulkhead_abi::{HealthClass, Rights};
use bulkhead_image::layout::HealthAction;

/// The address bit that makes an address one of the secure world (Arm ECM0601256, section 3.2).
pub(super) const SECURE: u64 = 1 << 28;

/// Checks that the board has security controllers, that they guard memory of the board, and that no address
/// is one of the secure world.
pub(super) fn check_board(board: &Board, refuse: &mut Refuse<'_>) {
    if board.driven(Role::Security).is_none() {
        refuse(
            "class",
            format!(
                "a board of class `{}` needs security controllers",
                board.class.name()
            ),
            "add the table `security`",
        );
    }
    for (key, stretches) in [("code", &board.code), ("ram", &board.ram)] {
        if let Some(alias) = stretches.iter().find(|window| window.base & SECURE != 0) {
            refuse(
                key,
                format!("{:#x} is an address of the secure world", alias.base),
                "give the address with bit 28 clear: all software uses this one",
            );
        }
    }
    let registers = |window: &Window| window.base & SECURE != 0;
    let mut devices = board.devices.iter();
    if let Some(device) = devices.find(|device| device.registers.iter().any(registers)) {
        refuse(
            "device",
            format!("device `{}` has registers in the secure world only", device.name),
            "give the addresses with bit 28 clear, or leave the device out: no VM could reach it",
        );
    }
    guarded_memory(board, refuse);
    lines::check_board(board, refuse);
}

/// Checks that what is guarded is memory of the board, and that nothing is guarded twice.
fn guarded_memory(board: &Board, refuse: &mut Refuse<'_>) {
    let guarded: Vec<Window> = board.controllers.iter().filter_map(|own| own.guarded).collect();
    for (index, window) in guarded.iter().enumerate() {
        let is_memory = board
            .code
            .iter()
            .chain(&board.ram)
            .any(|stretch| stretch.contains(*window));
        let earlier = guarded.get(..index).unwrap_or(&[]);
        if window.pages() != *window || !is_memory || earlier.iter().any(|other| other.overlaps(*window)) {
            refuse(
                Role::Security.table(),
                format!(
                    "the guarded memory at {:#x} is not whole pages of one stretch of memory, or is guarded twice",
                    window.base
                ),
                "look the addresses and sizes of the memory protection controllers up once more",
            );
        }
    }
}

/// Checks that each device that a partition has can be kept from the others, and that VMs may write their
/// memory.
pub(super) fn check(manifest: &Manifest, board: &Board, report: &mut Report) {
    for channel in &manifest.channels {
        lent_device_is_for_tasks(channel, manifest, board, report);
    }
    for partition in &manifest.partitions {
        devices_have_gates(partition, board, report);
        tasks_do_no_dma(partition, board, report);
    }
    for vm in manifest.partitions.iter().filter(|spec| spec.kind == Kind::Vm) {
        memory_is_writable(vm, manifest, report);
        lock_ups_end(vm, report);
    }
}

/// Refuses to pass over an event of class `system`: on this class it is a processor that stands still.
fn lock_ups_end(vm: &PartitionSpec, report: &mut Report) {
    let is_passed_over = |(class, action): &(HealthClass, &Placed<HealthAction>)| {
        *class == HealthClass::System && action.value == HealthAction::Log
    };
    if let Some((_, action)) = vm.health.actions().find(is_passed_over) {
        let message = "\"log\" is impossible for health events of class `system` here";
        report.push(
            Diagnostic::at(Code::ImpossibleAction, action.place, message)
                .label("a VM that locks up cannot go on")
                .help(
                    "possible: \"inject\" or \"stop\", both of which end the partition, \"restart\", \"restart-warm\"",
                ),
        );
    }
}

fn devices_have_gates(partition: &PartitionSpec, board: &Board, report: &mut Report) {
    for (name, device) in owned(partition, board) {
        has_gate(name, device, board, report);
    }
}

fn has_gate(name: &Placed<String>, device: &Device, board: &Board, report: &mut Report) {
    if device.gate.is_some() {
        return;
    }
    let message = format!(
        "the device `{}` has no gate on board `{}`",
        name.value, board.name
    );
    report.push(
        Diagnostic::at(Code::NoGate, name.place, message)
            .label("nothing would keep it from the VMs that do not have it")
            .help(
                "remove it, or give it a `gate` in the board file: the bit of the security controller \
                 that lets non-secure software reach it",
            ),
    );
}

/// Checks that a device that is lent has a gate, and that only tasks can hold it. The gate is open for tasks
/// or for VMs, and stays as it is.
fn lent_device_is_for_tasks(channel: &ChannelSpec, manifest: &Manifest, board: &Board, report: &mut Report) {
    let (Some(name), Some(device)) = (&channel.device, lent(channel, board)) else {
        return;
    };
    has_gate(name, device, board, report);
    for side in channel.sides.iter().filter_map(|side| side.partition.as_ref()) {
        let mut specs = manifest.partitions.iter();
        let spec = specs.find(|spec| spec.name.value == side.value);
        if spec.is_none_or(|spec| spec.kind == Kind::Task) {
            continue;
        }
        let message = format!(
            "device `{}` cannot be lent to `{}`, which is a VM",
            name.value, side.value
        );
        report.push(
            Diagnostic::at(Code::NotForClass, side.place, message)
                .label("the gate of a device that is lent is open for tasks")
                .help("make the holder a task, or give the device to the VM for good, by its `devices`"),
        );
    }
}

/// Refuses a DMA controller of a task: all controllers are Non-secure, and a task's memory never is.
fn tasks_do_no_dma(partition: &PartitionSpec, board: &Board, report: &mut Report) {
    let with_dma = owned(partition, board).find(|(_, device)| device.dma);
    if let Some((name, _)) = with_dma.filter(|_| partition.kind == Kind::Task) {
        let message = format!("the task `{}` cannot have `{}`", partition.name.value, name.value);
        report.push(
            Diagnostic::at(Code::NotForTask, name.place, message)
                .label("its transfers are Non-secure, and the memory of a task is Secure")
                .help("remove it, or make the partition a VM: kind = \"vm\""),
        );
    }
}

/// Checks that a VM may write its regions and channels, and the memory that it holds. SAU and memory
/// protection controllers say who reaches memory, and not how. So nothing would stop the stores of a VM that
/// may only read.
fn memory_is_writable(vm: &PartitionSpec, manifest: &Manifest, report: &mut Report) {
    let name = &vm.name.value;
    let mut refuse = |what: String, place: Place, help: &str| {
        let message = format!("`{name}` is a VM that could write {what}");
        report.push(
            Diagnostic::at(Code::NotForClass, place, message)
                .label("no hardware of this class stops the stores of a VM to memory that it reads")
                .help(help),
        );
    };
    for region in vm.regions.iter().filter(|region| !region.access.write) {
        let help = "give `access = \"rw\"`";
        refuse("a region which it may only read".to_owned(), region.start, help);
    }
    for side in sides_of(manifest, name) {
        let channel = &side.channel.name.value;
        if !side.spec.access.write {
            let place = side.spec.access.place.unwrap_or(side.spec.start);
            let what = format!("channel `{channel}`, which it may only read");
            refuse(what, place, "give \"rw\", or make the reader a task");
        }
        // A hold for loads alone would map nothing.
        let is_it = |own: &&CapabilitySpec| own.channel.as_ref().is_some_and(|name| name.value == *channel);
        let holds = vm.capabilities.iter().filter(|_| *side.spec.held).filter(is_it);
        for rights in holds
            .filter(|own| !own.gives(Rights::WRITE))
            .filter_map(|own| own.rights.as_ref())
        {
            let what = format!("channel `{channel}`, which it may hold for loads alone");
            let help = "give the right \"write\" too, or make the holder a task";
            refuse(what, rights.place, help);
        }
    }
}
