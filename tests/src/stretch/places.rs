// SPDX-License-Identifier: Apache-2.0
//! The places of a class binary that the plugin must know: where a guest comes in, where the hypervisor
//! leaves and where it looks.
//!
//! On `aarch64` all of it is in the instructions: the vectors of lower exception levels, ERET outside of the
//! vectors, reads of `ICC_IAR1_EL1`, reads of `ISR_EL1` that a loop ends by, and WFI. A GICv2 is looked at by
//! a load. On `armv7m` and `armv8m` guests come in at handlers with names, the hypervisor leaves by `BX LR`
//! in the assembly, and looks by loads of NVIC_ISPR and ICSR. On `ppc405` guests come in at the vectors, the
//! hypervisor leaves by RFI, and looks by reads of the status of the UIC. On `x86_64` a guest comes in after
//! VMRUN, by which the hypervisor leaves, and the hypervisor looks where interrupts are on for one
//! instruction.

use object::{Architecture, Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};
use std::fmt::Write as _;

/// Kinds of stretches by what they went through, the most telling first: name, and part of the function's
/// symbol.
pub(super) const TAGS: &[(&str, &str)] = &[
    ("load", "10load_chunk"),
    ("output", "11Multiplexer"),
    ("registers", "13log_registers"),
    ("state", "9log_state"),
    ("fault", "5fault"),
    ("no such address", "15no_such_address"),
    ("network", "7network"),
    ("host call", "9host_call"),
    ("stop or load order", "11take_orders"),
    ("life cycle", "5apply"),
    ("timer or watchdog due", "8wake_due"),
    ("device access", "6access"),
    ("CPU on", "13handle_cpu_on"),
    ("hypercall", "11handle_call"),
    ("virtual interrupt controller", "vgic"),
    ("slow switch", "13switch_slowly"),
    ("decision", "12decide_fully"),
    ("exit", "11handle_rest"),
    ("idle", "4wait"),
];

/// Parts of the symbols of functions that end the system or the hypervisor.
const ENDS: &[&str] = &[
    "5crash5crash",
    "5crash5panic",
    "bulkhead_crash",
    "10end_system",
    "14finish_reports",
    "10last_words",
    "4boot8lockdown",
];

/// A read-only view of the class binary's code and functions.
#[derive(Debug)]
pub struct Symbols {
    /// The number that is added to an address of the file.
    shift: u64,
    /// First and last address of the code, at run time.
    text: (u64, u64),
    /// Functions by address, at run time.
    functions: Vec<(u64, String)>,
    class: Class,
}

/// The classes whose binaries are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// `aarch64`.
    Large,
    /// `armv7m` or `armv8m`.
    Small,
    /// `ppc405`.
    Power,
    /// `x86_64`.
    Pc,
}

type Elf<'d> = object::File<'d>;

impl Symbols {
    /// Finds the places of the class binary `elf`. The class binary of `aarch64` is loaded at `load_address`,
    /// the others where they are linked.
    pub(super) fn new(elf: &[u8], load_address: u64) -> Result<Self, String> {
        let file = Elf::parse(elf).map_err(|error| format!("the class binary: {error}"))?;
        let (class, shift) = match file.architecture() {
            Architecture::Aarch64 => (Class::Large, load_address),
            Architecture::Arm => (Class::Small, 0),
            Architecture::PowerPc => (Class::Power, 0),
            Architecture::X86_64 => (Class::Pc, 0),
            other => return Err(format!("class binaries for {other:?} are not understood")),
        };
        let mut text = (u64::MAX, 0);
        for section in file
            .sections()
            .filter(|section| section.kind() == SectionKind::Text)
        {
            text.0 = text.0.min(section.address() + shift);
            text.1 = text.1.max(section.address() + section.size() + shift);
        }
        if text.0 >= text.1 {
            return Err("the class binary has no code".to_owned());
        }
        let mut functions: Vec<(u64, String)> = file
            .symbols()
            .filter(|symbol| {
                symbol.kind() == SymbolKind::Text || (symbol.is_definition() && symbol.size() == 0)
            })
            .filter_map(|symbol| Some(((symbol.address() & !1) + shift, symbol.name().ok()?.to_owned())))
            .filter(|(address, name)| (text.0..text.1).contains(address) && !name.starts_with(['$', '.']))
            .collect();
        functions.sort();
        functions.dedup_by_key(|function| function.0);
        Ok(Self {
            shift,
            text,
            functions,
            class,
        })
    }

    pub(super) const fn class(&self) -> Class {
        self.class
    }

    /// Returns the first address of the code.
    pub(super) const fn start(&self) -> u64 {
        self.text.0
    }

    /// Returns the function at `address`.
    pub(super) fn function(&self, address: u64) -> &str {
        let behind = self.functions.partition_point(|(start, _)| *start <= address);
        let found = behind.checked_sub(1).and_then(|index| self.functions.get(index));
        found.map_or("?", |(_, name)| name)
    }

    fn address_of(&self, name: &str) -> Result<u64, String> {
        let found = self.functions.iter().find(|(_, function)| function == name);
        found
            .map(|(address, _)| *address)
            .ok_or_else(|| format!("the class binary has no `{name}`"))
    }

    /// Returns the plugin's file of places.
    pub(super) fn places(&self, elf: &[u8], reads: &[u64]) -> Result<String, String> {
        let file = Elf::parse(elf).map_err(|error| format!("the class binary: {error}"))?;
        let mut text = String::new();
        let mut say = |what: &str, first: u64, second: u64| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{what} {first:x} {second:x}");
        };
        say("text", self.text.0, self.text.1);
        reads.iter().for_each(|address| say("read", *address, 0));
        for (address, name) in &self.functions {
            for (bit, (_, part)) in (0..).zip(TAGS) {
                if name.contains(part) {
                    say("tag", *address, bit);
                }
            }
        }
        for (address, name) in &self.functions {
            if ENDS.iter().any(|part| name.contains(part)) {
                say("end", *address, 0);
            }
        }
        match self.class {
            Class::Large => self.large_places(&file, &mut say)?,
            Class::Small => self.small_places(&file, &mut say)?,
            Class::Power => self.power_places(&file, &mut say)?,
            Class::Pc => pc_places(&file, &mut say)?,
        }
        Ok(text)
    }

    /// `aarch64`.
    fn large_places(&self, file: &Elf<'_>, say: &mut impl FnMut(&str, u64, u64)) -> Result<(), String> {
        for section in file
            .sections()
            .filter(|section| section.kind() == SectionKind::Text)
        {
            let code = section.data().map_err(|error| error.to_string())?;
            let base = section.address() + self.shift;
            let vectors = crate::case::vectors(code).ok_or("the class binary has no exception vectors")?;
            let own = base + vectors as u64;
            for number in 8..16 {
                say("enter", own + number * 0x80, number);
            }
            let words: Vec<u32> = code
                .chunks_exact(4)
                .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
                .collect();
            for (index, word) in words.iter().enumerate() {
                let address = base + 4 * index as u64;
                let next = words.get(index + 1).copied().unwrap_or(0);
                // ERET of the hypervisor's own vectors goes back to the hypervisor.
                let inside = (own..own + 0x400).contains(&address);
                match instruction(*word, next) {
                    Some("leave") if inside => {}
                    Some(what) => say(what, address, 0),
                    None => {}
                }
            }
        }
        Ok(())
    }

    /// `ppc405`.
    fn power_places(&self, file: &Elf<'_>, say: &mut impl FnMut(&str, u64, u64)) -> Result<(), String> {
        /// The vectors (PPC405 Embedded Processor Core User's Manual, table 5-2).
        const VECTORS: [u64; 15] = [
            0x100, 0x200, 0x300, 0x400, 0x500, 0x600, 0x700, 0x800, 0xC00, 0x1000, 0x1010, 0x1020, 0x1100,
            0x1200, 0x2000,
        ];
        const RFI: u32 = 0x4C00_0064;
        /// `mfdcr` from UIC0_MSR into any register.
        const MFDCR_MASKED_STATUS: u32 = 0x7C06_3286;
        const REGISTER: u32 = 0x03E0_0000;
        // The vectors are the first code, where another symbol is, too.
        let vectors = self.start();
        for vector in VECTORS {
            say("enter", vectors + vector, vector / 0x10);
        }
        let idle = self.address_of("bulkhead_idle")?;
        say("idle", idle, idle + 20);
        for section in file
            .sections()
            .filter(|section| section.kind() == SectionKind::Text)
        {
            let code = section.data().map_err(|error| error.to_string())?;
            for (index, word) in code.chunks_exact(4).enumerate() {
                let address = section.address() + 4 * index as u64;
                match u32::from_be_bytes([word[0], word[1], word[2], word[3]]) {
                    RFI => say("leave", address, 0),
                    word if word & !REGISTER == MFDCR_MASKED_STATUS => say("look", address, 0),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// `armv7m` and `armv8m`.
    fn small_places(&self, file: &Elf<'_>, say: &mut impl FnMut(&str, u64, u64)) -> Result<(), String> {
        const ARMV7M: &[(&str, u64)] = &[
            ("bulkhead_hard_fault", 3),
            ("bulkhead_memory", 4),
            ("bulkhead_bus", 5),
            ("bulkhead_usage", 6),
            ("bulkhead_call", 11),
            ("bulkhead_line", 16),
        ];
        const ARMV8M: &[(&str, u64)] = &[
            ("bulkhead_fault", 3),
            ("bulkhead_access", 7),
            ("bulkhead_instruction", 6),
            ("bulkhead_call", 11),
            ("bulkhead_line", 16),
        ];
        let has_worlds = self.address_of("bulkhead_save_world").is_ok();
        for (name, number) in if has_worlds { ARMV8M } else { ARMV7M } {
            say("enter", self.address_of(name)?, *number);
        }
        let idle = self.address_of("bulkhead_idle")?;
        say("idle", idle, idle + 4);
        // The assembly of the entries, from the first to the last of its functions.
        let first = self.address_of("bulkhead_first")?;
        for section in file
            .sections()
            .filter(|section| section.kind() == SectionKind::Text)
        {
            let code = section.data().map_err(|error| error.to_string())?;
            for (index, half) in code.chunks_exact(2).enumerate() {
                let address = section.address() + 2 * index as u64;
                // BX LR.
                if (first..idle).contains(&address) && u16::from_le_bytes([half[0], half[1]]) == 0x4770 {
                    say("leave", address, 0);
                }
            }
        }
        Ok(())
    }
}

/// `x86_64`: instructions begin anywhere, so each place is the end of a sequence that nothing else has (AMD
/// APM volume 3: VMRUN, STI, HLT, NOP, CLI).
fn pc_places(file: &Elf<'_>, say: &mut impl FnMut(&str, u64, u64)) -> Result<(), String> {
    /// `vmrun rax`, `vmsave rax`.
    const ROUND: [u8; 6] = [0x0F, 0x01, 0xD8, 0x0F, 0x01, 0xDB];
    /// `xor eax, eax`, `sti`, `nop`, `cli`; and with `hlt`.
    const LOOK: [u8; 5] = [0x31, 0xC0, 0xFB, 0x90, 0xFA];
    const WAIT: [u8; 5] = [0x31, 0xC0, 0xFB, 0xF4, 0xFA];
    let mut found = [false; 2];
    for section in file
        .sections()
        .filter(|section| section.kind() == SectionKind::Text)
    {
        let code = section.data().map_err(|error| error.to_string())?;
        for (index, bytes) in code.windows(ROUND.len()).enumerate() {
            let address = section.address() + index as u64;
            if bytes == ROUND {
                say("leave", address, 0);
                say("enter", address + 3, 0);
                found[0] = true;
            } else if bytes.starts_with(&LOOK) {
                say("look", address + 3, 0);
                found[1] = true;
            } else if bytes.starts_with(&WAIT) {
                say("wait", address + 3, 0);
            }
        }
    }
    if found == [true; 2] {
        Ok(())
    } else {
        Err("the class binary has no way into a guest, or no look".to_owned())
    }
}

/// Tells what an instruction of A64 means to the search for stretches. `next` is the instruction after it
/// (Arm DDI 0487, C6.2; registers: D17.2).
fn instruction(word: u32, next: u32) -> Option<&'static str> {
    const ERET: u32 = 0xD69F_03E0;
    const WFE: u32 = 0xD503_205F;
    const WFI: u32 = 0xD503_207F;
    const REGISTER: u32 = 31;
    const MRS_ISR_EL1: u32 = 0xD538_C100;
    const MRS_ICC_IAR1_EL1: u32 = 0xD538_CC00;
    const CBZ_OR_CBNZ_X: u32 = 0xB400_0000;
    match word & !REGISTER {
        _ if word == ERET => Some("leave"),
        _ if word == WFI || word == WFE => Some("wait"),
        MRS_ICC_IAR1_EL1 => Some("look"),
        // Reads for the sake of SErrors test one bit.
        MRS_ISR_EL1 if next & 0xFE00_0000 == CBZ_OR_CBNZ_X && next & REGISTER == word & REGISTER => {
            Some("look")
        }
        _ => None,
    }
}

/// Addresses whose loads are looks.
pub(super) fn looking_loads(class: Class, gic: u64, interface: Option<u64>) -> Vec<u64> {
    /// `GICC_IAR`.
    const ACKNOWLEDGE: u64 = 0xC;
    /// `NVIC_ISPR0` and `ICSR` (Arm DDI 0403E, B3.4.5 and B3.2.4).
    const PENDING: [u64; 2] = [0xE000_E200, 0xE000_ED04];
    match (class, gic) {
        (Class::Small, _) => PENDING.to_vec(),
        (Class::Large, 2) => interface.map(|base| base + ACKNOWLEDGE).into_iter().collect(),
        _ => Vec::new(),
    }
}
