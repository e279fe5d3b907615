// SPDX-License-Identifier: Apache-2.0
//! Protection by the security attribution unit (SAU) for VMs, and by the secure MPU of Armv8-M for tasks.
//!
//! Both have regions of any length. So blocks of the memory protection controllers are all that memory is
//! rounded to.
#![deny(clippy::arithmetic_side_effects)]

use bulkhead_arch_regions::{Request, TASK_STRETCHES, Unfit, VM_STRETCHES, stretches};

use super::protection::{Mapped, Protection};
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::model::{Access, Kind, PartitionSpec};
use crate::units::align_up;
use crate::window::{Window, range};

/// Bytes of a block of the memory protection controllers.
const BLOCK: u64 = 1 << 10;

/// Protection by stretches of whole blocks.
pub(crate) struct Stretches;

impl Protection for Stretches {
    fn around(&self, start: u32, bytes: u64) -> Option<Window> {
        let start = u64::from(start);
        let base = start & !BLOCK.saturating_sub(1);
        let end = align_up(start.checked_add(bytes)?, BLOCK)?;
        Some(Window {
            base,
            size: end.checked_sub(base)?,
        })
    }

    /// Returns the size if it is a power of two, as classes without this freedom do. So one manifest serves
    /// boards of both.
    fn block(&self, size: u64) -> Option<u64> {
        Some(if size.is_power_of_two() { size } else { BLOCK })
    }

    fn alignment(&self, _size: u64) -> Option<u64> {
        Some(BLOCK)
    }

    fn is_channel(&self, size: u64) -> bool {
        size.is_multiple_of(BLOCK) && (BLOCK..=1 << 31).contains(&size)
    }

    fn channel_sizes(&self) -> &'static str {
        "a multiple of 1K"
    }

    fn channel_places(&self) -> &'static str {
        "a multiple of 1K"
    }

    fn best(&self) -> [&'static str; 2] {
        ["", ""]
    }

    fn rounding(&self) -> &'static str {
        "blocks of 1K"
    }

    /// Returns all access: a VM decides which memory it executes.
    fn ram_of_vm(&self) -> Access {
        Access::ALL
    }

    fn check(&self, spec: &PartitionSpec, mapped: &[Mapped], report: &mut Report) {
        let (most, owner) = match spec.kind {
            Kind::Vm => (VM_STRETCHES, "a VM of this class"),
            Kind::Task => (TASK_STRETCHES, "a task of this class"),
        };
        let requests: Vec<Request> = mapped.iter().map(|mapped| mapped.request).collect();
        let unit = u32::try_from(BLOCK).unwrap_or(u32::MAX);
        let Err(unfit) = stretches(&requests, unit, most) else {
            return;
        };
        let (index, why) = match unfit {
            Unfit::Unaligned { index } => (index, "is not made of blocks of 1K".to_owned()),
            Unfit::Forbidden { index } => (
                index,
                "is in the secure world, or in the CPU's own registers".to_owned(),
            ),
            Unfit::Overlap { index, other } => {
                let other = mapped.get(other).map_or("", |other| other.what.as_str());
                (index, format!("overlaps {other}"))
            }
            Unfit::TooMany { index, needed } => {
                let why = format!(
                    "and all else are {needed} stretches of memory and devices, and {owner} has {most}"
                );
                (index, why)
            }
        };
        let Some(found) = mapped.get(index) else { return };
        let message = format!("{} of `{}` {why}", found.what, spec.name.value);
        let window = Window {
            base: found.request.start.into(),
            size: found.request.bytes,
        };
        report.push(
            Diagnostic::at(Code::TooManyRegions, found.place, message)
                .label(range(window))
                .help("put it next to memory with the same access, or give the partition fewer devices, regions or channels"),
        );
    }
}
