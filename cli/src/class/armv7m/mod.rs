// SPDX-License-Identifier: Apache-2.0
//! Class `armv7m`.

mod frames;

use super::cortex_m::{self, fault_status};
use super::{Code, Debugger, Template, Tool, Untaken};
use crate::build::linker::Link;
use crate::serial::health::Event;
use bulkhead_arch_api::ClassFacts;
use bulkhead_arch_api::class::ARMV7M;
use bulkhead_manifest::Board;
use bulkhead_manifest::system::Partition;

/// Numbers of exceptions.
const HARD_FAULT: u64 = 3;
const SUPERVISOR_CALL: u64 = 11;
/// CFSR.INVSTATE: also set by the first instruction after a vector of 0.
const INVALID_STATE: u64 = 1 << 17;

/// The class.
pub struct Armv7m;

impl Tool for Armv7m {
    fn facts(&self) -> &'static ClassFacts {
        &ARMV7M
    }

    fn target(&self) -> &'static str {
        "thumbv7em-none-eabi"
    }

    fn sets_are_packages(&self) -> bool {
        true
    }

    fn link(&self, board: &Board) -> Option<Link> {
        Some(cortex_m::link(board))
    }

    fn flash_name(&self) -> &'static str {
        cortex_m::FLASH_NAME
    }

    fn debugger(&self) -> Debugger {
        cortex_m::DEBUGGER
    }

    fn template(&self) -> Template {
        Template {
            manifest: include_str!("template/system.toml"),
            readme: include_str!("template/README.md"),
        }
    }

    fn sentence(&self, syndrome: u64, event: &Event, _partition: &Partition<'_>) -> String {
        fault_status::sentence(syndrome, event.address)
    }

    fn fields(&self, syndrome: u64) -> String {
        fault_status::fields(syndrome)
    }

    fn is_asynchronous(&self, syndrome: u64) -> bool {
        fault_status::is_asynchronous(syndrome)
    }

    fn untaken(&self, register: &dyn Fn(&str) -> Option<u64>, code: &dyn Code) -> Option<Untaken> {
        let [pc, from, status, state] = ["pc", "from", "cfsr", "state"].map(register);
        if pc != Some(0) {
            return None;
        }
        let (from, status) = (from?, status?);
        // Its vector was taken for an address to go on at, and lost the bit of Thumb with that.
        if is_fault_at_zero(register) {
            return frames::untaken(register("lr").unwrap_or_default(), status, code.seen());
        }
        // IPSR (Arm DDI 0403E.e, B1.4.2). The return address of a call is after it; the instruction has 16
        // bits.
        let (what, pc, exception) = match state.unwrap_or_default() & 0x1FF {
            SUPERVISOR_CALL => ("executed SVC".to_owned(), from.wrapping_sub(2), SUPERVISOR_CALL),
            exception @ (2 | 12..) => (
                format!("was interrupted by {}", fault_status::exception(exception)),
                from,
                exception,
            ),
            // Of all causes these two alone leave no bit.
            HARD_FAULT if status & !INVALID_STATE == 0 => (
                "executed BKPT, or an entry of its vector table could not be read".to_owned(),
                from,
                HARD_FAULT,
            ),
            exception if status != 0 => (
                format!("had a fault: {}", fault_status::fields(status)),
                from,
                exception.max(HARD_FAULT),
            ),
            _ => return None,
        };
        Some(Untaken {
            what,
            pc,
            vectors: format!(
                "the vector of its {} is 0 (word {exception} of its vector table, counted from 0)",
                fault_status::exception(exception)
            ),
        })
    }

    fn wanted(&self, register: &dyn Fn(&str) -> Option<u64>) -> Option<(u64, usize)> {
        let [stack, link] = ["sp", "lr"].map(register);
        frames::wanted(stack?, link?).filter(|_| is_fault_at_zero(register))
    }

    fn remedy(&self, event: &Event) -> Option<&'static str> {
        cortex_m::remedy(event)
    }
}

/// Tells whether the registers show a HardFault at address 0 whose vector is 0.
fn is_fault_at_zero(register: &dyn Fn(&str) -> Option<u64>) -> bool {
    let is_hard_fault = register("state").is_some_and(|state| state & 0x1FF == HARD_FAULT);
    is_hard_fault && register("pc") == Some(0) && register("from") == Some(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::NoCode;

    #[test]
    fn the_fault_behind_a_lock_up_is_named() {
        let untaken = named(0, 1 << 16, 3).expect("it is at no code");
        assert!(
            untaken.pc == 0x22 && untaken.what.contains("UNDEFINSTR"),
            "{untaken:?}"
        );
        assert!(untaken.vectors.contains("HardFault is 0 (word 3"), "{untaken:?}");
        assert_eq!(named(0x40, 1 << 16, 3), None);
        assert_eq!(named(0, 0, 0), None, "a jump to 0");
    }

    #[test]
    fn a_call_or_an_interrupt_without_a_vector_is_named() {
        // An old fault that the program has handled changes nothing.
        for status in [0, 1 << 16] {
            let call = named(0, status, 11).expect("it is at no code");
            assert_eq!((call.pc, call.what.as_str()), (0x20, "executed SVC"));
            assert!(call.vectors.contains("SVCall is 0 (word 11"), "{call:?}");
            let tick = named(0, status, 15).expect("it is at no code");
            assert!(tick.pc == 0x22 && tick.what.contains("SysTick"), "{tick:?}");
            let line = named(0, status, 19).expect("it is at no code");
            assert!(line.what.contains("interrupt 3"), "{line:?}");
        }
    }

    /// Checks a breakpoint, which leaves no bit: with address 0 outside of the program, and in its code.
    #[test]
    fn a_breakpoint_without_a_vector_is_named() {
        for status in [0, INVALID_STATE] {
            let untaken = named(0, status, 3).expect("it is at no code");
            assert!(untaken.pc == 0x22 && untaken.what.contains("BKPT"), "{untaken:?}");
        }
    }

    /// Checks a call whose vector is 0 in a program with code at 0. The fault there has no vector, either.
    #[test]
    fn a_vector_of_zero_behind_a_vector_of_zero_is_named() {
        let untaken = from(0, INVALID_STATE, 3, 0).expect("it is at no code");
        assert!(untaken.what.contains("next on its stack"), "{untaken:?}");
        assert!(untaken.vectors.contains("HardFault is 0"), "{untaken:?}");
    }

    fn named(pc: u64, status: u64, state: u64) -> Option<Untaken> {
        from(pc, status, state, 0x22)
    }

    fn from(pc: u64, status: u64, state: u64, from: u64) -> Option<Untaken> {
        let registers = [("pc", pc), ("from", from), ("cfsr", status), ("state", state)];
        let value = |name: &str| Some(registers.iter().find(|(own, _)| *own == name)?.1);
        Armv7m.untaken(&value, &NoCode)
    }
}
