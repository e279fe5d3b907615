// SPDX-License-Identifier: Apache-2.0
//! The side of the program that has the user's crate in it.

use crate::ERRORS;
use bulkhead_sched::{
    Decision, Donating, OwnPolicy, Policy, PolicyError, Server as Budget, ServerKind, Slot, SlotSet,
    StopReason, VcpuParameters,
};
use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};

/// The policies of a program, each by its number.
struct Policies<P> {
    all: BTreeMap<u64, Donating<P>>,
    made: u64,
}

/// Answers for the policy `P` on the standard input and output until the input ends.
///
/// # Errors
/// The input or the output breaks.
pub fn serve<P: OwnPolicy>() -> io::Result<()> {
    answer::<P>(io::stdin().lock(), io::stdout().lock())
}

/// Answers for the policy `P` until the input ends.
///
/// # Errors
/// The input or the output breaks.
pub fn answer<P: OwnPolicy>(input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    let mut policies = Policies::<P> {
        all: BTreeMap::new(),
        made: 0,
    };
    for line in input.lines() {
        let line = line?;
        let mut words = line.split(' ');
        let word = words.next().unwrap_or_default();
        let numbers: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
        let reply = match word {
            "new" => Some(policies.make(&numbers)),
            _ => policies.one(word, &numbers),
        };
        if let Some(reply) = reply {
            writeln!(output, "{reply}")?;
            output.flush()?;
        }
    }
    Ok(())
}

impl<P: OwnPolicy> Policies<P> {
    /// Makes a policy: `new QUANTUM`, then priority, budget, period and deadline of each vCPU.
    fn make(&mut self, numbers: &[u64]) -> String {
        let (quantum, vcpus) = numbers.split_first().unwrap_or((&1, &[]));
        let vcpus: Vec<VcpuParameters> = vcpus.chunks_exact(4).map(vcpu).collect();
        let made = P::new(&vcpus, *quantum);
        let slots = (1_u64 << vcpus.len().min(32)) - 1;
        result(made.map(|policy| self.add(Donating::new(policy, SlotSet(slots as u32)))))
    }

    fn add(&mut self, policy: Donating<P>) -> u64 {
        self.made += 1;
        self.all.insert(self.made, policy);
        self.made
    }

    /// Does what a line says of one policy. Returns the answer, if the line wants one.
    fn one(&mut self, word: &str, numbers: &[u64]) -> Option<String> {
        let number = numbers.first()?;
        let at = |index: usize| numbers.get(index).copied().unwrap_or(0);
        let slot = |index: usize| Slot(at(index) as u8);
        let policy = self.all.get_mut(number)?;
        let done = |done: Result<(), PolicyError>| Some(result(done.map(|()| 0)));
        match word {
            "copy" => {
                let copy = policy.clone();
                return Some(self.add(copy).to_string());
            }
            "drop" => {
                self.all.remove(number);
            }
            "ready" => policy.ready(slot(1), at(2)),
            "critical" => policy.critical(slot(1), at(2)),
            "withdraw" => policy.withdraw(slot(1), at(2)),
            "preempted" => policy.stopped(slot(1), StopReason::Preempted, at(2), at(3)),
            "blocked" => policy.stopped(slot(1), StopReason::Blocked, at(2), at(3)),
            "yielded" => policy.stopped(slot(1), StopReason::Yielded, at(2), at(3)),
            "next" => return Some(next(policy, at(1))),
            "slots" => return Some(policy.ready_slots().0.to_string()),
            "donate" => return done(policy.donate(slot(1), slot(2), at(3))),
            "check-donation" => return done(policy.check_donation(slot(1), slot(2))),
            "return-donation" => return done(policy.return_donation(slot(1), at(2))),
            "retract-donation" => return done(policy.retract_donation(slot(1), at(2))),
            _ => {}
        }
        None
    }
}

fn vcpu(numbers: &[u64]) -> VcpuParameters {
    let at = |index: usize| numbers.get(index).copied().unwrap_or(0);
    VcpuParameters {
        priority: at(0) as u8,
        server: (at(1) != 0).then(|| Budget {
            budget: at(1),
            period: at(2),
            kind: ServerKind::ConstantBandwidth,
        }),
        deadline: at(3),
        domain: 0,
    }
}

/// Returns a number, or the word for an error.
fn result(result: Result<u64, PolicyError>) -> String {
    match result {
        Ok(number) => number.to_string(),
        Err(error) => {
            let mut errors = ERRORS.iter();
            let found = errors.find(|(other, _)| *other == error);
            found.map_or("", |(_, word)| word).to_owned()
        }
    }
}

/// Takes a decision. The answer is the slot (255 for none), the end, the slots of interest, and the signals.
fn next<P: OwnPolicy>(policy: &mut Donating<P>, now: u64) -> String {
    let (slot, until) = match policy.next(now) {
        Decision::Run(slot, until) => (slot.0, until),
        Decision::Idle(until) => (u8::MAX, until),
    };
    let interested = policy.interested().0;
    let signals = policy.signals();
    format!(
        "{slot} {until} {interested} {} {} {} {}",
        signals.exhausted.0, signals.replenished.0, signals.window_start.0, signals.period_start.0
    )
}
