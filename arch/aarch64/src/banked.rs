// SPDX-License-Identifier: Apache-2.0
//! Registers that only AArch32 uses.

use crate::fp::CPTR_OPEN;
use crate::sysreg::{instruction, read_register, write_guest_register};

macro_rules! banked_registers {
    ($($field:ident = $name:literal),* $(,)?) => {
        /// Registers that only AArch32 uses. FPEXC does not wait for the FP registers to be switched. An
        /// instruction that FPEXC makes undefined does not trap to the hypervisor, so another vCPU's value
        /// would show.
        #[derive(Clone, Copy)]
        pub(crate) struct Banked {
            $(pub(crate) $field: u64),*
        }

        impl Banked {
            /// Every register zero.
            pub(crate) const ZERO: Self = Self { $($field: 0),* };

            /// Reads all from the hardware. FP does not trap afterwards.
            pub(crate) fn save(&mut self) {
                open_fp();
                $(self.$field = read_register!($name);)*
            }

            /// Writes all to the hardware. FP does not trap afterwards.
            pub(crate) fn load(&self) {
                open_fp();
                $(write_guest_register!($name, self.$field);)*
            }
        }
    };
}

banked_registers! {
    dacr = "dacr32_el2",
    ifsr = "ifsr32_el2",
    fpexc = "fpexc32_el2",
    spsr_abt = "spsr_abt",
    spsr_und = "spsr_und",
    spsr_irq = "spsr_irq",
    spsr_fiq = "spsr_fiq",
}

/// Opens FP: FPEXC32_EL2 is an FP register to CPTR_EL2.TFP (D19.2.46).
fn open_fp() {
    write_guest_register!("cptr_el2", CPTR_OPEN);
    instruction!("isb");
}
