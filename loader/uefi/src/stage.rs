// SPDX-License-Identifier: Apache-2.0
//! The system apart: memory that is neither the firmware's nor at a place of the plan.

use crate::job::{CODE_BYTES, Job, Staged};
use crate::{Refusal, class, jump};
use bulkhead_loader_plan::{MAX_RECORDS, Plan, Range};
use core::ptr::{self, NonNull};
use uefi::boot::{self, AllocateType, PAGE_SIZE};
use uefi::mem::memory_map::MemoryType;

/// Most tries for memory apart. The firmware hands out memory from the top, and systems begin at the bottom.
const TRIES: u32 = 64;

/// Copies the system, and the instructions that carry it to its places.
pub(crate) fn copy(plan: &Plan<'_>) -> Result<Staged, Refusal> {
    let records = (MAX_RECORDS as usize + 1) * size_of::<Job>();
    let bytes: usize = plan.pieces().map(|piece| piece.bytes.len()).sum();
    let memory = apart(plan, CODE_BYTES + records + bytes)?;
    let code = jump::code();
    put(memory.base, code);
    let jobs = memory.base + CODE_BYTES as u64;
    let mut data = jobs + records as u64;
    let mut at = jobs;
    for piece in plan.pieces() {
        let job = Job {
            to: piece.memory.base,
            from: data,
            length: piece.bytes.len() as u64,
            clear: piece.memory.length - piece.bytes.len() as u64,
        };
        put(data, piece.bytes);
        data += job.length;
        put_job(at, job);
        at += size_of::<Job>() as u64;
    }
    put_job(at, Job::default());
    Ok(Staged {
        memory,
        jobs,
        entry: plan.entry(),
    })
}

/// Returns memory for so many bytes that no piece of the plan needs. Memory that a piece needs stays taken,
/// so that the next try finds other memory.
fn apart(plan: &Plan<'_>, bytes: usize) -> Result<Range, Refusal> {
    let pages = bytes.div_ceil(PAGE_SIZE);
    for _ in 0..TRIES {
        let below = AllocateType::MaxAddress(class::HIGHEST);
        let place = boot::allocate_pages(below, MemoryType::LOADER_CODE, pages)
            .map_err(|error| Refusal::Firmware("give memory to the loader", error.status()))?;
        let memory = Range {
            base: address(place),
            length: (pages * PAGE_SIZE) as u64,
        };
        if !plan.pieces().any(|piece| piece.memory.overlaps(memory)) {
            return Ok(memory);
        }
    }
    Err(Refusal::NoRoom)
}

fn address(place: NonNull<u8>) -> u64 {
    place.as_ptr() as u64
}

/// Writes bytes into the memory apart.
fn put(to: u64, bytes: &[u8]) {
    // SAFETY: `copy` asks for room for all that it writes, and nothing else uses that memory; the firmware
    // maps memory at its bus addresses.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to as *mut u8, bytes.len()) }
}

/// Writes a job into the memory apart.
fn put_job(to: u64, job: Job) {
    // SAFETY: as in `put`; the list begins on a page and a job's size keeps it aligned.
    unsafe { ptr::write(to as *mut Job, job) }
}
