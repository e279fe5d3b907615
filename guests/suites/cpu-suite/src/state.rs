// SPDX-License-Identifier: Apache-2.0
//! Registers hold their values, through sleep (another vCPU runs) and through long computation (preemption).

use bulkhead_guest::println;
use bulkhead_guest::report::Report;
use bulkhead_guest::vm::exception::{Fault, probe};
use bulkhead_guest::vm::register::WRITABLE;
use bulkhead_guest::vm::{floating_point, timer};

/// `ESR_EL1.EC` of a trapped FP/SIMD access.
const FP_TRAP: u64 = 0x07;

pub fn run(report: &mut Report) {
    floating_point_state(report);
    system_registers(report, "read back", || {});
    system_registers(report, "after sleep", || timer::nap(2000));
    system_registers(report, "after 30 ms of computation", || timer::pause(30_000));
}

fn floating_point_state(report: &mut Report) {
    floating_point::disable();
    let trapped = probe(|| floating_point::fill(1)).map_err(|fault: Fault| fault.class());
    report.equal("FP/SIMD off: traps to EL1", trapped, Err(FP_TRAP));
    floating_point::enable();
    let used = probe(|| floating_point::fill(1));
    report.check("FP/SIMD on: works", used.is_ok());
    report.equal("FP/SIMD registers hold", floating_point::differences(1), 0);
    let mut wrong = 0;
    for seed in 2..22 {
        floating_point::fill(seed);
        timer::nap(200);
        wrong += floating_point::differences(seed);
    }
    report.equal("FP/SIMD registers survive sleep", wrong, 0);
    floating_point::fill(22);
    timer::pause(30_000);
    report.equal(
        "FP/SIMD registers survive preemption",
        floating_point::differences(22),
        0,
    );
    floating_point::disable();
    timer::nap(200);
    floating_point::enable();
    report.equal(
        "FP/SIMD registers survive being off",
        floating_point::differences(22),
        0,
    );
}

/// Writes a pattern into every writable register, does `between`, and compares.
fn system_registers(report: &mut Report, name: &str, between: impl Fn()) {
    let mut before = [0; WRITABLE.len()];
    for (i, ((register, _), value)) in WRITABLE.iter().zip(&mut before).enumerate() {
        *value = register.read();
        register.write(pattern(i));
    }
    between();
    let mut wrong = 0;
    for (i, ((register, mask), value)) in WRITABLE.iter().zip(before).enumerate() {
        let got = register.read();
        register.write(value);
        if (got ^ pattern(i)) & mask != 0 {
            wrong += 1;
            println!(
                "{}: got {got:#x} want {:#x} mask {mask:#x}",
                register.name(),
                pattern(i)
            );
        }
    }
    println!("system registers {name}:");
    report.equal("system registers hold", wrong, 0);
}

fn pattern(i: usize) -> u64 {
    (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) & !2 | 1
}
