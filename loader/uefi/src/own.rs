// SPDX-License-Identifier: Apache-2.0
//! The place of the plan in this program's own file.

use crate::Refusal;
use bulkhead_loader_plan::PlanError;
use core::ptr;
use core::slice;

/// The distance from this record to the plan, and the number of the plan's bytes. The host tool finds the
/// record by its section, and writes it when it adds the plan after the last section.
#[unsafe(link_section = ".plan")]
static PLACE: [u64; 2] = [0; 2];

/// Returns the bytes of the plan.
pub(crate) fn plan() -> Result<&'static [u8], Refusal> {
    // The compiler must not take the zeros for the contents. It does so with a volatile load alone.
    let place = core::hint::black_box(&raw const PLACE);
    // SAFETY: the record is a value of this program, and no code writes it.
    let [distance, length] = unsafe { ptr::read_volatile(place) };
    if length == 0 {
        return Err(Refusal::Plan(PlanError::NotAPlan));
    }
    let begin = place.cast::<u8>().wrapping_add(distance as usize);
    // SAFETY: the host tool has put a section of this length there, which the firmware has loaded with this
    // program, and nothing writes into it.
    Ok(unsafe { slice::from_raw_parts(begin, length as usize) })
}
