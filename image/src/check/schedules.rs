// SPDX-License-Identifier: Apache-2.0
//! Checks which vCPU runs when: budgets of vCPUs, schedules and their windows, time domains. Relies on the
//! rules of `partitions`.
//!
//! The policies of `sched` accept all that passes here, once nanoseconds are ticks.

use super::{at, board, covers, earlier, named, refers, require, uses};
use crate::error::{Fault, Table};
use crate::layout::{
    NONE, Name, POLICY_ARINC653, POLICY_DOMAINS, POLICY_EDF, POLICY_FIXED_PRIORITY,
    SERVER_CONSTANT_BANDWIDTH, SERVER_DEFERRABLE, SERVER_NONE, SERVER_SPORADIC, ScheduleRecord, U32, U64,
    WINDOW_PERIOD_START,
};
use crate::limits::{MAX_DOMAINS_PER_PCPU, MAX_DURATION_NS, MAX_SCHEDULES_PER_PCPU, MAX_WINDOWS_PER_PCPU};
use crate::reader::{Image, record as record_at};
use bulkhead_abi::parts::Part;

/// Checks that there are no more windows after the windows of the last schedule.
pub(super) fn last(image: &Image<'_>, index: u16) -> Result<(), Fault> {
    covers(image.schedules(), index, image.windows().len(), |record| {
        record.window_count.get()
    })
}

fn policy_of(image: &Image<'_>, pcpu: u32) -> u32 {
    record_at(image.pcpus(), pcpu).map_or(0, |record| record.policy.get())
}

/// Returns a duration if it is there, and not so long that sums could overflow.
fn possible(duration: U64) -> Result<u64, Fault> {
    let nanoseconds = duration.get();
    require((1..=MAX_DURATION_NS).contains(&nanoseconds), Fault::OutOfRange)?;
    Ok(nanoseconds)
}

/// Checks something named that belongs to a pCPU: those before it are of the same pCPU, or of one before it.
/// Returns how many of the same pCPU there are.
fn member<'r>(
    name: &Name,
    pcpu: U32,
    before: impl Iterator<Item = ((&'r Name, U32), u16)>,
) -> Result<usize, Fault> {
    named(name)?;
    let mut siblings = 0_usize;
    for ((other, other_pcpu), other_index) in before {
        require(other_pcpu.get() <= pcpu.get(), Fault::NotConsecutive)?;
        if other_pcpu == pcpu {
            siblings = siblings.saturating_add(1);
            require(other != name, Fault::SameAs(other_index))?;
        }
    }
    Ok(siblings)
}

pub(super) fn schedule(image: &Image<'_>, index: u16) -> Result<(), Fault> {
    let record = at(image.schedules(), index)?;
    require(record.reserved.get() == 0, Fault::Reserved)?;
    refers(record.pcpu.get(), image.pcpus().len(), Table::Pcpus)?;
    require(
        policy_of(image, record.pcpu.get()) == POLICY_ARINC653,
        Fault::WrongPolicy,
    )?;
    let before = || earlier(image.schedules(), index);
    let names = before().map(|(other, index)| ((&other.name, other.pcpu), index));
    let siblings = member(&record.name, record.pcpu, names)?;
    require(siblings < MAX_SCHEDULES_PER_PCPU, Fault::BadCount)?;
    possible(record.frame_ns)?;
    let count = |records: &mut dyn Iterator<Item = &ScheduleRecord>| {
        records.fold(0_u64, |sum, other| {
            sum.saturating_add(other.window_count.get().into())
        })
    };
    let first = count(&mut before().map(|(other, _)| other));
    require(
        u64::from(record.first_window.get()) == first,
        Fault::NotConsecutive,
    )?;
    let on_pcpu = count(&mut image.schedules_of(record.pcpu.get()));
    require(
        record.window_count.get() != 0 && on_pcpu <= MAX_WINDOWS_PER_PCPU as u64,
        Fault::BadCount,
    )
}

pub(super) fn window(image: &Image<'_>, index: u16) -> Result<(), Fault> {
    let record = at(image.windows(), index)?;
    // The windows are in the order of the schedules, as many as these say.
    let schedule = image
        .schedules()
        .iter()
        .rfind(|schedule| schedule.first_window.get() <= u32::from(index))
        .ok_or(Fault::NotConsecutive)?;
    require(record.flags.get() & !WINDOW_PERIOD_START == 0, Fault::BadFlags)?;
    refers(
        record.partition.get(),
        image.partitions().len(),
        Table::Partitions,
    )?;
    let mut own = image.vcpus_of(record.partition.get()).iter();
    require(own.any(|vcpu| vcpu.pcpu == schedule.pcpu), Fault::NotBound)?;
    let end = record.offset_ns.get().checked_add(possible(record.duration_ns)?);
    require(
        end.is_some_and(|end| end <= schedule.frame_ns.get()),
        Fault::OutsideFrame,
    )?;
    let Some(before) = index
        .checked_sub(1)
        .filter(|_| u32::from(index) > schedule.first_window.get())
    else {
        return Ok(());
    };
    let previous_end = record_at(image.windows(), before.into()).map_or(0, |other| {
        other.offset_ns.get().saturating_add(other.duration_ns.get())
    });
    require(
        record.offset_ns.get() >= previous_end,
        Fault::Overlaps(Table::Windows, before),
    )
}

pub(super) fn domain(image: &Image<'_>, index: u16) -> Result<(), Fault> {
    let record = at(image.domains(), index)?;
    require(record.reserved.get() == 0, Fault::Reserved)?;
    refers(record.pcpu.get(), image.pcpus().len(), Table::Pcpus)?;
    require(
        policy_of(image, record.pcpu.get()) == POLICY_DOMAINS,
        Fault::WrongPolicy,
    )?;
    let before = earlier(image.domains(), index);
    let names = before.map(|(other, index)| ((&other.name, other.pcpu), index));
    let siblings = member(&record.name, record.pcpu, names)?;
    require(siblings < MAX_DOMAINS_PER_PCPU, Fault::BadCount)?;
    possible(record.budget_ns).map(|_| ())
}

/// Checks that a policy which lives on schedules or domains has some, and that the part of a policy is named.
pub(super) fn pcpu(image: &Image<'_>, index: u16) -> Result<(), Fault> {
    let record = at(image.pcpus(), index)?;
    let there = match record.policy.get() {
        POLICY_ARINC653 => image.schedules_of(index.into()).next().is_some(),
        POLICY_DOMAINS => image.domains_of(index.into()).next().is_some(),
        POLICY_EDF => uses(image, Part::Edf),
        _ => true,
    };
    require(there, Fault::WrongPolicy)
}

/// Checks that server and domain fit the pCPU's policy.
pub(super) fn vcpu(image: &Image<'_>, index: u16) -> Result<(), Fault> {
    let record = at(image.vcpus(), index)?;
    let mut policy = policy_of(image, record.pcpu.get());
    // The same keys of a vCPU have a meaning.
    if board::own_policy(policy) {
        policy = POLICY_EDF;
    }
    let domain = record.domain.get();
    if policy == POLICY_DOMAINS {
        let known = image.domains_of(record.pcpu.get()).count();
        refers(domain, known, Table::Domains)?;
    } else {
        require(domain == NONE, Fault::WrongPolicy)?;
    }
    let own_policy = match record.server.get() {
        SERVER_NONE => {
            let times = [record.budget_ns, record.period_ns, record.deadline_ns];
            return require(times.iter().all(|time| time.get() == 0), Fault::OutOfRange);
        }
        SERVER_SPORADIC | SERVER_DEFERRABLE => POLICY_FIXED_PRIORITY,
        SERVER_CONSTANT_BANDWIDTH => POLICY_EDF,
        _ => return Err(Fault::UnknownKind),
    };
    require(policy == own_policy, Fault::WrongPolicy)?;
    let (budget, period) = (possible(record.budget_ns)?, possible(record.period_ns)?);
    require(budget <= period, Fault::OutOfRange)?;
    if policy != POLICY_EDF {
        return require(record.deadline_ns.get() == 0, Fault::OutOfRange);
    }
    let deadline = possible(record.deadline_ns)?;
    require(budget <= deadline && deadline <= period, Fault::OutOfRange)
}
