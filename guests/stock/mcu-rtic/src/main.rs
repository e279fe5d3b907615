// SPDX-License-Identifier: Apache-2.0
//! An application for RTIC as its book shows them: tasks of three priorities, shared resources, a channel, a
//! monotonic clock.
//!
//! `control` has a release every 2 ms and preempts everything. `receive` is the handler of the console's
//! UART. `network` is the handler of the Ethernet controller and answers pings. `report` collects what
//! `control` sends and prints. All of them share a resource, which is locked by raising BASEPRI. A task
//! starts when its dispatcher, an interrupt without another use, is made pending. So priorities, preemption
//! and masking are the CPU's own.
#![no_std]
#![no_main]

use bulkhead_guest_mcu as _;

use rtic_monotonics::systick::prelude::systick_monotonic;
// Critical sections of the CPU; vector table and start-up.
use {cortex_m as _, cortex_m_rt as _};

systick_monotonic!(Clock, 1000);

#[rtic::app(device = bulkhead_guest_mcu::device, peripherals = false, dispatchers = [SPI, I2S])]
mod app {
    use super::Clock;
    use bulkhead_guest_mcu::ethernet::{Ethernet, Frame};
    use bulkhead_guest_mcu::internet::{Heard, Host};
    use bulkhead_guest_mcu::println;
    use bulkhead_guest_mcu::uart::Uart;
    use rtic_monotonics::Monotonic;
    use rtic_monotonics::fugit::ExtU32;
    use rtic_sync::channel::{Receiver, Sender};
    use rtic_sync::make_channel;

    /// Releases of `control` that one message tells of.
    const BATCH: u32 = 50;
    /// CPU's clock.
    const FREQUENCY: u32 = 25_000_000;

    /// The results of `control`.
    pub struct Batch {
        releases: u32,
        late: u32,
    }

    #[shared]
    struct Shared {
        keys: u32,
        pings: u32,
    }

    #[local]
    struct Local {
        host: Option<Host>,
        frame: Frame,
    }

    #[init]
    fn init(context: init::Context) -> (Shared, Local) {
        println!(
            "rtic: an application of RTIC 2, {} bits of priority",
            bulkhead_guest_mcu::device::NVIC_PRIO_BITS
        );
        let host = Ethernet::open(&context.core.CPUID).ok().map(Host::new);
        match &host {
            Some(host) => println!("rtic: network at 10.0.2.{}", host.ip[3]),
            None => println!("rtic: no network"),
        }
        Clock::start(context.core.SYST, FREQUENCY);
        Uart::console().enable_receive();
        let (sender, receiver) = make_channel!(Batch, 4);
        // Each task is spawned once.
        let spawned = control::spawn(sender).is_ok() && report::spawn(receiver).is_ok();
        assert!(spawned, "a task is already there");
        let local = Local {
            host,
            frame: Frame::new(),
        };
        (Shared { keys: 0, pings: 0 }, local)
    }

    #[task(priority = 3)]
    async fn control(_: control::Context, mut sender: Sender<'static, Batch, 4>) {
        let (mut releases, mut late) = (0_u32, 0);
        let mut due = Clock::now();
        loop {
            due += 2.millis();
            Clock::delay_until(due).await;
            releases += 1;
            if Clock::now() - due > 1.millis::<1, 1000>() {
                late += 1;
            }
            if releases % BATCH == 0 {
                // A report that is too slow loses a batch, not a release.
                let _ = sender.try_send(Batch { releases, late });
            }
        }
    }

    #[task(binds = UARTRX0, priority = 2, shared = [keys])]
    fn receive(mut context: receive::Context) {
        while Uart::console().receive().is_some() {
            context.shared.keys.lock(|keys| *keys += 1);
        }
    }

    #[task(binds = ETHERNET, priority = 2, shared = [pings], local = [host, frame])]
    fn network(mut context: network::Context) {
        let network::LocalResources { host, frame, .. } = context.local;
        while let Some(heard) = host.as_ref().and_then(|host| host.listen(frame)) {
            if heard == Heard::Answered {
                context.shared.pings.lock(|pings| *pings += 1);
            }
        }
    }

    #[task(priority = 1, shared = [keys, pings])]
    async fn report(mut context: report::Context, mut receiver: Receiver<'static, Batch, 4>) {
        while let Ok(batch) = receiver.recv().await {
            let keys = context.shared.keys.lock(|keys| *keys);
            let answered = context.shared.pings.lock(|pings| *pings);
            let Batch { releases, late } = batch;
            if releases % (5 * BATCH) == 0 {
                println!("rtic: {releases} releases, {late} late, {keys} keys, answered {answered}");
            }
        }
    }

    #[idle]
    fn idle(_: idle::Context) -> ! {
        loop {
            rtic::export::wfi();
        }
    }
}
