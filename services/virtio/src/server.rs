// SPDX-License-Identifier: Apache-2.0
//! One device: its window, its queues and its back end.
//!
//! The program that carries the device calls [`Server::read`] and [`Server::write`] for the driver's accesses
//! to the window, and [`Server::serve`] when the driver has notified the device or the back end has news.
//! After each of them [`Server::interrupt`] says whether the interrupt line is high.

use crate::broken::Broken;
use crate::chain::MAX_SEGMENTS;
use crate::device::Device;
use crate::memory::Memory;
use crate::numbers::{FEATURE_EVENT_INDEX, FEATURE_PACKED, QUEUE_FEATURES};
use crate::queue::Queue;
use crate::split::Split;
use bulkhead_devices::virtio_mmio::{CAUSE_CONFIGURATION, CAUSE_USED, Effect, Interrupt, Kept, Window};

/// The outcome of a round of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// Nothing is left to do before the driver notifies the device, or the back end has news.
    All,
    /// The allowed number of chains is served. There may be more.
    Some,
}

/// A device with `QUEUES` queues.
#[derive(Clone, Debug)]
pub struct Server<D, const QUEUES: usize> {
    window: Window<QUEUES>,
    queues: [Option<Queue>; QUEUES],
    device: D,
    /// Chains that were served since the start.
    served: u64,
    /// The rule that the driver has broken last.
    broken: Option<Broken>,
}

impl<D: Device, const QUEUES: usize> Server<D, QUEUES> {
    /// Makes the device after a reset.
    pub fn new(device: D) -> Self {
        Self::with(device, QUEUE_FEATURES)
    }

    /// Makes a device that can go on in a later life of its server ([`Self::resume`]): the queues are split,
    /// because their memory tells how far the device has come.
    pub fn resumable(device: D) -> Self {
        Self::with(device, QUEUE_FEATURES & !FEATURE_PACKED)
    }

    fn with(device: D, queue_features: u64) -> Self {
        let features = device.features() | queue_features;
        Self {
            window: Window::new(D::KIND, features, MAX_SEGMENTS as u16),
            queues: [const { None }; QUEUES],
            device,
            served: 0,
            broken: None,
        }
    }

    /// Returns the back end.
    pub const fn device(&mut self) -> &mut D {
        &mut self.device
    }

    /// Returns the number of chains that were served since the start.
    #[must_use]
    pub const fn served(&self) -> u64 {
        self.served
    }

    /// Returns the rule that the driver has broken last, if it has broken one since the last reset.
    #[must_use]
    pub const fn broken(&self) -> Option<Broken> {
        self.broken
    }

    /// Returns the registers, which a later life of the server needs.
    #[must_use]
    pub fn keep(&self) -> Kept<QUEUES> {
        self.window.keep()
    }

    /// Goes on where an earlier life has ended. The driver is interrupted, because an interrupt of the
    /// earlier life may be lost. If the state makes no sense, the device demands a reset. The device must be
    /// as [`Self::resumable`] has made it.
    pub fn resume(&mut self, kept: &Kept<QUEUES>, memory: &mut impl Memory) {
        self.window.restore(kept);
        self.device.agree(self.window.features());
        let has_event_index = self.window.features() & FEATURE_EVENT_INDEX != 0;
        for (number, queue) in self.queues.iter_mut().enumerate() {
            let Some(place) = self.window.queue(number as u16) else {
                continue;
            };
            match Split::resume(place, has_event_index, memory) {
                Ok(split) => *queue = Some(Queue::Split(split)),
                Err(broken) => {
                    self.broken = Some(broken);
                    self.window.demand_reset();
                    return;
                }
            }
        }
        if self.window.is_running() {
            self.window.interrupt.raise(CAUSE_USED | CAUSE_CONFIGURATION);
        }
    }

    /// Returns the interrupt of the window.
    pub const fn interrupt(&mut self) -> &mut Interrupt {
        &mut self.window.interrupt
    }

    /// Tells the driver that the configuration has changed.
    pub const fn configuration_changed(&mut self) {
        self.window.configuration_changed();
    }

    /// Answers a load from the window.
    pub fn read(&self, offset: u64, size: u8) -> u64 {
        let device = &self.device;
        self.window
            .read(offset, size, |at, into| device.configuration(at, into))
    }

    /// Takes a store to the window. Returns whether the device may have something to serve.
    pub fn write(&mut self, offset: u64, size: u8, value: u64) -> bool {
        match self.window.write(offset, size, value) {
            // No device here has a configuration that a driver changes.
            Effect::None | Effect::Configuration { .. } => false,
            Effect::Reset => {
                self.queues = [const { None }; QUEUES];
                self.broken = None;
                self.device.reset();
                false
            }
            Effect::Agreed => {
                self.device.agree(self.window.features());
                false
            }
            Effect::Ready(queue) => {
                let made = self.window.queue(queue);
                let features = self.window.features();
                if let Some(place) = self.queues.get_mut(usize::from(queue)) {
                    *place = made.map(|made| Queue::new(made, features));
                }
                false
            }
            Effect::Stopped(queue) => {
                if let Some(place) = self.queues.get_mut(usize::from(queue)) {
                    *place = None;
                }
                false
            }
            Effect::Started | Effect::Notified(_) => true,
        }
    }

    /// Serves at most `most` chains, one queue after the other.
    pub fn serve(&mut self, memory: &mut impl Memory, most: u32) -> Served {
        let mut left = most;
        for queue in 0..QUEUES as u16 {
            if !self.window.is_running() {
                return Served::All;
            }
            match self.serve_queue(queue, memory, &mut left) {
                Ok(Served::All) => {}
                Ok(Served::Some) => return Served::Some,
                Err(broken) => {
                    self.broken = Some(broken);
                    self.window.demand_reset();
                }
            }
        }
        Served::All
    }

    fn serve_queue(
        &mut self,
        number: u16,
        memory: &mut impl Memory,
        left: &mut u32,
    ) -> Result<Served, Broken> {
        let Some(Some(queue)) = self.queues.get_mut(usize::from(number)) else {
            return Ok(Served::All);
        };
        let served = loop {
            if !self.device.is_ready(number) {
                break Served::All;
            }
            if *left == 0 {
                break Served::Some;
            }
            let Some(chain) = queue.take(memory)? else {
                if queue.listen(memory)? {
                    spend(left);
                    continue;
                }
                break Served::All;
            };
            spend(left);
            let written = self.device.serve(number, &chain, memory)?;
            queue.give_back(memory, &chain, written)?;
            self.served = self.served.saturating_add(1);
        };
        if queue.wants_interrupt(memory)? {
            self.window.interrupt.raise(CAUSE_USED);
        }
        Ok(served)
    }
}

/// Counts a chain, or a look at a queue that found nothing: a driver that changes its mind all the time does
/// not hold the server.
const fn spend(left: &mut u32) {
    *left = left.saturating_sub(1);
}
