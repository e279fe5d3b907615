// SPDX-License-Identifier: Apache-2.0
//! The mask words of a guest: a store of privileged code counts, also if the trap that follows never comes.

use crate::machine::trapped::Trapped;
use crate::machine::{MAIN_TOP, Memory, PROCESS_TOP};
use bulkhead_arch_armv7m_core::masks::MaskWords;
use bulkhead_arch_armv7m_core::{Special, VirtualCore};

const MPU_CTRL: u32 = 0xE000_ED94;
const BASEPRI: u8 = 17;
const PRIMASK: u8 = 16;
const PSP: u8 = 9;
const CONTROL: u8 = 20;

fn machine() -> Trapped {
    let mut machine = Trapped::new(Memory::new(), MAIN_TOP);
    special(&mut machine, PSP, PROCESS_TOP);
    machine
}

fn special(machine: &mut Trapped, register: u8, value: u32) {
    let done = machine.trap(|core, guest| Ok(core.write_special(guest, Special(register), 2, value)));
    assert!(done.unwrap());
    machine.core.take_changes();
}

fn read(machine: &Trapped, register: u8) -> u32 {
    machine.peek(|core, guest| core.read_special(guest, Special(register)))
}

/// Takes the words after a guest has stored `basepri`, PRIMASK and `process_stack` in them.
fn stored(machine: &mut Trapped, shown: MaskWords, basepri: u32, process_stack: u32) {
    let words = MaskWords {
        masks: basepri << 8 | 1 << 16,
        process_stack,
    };
    machine.core.take_masks(shown.masks, || words);
}

#[test]
fn a_store_of_a_mask_counts_where_each_change_traps() {
    let mut machine = machine();
    let open = machine.core.shown_masks();
    assert_eq!((open.masks & 0xFF, open.process_stack), (0, PROCESS_TOP));
    stored(&mut machine, open, 0x40, PROCESS_TOP - 8);
    assert_eq!(read(&machine, BASEPRI), 0x40);
    assert_eq!(read(&machine, PRIMASK), 1);
    assert_eq!(read(&machine, PSP), PROCESS_TOP - 8);

    // An early start's handler, and a guest whose own unit is on: the trap may be over before it comes.
    let early = VirtualCore::handler_masks();
    machine.core.write(MPU_CTRL, 4, 1, 0).unwrap();
    let protected = machine.core.shown_masks();
    for closed in [early, protected] {
        assert_eq!((closed.masks & 0xFF, closed.process_stack), (1, 0));
        stored(&mut machine, closed, 0x80, 0);
        assert_eq!(
            (read(&machine, BASEPRI), read(&machine, PSP)),
            (0x80, PROCESS_TOP - 8)
        );
        stored(&mut machine, closed, 0x20, PROCESS_TOP - 16);
        assert_eq!(
            (read(&machine, BASEPRI), read(&machine, PSP)),
            (0x20, PROCESS_TOP - 16)
        );
        special(&mut machine, PSP, PROCESS_TOP - 8);
    }
}

#[test]
fn code_without_privileges_changes_nothing() {
    let mut machine = machine();
    special(&mut machine, CONTROL, 1);
    let closed = machine.core.shown_masks();
    assert_eq!(
        closed,
        MaskWords {
            masks: 1,
            process_stack: 0
        }
    );
    let before = machine.core.clone();
    stored(&mut machine, closed, 0x40, PROCESS_TOP - 8);
    assert_eq!(machine.core, before);
}

#[test]
fn a_stack_in_use_is_not_in_the_words() {
    let mut machine = machine();
    special(&mut machine, CONTROL, 2);
    let shown = machine.core.shown_masks();
    assert_eq!((shown.masks & 0xFF, shown.process_stack), (0, 0));
    stored(&mut machine, shown, 0x40, MAIN_TOP);
    assert_eq!(
        (read(&machine, BASEPRI), read(&machine, PSP)),
        (0x40, PROCESS_TOP)
    );
}
