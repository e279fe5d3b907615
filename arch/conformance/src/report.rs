// SPDX-License-Identifier: Apache-2.0
//! The report of a class binary on the board's serial line: a line for each check, and the number of checks.

use crate::{Bench, Verdict, run_all};
use bulkhead_abi::framing::{HYPERVISOR_CONSOLE, RS, US};
use bulkhead_arch_api::{Arch, Clock, Console, Cpus};
use core::fmt::{self, Write};

/// Checks by what came of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number of checks that passed.
    pub passed: u32,
    /// The number of checks that failed.
    pub failed: u32,
    /// The number of checks that need something the class does not have.
    pub left_out: u32,
}

impl Tally {
    /// Counts another check.
    pub const fn add(&mut self, verdict: Verdict) {
        let count = match verdict {
            Verdict::Passed => &mut self.passed,
            Verdict::Failed(_) => &mut self.failed,
            Verdict::NotOfThisClass(_) => &mut self.left_out,
        };
        *count = count.saturating_add(1);
    }
}

/// A console, as something that takes text; it waits until all of it is sent.
struct Out<'m, M>(&'m mut M);

impl<M: Console> Out<'_, M> {
    fn bytes(&mut self, mut bytes: &[u8]) {
        while let Some(rest) = bytes.get(self.0.send(bytes)..).filter(|rest| !rest.is_empty()) {
            bytes = rest;
        }
    }
}

impl<M: Console> Write for Out<'_, M> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.bytes(text.as_bytes());
        Ok(())
    }
}

/// Writes a line of the hypervisor's console.
fn say<B: Bench>(bench: &mut B, text: fmt::Arguments<'_>) {
    const MILLION: u64 = 1_000_000;
    let machine = bench.machine();
    let micros = u128::from(machine.now().0)
        .saturating_mul(MILLION.into())
        .checked_div(machine.hertz().into())
        .unwrap_or(0) as u64;
    let (seconds, rest) = (micros / MILLION, micros % MILLION);
    let mut out = Out(bench.console());
    out.bytes(&[RS]);
    // Writing to a console does not fail.
    let _always_ok = write!(out, "[{seconds}.{rest:06}] {HYPERVISOR_CONSOLE}: ");
    out.bytes(&[US]);
    let _always_ok = write!(out, "{text}\r\n");
    bench.console().flush();
}

/// Runs all checks, writes what comes of them to the console, and switches the board off.
pub(crate) fn run<B: Bench>(mut bench: B) -> ! {
    report_all(&mut bench);
    bench.machine().power_off();
    bench.machine().stop()
}

/// Runs all checks and writes what comes of them to the console.
fn report_all<B: Bench>(bench: &mut B) -> Tally {
    let class = <B::Machine as Arch>::CAPS.name;
    say(bench, format_args!("conformance of class {class}"));
    let mut tally = Tally::default();
    run_all(bench, |bench, name, verdict| {
        tally.add(verdict);
        match verdict {
            Verdict::Passed => say(bench, format_args!("ok: {name}")),
            Verdict::Failed(why) => say(bench, format_args!("FAILED: {name}: {why}")),
            Verdict::NotOfThisClass(why) => {
                say(bench, format_args!("not of this class: {name}: {why}"));
            }
        }
    });
    let Tally {
        passed,
        failed,
        left_out,
    } = tally;
    say(
        bench,
        format_args!("conformance: {passed} passed, {failed} failed, {left_out} not of this class"),
    );
    tally
}
