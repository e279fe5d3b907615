// SPDX-License-Identifier: Apache-2.0
//! The virtual machine control block of AMD-V (AMD APM volume 2, appendix B), and the numbers around it.
//!
//! It is an array of words. The hardware reads and writes it during VMRUN only, which is a call through a
//! raw pointer for the compiler.

use crate::board::BOARD;
use bulkhead_arch_x86_64_core::lapic::Window;

/// Byte offsets of fields of 64 bits.
pub(crate) const TSC_OFFSET: usize = 0x50;
/// ASID in bits 31:0, TLB_CONTROL in bits 39:32.
pub(crate) const ASID: usize = 0x58;
/// V_TPR, V_IRQ and the like.
pub(crate) const VIRTUAL_INTERRUPT: usize = 0x60;
/// Bit 0: the interrupt shadow.
pub(crate) const SHADOW: usize = 0x68;
pub(crate) const EXIT_CODE: usize = 0x70;
pub(crate) const EXIT_INFO_1: usize = 0x78;
pub(crate) const EXIT_INFO_2: usize = 0x80;
pub(crate) const EXIT_EVENT: usize = 0x88;
const NESTED_ENABLE: usize = 0x90;
pub(crate) const EVENT: usize = 0xA8;
pub(crate) const NESTED_ROOT: usize = 0xB0;
const IO_MAP: usize = 0x40;
const MSR_MAP: usize = 0x48;

/// Segments: selector, attributes and limit in the first word, the base in the second one.
pub(crate) const ES: usize = 0x400;
pub(crate) const CS: usize = 0x410;
pub(crate) const SS: usize = 0x420;
pub(crate) const DS: usize = 0x430;
pub(crate) const FS: usize = 0x440;
pub(crate) const GS: usize = 0x450;
pub(crate) const GDTR: usize = 0x460;
pub(crate) const LDTR: usize = 0x470;
pub(crate) const IDTR: usize = 0x480;
pub(crate) const TR: usize = 0x490;
/// CPL in bits 31:24 of this word.
pub(crate) const CPL: usize = 0x4C8;
pub(crate) const EFER: usize = 0x4D0;
pub(crate) const CR4: usize = 0x548;
pub(crate) const CR3: usize = 0x550;
pub(crate) const CR0: usize = 0x558;
pub(crate) const DR7: usize = 0x560;
pub(crate) const DR6: usize = 0x568;
pub(crate) const RFLAGS: usize = 0x570;
pub(crate) const RIP: usize = 0x578;
pub(crate) const RSP: usize = 0x5D8;
pub(crate) const RAX: usize = 0x5F8;
pub(crate) const CR2: usize = 0x640;
pub(crate) const PAT: usize = 0x668;

/// Exit codes (appendix C).
pub(crate) mod exit {
    pub(crate) const CR4_WRITE: u64 = 0x14;
    pub(crate) const CR8_WRITE: u64 = 0x18;
    /// First and last access to a debug register.
    pub(crate) const DEBUG_REGISTER: u64 = 0x20;
    pub(crate) const DEBUG_REGISTER_LAST: u64 = 0x3F;
    /// First and last exception.
    pub(crate) const EXCEPTION: u64 = 0x40;
    pub(crate) const EXCEPTION_LAST: u64 = 0x5F;
    pub(crate) const DEBUG: u64 = EXCEPTION + 1;
    pub(crate) const MACHINE_CHECK: u64 = EXCEPTION + 18;
    pub(crate) const INTERRUPT: u64 = 0x60;
    pub(crate) const NMI: u64 = 0x61;
    pub(crate) const SMI: u64 = 0x62;
    pub(crate) const INIT: u64 = 0x63;
    pub(crate) const WINDOW: u64 = 0x64;
    pub(crate) const CPUID: u64 = 0x72;
    pub(crate) const RETURN: u64 = 0x74;
    pub(crate) const INVD: u64 = 0x76;
    pub(crate) const HALT: u64 = 0x78;
    pub(crate) const PORT: u64 = 0x7B;
    pub(crate) const MSR: u64 = 0x7C;
    pub(crate) const SHUTDOWN: u64 = 0x7F;
    pub(crate) const HYPERCALL: u64 = 0x81;
    pub(crate) const WRITE_BACK: u64 = 0x89;
    pub(crate) const NESTED_FAULT: u64 = 0x400;
    /// The low 32 bits: QEMU 7.2 leaves out the others.
    pub(crate) const INVALID: u64 = 0xFFFF_FFFF;
}

/// Intercepts of the word at 0x00C: INTR, NMI, SMI, INIT, RDPMC, CPUID, RSM, INVD, HLT, INVLPGA, IOIO, MSR,
/// FERR_FREEZE, SHUTDOWN.
const INTERCEPTS_3: u64 = 1
    | 1 << 1
    | 1 << 2
    | 1 << 3
    | 1 << 15
    | 1 << 18
    | 1 << 19
    | 1 << 22
    | 1 << 24
    | 1 << 26
    | 1 << 27
    | 1 << 28
    | 1 << 30
    | 1 << 31;
/// The interrupt window, in the same word.
const INTERCEPT_WINDOW: u64 = 1 << 4;
/// IRET, in that word with the one before it.
const INTERCEPT_IRET: u64 = 1 << (32 + 20);
/// INTR and HLT in that word: a vCPU that takes the interrupts of its pCPU itself has neither.
const INTERCEPTS_OF_OTHERS: u64 = 1 | 1 << 24;
/// Intercepts of the word at 0x010: VMRUN, VMMCALL, VMLOAD, VMSAVE, STGI, CLGI, SKINIT, WBINVD, MONITOR,
/// MWAIT, MWAIT conditional, XSETBV.
const INTERCEPTS_4: u64 = 0x7F | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 12 | 1 << 13;
/// The write of CR4, in the word of CR intercepts.
const INTERCEPT_CR4: u64 = 1 << (16 + 4);
/// Reads and writes of DR0 to DR3, which VMRUN does not switch. They are in the next word.
const INTERCEPT_DEBUG: u64 = 0x000F_000F << 32;
/// #DB and #AC: the delivery of one can cause the next one, without end and with interrupts locked out (AMD
/// APM volume 2, 15.12.2 and 15.12.18). The exit lets interrupts in.
const INTERCEPT_ENDLESS: u64 = 1 << 1 | 1 << 17;
/// #MC: a machine check is of the board, and not of the guest that happens to run (15.12.15).
const INTERCEPT_CHECK: u64 = 1 << 18;
/// TLB_CONTROL (15.16.2): forget all entries, or the entries of the address space alone.
const FORGET_ALL: u64 = 1 << 32;
const FORGET_OWN: u64 = 3 << 32;
/// The write of CR8, which exits while an interrupt waits. QEMU 7.2 ends with an assertion at such a write
/// in a run with a fixed instruction clock.
const INTERCEPT_CR8: u64 = 1 << (16 + 8);

/// V_IRQ, V_INTR_PRIO, V_IGN_TPR, V_INTR_MASKING.
const V_IRQ: u64 = 1 << 8;
const V_PRIORITY: u32 = 16;
const V_IGNORE_TPR: u64 = 1 << 20;
const V_MASKING: u64 = 1 << 24;

/// Bit of an event that says that there is one.
pub(crate) const EVENT_VALID: u64 = 1 << 31;
/// Bit of an event that says that it has an error code.
const EVENT_HAS_CODE: u64 = 1 << 11;

/// Returns the way to forget the entries of an address space. Entries of others stay, so that no guest slows
/// its neighbours down, if the processor can do that.
#[cold]
fn forget_control() -> u64 {
    let forgets_own = BOARD.get().is_some_and(|board| board.forgets_own);
    if forgets_own { FORGET_OWN } else { FORGET_ALL }
}

/// A block.
#[repr(C, align(4096))]
pub(crate) struct Vmcb([u64; 512]);

impl Vmcb {
    /// Makes a block of zeros, which VMRUN refuses.
    pub(crate) const fn new() -> Self {
        Self([0; 512])
    }

    /// Returns the field at a byte offset that is a multiple of 8.
    #[inline(always)]
    pub(crate) fn get(&self, field: usize) -> u64 {
        self.0.get(field / 8).copied().unwrap_or(0)
    }

    /// Sets the field at a byte offset that is a multiple of 8.
    #[inline(always)]
    pub(crate) fn set(&mut self, field: usize, value: u64) {
        if let Some(word) = self.0.get_mut(field / 8) {
            *word = value;
        }
    }

    /// Sets a segment.
    pub(crate) fn set_segment(&mut self, segment: usize, selector: u16, attributes: u16, base: u64) {
        let limit = if attributes & 0x800 != 0 {
            u64::from(u32::MAX)
        } else {
            0xFFFF
        };
        self.set(
            segment,
            u64::from(selector) | u64::from(attributes) << 16 | limit << 32,
        );
        self.set(segment + 8, base);
    }

    /// Returns the attributes of a segment.
    pub(crate) fn attributes(&self, segment: usize) -> u16 {
        (self.get(segment) >> 16) as u16
    }

    /// Makes all settings that stay as they are. A task's exceptions leave the guest, too.
    pub(crate) fn control(&mut self, maps: (u64, u64), is_task: bool) {
        self.0 = [0; 512];
        self.set(0x00, INTERCEPT_CR4 | INTERCEPT_DEBUG);
        let exceptions = if is_task {
            u64::from(u32::MAX)
        } else {
            INTERCEPT_ENDLESS | INTERCEPT_CHECK
        };
        self.set(0x08, exceptions | INTERCEPTS_3 << 32);
        self.set(0x10, INTERCEPTS_4);
        self.set(IO_MAP, maps.0);
        self.set(MSR_MAP, maps.1);
        self.set(NESTED_ENABLE, 1);
        self.set(VIRTUAL_INTERRUPT, V_MASKING);
    }

    /// Gives the guest the interrupts of its pCPU and these ports. RFLAGS.IF of the guest masks interrupts
    /// then, and HLT waits for one. CR8 would be the task priority of the pCPU, so its write exits.
    pub(crate) fn direct(&mut self, ports: u64) {
        self.set(0x00, self.get(0x00) | INTERCEPT_CR8);
        self.set(0x08, self.get(0x08) & !(INTERCEPTS_OF_OTHERS << 32));
        self.set(IO_MAP, ports);
        self.set(VIRTUAL_INTERRUPT, 0);
    }

    /// Tells whether the guest has the interrupts of its pCPU.
    fn is_direct(&self) -> bool {
        self.get(0x08) & 1 << 32 == 0
    }

    /// Lets the guest use DR0 to DR3 without an exit.
    pub(crate) fn open_debug_registers(&mut self) {
        self.set(0x00, self.get(0x00) & !INTERCEPT_DEBUG);
    }

    /// Sets the identifier of the address space.
    pub(crate) fn set_space(&mut self, identifier: u32) {
        self.set(ASID, identifier.into());
    }

    /// Says whether entries of the address space are forgotten at the next entry.
    #[inline(always)]
    pub(crate) fn forget_space(&mut self, forget: bool) {
        let identifier = self.get(ASID) & 0xFFFF_FFFF;
        let control = if forget { forget_control() } else { 0 };
        self.set(ASID, identifier | control);
    }

    /// Says whether IRET exits.
    pub(crate) fn watch_return(&mut self, exits: bool) {
        let word = self.get(0x08);
        self.set(
            0x08,
            if exits {
                word | INTERCEPT_IRET
            } else {
                word & !INTERCEPT_IRET
            },
        );
    }

    /// Returns the privilege level of the guest.
    pub(crate) fn level(&self) -> u8 {
        (self.get(CPL) >> 24) as u8 & 3
    }

    /// Returns V_TPR.
    pub(crate) fn task_priority(&self) -> u8 {
        self.get(VIRTUAL_INTERRUPT) as u8 & 0xF
    }

    /// Sets V_TPR.
    #[inline(always)]
    pub(crate) fn set_task_priority(&mut self, priority: u8) {
        let others = self.get(VIRTUAL_INTERRUPT) & !0xF;
        self.set(VIRTUAL_INTERRUPT, others | u64::from(priority & 0xF));
    }

    /// Sets V_TPR, and asks for an exit when the guest can take an interrupt.
    ///
    /// A lower task priority comes by an exit, too. So the processor is never asked to compare priorities,
    /// which QEMU 7.2 does in another way than hardware: it lets a vector of the same class in.
    pub(crate) fn set_window(&mut self, priority: u8, window: Window) {
        let opens = matches!(window, Window::Interrupts);
        let request = if opens {
            V_IRQ | V_IGNORE_TPR | 0xF << V_PRIORITY
        } else {
            0
        };
        let masking = self.get(VIRTUAL_INTERRUPT) & V_MASKING;
        self.set(VIRTUAL_INTERRUPT, masking | u64::from(priority & 0xF) | request);
        let word = self.get(0x08);
        let bit = INTERCEPT_WINDOW << 32;
        self.set(0x08, if opens { word | bit } else { word & !bit });
        let exits = !matches!(window, Window::Nothing) || self.is_direct();
        let priority = if exits { INTERCEPT_CR8 } else { 0 };
        self.set(0x00, self.get(0x00) & !INTERCEPT_CR8 | priority);
    }
}

/// Returns the event of an external interrupt.
pub(crate) fn interrupt(vector: u8) -> u64 {
    EVENT_VALID | u64::from(vector)
}

/// Returns the event of a non-maskable interrupt.
pub(crate) fn non_maskable() -> u64 {
    EVENT_VALID | 2 << 8 | 2
}

/// Returns the event of an exception.
pub(crate) fn exception(vector: u8, code: Option<u32>) -> u64 {
    let code = code.map_or(0, |code| EVENT_HAS_CODE | u64::from(code) << 32);
    EVENT_VALID | 3 << 8 | u64::from(vector) | code
}
