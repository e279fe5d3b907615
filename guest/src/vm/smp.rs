// SPDX-License-Identifier: Apache-2.0
//! The VM's other CPUs: started by PSCI, each with its own stack, running one function.
//!
//! The function and its argument are left in a table before `CPU_ON`. A CPU starts with its caches off, so
//! the table is cleaned to memory first; if the caller uses the MMU, the new CPU switches it on before it
//! reads anything the caller may still have in its cache.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::psci::{self, Conduit, code, function};
use super::{cpu, mmu};

/// CPUs there are stacks for.
pub const MAX_CPUS: usize = 4;

static PROGRAMS: [AtomicUsize; MAX_CPUS] = [const { AtomicUsize::new(0) }; MAX_CPUS];
static ARGUMENTS: [AtomicU64; MAX_CPUS] = [const { AtomicU64::new(0) }; MAX_CPUS];

unsafe extern "C" {
    fn vm_secondary_start();
}

/// Address of the entry of secondary CPUs, for tests that call `CPU_ON` themselves.
#[must_use]
pub fn entry() -> u64 {
    vm_secondary_start as *const () as u64
}

/// Leaves `program` for CPU `index`, for tests that call `CPU_ON` themselves.
pub fn prepare(index: usize, program: fn(u64), argument: u64) {
    PROGRAMS[index].store(program as usize, Ordering::Relaxed);
    ARGUMENTS[index].store(argument, Ordering::Release);
    cpu::clean_line((&raw const PROGRAMS[index]).addr());
    cpu::clean_line((&raw const ARGUMENTS[index]).addr());
}

/// Starts CPU `index` (not 0) with `program`; when that returns, the CPU switches itself off. Returns PSCI's code.
pub fn start(index: usize, program: fn(u64), argument: u64) -> i64 {
    if index == 0 || index >= MAX_CPUS {
        return code::INVALID_PARAMETERS;
    }
    prepare(index, program, argument);
    psci::code_of(
        Conduit::Hvc,
        function::CPU_ON,
        [index as u64, entry(), index as u64],
    )
}

/// First Rust function of a secondary CPU.
pub(super) extern "C" fn secondary(index: usize) -> ! {
    mmu::follow();
    if let (Some(program), Some(argument)) = (PROGRAMS.get(index), ARGUMENTS.get(index)) {
        let argument = argument.load(Ordering::Acquire);
        let address = program.load(Ordering::Relaxed);
        if address != 0 {
            // SAFETY: `prepare` stored a function of this type; zero has been excluded.
            let program = unsafe { core::mem::transmute::<usize, fn(u64)>(address) };
            program(argument);
        }
    }
    psci::cpu_off(Conduit::Hvc);
    loop {
        cpu::wait_for_event();
    }
}
