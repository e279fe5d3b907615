// SPDX-License-Identifier: Apache-2.0
//! A handler that starts early: the guest and its processor are as if the line had been delivered.

use crate::machine::trapped::Trapped;
use crate::machine::{MAIN_TOP, Memory, PROCESS_TOP};
use bulkhead_arch_armv7m_core::{Fault, Guest, Special, VirtualCore};

const ISER: u32 = 0xE000_E100;
const MPU_CTRL: u32 = 0xE000_ED94;
const SCR: u32 = 0xE000_ED10;
const LINE: u8 = 5;
const VECTOR: u32 = 4 * (16 + LINE as u32);

fn machine() -> Trapped {
    let mut machine = Trapped::new(Memory::new(), MAIN_TOP);
    write(&mut machine, ISER, 1 << LINE);
    machine.core.take_changes();
    machine.registers.general = core::array::from_fn(|number| 0x1000 + number as u32);
    machine
}

fn write(machine: &mut Trapped, address: u32, value: u32) {
    machine.core.write(address, 4, value, 0).unwrap();
}

fn special(machine: &mut Trapped, register: u8, value: u32) {
    let done = machine.trap(|core, guest| Ok(core.write_special(guest, Special(register), 2, value)));
    assert!(done.unwrap());
    machine.core.take_changes();
}

fn can_start(machine: &Trapped) -> bool {
    machine.peek(|core, guest| core.line_entry(guest).is_some())
}

/// Does what `entry` does, and then what the backend does.
fn start_early(core: &mut VirtualCore, guest: &mut impl Guest) {
    let mut entry = core.line_entry(guest).expect("nothing masks the line");
    let vector = guest.load(entry.vectors + VECTOR).unwrap();
    let [.., pc, xpsr] = &mut entry.words;
    *pc = vector & !1;
    *xpsr |= (vector & 1) << 24;
    let thread = guest.words();
    core.line_entered(guest, LINE);
    assert_eq!(guest.words(), thread, "the thread's frame stays");
    assert!(guest.push(entry.frame, &entry.words));
    guest.set_frame(entry.frame, false);
}

fn as_if_delivered(machine: &mut Trapped, usual: &mut Trapped) {
    machine
        .trap(|core, guest| {
            start_early(core, guest);
            Ok(())
        })
        .unwrap();
    usual
        .trap(|core, _| {
            core.pulse_line(LINE);
            Ok(())
        })
        .unwrap();
    assert_eq!(machine.core, usual.core);
    assert_eq!(machine.registers, usual.registers);
    assert_eq!(machine.psp, usual.psp);
    let words = |machine: &Trapped| machine.memory.words(MAIN_TOP - 0x100, PROCESS_TOP).to_vec();
    assert!(words(machine) == words(usual), "the stacks");
    for machine in [machine, usual] {
        machine.registers.pc = machine.registers.lr & !1;
        machine.trap(|core, guest| core.exception_return(guest)).unwrap();
        assert_eq!(machine.core.handler(), 0);
    }
}

#[test]
fn an_early_start_is_as_a_delivered_line() {
    let (mut early, mut usual) = (machine(), machine());
    as_if_delivered(&mut early, &mut usual);
    // On the process stack, and on a main stack that has to be aligned.
    let (mut early, mut usual) = (machine(), machine());
    for machine in [&mut early, &mut usual] {
        special(machine, 8, MAIN_TOP - 20);
        special(machine, 9, PROCESS_TOP);
        special(machine, 20, 2);
    }
    as_if_delivered(&mut early, &mut usual);
}

#[test]
fn a_guest_that_does_not_take_every_line_at_once_does_not_start_early() {
    assert!(can_start(&machine()));
    for (register, value) in [(16, 1), (17, 0x40), (19, 1)] {
        let mut machine = machine();
        special(&mut machine, register, value);
        assert!(!can_start(&machine), "special register {register}");
    }
    let mut inside = machine();
    inside.trap(|core, guest| core.supervisor_call(guest)).unwrap();
    assert!(!can_start(&inside), "in a handler");
    let mut waiting = machine();
    waiting.core.pulse_line(LINE);
    assert!(!can_start(&waiting), "another one is first");
    let mut fault = machine();
    fault
        .trap(|core, guest| core.raise(guest, Fault::Hard { status: 1 << 31 }))
        .unwrap();
    assert!(!can_start(&fault));
    for (address, value) in [(MPU_CTRL, 5), (SCR, 1 << 4)] {
        let mut machine = machine();
        write(&mut machine, address, value);
        machine.core.take_changes();
        assert!(!can_start(&machine), "{address:x}");
    }
    let mut changed = machine();
    write(&mut changed, ISER, 2);
    assert!(!can_start(&changed), "the backend has not heard of the line");
    let mut floating = machine();
    floating.fpca = true;
    assert!(!can_start(&floating), "floating-point registers are in the frame");
}
