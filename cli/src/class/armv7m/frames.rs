// SPDX-License-Identifier: Apache-2.0
//! The frames on a stack whose exception and whose HardFault have no vector: what led to a lock-up at address
//! 0.
//!
//! A vector of 0 makes the processor go on at 0 without the bit of Thumb, which is a fault. The frame of that
//! fault is at the stack pointer of the report, and the frame of the exception itself after it (Arm DDI
//! 0403E.e, B1.5.6 and B1.5.8).

use super::{HARD_FAULT, SUPERVISOR_CALL};
use crate::class::Untaken;
use crate::class::cortex_m::fault_status;

/// The bytes of a frame, and of one with registers of floating point.
const FRAME: usize = 0x20;
const EXTENDED: usize = 0x68;
/// The bytes of two frames of any kind, with the word that aligns the second.
const BOTH: usize = EXTENDED + 4 + FRAME;
/// Values of LR from here on are no addresses (EXC_RETURN).
const RETURNS: u64 = 0xFFFF_FFE0;
/// Bits of EXC_RETURN: back to a thread, to the process stack, and a frame without floating point.
const TO_THREAD: u64 = 1 << 3;
const PROCESS_STACK: u64 = 1 << 2;
const BASIC: u64 = 1 << 4;
/// The bit of a frame's xPSR that says that a word was left out before it.
const ALIGNED: u64 = 1 << 9;

/// The registers of a frame that say where it comes from.
struct Frame {
    link: u64,
    pc: u64,
    psr: u64,
}

impl Frame {
    fn at(bytes: &[u8], at: usize) -> Option<Self> {
        let words = bytes.get(at..at + FRAME)?.as_chunks::<4>().0;
        let word = |number: usize| Some(u64::from(u32::from_le_bytes(*words.get(number)?)));
        Some(Self {
            link: word(5)?,
            pc: word(6)?,
            psr: word(7)?,
        })
    }
}

/// Returns the memory in which the frames are.
pub(super) fn wanted(stack: u64, link: u64) -> Option<(u64, usize)> {
    (link & PROCESS_STACK == 0).then_some((stack, BOTH))
}

/// Returns what led to address 0, by the memory from the stack pointer on and the LR of the report.
pub(super) fn untaken(link: u64, status: u64, seen: Option<&[u8]>) -> Option<Untaken> {
    let Some(fault) = seen.and_then(|seen| Frame::at(seen, 0)) else {
        return Some(not_seen(link));
    };
    let exception = fault.psr & 0x1FF;
    if exception == 0 || fault.link < RETURNS {
        return Some(jumped(exception, fault.link));
    }
    let size = if link & BASIC == 0 { EXTENDED } else { FRAME };
    let padding = if fault.psr & ALIGNED == 0 { 0 } else { 4 };
    let on_this_stack = fault.link & PROCESS_STACK == 0;
    let own = seen
        .filter(|_| on_this_stack)
        .and_then(|seen| Frame::at(seen, size + padding));
    let what = match exception {
        SUPERVISOR_CALL => "executed SVC".to_owned(),
        HARD_FAULT..SUPERVISOR_CALL => format!("had a fault: {}", fault_status::fields(status)),
        _ => format!("was interrupted by {}", fault_status::exception(exception)),
    };
    let unknown = if own.is_some() {
        ""
    } else {
        "; where, is in the frame on its process stack (PSP)"
    };
    let before = if exception == SUPERVISOR_CALL { 2 } else { 0 };
    Some(Untaken {
        what: format!("{what}{unknown}"),
        pc: own.map_or(0, |own| own.pc.wrapping_sub(before)),
        vectors: format!(
            "the vector of its {} is 0 (word {exception} of its vector table, counted from 0), and so is that of \
             its HardFault (word {HARD_FAULT})",
            fault_status::exception(exception)
        ),
    })
}

/// Describes a program that went to address 0 by itself. Its LR is after the last call.
fn jumped(exception: u64, link: u64) -> Untaken {
    let place = match exception {
        0 => String::new(),
        exception => format!(" in its handler of {}", fault_status::exception(exception)),
    };
    Untaken {
        what: format!("went on at address 0{place}, after the call below or by it"),
        pc: (link & !1).wrapping_sub(2),
        vectors: format!(
            "the vector of its HardFault is 0 (word {HARD_FAULT} of its vector table, counted from 0)"
        ),
    }
}

/// Describes what is known without the memory.
fn not_seen(link: u64) -> Untaken {
    let what = if link & TO_THREAD == 0 {
        "took an exception whose vector is 0, too: the frame of that one is the next on its stack, behind the one \
         at `sp`"
    } else {
        "went on at address 0: LR in the frame at its stack pointer says where from"
    };
    Untaken {
        what: what.to_owned(),
        pc: 0,
        vectors: format!(
            "the vector of its HardFault is 0 (word {HARD_FAULT} of its vector table, counted from 0)"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the words of a frame.
    fn frame(link: u32, pc: u32, psr: u32) -> Vec<u8> {
        let words = [0, 0, 0, 0, 0, link, pc, psr];
        words.into_iter().flat_map(u32::to_le_bytes).collect()
    }

    fn two(between: usize, exception: u32) -> Vec<u8> {
        let aligned = if between % 8 == 4 { 1 << 9 } else { 0 };
        let mut bytes = frame(0xFFFF_FFF9, 0, exception | aligned);
        bytes.resize(FRAME + between, 0);
        bytes.extend(frame(0x81, 0x42, 1 << 24));
        bytes
    }

    #[test]
    fn the_exception_behind_the_fault_is_named_with_its_instruction() {
        for (exception, what, pc) in [
            (11, "executed SVC", 0x40),
            (14, "was interrupted by PendSV", 0x42),
            (15, "was interrupted by SysTick", 0x42),
            (20, "was interrupted by interrupt 4", 0x42),
            (6, "had a fault: CFSR: UNDEFINSTR", 0x42),
        ] {
            for (between, link) in [(0, 0xFFFF_FFF1), (4, 0xFFFF_FFF1), (0x48, 0xFFFF_FFE1)] {
                let untaken =
                    untaken(link, 1 << 16, Some(&two(between, exception))).expect("there are frames");
                assert_eq!((untaken.what.as_str(), untaken.pc), (what, pc), "{between}");
                assert!(untaken.vectors.contains("HardFault (word 3)"), "{untaken:?}");
            }
        }
    }

    #[test]
    fn an_exception_on_the_other_stack_is_named_without_its_place() {
        let seen = [frame(0xFFFF_FFFD, 0, 11), frame(0, 0x42, 0)].concat();
        let untaken = untaken(0xFFFF_FFF1, 0, Some(&seen)).expect("there is a frame");
        assert!(untaken.what.starts_with("executed SVC;"), "{untaken:?}");
        assert_eq!(untaken.pc, 0);
    }

    #[test]
    fn a_jump_to_zero_is_no_exception() {
        let thread = untaken(0xFFFF_FFF9, 0, Some(&two_calls(0))).expect("there is a frame");
        assert!(
            thread.pc == 0x80 && thread.what.contains("address 0,"),
            "{thread:?}"
        );
        let handler = untaken(0xFFFF_FFF1, 0, Some(&two_calls(15))).expect("there is a frame");
        assert!(handler.what.contains("handler of SysTick"), "{handler:?}");
    }

    fn two_calls(exception: u32) -> Vec<u8> {
        frame(0x83, 0, exception)
    }
}
