// SPDX-License-Identifier: Apache-2.0
//! A bare-metal VM of class `x86_64`: a PC in 64-bit mode whose first 4 GiB are mapped to themselves.
//!
//! The VM's `main` is named by [`pc_main!`](crate::pc_main). It runs on vCPU 0 with interrupts masked and its
//! own stack; when it returns, the machine is switched off. The same file runs on a bare PC, which a PVH
//! loader starts (`qemu -kernel`): a comparison of the two runs shows what the hypervisor costs.

pub mod apic;
pub mod attempt;
pub mod clock;
pub mod cpu;
pub mod exception;
mod frame;
pub mod smp;
mod start;
pub mod uart;
pub mod user;

/// Names the function that is the VM's program: `fn(Machine)`.
#[macro_export]
macro_rules! pc_main {
    ($main:path) => {
        #[unsafe(no_mangle)]
        fn bulkhead_pc_main(machine: $crate::pc::Machine) {
            $main(machine)
        }
    };
}

/// The findings of the startup code.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    command_line: &'static str,
    started: u64,
}

/// First bytes of the start information.
const MAGIC: u32 = 0x336E_C578;
/// Longest command line the library looks at.
const COMMAND_LINE_MAX: usize = 0xFFF;

impl Machine {
    /// Describes the machine by the start information of PVH (Xen `public/arch-x86/hvm/start_info.h`).
    fn new(start_info: usize, started: u64) -> Self {
        let info = core::ptr::with_exposed_provenance::<[u64; 4]>(start_info);
        // SAFETY: the loader puts the information there, in RAM that no code writes while the program runs.
        let [magic, _, _, command_line] = unsafe { info.read() };
        if magic as u32 != MAGIC || command_line == 0 {
            return Self {
                command_line: "",
                started,
            };
        }
        let bytes = core::ptr::with_exposed_provenance::<u8>(command_line as usize);
        // SAFETY: as above; RAM goes on for longer than a command line.
        let bytes = unsafe { core::slice::from_raw_parts(bytes, COMMAND_LINE_MAX) };
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(0);
        Self {
            command_line: core::str::from_utf8(&bytes[..end]).unwrap_or(""),
            started,
        }
    }

    /// Returns the time-stamp counter at the first instruction.
    #[must_use]
    pub const fn started(&self) -> u64 {
        self.started
    }

    /// Returns the command line, empty if there is none.
    #[must_use]
    pub const fn bootargs(&self) -> &'static str {
        self.command_line
    }
}

/// Switches the machine off by ACPI.
pub fn power_off() -> ! {
    /// PM1a control of the machine's FADT, and its bit for sleep, of type 0.
    const CONTROL: u16 = 0x604;
    const SLEEP: u16 = 1 << 13;
    loop {
        cpu::write_port16(CONTROL, SLEEP);
    }
}

/// Resets the machine.
pub fn reset() -> ! {
    loop {
        cpu::write_port8(0xCF9, 6);
    }
}
