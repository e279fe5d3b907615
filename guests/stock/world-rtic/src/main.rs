// SPDX-License-Identifier: Apache-2.0
//! An application for RTIC on a Cortex-M33 with TrustZone, compiled for Armv8-M.
//!
//! `sample` has a release every 4 ms and preempts everything. It pends the interrupt of `alarm`, a hardware
//! task, for each fifth sample, and sends all samples through a channel to `filter`. Both change a resource,
//! which RTIC locks by raising BASEPRI. The clock of all is SysTick.
//!
//! Each 100 samples it prints what is the same wherever it runs:
//! `rtic: 100 samples, 100 filtered, level 49, 20 alarms, all right`.
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
    use bulkhead_guest_mcu::device::Interrupt;
    use bulkhead_guest_mcu::uart::Uart;
    use core::fmt::{Arguments, Write};
    use rtic_monotonics::Monotonic;
    use rtic_monotonics::fugit::ExtU32;
    use rtic_sync::channel::{Receiver, Sender};
    use rtic_sync::make_channel;

    /// Samples of a line.
    const BATCH: u32 = 100;
    /// Samples of an alarm.
    const ALARM: u32 = 5;
    /// The CPU's clock.
    const FREQUENCY: u32 = 20_000_000;
    /// The console of the board.
    const CONSOLE: Uart = Uart::at(0x4020_0000);

    /// What the tasks share.
    #[derive(Default)]
    pub struct Plant {
        filtered: u32,
        sum: u32,
        alarms: u32,
    }

    #[shared]
    struct Shared {
        plant: Plant,
    }

    #[local]
    struct Local {}

    fn say(text: Arguments<'_>) {
        let mut console = CONSOLE;
        // Writing to this UART cannot fail.
        let _ = console.write_fmt(text);
    }

    #[init]
    fn init(context: init::Context) -> (Shared, Local) {
        CONSOLE.enable();
        say(format_args!("rtic: an application of RTIC 2 for Armv8-M\n"));
        Clock::start(context.core.SYST, FREQUENCY);
        let (sender, receiver) = make_channel!(u32, 8);
        // Each task is spawned once.
        let spawned = sample::spawn(sender).is_ok() && filter::spawn(receiver).is_ok();
        assert!(spawned, "a task is already there");
        let plant = Plant::default();
        (Shared { plant }, Local {})
    }

    #[task(priority = 3)]
    async fn sample(_: sample::Context, mut sender: Sender<'static, u32, 8>) {
        let mut due = Clock::now();
        for number in 1_u32.. {
            due += 4.millis();
            Clock::delay_until(due).await;
            if number % ALARM == 0 {
                rtic::pend(Interrupt::TIMER1);
            }
            // A filter that is too slow loses a sample, and the line says so.
            let _ = sender.try_send(number);
        }
    }

    #[task(binds = TIMER1, priority = 2, shared = [plant])]
    fn alarm(mut context: alarm::Context) {
        context.shared.plant.lock(|plant| plant.alarms += 1);
    }

    #[task(priority = 1, shared = [plant])]
    async fn filter(mut context: filter::Context, mut receiver: Receiver<'static, u32, 8>) {
        while let Ok(number) = receiver.recv().await {
            let (filtered, level, alarms) = context.shared.plant.lock(|plant| {
                plant.filtered += 1;
                plant.sum += number % BATCH;
                (plant.filtered, plant.sum / plant.filtered, plant.alarms)
            });
            if number % BATCH == 0 {
                let right = filtered == number && alarms == number / ALARM;
                let verdict = if right { "all right" } else { "WRONG" };
                say(format_args!(
                    "rtic: {number} samples, {filtered} filtered, level {level}, {alarms} alarms, {verdict}\n"
                ));
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
