// SPDX-License-Identifier: Apache-2.0
//! The log area of a microcontroller (`bulkhead_abi::log`): the last bytes of the RAM that is the
//! hypervisor's. And the rings of the trace.

use bulkhead_abi::log::{Area, Exits};
use bulkhead_abi::trace::Entry;
use bulkhead_arch_api::VcpuId;

unsafe extern "C" {
    static __log_area: u8;
}

/// Returns the address of the area.
#[must_use]
#[inline]
pub fn address() -> u64 {
    (&raw const __log_area) as u64
}

/// Returns the area.
#[must_use]
#[inline]
pub fn area() -> &'static Area {
    let area = (&raw const __log_area).cast::<Area>();
    // SAFETY: the linker script keeps these bytes free, no partition may have a mapping there (checked by
    // `bulkhead_image`), and any bytes are an Area, which is all atomics.
    unsafe { &*area }
}

/// Returns the counters of a vCPU's exits, or else of the exceptions that come while the CPU waits.
#[must_use]
#[inline]
pub fn exits(vcpu: Option<VcpuId>) -> &'static Exits {
    let area = area();
    let vcpu = vcpu.and_then(|vcpu| area.vcpus.get(usize::from(vcpu.0)));
    let [pcpu, ..] = &area.pcpus;
    vcpu.map_or(&pcpu.exits, |vcpu| &vcpu.exits)
}

/// Returns the ring of the trace.
///
/// # Safety
/// From `base` on there is room for so many records in RAM that is neither a partition's nor the hypervisor's
/// for anything else, as the check of an image ensures for the places that the image gives.
#[must_use]
#[inline]
pub unsafe fn ring(base: usize, records: usize) -> &'static [Entry] {
    if records == 0 {
        return &[];
    }
    // SAFETY: the caller's. Any bytes are an Entry, which is all atomics.
    unsafe { core::slice::from_raw_parts(base as *const Entry, records) }
}
