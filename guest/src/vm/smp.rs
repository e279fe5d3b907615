// SPDX-License-Identifier: Apache-2.0
//! The VM's other CPUs: started by PSCI, each with its own stack, running one function.
//!
//! The function is left in a table before `CPU_ON`; its argument is PSCI's context. A CPU starts with its
//! caches off, so the table is cleaned to memory first. If the caller uses the MMU, the new CPU switches its
//! MMU on before it reads anything that the caller may still have in its cache.

use core::sync::atomic::{AtomicUsize, Ordering};

use super::psci::{self, Conduit, code, function};
use super::{cpu, mmu};

/// CPUs there are stacks for.
pub const MAX_CPUS: usize = 4;

static PROGRAMS: [AtomicUsize; MAX_CPUS] = [const { AtomicUsize::new(0) }; MAX_CPUS];

unsafe extern "C" {
    fn vm_secondary_start();
}

/// Address of the entry of secondary CPUs, for tests that call `CPU_ON` themselves.
#[must_use]
pub fn entry() -> u64 {
    vm_secondary_start as *const () as u64
}

/// Leaves `program` for CPU `index`, for tests that call `CPU_ON` themselves.
pub fn prepare(index: usize, program: fn(u64)) {
    PROGRAMS[index].store(program as usize, Ordering::Release);
    cpu::clean_line((&raw const PROGRAMS[index]).addr());
}

/// Starts CPU `index` (not 0) with `program`; when that returns, the CPU switches itself off. Returns PSCI's
/// code.
pub fn start(index: usize, program: fn(u64), argument: u64) -> i64 {
    if index == 0 || index >= MAX_CPUS {
        return code::INVALID_PARAMETERS;
    }
    prepare(index, program);
    psci::code_of(Conduit::Hvc, function::CPU_ON, [index as u64, entry(), argument])
}

/// Runs as the first Rust function of a secondary CPU.
pub(super) extern "C" fn secondary(argument: u64) -> ! {
    mmu::follow();
    let program = PROGRAMS
        .get(cpu::index())
        .map_or(0, |program| program.load(Ordering::Acquire));
    if program != 0 {
        // SAFETY: `prepare` stored a function of this type; zero has been excluded.
        let program = unsafe { core::mem::transmute::<usize, fn(u64)>(program) };
        program(argument);
    }
    psci::cpu_off(Conduit::Hvc);
    loop {
        cpu::wait_for_event();
    }
}
