// SPDX-License-Identifier: Apache-2.0
//! The register window of a virtio device over MMIO, version 2 (Virtio 1.2, section 4.2).
//!
//! The window is a state machine without memory of its own: it knows the status, the negotiated features and
//! where the driver has put its queues. The work of a device is elsewhere. A store returns an [`Effect`] for
//! the program that carries the device out.
//!
//! A driver may write anything in any order. Features are frozen once they are agreed on. The registers of a
//! queue are frozen while the queue is ready. A queue gets ready only with a size and with addresses that
//! section 2.7 or 2.8 allows. A driver that wants something else finds that its store had no effect. The
//! registers of the legacy interface (version 1) are not there.

use bulkhead_abi::hypercall::KEPT_WORDS;

/// Bytes of the window: the registers, and room for a configuration.
pub const WINDOW: u64 = 0x200;
/// Offset of the register that notifies the device of a queue.
pub const QUEUE_NOTIFY: u64 = 0x050;
/// Offset of the register with the causes of the interrupt.
pub const INTERRUPT_STATUS: u64 = 0x060;
/// Offset of the register that acknowledges causes of the interrupt.
pub const INTERRUPT_ACKNOWLEDGE: u64 = 0x064;
/// Offset of the status register.
pub const STATUS: u64 = 0x070;
/// Offset of the device's own configuration.
pub const CONFIGURATION: u64 = 0x100;

const MAGIC: u64 = 0x000;
const VERSION: u64 = 0x004;
const DEVICE: u64 = 0x008;
const VENDOR: u64 = 0x00C;
const DEVICE_FEATURES: u64 = 0x010;
const DEVICE_FEATURES_SELECT: u64 = 0x014;
const DRIVER_FEATURES: u64 = 0x020;
const DRIVER_FEATURES_SELECT: u64 = 0x024;
const QUEUE_SELECT: u64 = 0x030;
const QUEUE_SIZE_LIMIT: u64 = 0x034;
const QUEUE_SIZE: u64 = 0x038;
const QUEUE_READY: u64 = 0x044;
const QUEUE_DESCRIPTORS: u64 = 0x080;
const QUEUE_DRIVER: u64 = 0x090;
const QUEUE_DEVICE: u64 = 0x0A0;
/// The first and the last register of a shared memory region.
const SHARED_MEMORY: [u64; 2] = [0x0B0, 0x0BC];
const GENERATION: u64 = 0x0FC;

/// "virt".
const MAGIC_VALUE: u32 = 0x7472_6976;
/// "BLKH": the number says who wrote the device.
const VENDOR_VALUE: u32 = 0x484B_4C42;

/// The driver has found the device.
pub const STATUS_ACKNOWLEDGE: u8 = 1;
/// The driver knows how to drive the device.
pub const STATUS_DRIVER: u8 = 2;
/// The driver is ready.
pub const STATUS_DRIVER_OK: u8 = 4;
/// The features are agreed on.
pub const STATUS_FEATURES_OK: u8 = 8;
/// The device has met an error and wants a reset.
pub const STATUS_NEEDS_RESET: u8 = 64;
/// The driver has given up.
pub const STATUS_FAILED: u8 = 128;

/// Cause of an interrupt: the device has used a buffer.
pub const CAUSE_USED: u32 = 1;
/// Cause of an interrupt: the configuration or the status has changed.
pub const CAUSE_CONFIGURATION: u32 = 2;
const CAUSES: u32 = CAUSE_USED | CAUSE_CONFIGURATION;

/// Feature: the device follows version 1 or later. Each driver of this window must accept the feature.
pub const FEATURE_VERSION_1: u64 = 1 << 32;
/// Feature: queues are packed.
pub const FEATURE_PACKED: u64 = 1 << 34;

/// The places of a queue in the driver's memory, and its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueuePlace {
    /// The number of its descriptors.
    pub size: u16,
    /// The address of the descriptors.
    pub descriptors: u64,
    /// The address of the area that the driver writes.
    pub driver: u64,
    /// The address of the area that the device writes.
    pub device: u64,
}

impl QueuePlace {
    /// Tells whether the standard allows the place for a ring of this kind.
    const fn is_allowed(&self, limit: u16, is_packed: bool) -> bool {
        let (driver_align, is_size) = if is_packed {
            (4, self.size != 0)
        } else {
            (2, self.size.is_power_of_two())
        };
        is_size
            && self.size <= limit
            && self.descriptors.is_multiple_of(16)
            && self.driver.is_multiple_of(driver_align)
            && self.device.is_multiple_of(4)
    }
}

/// The interrupt of a window: its causes that wait for the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interrupt {
    causes: u32,
}

impl Interrupt {
    /// No cause.
    pub const QUIET: Self = Self { causes: 0 };

    /// Adds causes.
    pub const fn raise(&mut self, causes: u32) {
        self.causes |= causes & CAUSES;
    }

    /// Takes causes away.
    pub const fn acknowledge(&mut self, causes: u32) {
        self.causes &= !causes;
    }

    /// Returns the causes that wait.
    #[must_use]
    pub const fn causes(&self) -> u32 {
        self.causes
    }

    /// Returns the level of the interrupt line.
    #[must_use]
    pub const fn level(&self) -> bool {
        self.causes != 0
    }
}

/// The consequence of a store for the device of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// There is none.
    None,
    /// The device is reset. No queue is ready.
    Reset,
    /// The features are agreed on.
    Agreed,
    /// The driver is ready. Its queues may be used.
    Started,
    /// This queue is ready.
    Ready(u16),
    /// This queue is ready no longer.
    Stopped(u16),
    /// The driver has made buffers of this queue available.
    Notified(u16),
    /// The driver stores `size` bytes to the device's configuration at this offset.
    Configuration {
        /// The offset in the configuration.
        offset: u32,
        /// The number of bytes: 1, 2, 4 or 8.
        size: u8,
        /// The bytes, the first one in bits 7:0.
        value: u64,
    },
}

#[derive(Clone, Copy, Debug, Default)]
struct QueueRegisters {
    place: QueuePlace,
    is_ready: bool,
}

/// The registers that a driver has written, and the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept<const QUEUES: usize> {
    /// The status.
    pub status: u8,
    /// The features that the driver has written.
    pub accepted: u64,
    /// The registers that select halves of features of the device and of the driver, and a queue.
    pub selects: [u32; 3],
    /// The place of each queue, and whether it is ready.
    pub queues: [(QueuePlace, bool); QUEUES],
}

/// The mark of words that are registers.
const KEPT_MARK: u64 = u64::from_le_bytes(*b"KEPTKEPT");
/// The words before the queues' words: the mark, the status, the features, two of selects.
const KEPT_HEAD: usize = 5;
/// The words of a queue.
const KEPT_QUEUE: usize = 4;

impl<const QUEUES: usize> Kept<QUEUES> {
    /// Returns the registers as words, in an order that a server can keep group by group: a store of a driver
    /// changes one group of three. A reset changes several, and the status is in the first. If only that
    /// group is kept when the life of the server ends, then the status says that the rest is worth nothing.
    #[must_use]
    pub fn to_words(&self) -> [u64; KEPT_WORDS] {
        let [device, driver, queue] = self.selects.map(u64::from);
        let head = [
            KEPT_MARK,
            self.status.into(),
            self.accepted,
            device | driver << 32,
            queue,
        ];
        let queues = self.queues.iter().flat_map(|(place, is_ready)| {
            let size = u64::from(place.size) | u64::from(*is_ready) << 32;
            [size, place.descriptors, place.driver, place.device]
        });
        let mut words = [0; KEPT_WORDS];
        for (place, word) in words.iter_mut().zip(head.into_iter().chain(queues)) {
            *place = word;
        }
        words
    }

    /// Returns the registers that words say, if the words are registers.
    #[must_use]
    pub fn from_words(words: &[u64; KEPT_WORDS]) -> Option<Self> {
        let [mark, status, accepted, selects, queue, rest @ ..] = words;
        const { assert!(KEPT_HEAD + QUEUES * KEPT_QUEUE <= KEPT_WORDS, "too many queues") };
        let (places, _) = rest.as_chunks::<KEPT_QUEUE>();
        let place = |number: usize| {
            let [size, descriptors, driver, device] = places.get(number).copied().unwrap_or_default();
            let place = QueuePlace {
                size: size as u16,
                descriptors,
                driver,
                device,
            };
            (place, size >> 32 & 1 != 0)
        };
        (*mark == KEPT_MARK).then(|| Self {
            status: *status as u8,
            accepted: *accepted,
            selects: [*selects as u32, (*selects >> 32) as u32, *queue as u32],
            queues: core::array::from_fn(place),
        })
    }
}

/// A window for a device with `QUEUES` queues.
#[derive(Clone, Debug)]
pub struct Window<const QUEUES: usize> {
    device: u32,
    /// The features that the device offers.
    offered: u64,
    /// The features that the driver has written, and after [`STATUS_FEATURES_OK`] those agreed on.
    accepted: u64,
    limit: u16,
    device_select: u32,
    driver_select: u32,
    queue_select: u32,
    status: u8,
    generation: u32,
    queues: [QueueRegisters; QUEUES],
    /// The interrupt of the device.
    pub interrupt: Interrupt,
}

impl<const QUEUES: usize> Window<QUEUES> {
    /// Makes the window of a device of this kind after a reset. The device offers `features`, and queues of
    /// at most `limit` descriptors.
    #[must_use]
    pub fn new(device: u32, features: u64, limit: u16) -> Self {
        Self {
            device,
            offered: features | FEATURE_VERSION_1,
            accepted: 0,
            limit,
            device_select: 0,
            driver_select: 0,
            queue_select: 0,
            status: 0,
            generation: 0,
            queues: [QueueRegisters::default(); QUEUES],
            interrupt: Interrupt::QUIET,
        }
    }

    /// Returns the features agreed on, none before that.
    #[must_use]
    pub const fn features(&self) -> u64 {
        if self.has(STATUS_FEATURES_OK) {
            self.accepted
        } else {
            0
        }
    }

    /// Returns the status.
    #[must_use]
    pub const fn status(&self) -> u8 {
        self.status
    }

    /// Tells whether the driver is ready and the device has met no error.
    #[must_use]
    pub const fn is_running(&self) -> bool {
        self.has(STATUS_DRIVER_OK) && !self.has(STATUS_NEEDS_RESET)
    }

    /// Returns the place of a queue, if the queue is ready.
    #[must_use]
    pub fn queue(&self, queue: u16) -> Option<QueuePlace> {
        let registers = self.queues.get(usize::from(queue))?;
        registers.is_ready.then_some(registers.place)
    }

    /// Returns the registers, for a later life of the program that carries the device.
    #[must_use]
    pub fn keep(&self) -> Kept<QUEUES> {
        Kept {
            status: self.status,
            accepted: self.accepted,
            selects: [self.device_select, self.driver_select, self.queue_select],
            queues: core::array::from_fn(|number| {
                let registers = self.queues.get(number).copied().unwrap_or_default();
                (registers.place, registers.is_ready)
            }),
        }
    }

    /// Brings a window after a reset to the state that an earlier life has kept, as a driver would have done.
    /// A store that a driver cannot make has no effect.
    pub fn restore(&mut self, kept: &Kept<QUEUES>) {
        self.status = kept.status & (STATUS_ACKNOWLEDGE | STATUS_DRIVER | STATUS_FAILED);
        self.accepted = kept.accepted;
        if kept.status & STATUS_FEATURES_OK != 0 {
            self.set_status(self.status | STATUS_FEATURES_OK);
        }
        for (number, (place, is_ready)) in (0_u32..).zip(kept.queues) {
            self.queue_select = number;
            if let Some(registers) = self.queues.get_mut(number as usize) {
                registers.place = place;
            }
            self.set_ready(is_ready);
        }
        if kept.status & STATUS_DRIVER_OK != 0 {
            self.set_status(self.status | STATUS_DRIVER_OK);
        }
        if kept.status & STATUS_NEEDS_RESET != 0 {
            self.demand_reset();
        }
        [self.device_select, self.driver_select, self.queue_select] = kept.selects;
    }

    /// Asks the driver for a reset: the device has met an error of the driver.
    pub const fn demand_reset(&mut self) {
        self.status |= STATUS_NEEDS_RESET;
        if self.has(STATUS_DRIVER_OK) {
            self.interrupt.raise(CAUSE_CONFIGURATION);
        }
    }

    /// Tells the driver that the configuration has changed.
    pub const fn configuration_changed(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        if self.has(STATUS_DRIVER_OK) {
            self.interrupt.raise(CAUSE_CONFIGURATION);
        }
    }

    /// Answers a load of `size` bytes at `offset`. `configuration` fills the bytes of the device's own
    /// configuration from an offset on. Any other register than the configuration is a word. A load of
    /// something else is 0.
    pub fn read(&self, offset: u64, size: u8, configuration: impl FnOnce(u32, &mut [u8])) -> u64 {
        if offset >= CONFIGURATION {
            return read_configuration(offset, size, configuration);
        }
        if size != 4 || !offset.is_multiple_of(4) {
            return 0;
        }
        let queue = self.queues.get(self.queue_select as usize);
        let value = match offset {
            MAGIC => MAGIC_VALUE,
            VERSION => 2,
            DEVICE => self.device,
            VENDOR => VENDOR_VALUE,
            DEVICE_FEATURES => half(self.offered, self.device_select),
            QUEUE_SIZE_LIMIT => queue.map_or(0, |_| self.limit.into()),
            QUEUE_READY => queue.map_or(0, |queue| queue.is_ready.into()),
            INTERRUPT_STATUS => self.interrupt.causes(),
            STATUS => self.status.into(),
            GENERATION => self.generation,
            // A region that is not there has the length -1 (section 4.2.2).
            offset if SHARED_MEMORY[0] <= offset && offset <= SHARED_MEMORY[1] => u32::MAX,
            _ => 0,
        };
        value.into()
    }

    /// Takes a store of `size` bytes at `offset`.
    pub fn write(&mut self, offset: u64, size: u8, value: u64) -> Effect {
        if offset >= CONFIGURATION {
            return write_configuration(offset, size, value);
        }
        if size != 4 || !offset.is_multiple_of(4) {
            return Effect::None;
        }
        let value = value as u32;
        match offset {
            DEVICE_FEATURES_SELECT => self.device_select = value,
            DRIVER_FEATURES => self.accept(value),
            DRIVER_FEATURES_SELECT => self.driver_select = value,
            QUEUE_SELECT => self.queue_select = value,
            QUEUE_READY => return self.set_ready(value & 1 != 0),
            QUEUE_NOTIFY => return self.notified(value),
            INTERRUPT_ACKNOWLEDGE => self.interrupt.acknowledge(value),
            STATUS => return self.set_status(value as u8),
            _ => self.place_queue(offset, value),
        }
        Effect::None
    }

    const fn has(&self, status: u8) -> bool {
        self.status & status != 0
    }

    fn accept(&mut self, value: u32) {
        if self.has(STATUS_FEATURES_OK) {
            return;
        }
        self.accepted = match self.driver_select {
            0 => self.accepted & !u64::from(u32::MAX) | u64::from(value),
            1 => self.accepted & u64::from(u32::MAX) | u64::from(value) << 32,
            _ => self.accepted,
        };
    }

    /// Follows section 3.1.1: a driver adds one bit after the other, and 0 is a reset.
    fn set_status(&mut self, value: u8) -> Effect {
        if value == 0 {
            self.reset();
            return Effect::Reset;
        }
        let added = value & !self.status;
        self.status |= added & (STATUS_ACKNOWLEDGE | STATUS_DRIVER | STATUS_FAILED);
        let is_acceptable = self.accepted & !self.offered == 0 && self.accepted & FEATURE_VERSION_1 != 0;
        if added & STATUS_FEATURES_OK != 0 && is_acceptable {
            self.status |= STATUS_FEATURES_OK;
            return Effect::Agreed;
        }
        if added & STATUS_DRIVER_OK != 0 && self.has(STATUS_FEATURES_OK) {
            self.status |= STATUS_DRIVER_OK;
            return Effect::Started;
        }
        Effect::None
    }

    fn reset(&mut self) {
        let generation = self.generation;
        *self = Self::new(self.device, self.offered, self.limit);
        self.generation = generation;
    }

    fn set_ready(&mut self, wanted: bool) -> Effect {
        let is_packed = self.accepted & FEATURE_PACKED != 0;
        let (limit, is_agreed) = (self.limit, self.has(STATUS_FEATURES_OK));
        let select = self.queue_select;
        let Some(queue) = self.queues.get_mut(select as usize) else {
            return Effect::None;
        };
        let is_possible = !wanted || is_agreed && queue.place.is_allowed(limit, is_packed);
        if queue.is_ready == wanted || !is_possible {
            return Effect::None;
        }
        queue.is_ready = wanted;
        if wanted {
            Effect::Ready(select as u16)
        } else {
            Effect::Stopped(select as u16)
        }
    }

    fn notified(&self, value: u32) -> Effect {
        let queue = u16::try_from(value).ok();
        match queue.filter(|queue| self.is_running() && self.queue(*queue).is_some()) {
            Some(queue) => Effect::Notified(queue),
            None => Effect::None,
        }
    }

    fn place_queue(&mut self, offset: u64, value: u32) {
        let queue = self.queues.get_mut(self.queue_select as usize);
        let Some(queue) = queue.filter(|queue| !queue.is_ready) else {
            return;
        };
        let place = &mut queue.place;
        if offset == QUEUE_SIZE {
            // A size that is too large stays too large.
            place.size = u16::try_from(value).unwrap_or(u16::MAX);
            return;
        }
        let address = match offset & !4 {
            QUEUE_DESCRIPTORS => &mut place.descriptors,
            QUEUE_DRIVER => &mut place.driver,
            QUEUE_DEVICE => &mut place.device,
            _ => return,
        };
        *address = if offset & 4 == 0 {
            *address & !u64::from(u32::MAX) | u64::from(value)
        } else {
            *address & u64::from(u32::MAX) | u64::from(value) << 32
        };
    }
}

/// Returns the half of a set of features that a driver has selected.
const fn half(features: u64, select: u32) -> u32 {
    match select {
        0 => features as u32,
        1 => (features >> 32) as u32,
        _ => 0,
    }
}

fn read_configuration(offset: u64, size: u8, configuration: impl FnOnce(u32, &mut [u8])) -> u64 {
    let mut bytes = [0; 8];
    let at = u32::try_from(offset.saturating_sub(CONFIGURATION));
    let wanted = bytes.get_mut(..usize::from(size));
    if let (Ok(at), Some(wanted)) = (at, wanted) {
        configuration(at, wanted);
    }
    u64::from_le_bytes(bytes)
}

fn write_configuration(offset: u64, size: u8, value: u64) -> Effect {
    match u32::try_from(offset.saturating_sub(CONFIGURATION)) {
        Ok(offset) if matches!(size, 1 | 2 | 4 | 8) => Effect::Configuration { offset, size, value },
        _ => Effect::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(window: &Window<2>, offset: u64) -> u32 {
        window.read(offset, 4, |_, _| {}) as u32
    }

    /// Does what Linux does until the features are agreed on.
    fn agreed(features: u64, accepted: u64) -> Window<2> {
        let mut window = Window::new(2, features, 64);
        window.write(STATUS, 4, 0);
        window.write(STATUS, 4, 1);
        window.write(STATUS, 4, 3);
        for select in [1, 0] {
            window.write(DRIVER_FEATURES_SELECT, 4, select);
            window.write(DRIVER_FEATURES, 4, accepted >> (32 * select));
        }
        window.write(STATUS, 4, 11);
        window
    }

    fn place(window: &mut Window<2>, queue: u64, size: u64, at: u64) -> Effect {
        window.write(QUEUE_SELECT, 4, queue);
        window.write(QUEUE_SIZE, 4, size);
        for (register, address) in [
            (QUEUE_DESCRIPTORS, at),
            (QUEUE_DRIVER, at + 0x1000),
            (QUEUE_DEVICE, at + 0x2000),
        ] {
            window.write(register, 4, address & 0xFFFF_FFFF);
            window.write(register + 4, 4, address >> 32);
        }
        window.write(QUEUE_READY, 4, 1)
    }

    #[test]
    fn a_driver_finds_the_device_and_starts_it() {
        let mut window = agreed(1 << 5, FEATURE_VERSION_1 | 1 << 5);
        assert_eq!([0, 4, 8].map(|at| read(&window, at)), [MAGIC_VALUE, 2, 2]);
        assert_eq!(read(&window, STATUS), 11);
        assert_eq!(window.features(), FEATURE_VERSION_1 | 1 << 5);
        let at = 0x1_4000_0000;
        assert_eq!(place(&mut window, 1, 8, at), Effect::Ready(1));
        let expected = QueuePlace {
            size: 8,
            descriptors: at,
            driver: at + 0x1000,
            device: at + 0x2000,
        };
        assert_eq!(window.queue(1), Some(expected));
        assert_eq!(
            window.write(QUEUE_NOTIFY, 4, 1),
            Effect::None,
            "the driver is not ready"
        );
        assert_eq!(window.write(STATUS, 4, 15), Effect::Started);
        assert_eq!(window.write(QUEUE_NOTIFY, 4, 1), Effect::Notified(1));
        assert_eq!(
            window.write(QUEUE_NOTIFY, 4, 0),
            Effect::None,
            "that queue is not ready"
        );
        assert_eq!(window.write(QUEUE_NOTIFY, 4, 0x1_0001), Effect::None);
        assert_eq!(window.write(STATUS, 4, 0), Effect::Reset);
        assert_eq!(
            (window.queue(1), window.features(), window.status()),
            (None, 0, 0)
        );
    }

    #[test]
    fn features_that_were_not_offered_and_old_drivers_are_refused() {
        for accepted in [FEATURE_VERSION_1 | 2, 1 << 5, FEATURE_VERSION_1 | 1 << 63] {
            let window = agreed(1 << 5, accepted);
            assert_eq!(read(&window, STATUS), 3, "{accepted:#x}");
            assert_eq!(window.features(), 0);
        }
        let mut window = agreed(1 << 5, FEATURE_VERSION_1);
        window.write(DRIVER_FEATURES_SELECT, 4, 0);
        window.write(DRIVER_FEATURES, 4, 1 << 5);
        assert_eq!(window.features(), FEATURE_VERSION_1, "frozen");
    }

    #[test]
    fn a_queue_gets_ready_only_where_the_standard_allows() {
        let mut window = agreed(0, FEATURE_VERSION_1);
        for (size, at) in [(0, 0), (3, 0), (128, 0), (0x1_0008, 0), (8, 8)] {
            assert_eq!(place(&mut window, 0, size, at), Effect::None, "{size} {at}");
        }
        assert_eq!(
            place(&mut window, 2, 8, 0),
            Effect::None,
            "there is no such queue"
        );
        assert_eq!(read(&window, QUEUE_SIZE_LIMIT), 0);
        assert_eq!(place(&mut window, 0, 8, 0), Effect::Ready(0));
        assert_eq!(place(&mut window, 0, 16, 0x10_0000), Effect::None);
        assert_eq!(
            window.queue(0).map(|place| (place.size, place.descriptors)),
            Some((8, 0)),
            "frozen"
        );
        assert_eq!(window.write(QUEUE_READY, 4, 0), Effect::Stopped(0));
        let mut packed = agreed(FEATURE_PACKED, FEATURE_VERSION_1 | FEATURE_PACKED);
        assert_eq!(place(&mut packed, 0, 7, 0), Effect::Ready(0), "no power of two");
    }

    #[test]
    fn the_line_is_high_while_a_cause_waits() {
        let mut window = agreed(0, FEATURE_VERSION_1);
        window.configuration_changed();
        assert!(!window.interrupt.level(), "the driver is not ready");
        assert_eq!(read(&window, GENERATION), 1);
        window.write(STATUS, 4, 15);
        window.interrupt.raise(CAUSE_USED);
        window.demand_reset();
        assert!(!window.is_running());
        assert_eq!(read(&window, INTERRUPT_STATUS), 3);
        window.write(INTERRUPT_ACKNOWLEDGE, 4, 1);
        assert!(window.interrupt.level());
        window.write(INTERRUPT_ACKNOWLEDGE, 4, 2);
        assert!(!window.interrupt.level());
    }

    #[test]
    fn the_configuration_is_bytes_and_the_registers_are_words() {
        let mut window = agreed(0, FEATURE_VERSION_1);
        let fill = |at: u32, bytes: &mut [u8]| {
            bytes
                .iter_mut()
                .zip(at as u8..)
                .for_each(|(byte, value)| *byte = value);
        };
        assert_eq!(window.read(CONFIGURATION + 4, 2, fill), 0x0504);
        assert_eq!(window.read(CONFIGURATION, 9, fill), 0);
        assert_eq!(window.read(MAGIC, 2, fill), 0);
        assert_eq!(window.write(STATUS, 1, 0), Effect::None);
        let stored = Effect::Configuration {
            offset: 4,
            size: 1,
            value: 7,
        };
        assert_eq!(window.write(CONFIGURATION + 4, 1, 7), stored);
    }
}
