// SPDX-License-Identifier: Apache-2.0
//! Hypercalls change the registers that their convention names, and no others.

use crate::machine::trapped::Trapped;
use crate::machine::{MAIN_TOP, Memory};
use bulkhead_abi::{Error, Operation, function_id};
use bulkhead_arch_armv7m_core::{Guest, answer_hypercall, refuse_hypercall, take_hypercall};

/// Results that show in whichever register they get.
const RESULTS: [u64; 4] = [
    0x1111_0000_2222,
    0x3333_0000_4444,
    0x5555_0000_6666,
    0x7777_0000_8888,
];

/// r0 to r12 after `operation` has been called with a register's number in each register, and answered.
fn called(operation: Operation, answer: Result<[u64; 4], Error>) -> [u32; 13] {
    let mut machine = Trapped::new(Memory::new(), MAIN_TOP);
    machine.registers.general = core::array::from_fn(|number| 0x100 + number as u32);
    machine.registers.general[0] = function_id(operation);
    let pc = machine.registers.pc;
    let taken = machine.trap(|_, guest| {
        let call = take_hypercall(guest, 2).unwrap();
        assert_eq!(call.operation, operation as u16);
        let pair = |low: u64| (0x100 + low) | ((0x101 + low) << 32);
        assert_eq!(
            call.arguments,
            [0x101, pair(2), pair(4), pair(6), pair(8), pair(10)]
        );
        match answer {
            Ok(results) => answer_hypercall(guest, &results),
            Err(error) => refuse_hypercall(guest, error),
        }
        Ok(())
    });
    taken.unwrap();
    assert_eq!(machine.registers.pc, pc + 2);
    machine.registers.general
}

#[test]
fn registers_that_are_no_result_keep_their_value() {
    for operation in Operation::ALL {
        let count = operation.results();
        let after = called(*operation, Ok(RESULTS));
        assert_eq!((after[0], after[1]), (0, 0x101), "{operation:?}");
        for (number, result) in (0..4).zip(RESULTS) {
            let low = 2 + 2 * number;
            let expected = if number < count {
                [result as u32, (result >> 32) as u32]
            } else {
                [0x100 + low as u32, 0x101 + low as u32]
            };
            assert_eq!(after[low..low + 2], expected, "{operation:?}, result {number}");
        }
        assert_eq!(after[10..], [0x10A, 0x10B, 0x10C], "{operation:?}");
    }
}

#[test]
fn an_error_changes_r0_alone() {
    let after = called(Operation::ConsoleRead, Err(Error::NoRight));
    assert_eq!(after[0], -4_i32 as u32);
    assert_eq!(
        after[1..],
        core::array::from_fn::<u32, 12, _>(|number| 0x101 + number as u32)
    );
}

#[test]
fn what_is_no_function_of_ours_is_answered_at_once() {
    let mut machine = Trapped::new(Memory::new(), MAIN_TOP);
    machine.registers.general[0] = 0x8400_0000;
    let taken = machine.trap(|_, guest| Ok(take_hypercall(guest, 0)));
    assert_eq!(taken, Ok(None));
    assert_eq!(machine.registers.general[0], -1_i32 as u32);
    let pc = machine.peek(|_, guest| guest.register(15));
    assert_eq!(pc, machine.registers.pc, "the CPU has counted SVC itself");
}
