// SPDX-License-Identifier: Apache-2.0
//! The records of the board and of its time: pCPUs, schedules, vCPUs, memory map, controllers.

use bulkhead_abi::own_policy;
use bulkhead_image::layout::{
    DomainRecord, MAP_CODE, MAP_DEVICE, MAP_RAM, MapRecord, NONE, Name, POLICY_ARINC653, POLICY_DOMAINS,
    POLICY_EDF, POLICY_FIXED_PRIORITY, POLICY_PINNED, PcpuRecord, SERVER_CONSTANT_BANDWIDTH,
    SERVER_DEFERRABLE, SERVER_NONE, SERVER_SPORADIC, ScheduleRecord, VcpuRecord, WINDOW_PERIOD_START,
    WindowRecord,
};
use bulkhead_image::{ImageBuilder, NameError};

use crate::driver::{Controller, Role};
use crate::model::network::uplink_controller;
use crate::model::{Policy, ServerKind};
use crate::system::{System, Vcpu};
use crate::window::Window;

/// Writes the records of the board: pCPUs, memory map, controllers.
pub(super) fn board_records(system: &System, builder: &mut ImageBuilder) {
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
                Policy::Own => own_policy::number(pcpu.policy_name()),
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
    // A system with one pCPU starts no other one.
    let is_used = |role: &str| role != Role::Processors.table() || system.pcpus.len() > 1;
    let devices = board.hypervisor_devices();
    let used = devices.iter().filter(|(role, _)| is_used(role));
    builder
        .map
        .extend(used.map(|(_, window)| stretch(window, MAP_DEVICE)));
    let used = board.controllers.iter();
    let used = used.filter(|own| is_used(own.driver.role.table()));
    let own = used.map(Controller::record);
    let uplink = uplink_controller(&system.manifest, board);
    builder.controllers = own.chain(uplink.iter().map(Controller::record)).collect();
}

/// Writes the schedules with their windows, and the time domains, of all pCPUs.
pub(super) fn schedule_records(system: &System, builder: &mut ImageBuilder) -> Result<(), NameError> {
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

/// Returns the record of a vCPU. `masks` is the address of its mask words, 0 if it has none.
pub(super) fn vcpu_record(partition: u32, vcpu: &Vcpu, masks: u32) -> VcpuRecord {
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
        masks: masks.into(),
        budget_ns: budget.into(),
        period_ns: period.into(),
        deadline_ns: vcpu.deadline_ns.into(),
    }
}
