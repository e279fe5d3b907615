// SPDX-License-Identifier: Apache-2.0
//! The local APIC delivers as a model does that looks at each of the 256 vectors every time, and its short
//! ways do what the long ones do.

use bulkhead_arch_x86_64_core::lapic::{Effect, Lapic, Window};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

const TASK_PRIORITY: u32 = 0x08;
const END: u32 = 0x0B;
const SPURIOUS: u32 = 0x0F;
const COMMAND: u32 = 0x30;
const SELF_COMMAND: u32 = 0x3F;
const OWN: u64 = 1 << 18;

/// Something that happens to a local APIC.
#[derive(Clone, Copy, Debug)]
enum Event {
    Accept(u8, bool),
    /// A vector for itself, by the register of x2APIC or by the interrupt command.
    Own(u8, bool),
    TaskPriority(u8),
    Enable(bool),
    Take,
    End,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (any::<u8>(), any::<bool>()).prop_map(|(vector, is_level)| Event::Accept(vector, is_level)),
        (any::<u8>(), any::<bool>()).prop_map(|(vector, by_command)| Event::Own(vector, by_command)),
        any::<u8>().prop_map(Event::TaskPriority),
        prop_oneof![1 => Just(false), 6 => Just(true)].prop_map(Event::Enable),
        Just(Event::Take),
        Just(Event::Take),
        Just(Event::End),
    ]
}

/// The model.
struct Model {
    is_on: bool,
    task_priority: u8,
    request: [bool; 256],
    in_service: [bool; 256],
    level: [bool; 256],
}

/// Returns the highest vector of a set.
fn highest(set: &[bool; 256]) -> Option<u8> {
    set.iter().rposition(|is_in| *is_in).map(|vector| vector as u8)
}

impl Model {
    fn accept(&mut self, vector: u8, is_level: bool) -> bool {
        let may = vector >= 16 && self.is_on;
        if may {
            self.request[usize::from(vector)] = true;
            self.level[usize::from(vector)] = is_level;
        }
        may
    }

    fn serviced(&self) -> u8 {
        highest(&self.in_service).unwrap_or(0) >> 4
    }

    fn deliverable(&self) -> Option<u8> {
        let priority = (self.task_priority >> 4).max(self.serviced());
        highest(&self.request).filter(|vector| self.is_on && vector >> 4 > priority)
    }

    fn window(&self) -> Window {
        match highest(&self.request).filter(|_| self.is_on) {
            None => Window::Nothing,
            Some(_) if self.deliverable().is_some() => Window::Interrupts,
            Some(vector) if vector >> 4 > self.serviced() => Window::Priority,
            Some(_) => Window::Nothing,
        }
    }
}

proptest! {
    #![proptest_config(Config { cases: 3_000, rng_seed: RngSeed::Fixed(5), ..Config::default() })]

    #[test]
    fn vectors_are_delivered_as_the_model_says(events in proptest::collection::vec(event(), 1..60)) {
        let mut apic = Lapic::new(0);
        prop_assert!(apic.use_extended());
        let mut model = Model {
            is_on: true,
            task_priority: 0,
            request: [false; 256],
            in_service: [false; 256],
            level: [false; 256],
        };
        for event in events {
            match event {
                Event::Accept(vector, is_level) => {
                    prop_assert_eq!(apic.accept(vector, is_level), model.accept(vector, is_level));
                }
                Event::Own(vector, by_command) => {
                    let (register, bits) = if by_command { (COMMAND, OWN) } else { (SELF_COMMAND, 0) };
                    let effect = apic.write(register, bits | u64::from(vector), 0);
                    prop_assert_eq!(effect, Some(Effect::Nothing));
                    if model.accept(vector, false) {
                        prop_assert!(apic.must_be_looked_at(register), "it is pending");
                    }
                }
                Event::TaskPriority(priority) => {
                    prop_assert_eq!(apic.write(TASK_PRIORITY, priority.into(), 0), Some(Effect::Nothing));
                    model.task_priority = priority;
                }
                Event::Enable(on) => {
                    apic.write(SPURIOUS, 0xFF | u64::from(on) << 8, 0);
                    model.is_on = on;
                }
                Event::Take => {
                    let vector = model.deliverable();
                    prop_assert_eq!(apic.take_deliverable(), vector);
                    if let Some(vector) = vector {
                        model.request[usize::from(vector)] = false;
                        model.in_service[usize::from(vector)] = true;
                    }
                }
                Event::End => {
                    let ended = highest(&model.in_service);
                    if let Some(vector) = ended {
                        model.in_service[usize::from(vector)] = false;
                    }
                    let level = ended.filter(|vector| model.level[usize::from(*vector)]);
                    let effect = level.map_or(Effect::Nothing, Effect::End);
                    prop_assert_eq!(apic.write(END, 0, 0), Some(effect));
                }
            }
            prop_assert_eq!(apic.deliverable(), model.deliverable());
            prop_assert_eq!(apic.window(), model.window());
            prop_assert_eq!(apic.has_requests(), highest(&model.request).is_some());
        }
    }
}
