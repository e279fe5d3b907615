// SPDX-License-Identifier: Apache-2.0
//! The log area (`bulkhead_abi::log`): the last bytes of the RAM that is the hypervisor's. And the rings of
//! the trace.

use crate::machine::Machine;
use bulkhead_abi::log::{Area, Exits};
use bulkhead_abi::trace::Entry;
use bulkhead_arch_api::{Traces, VcpuId};

unsafe extern "C" {
    static __log_area: u8;
}

/// Returns the address of the area.
pub(crate) fn address() -> u64 {
    (&raw const __log_area) as u64
}

/// Returns the area.
pub(crate) fn area() -> &'static Area {
    let area = (&raw const __log_area).cast::<Area>();
    // SAFETY: the linker script keeps these bytes free, no partition may have a mapping there (checked by
    // `bulkhead_image`), and any bytes are an Area, which is all atomics.
    unsafe { &*area }
}

/// Returns the counters of a vCPU's exits, or else of the exceptions that come while the CPU waits.
pub(crate) fn exits(vcpu: Option<VcpuId>) -> &'static Exits {
    let area = area();
    let vcpu = vcpu.and_then(|vcpu| area.vcpus.get(usize::from(vcpu.0)));
    let [pcpu] = &area.pcpus;
    vcpu.map_or(&pcpu.exits, |vcpu| &vcpu.exits)
}

impl Traces for Machine {
    fn log_area(&self) -> &'static Area {
        area()
    }

    fn keep(&mut self, _offset: usize, _length: usize) {
        // No cache is on, so all stored bytes are in memory.
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
