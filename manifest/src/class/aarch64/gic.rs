// SPDX-License-Identifier: Apache-2.0
//! The virtual interrupt controller of a VM. It has the version of the board's own controller.
#![deny(clippy::arithmetic_side_effects)]

use bulkhead_image::layout::{VIRTUAL_GIC_V2, VIRTUAL_GIC_V3};

use crate::board::Board;
use crate::class::VirtualController;
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::driver::{GIC_V2, Role};
use crate::model::PartitionSpec;
use crate::units::{PAGE, format_size};
use crate::window::Window;

/// Bytes of a GICv3 distributor's registers (Arm IHI 0069H, section 12.8).
const DISTRIBUTOR_SIZE: u64 = 0x1_0000;
/// Bytes of a GICv3 redistributor's two frames (Arm IHI 0069H, section 12.10).
const REDISTRIBUTOR_SIZE: u64 = 0x2_0000;
/// Bytes of a GICv2 distributor's registers (Arm IHI 0048B, section 4.1.2).
const DISTRIBUTOR_V2_SIZE: u64 = 0x1000;
/// Bytes of a GICv2 CPU interface's registers (Arm IHI 0048B, section 4.1.3).
const CPU_INTERFACE_SIZE: u64 = 0x2000;

/// Version of the architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gic {
    /// With memory-mapped CPU interfaces.
    V2,
    /// With redistributors, and CPU interfaces that are system registers.
    V3,
}

impl Gic {
    /// Returns the version of the board's interrupt controller. A board that is not known has the usual
    /// version.
    pub(super) fn of(board: Option<&Board>) -> Self {
        let controller = board.and_then(|board| board.driven(Role::Interrupts));
        if controller.is_some_and(|controller| *controller.driver == GIC_V2) {
            Self::V2
        } else {
            Self::V3
        }
    }

    /// Returns the number of the version.
    const fn version(self) -> u64 {
        match self {
            Self::V2 => 2,
            Self::V3 => 3,
        }
    }
}

/// Returns the virtual interrupt controller of a VM, with its register windows.
pub(super) fn virtual_controller(partition: &PartitionSpec, gic: Gic) -> VirtualController {
    let machine = &partition.machine;
    let window = |base, size| Window { base, size };
    match gic {
        Gic::V2 => VirtualController {
            kind: VIRTUAL_GIC_V2,
            windows: vec![
                (
                    "distributor",
                    window(machine.gic.distributor.get(), DISTRIBUTOR_V2_SIZE),
                ),
                (
                    "CPU interface",
                    window(machine.gic.cpu_interface.get(), CPU_INTERFACE_SIZE),
                ),
            ],
        },
        Gic::V3 => {
            let redistributors = REDISTRIBUTOR_SIZE.saturating_mul(partition.vcpus.len() as u64);
            VirtualController {
                kind: VIRTUAL_GIC_V3,
                windows: vec![
                    (
                        "distributor",
                        window(machine.gic.distributor.get(), DISTRIBUTOR_SIZE),
                    ),
                    (
                        "redistributors",
                        window(machine.gic.redistributor.get(), redistributors),
                    ),
                ],
            }
        }
    }
}

/// Reports an interrupt controller that a VM cannot have on the board.
pub(super) fn check(partition: &PartitionSpec, board: Option<&Board>, report: &mut Report) {
    if let Some(board) = board {
        version_is_the_boards(partition, board, report);
    }
    let gic = Gic::of(board);
    if let Some(place) = partition.machine.gic.key {
        let align = match gic {
            Gic::V2 => PAGE,
            Gic::V3 => DISTRIBUTOR_SIZE,
        };
        for (name, window) in virtual_controller(partition, gic).windows {
            let base = window.base;
            if !base.is_multiple_of(align) {
                let message = format!(
                    "the {name} at {base:#x} is not at a multiple of {}",
                    format_size(align)
                );
                report.push(
                    Diagnostic::at(Code::BadMachine, place, message)
                        .help(format!("move it to a multiple of {align:#x}")),
                );
            }
        }
    }
}

/// Checks that a VM's interrupt controller has the version of the board's. Some of its registers are the
/// registers of the hardware, so the version cannot be chosen.
fn version_is_the_boards(partition: &PartitionSpec, board: &Board, report: &mut Report) {
    let machine = &partition.machine;
    let real = Gic::of(Some(board)).version();
    if let Some(version) = machine
        .gic
        .version
        .as_ref()
        .filter(|version| u64::from(version.value.get()) != real)
    {
        let message = format!(
            "board `{}` cannot give a VM a GICv{}, its own interrupt controller is a GICv{real}",
            board.name, version.value
        );
        report.push(
            Diagnostic::at(Code::BadMachine, version.place, message)
                .help(format!("give `version = {real}`, or leave it out")),
        );
    }
    let (foreign, key, instead) = match Gic::of(Some(board)) {
        Gic::V2 => (machine.gic.redistributor.key, "redistributor", "cpu-interface"),
        Gic::V3 => (machine.gic.cpu_interface.key, "cpu-interface", "redistributor"),
    };
    if let Some(place) = foreign {
        let message = format!(
            "a GICv{real}, as VMs have on board `{}`, has no `{key}`",
            board.name
        );
        report.push(
            Diagnostic::at(Code::BadMachine, place, message).help(format!("move its `{instead}` instead")),
        );
    }
}
