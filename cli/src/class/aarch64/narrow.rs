// SPDX-License-Identifier: Apache-2.0
//! Exceptions of a VM whose EL1 is AArch32, told from the registers after a report.
//!
//! The report has neither VBAR nor SPSR. The mode and the offset of the vector say which exception it was.
//! The banked link register of the mode says where (Arm DDI 0487, G1.12.3 and G1.12.4).

use crate::class::{Code, Untaken};

/// The size of a table of vectors.
const VECTORS: u64 = 0x20;
/// The places of the table at a reset, of which SCTLR.V chooses one.
const RESET_VECTORS: [u64; 2] = [0, 0xFFFF_0000];
const SUPERVISOR: u64 = 0x13;

/// An exception: its offset, its mode, its link register, and its name. The instruction is so many bytes
/// before the link register, in A32 and in T32.
struct Exception {
    offset: u64,
    mode: u64,
    link: &'static str,
    what: &'static str,
    wide: u64,
    narrow: u64,
}

const EXCEPTIONS: [Exception; 6] = [
    exception(0x04, 0x1B, "lr_und", "executed an undefined instruction", 4, 2),
    exception(0x08, 0x13, "lr_svc", "executed SVC", 4, 2),
    exception(
        0x0C,
        0x17,
        "lr_abt",
        "took a prefetch abort, or executed BKPT",
        4,
        4,
    ),
    exception(0x10, 0x17, "lr_abt", "took a data abort", 8, 8),
    exception(0x18, 0x12, "lr_irq", "was interrupted (IRQ)", 4, 4),
    exception(0x1C, 0x11, "lr_fiq", "was interrupted (FIQ)", 4, 4),
];

const fn exception(
    offset: u64,
    mode: u64,
    link: &'static str,
    what: &'static str,
    wide: u64,
    narrow: u64,
) -> Exception {
    Exception {
        offset,
        mode,
        link,
        what,
        wide,
        narrow,
    }
}

/// Returns the exception whose vector cannot be fetched, or the last one before the program ran through zeros
/// to the end of its memory: zeros are instructions without effect.
pub(super) fn untaken(register: &dyn Fn(&str) -> Option<u64>, code: &dyn Code) -> Option<Untaken> {
    let [pc, state] = ["pc", "state"].map(register);
    let (pc, mode) = (pc?, state? & 0x1F);
    let mut of_mode = EXCEPTIONS.iter().filter(|exception| exception.mode == mode);
    let at_vector = of_mode
        .clone()
        .find(|exception| pc % VECTORS == exception.offset && !code.is_memory(pc));
    if let Some(exception) = at_vector {
        let table = pc - exception.offset;
        let vectors = format!("its vectors are at {table:#x} (VBAR, SCTLR.V)");
        // Programs are in Supervisor mode most of the time, so a wild jump can look like a call.
        let is_sure = mode != SUPERVISOR || RESET_VECTORS.contains(&table);
        let doubt = if is_sure { "" } else { ", unless it jumped there" };
        let what = format!("{}{doubt}", exception.what);
        let told = exception.told(what, vectors, register, code);
        // An abort at the vector itself, which the hypervisor handed to it, says nothing new.
        return told.filter(|told| told.pc.wrapping_sub(table) >= VECTORS);
    }
    let ran_off = code.is_memory(pc.checked_sub(1)?) && !code.is_memory(pc);
    let last = of_mode.next_back().filter(|_| ran_off)?;
    let names: Vec<&str> = of_mode.chain([last]).map(|exception| exception.what).collect();
    let what = format!(
        "{}, if that was what brought it into this mode, and then ran on to the end of its memory",
        names.join(", or ")
    );
    let vectors =
        "vectors of zeros are no end: zeros are instructions without effect (VBAR, SCTLR.V)".to_owned();
    last.told(what, vectors, register, code)
}

impl Exception {
    fn told(
        &self,
        what: String,
        vectors: String,
        register: &dyn Fn(&str) -> Option<u64>,
        code: &dyn Code,
    ) -> Option<Untaken> {
        let link = register(self.link)?;
        let is_thumb = link & 2 != 0 || code.is_thumb(link.saturating_sub(self.narrow));
        let length = if is_thumb { self.narrow } else { self.wide };
        Some(Untaken {
            what: format!("{what} ({} is {link:#x})", self.link),
            pc: link.wrapping_sub(length),
            vectors,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program of which one half is T32, with memory below an address.
    struct Half;

    impl Code for Half {
        fn is_memory(&self, address: u64) -> bool {
            (0x4000_0000..0x4020_0000).contains(&address)
        }

        fn is_thumb(&self, address: u64) -> bool {
            address < 0x4010_0000
        }
    }

    fn named(pc: u64, state: u64, link: u64) -> Option<Untaken> {
        let value = |name: &str| match name {
            "pc" => Some(pc),
            "state" => Some(state),
            name => name.starts_with("lr_").then_some(link),
        };
        untaken(&value, &Half)
    }

    #[test]
    fn every_exception_whose_vector_is_not_there_is_named_with_its_instruction() {
        const A32: u64 = 0x4010_0018;
        for (offset, mode, what, before) in [
            (0x04, 0x1B, "undefined", 4),
            (0x08, 0x13, "SVC", 4),
            (0x0C, 0x17, "BKPT", 4),
            (0x10, 0x17, "data abort", 8),
            (0x18, 0x12, "IRQ", 4),
            (0x1C, 0x11, "FIQ", 4),
        ] {
            for table in [0, 0xFFFF_0000] {
                let untaken = named(table + offset, 0x1C0 | mode, A32).expect("it is at a vector");
                assert_eq!(untaken.pc, A32 - before, "{untaken:?}");
                assert!(untaken.what.contains(what), "{untaken:?}");
                assert!(
                    untaken.vectors.contains(&format!("at {table:#x} ")),
                    "{untaken:?}"
                );
            }
        }
        // The symbols, or the address alone, say that the instruction has 16 bits.
        for link in [0x4000_0018, 0x4010_001A] {
            assert_eq!(named(8, 0x1D3, link).map(|untaken| untaken.pc), Some(link - 2));
        }
    }

    #[test]
    fn a_jump_to_nowhere_is_no_exception() {
        assert_eq!(named(0x14, 0x1D3, 0), None, "no vector of the mode");
        assert_eq!(
            named(0x08, 0x1DF, 0),
            None,
            "System mode, which no exception enters"
        );
        assert_eq!(named(0x9000_0000, 0x1D3, 0), None);
        assert_eq!(named(0x0C, 0x1D7, 0x10), None, "the abort at the vector itself");
        let call = named(0x9000_0008, 0x1D3, 0x4010_0018).expect("it may have been one");
        assert!(call.what.contains("unless it jumped there"), "{call:?}");
        assert_eq!(named(0x4000_0008, 0x1D3, 0), None, "there it has memory");
    }

    #[test]
    fn a_run_through_zeros_to_the_end_of_memory_is_named() {
        let untaken = named(0x4020_0000, 0x1D3, 0x4010_0024).expect("it ran off its memory");
        assert!(
            untaken.pc == 0x4010_0020 && untaken.what.contains("SVC") && untaken.what.contains("lr_svc"),
            "{untaken:?}"
        );
    }
}
