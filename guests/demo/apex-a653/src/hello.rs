// SPDX-License-Identifier: Apache-2.0
//! A partition that names nothing but the crate `a653rs`, and so runs on any hypervisor `H` that implements
//! its traits. It reports by the health monitor's messages.

use a653rs::bindings::{ApexErrorP4, ApexPartitionP4, ApexProcessP1, ApexSemaphoreP1, ApexTimeP4};
use a653rs::prelude::{
    ApexSemaphoreP1Ext, ApexTimeP4Ext, Deadline, Name, Partition, ProcessAttribute, QueuingDiscipline,
    StartContext, SystemTime,
};
use core::marker::PhantomData;
use core::str::FromStr;
use core::time::Duration;

/// The services that the partition needs.
pub trait Services:
    ApexPartitionP4 + ApexProcessP1 + ApexTimeP4 + ApexSemaphoreP1 + ApexErrorP4 + 'static
{
}

impl<H: ApexPartitionP4 + ApexProcessP1 + ApexTimeP4 + ApexSemaphoreP1 + ApexErrorP4 + 'static> Services
    for H
{
}

/// The partition.
pub struct Hello<H>(pub PhantomData<H>);

const PERIOD: Duration = Duration::from_millis(10);
const TURNS: &str = "turns";

fn report<H: Services>(text: &str) {
    let _too_long = H::report_application_message(text.as_bytes());
}

fn name(text: &str) -> Option<Name> {
    Name::from_str(text).ok()
}

impl<H: Services> Partition<H> for Hello<H> {
    fn cold_start(&self, context: &mut StartContext<H>) {
        let (Some(first), Some(second), Some(turns)) = (name("periodic"), name("counter"), name(TURNS))
        else {
            return;
        };
        let semaphore = context.create_semaphore(turns, 0, 100, QueuingDiscipline::Fifo);
        let periodic = ProcessAttribute {
            period: PERIOD.into(),
            time_capacity: PERIOD.into(),
            entry_point: periodic::<H>,
            stack_size: 8192,
            base_priority: 5,
            deadline: Deadline::Hard,
            name: first,
        };
        let counter = ProcessAttribute {
            period: SystemTime::Infinite,
            time_capacity: SystemTime::Infinite,
            entry_point: counter::<H>,
            base_priority: 1,
            deadline: Deadline::Soft,
            name: second,
            ..periodic.clone()
        };
        let started = [periodic, counter].map(|attributes| {
            context
                .create_process(attributes)
                .and_then(|process| process.start())
        });
        if semaphore.is_ok() && started.iter().all(Result::is_ok) {
            report::<H>("hello: all is created");
        }
    }

    fn warm_start(&self, context: &mut StartContext<H>) {
        self.cold_start(context);
    }
}

extern "C" fn periodic<H: Services>() {
    let Some(Ok(turns)) = name(TURNS).map(H::get_semaphore) else {
        return;
    };
    loop {
        if turns.signal().is_err() || <H as ApexTimeP4Ext>::periodic_wait().is_err() {
            report::<H>("hello: a service was refused");
        }
    }
}

extern "C" fn counter<H: Services>() {
    let Some(Ok(turns)) = name(TURNS).map(H::get_semaphore) else {
        return;
    };
    loop {
        for _ in 0..10 {
            if turns.wait(SystemTime::Infinite).is_err() {
                report::<H>("hello: a wait was refused");
            }
        }
        report::<H>("hello: ten turns");
    }
}
