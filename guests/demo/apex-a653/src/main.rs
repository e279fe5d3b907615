// SPDX-License-Identifier: Apache-2.0
//! A partition written against the crate `a653rs`, with Bulkhead as its hypervisor.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod hello;

use a653rs::prelude::PartitionExt;
use bulkhead_a653rs::Bulkhead;
use bulkhead_apex::{Configuration, task};
use bulkhead_guest::startup_page::StartupPage;
use core::marker::PhantomData;
use hello::Hello;

bulkhead_guest::task_main!(main);

const CONFIGURATION: Configuration = Configuration {
    identifier: 1,
    period: 10_000_000,
    duration: 10_000_000,
    ..Configuration::BLANK
};

fn main(page: StartupPage<'static>) {
    task::run(page, &CONFIGURATION, initialise);
}

fn initialise() {
    Hello::<Bulkhead>(PhantomData).run();
}
