// SPDX-License-Identifier: Apache-2.0
//! A critical loop in a task, released by the hypervisor's clock, that checks its deadlines and its
//! results.
//!
//! A task can be told nothing but the names of its capabilities. The one for the timer is
//! `every-NUMBER-us`, the period. Each release makes the same control steps and compares what comes out with
//! the first result. So memory or registers that another partition changes show.
//!
//! The task prints `loop: releases 100, missed 0, wrong 0, jitter max 1234 ns, response max 4567 ns` each
//! 100 releases.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::hypercall::Handle;
use bulkhead_guest::println;
use bulkhead_guest::startup_page::StartupPage;
use bulkhead_guest::task::releases::Releases;
use core::hint::black_box;

bulkhead_guest::task_main!(main);

/// Releases of a line of output.
const REPORT: u64 = 100;
/// Control steps of a release.
const STEPS: u32 = 64;

/// Makes the steps of a controller with a first-order plant, in 16.16 fixed point. The result is a digest
/// of the way.
fn control() -> u32 {
    let (mut value, mut integral, mut digest) = (0_u32, 0_u32, 0_u32);
    for _ in 0..STEPS {
        let error = (1000_u32 << 16).wrapping_sub(black_box(value));
        integral = integral.wrapping_add(error / 64);
        value = value.wrapping_add((error / 4).wrapping_add(integral / 16) / 8);
        digest = digest.rotate_left(5) ^ value;
    }
    digest
}

/// Returns the number in a name such as `every-300-us`.
fn period_of(name: &str) -> Option<u64> {
    name.strip_prefix("every-")?.strip_suffix("-us")?.parse().ok()
}

fn main(page: StartupPage<'static>) {
    let found = page.capabilities().find_map(|capability| {
        let period = period_of(capability.name)?;
        Some((Handle(capability.index), period * 1000))
    });
    let Some((clock, period)) = found else {
        println!("loop: no clock");
        return;
    };
    let expected = control();
    let (mut releases, mut wrong) = (Releases::new(clock, period), 0);
    for release in 1_u64.. {
        releases.wait();
        wrong += u64::from(control() != expected);
        releases.end();
        if release.is_multiple_of(REPORT) {
            let Releases {
                missed,
                jitter,
                response,
                ..
            } = releases;
            println!(
                "loop: releases {release}, missed {missed}, wrong {wrong}, jitter max {jitter} ns, response max {response} ns"
            );
        }
    }
}
