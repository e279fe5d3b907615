// SPDX-License-Identifier: Apache-2.0
//! System registers by name, for the tests that read and write them.
//!
//! Writing is restricted to registers nothing in this library depends on; the ones that say where memory is
//! (`SCTLR`, `TTBR`, `VBAR`, ...) belong to [`super::mmu`] and the startup code.

use core::arch::asm;

macro_rules! readable {
    ($($(#[$meta:meta])* $variant:ident $name:literal;)*) => {
        /// A register that can be read.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the manual's names")]
        pub enum Register { $($(#[$meta])* $variant,)* }

        impl Register {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the register's name in the manual.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Returns the register's value.
            #[must_use]
            pub fn read(self) -> u64 {
                let value: u64;
                match self {
                    $(
                        // SAFETY: reading none of these registers has an effect.
                        Self::$variant => unsafe {
                            asm!(concat!("mrs {}, ", $name), out(reg) value, options(nomem, nostack, preserves_flags));
                        },
                    )*
                }
                value
            }
        }
    };
}

macro_rules! writable {
    ($($variant:ident $name:literal $mask:literal;)*) => {
        /// The registers a test may write, with the bits that hold what is written.
        pub const WRITABLE: &[(Register, u64)] = &[$((Register::$variant, $mask),)*];

        impl Register {
            /// Writes the register if it is one of [`WRITABLE`].
            pub fn write(self, value: u64) {
                match self {
                    $(
                        // SAFETY: neither this library nor compiled code depends on these registers.
                        Self::$variant => unsafe {
                            asm!(concat!("msr ", $name, ", {}"), "isb", in(reg) value, options(nostack));
                        },
                    )*
                    _ => {}
                }
            }
        }
    };
}

readable! {
    MIDR "midr_el1";
    MPIDR "mpidr_el1";
    REVIDR "revidr_el1";
    CTR "ctr_el0";
    DCZID "dczid_el0";
    CLIDR "clidr_el1";
    CCSIDR "ccsidr_el1";
    CSSELR "csselr_el1";
    CurrentEL "CurrentEL";
    PFR0 "id_aa64pfr0_el1";
    PFR1 "id_aa64pfr1_el1";
    DFR0 "id_aa64dfr0_el1";
    DFR1 "id_aa64dfr1_el1";
    ISAR0 "id_aa64isar0_el1";
    ISAR1 "id_aa64isar1_el1";
    MMFR0 "id_aa64mmfr0_el1";
    MMFR1 "id_aa64mmfr1_el1";
    MMFR2 "id_aa64mmfr2_el1";
    SCTLR "sctlr_el1";
    ACTLR "actlr_el1";
    CPACR "cpacr_el1";
    TTBR0 "ttbr0_el1";
    TTBR1 "ttbr1_el1";
    TCR "tcr_el1";
    AFSR0 "afsr0_el1";
    AFSR1 "afsr1_el1";
    ESR "esr_el1";
    FAR "far_el1";
    PAR "par_el1";
    MAIR "mair_el1";
    AMAIR "amair_el1";
    VBAR "vbar_el1";
    CONTEXTIDR "contextidr_el1";
    TPIDR "tpidr_el1";
    TPIDR0 "tpidr_el0";
    TPIDRRO "tpidrro_el0";
    CNTKCTL "cntkctl_el1";
    CNTFRQ "cntfrq_el0";
    CNTVCT "cntvct_el0";
    CNTPCT "cntpct_el0";
    MDSCR "mdscr_el1";
    OSLSR "oslsr_el1";
    BVR0 "dbgbvr0_el1";
    BCR0 "dbgbcr0_el1";
    WVR0 "dbgwvr0_el1";
    WCR0 "dbgwcr0_el1";
    PMCR "pmcr_el0";
    PMCCNTR "pmccntr_el0";
    ISR "isr_el1";
}

writable! {
    TTBR1 "ttbr1_el1" 0x0000_FFFF_FFFF_F000;
    FAR "far_el1" 0xFFFF_FFFF_FFFF_FFFF;
    CONTEXTIDR "contextidr_el1" 0xFFFF_FFFF;
    TPIDR "tpidr_el1" 0xFFFF_FFFF_FFFF_FFFF;
    TPIDR0 "tpidr_el0" 0xFFFF_FFFF_FFFF_FFFF;
    TPIDRRO "tpidrro_el0" 0xFFFF_FFFF_FFFF_FFFF;
    ESR "esr_el1" 0xFFFF_FFFF;
    CSSELR "csselr_el1" 0x3;
    CNTKCTL "cntkctl_el1" 0x3;
    BVR0 "dbgbvr0_el1" 0x0000_FFFF_FFFF_FFFC;
    WVR0 "dbgwvr0_el1" 0x0000_FFFF_FFFF_FFFC;
}
