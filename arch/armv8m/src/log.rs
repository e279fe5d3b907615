// SPDX-License-Identifier: Apache-2.0
//! The records that the hypervisor leaves: the log area, and the ring of the trace.

use crate::machine::Machine;
use bulkhead_abi::log::Area;
use bulkhead_abi::trace::{Entry, RECORD_SIZE};
use bulkhead_arch_api::Traces;
use bulkhead_arch_one_pcpu::log::ring;

pub(crate) use bulkhead_arch_one_pcpu::log::{address, area, exits};

impl Traces for Machine {
    fn log_area(&self) -> &'static Area {
        area()
    }

    fn keep(&mut self, _offset: usize, _length: usize) {
        // No cache is on, so all stored bytes are in memory.
    }

    fn trace_ring(&self) -> &'static [Entry] {
        let (base, records) = self.trace;
        let base = base + usize::from(self.pcpu().0) * records * RECORD_SIZE;
        // SAFETY: the checked image has given this place.
        unsafe { ring(base, records) }
    }
}
