// SPDX-License-Identifier: Apache-2.0
//! The log area (`bulkhead_abi::log`), which is the bytes directly below the class binary, and the rings of
//! the trace.
//!
//! The area's place depends on nothing but the load address, so the area can be written before the system
//! image is understood, or if that never happens.

use crate::board::BOARD;
use crate::machine::Machine;
use bulkhead_abi::log::{Area, Vcpu};
use bulkhead_abi::trace::{Entry, RECORD_SIZE};
use bulkhead_arch_api::{Traces, VcpuId};

/// The log area.
pub(crate) use bulkhead_arch_translating::log_area as area;

/// Returns the counters of a vCPU.
pub(crate) fn counters(vcpu: VcpuId) -> Option<&'static Vcpu> {
    area().vcpus.get(usize::from(vcpu.0))
}

impl Traces for Machine {
    fn log_area(&self) -> &'static Area {
        area()
    }

    fn keep(&mut self, _offset: usize, _length: usize) {
        // Caches are coherent, and a reset of the processors leaves what they hold to their snoops.
    }

    fn trace_ring(&self) -> &'static [Entry] {
        let (base, records) = BOARD.get().map_or((0, 0), |board| board.trace);
        if records == 0 {
            return &[];
        }
        let own = base as usize + usize::from(self.pcpu.0) * records * RECORD_SIZE;
        // SAFETY: the image's check has found room for the rings of all pCPUs, on page boundaries, in RAM
        // that is neither the hypervisor's own nor a partition's. `map_board` has mapped this RAM. No other
        // code has it by another name, and any bytes are an Entry, which is all atomics.
        unsafe { core::slice::from_raw_parts(own as *const Entry, records) }
    }
}
