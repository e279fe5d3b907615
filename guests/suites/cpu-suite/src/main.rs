// SPDX-License-Identifier: Apache-2.0
//! Tests of the CPU as a VM sees it at EL1. Advertised features work, others are undefined, and values that
//! the program put into registers are still there after others have run.
//!
//! - [`state`]: FP/SIMD and system registers across sleep and preemption.
//! - [`identity`]: identification registers against what really works.
//! - [`execution`]: exceptions, hardware debug, MMU and caches, atomics, WFE, the counters.
//!
//! All this is true on the bare board too. A second CPU is used if there is one.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod execution;
mod identity;
mod state;

use bulkhead_guest::report::Report;
use bulkhead_guest::vm::timer::Timer;
use bulkhead_guest::vm::{Machine, debug, gic};

bulkhead_guest::vm_main!(main);

fn main(_: Machine) {
    let mut report = Report::new();
    gic::init_distributor();
    gic::init_cpu();
    gic::enable(Timer::Virtual.line());
    debug::unlock();
    identity::run(&mut report);
    state::run(&mut report);
    execution::run(&mut report);
    report.finish();
}
