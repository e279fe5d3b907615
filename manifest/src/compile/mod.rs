// SPDX-License-Identifier: Apache-2.0
//! Makes a system image from a checked system.
//!
//! The number of records does not depend on addresses, and the writer tells the image's length from the
//! numbers alone. So the records are made twice: first without places to learn the length, and again when
//! places around an image of this length are found.
#![deny(clippy::arithmetic_side_effects)]

mod board;
mod devices;
pub(crate) mod limits;
mod objects;
mod own_map;
mod partition;
mod records;

use std::fmt;

use bulkhead_image::layout::{BoardRecord, NONE};
use bulkhead_image::{ImageError, NameError};

use crate::class;
use crate::diagnostic::Report;
use crate::model::network::intake;
use crate::parts;
use crate::place::memory::{Input, Plan, TraceWish};
use crate::system::System;
use crate::units::align_up;
use records::records;

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
    let mut report = Report::about(system.report.sources.clone());
    let Some(plan) = plan(system, binary, input.trace_records, &mut report) else {
        return Err(CompileError::NoRoom(Box::new(report)));
    };
    let placed = System {
        plan,
        ..system.clone()
    };
    let mut builder = records(&placed)?;
    builder.version = placed.signature().map_or(0, |signature| signature.version);
    let (budget, period) = intake(&placed.manifest);
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
    let host = class::host(system.board.class);
    let input = Input {
        board: &system.board,
        specs: &system.manifest.partitions,
        channels: system.manifest.channels.len(),
        guests: &system.guests,
        blocks: host.blocks(),
        binary,
        reserve: host.binary_reserve(),
        image,
        trace: trace_wish(system, trace_records),
    };
    host.plan(&input, report)
}
