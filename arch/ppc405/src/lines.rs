// SPDX-License-Identifier: Apache-2.0
//! The lines of the interrupt controller, and the ways of those that are a partition's.

use crate::sysreg::{self, UIC_CRITICAL, UIC_ENABLE, UIC_STATUS};
use bulkhead_arch_api::PartitionId;

/// Lines of the controller.
pub(crate) const LINES: usize = 32;

/// The way of a partition's line.
#[derive(Clone, Copy)]
pub(crate) struct Route {
    pub partition: PartitionId,
    pub virtual_line: u8,
    pub is_critical: bool,
}

/// The lines.
pub(crate) struct Lines {
    pub routes: [Option<Route>; LINES],
    /// Lines that may interrupt.
    pub enabled: u32,
    /// Lines of partitions that wait for their guests.
    pub held: u32,
}

/// Returns the bit of a line: line 0 is the most significant one.
pub(crate) const fn bit(line: u32) -> u32 {
    if line < LINES as u32 {
        0x8000_0000 >> line
    } else {
        0
    }
}

impl Lines {
    pub(crate) const fn new() -> Self {
        Self {
            routes: [None; LINES],
            enabled: 0,
            held: 0,
        }
    }

    /// Masks all lines and forgets what is pending. At boot.
    pub(crate) fn init(&mut self) {
        sysreg::write_dcr::<UIC_ENABLE>(0);
        sysreg::write_dcr::<UIC_CRITICAL>(0);
        sysreg::write_dcr::<UIC_STATUS>(u32::MAX);
    }

    pub(crate) fn apply(&self) {
        sysreg::write_dcr::<UIC_ENABLE>(self.enabled & !self.held);
    }

    pub(crate) fn route_of(&self, line: u32) -> Option<Route> {
        self.routes.get(line as usize).copied().flatten()
    }
}
