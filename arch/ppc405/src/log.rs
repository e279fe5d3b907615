// SPDX-License-Identifier: Apache-2.0
//! The log area (`bulkhead_abi::log`), which is the bytes directly below the class binary, and the ring of
//! the trace.

use crate::layout;
use crate::machine::Machine;
use crate::sysreg;
use bulkhead_abi::log::{Area, Exits};
use bulkhead_abi::trace::Entry;
use bulkhead_arch_api::{Traces, VcpuId};

/// Returns the area.
pub(crate) fn area() -> &'static Area {
    let area = layout::log_address() as *const Area;
    // SAFETY: the memory plan keeps these bytes free, no partition may have a mapping there (checked by
    // `bulkhead_image`), and any bytes are an Area, which is all atomics.
    unsafe { &*area }
}

/// Returns the counters of a vCPU's exits.
pub(crate) fn exits(vcpu: VcpuId) -> Option<&'static Exits> {
    area().vcpus.get(usize::from(vcpu.0)).map(|vcpu| &vcpu.exits)
}

impl Traces for Machine {
    fn log_area(&self) -> &'static Area {
        area()
    }

    fn keep(&mut self, offset: usize, length: usize) {
        sysreg::write_back(layout::log_address().saturating_add(offset), length);
    }

    fn trace_ring(&self) -> &'static [Entry] {
        let (base, records) = self.trace;
        if records == 0 {
            return &[];
        }
        // SAFETY: the image's check has found room for the ring in RAM that is neither the hypervisor's own
        // nor a partition's. No other code has this memory by another name, and any bytes are an Entry, which
        // is all atomics.
        unsafe { core::slice::from_raw_parts(base as *const Entry, records) }
    }
}
