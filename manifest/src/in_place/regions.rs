// SPDX-License-Identifier: Apache-2.0
//! The regions of a memory protection unit: each partition has some, and there must be enough.
#![deny(clippy::arithmetic_side_effects)]

use bulkhead_arch_regions::{Forbidden, MAX_REGIONS, Refusal, Region, Request, SMALLEST, in_one_region};

use super::protection::{Mapped, Protection};
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::model::{Access, PartitionSpec};
use crate::units::format_size;
use crate::window::{Window, range};

/// Protection by the regions of an MPU.
pub(crate) struct Regions;

impl Protection for Regions {
    fn around(&self, start: u32, bytes: u64) -> Option<Window> {
        let (base, size) = in_one_region(start, bytes)?;
        Some(Window {
            base: base.into(),
            size,
        })
    }

    fn block(&self, size: u64) -> Option<u64> {
        size.checked_next_power_of_two()
    }

    fn alignment(&self, size: u64) -> Option<u64> {
        size.checked_next_power_of_two()
    }

    fn is_channel(&self, size: u64) -> bool {
        size.is_power_of_two() && (u64::from(SMALLEST)..=1 << 31).contains(&size)
    }

    fn channel_sizes(&self) -> &'static str {
        "a power of two, 32 at least"
    }

    fn channel_places(&self) -> &'static str {
        "a multiple of its size"
    }

    fn best(&self) -> [&'static str; 2] {
        [", at best a power of two", ", at best a multiple of the size"]
    }

    fn rounding(&self) -> &'static str {
        "what an MPU region can be"
    }

    fn ram_of_vm(&self) -> Access {
        Access::DATA
    }

    fn check(&self, spec: &PartitionSpec, mapped: &[Mapped], report: &mut Report) {
        let requests: Vec<Request> = mapped.iter().map(|mapped| mapped.request).collect();
        if let Err(refusal) = bulkhead_arch_regions::plan(&requests, MAX_REGIONS as u32) {
            report
                .diagnostics
                .extend(refused(refusal, spec, mapped, &requests));
        }
    }

    fn regions(&self, mapped: &[Mapped]) -> Vec<Region> {
        let requests: Vec<Request> = mapped.iter().map(|mapped| mapped.request).collect();
        let plan = bulkhead_arch_regions::plan(&requests, MAX_REGIONS as u32);
        plan.map_or_else(|_| Vec::new(), |plan| plan.regions().to_vec())
    }
}

/// Returns what is wrong with a partition for which the MPU has not enough regions.
fn refused(
    refusal: Refusal,
    spec: &PartitionSpec,
    mapped: &[Mapped],
    requests: &[Request],
) -> Option<Diagnostic> {
    let (index, why, fix) = match refusal {
        Refusal::Unaligned { index, fix } => (index, "is not made of units of 32 bytes".to_owned(), fix),
        Refusal::Forbidden { index, what } => {
            let what = match what {
                Forbidden::BitBand => "is in a bit-band alias, which reaches all RAM or all devices",
                Forbidden::System => "is in the CPU's private registers",
            };
            (index, what.to_owned(), None)
        }
        Refusal::Overlap { index, other } => {
            let other = mapped.get(other).map_or("", |other| other.what.as_str());
            (index, format!("overlaps {other}"), None)
        }
        Refusal::TooMany { needed, available } => {
            let fix = bulkhead_arch_regions::smallest_fix(requests, available);
            let index = fix.map_or_else(|| mapped.len().saturating_sub(1), |fix| fix.index);
            let why = format!("and all else need {needed} regions of the MPU, which has {available}");
            (index, why, fix)
        }
    };
    let found = mapped.get(index)?;
    let message = format!("{} of `{}` {why}", found.what, spec.name.value);
    let help = match fix {
        Some(fix) => format!(
            "with {} from {:#x} there it needs {} regions in all",
            format_size(fix.bytes),
            fix.start,
            fix.needed
        ),
        None => "move it, or give the partition fewer devices or regions".to_owned(),
    };
    let window = Window {
        base: found.request.start.into(),
        size: found.request.bytes,
    };
    Some(
        Diagnostic::at(Code::TooManyRegions, found.place, message)
            .label(range(window))
            .help(help),
    )
}
