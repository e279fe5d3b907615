// SPDX-License-Identifier: Apache-2.0
//! The parts of the kernel that a system can leave out.
//!
//! The core of the kernel is always there: partitions, capabilities, event gates, timers, consoles, health,
//! and the policies `pinned` and `fixed-priority`. Everything else is a part. A class binary is built with a
//! set of parts, [`PARTS`]: one cargo feature for each, with the part's name. A system image names the parts
//! that its system uses, and a class binary refuses an image whose parts it lacks.
//!
//! A few sets have names: the [variants](VARIANTS) that are built ahead, so that a manifest needs no
//! compiler. The size of a table is another matter ([`crate::size`]).

use core::fmt;

/// Makes [`Part`], with each part's name, and [`PARTS`] from the features of these names.
macro_rules! parts {
    ($($(#[$doc:meta])* $part:ident = $number:literal, $name:literal;)*) => {
        /// A part of the kernel.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Part {
            $($(#[$doc])* $part = $number,)*
        }

        impl Part {
            /// All parts.
            pub const ALL: &[Self] = &[$(Self::$part),*];

            /// Returns the name of the part: the name of its cargo feature, and the word for the part in
            /// messages.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$part => $name,)*
                }
            }
        }

        /// The parts of this build.
        pub const PARTS: Parts = Parts::NONE$(.with_if(cfg!(feature = $name), Part::$part))*;

        impl Parts {
            /// Returns the name of the first part of the set that this build lacks, if it is one that a build
            /// has the name of.
            #[must_use]
            pub const fn first_lacking(self) -> Option<&'static str> {
                $(if !cfg!(feature = $name) && NAMED.has(Part::$part) && self.has(Part::$part) {
                    return Some($name);
                })*
                None
            }
        }
    };
}

parts! {
    /// Channels: shared memory, and a doorbell.
    Channels = 0, "channels";
    /// PCI functions of a virtual host bridge, by which a VM sees its channels.
    Functions = 1, "functions";
    /// Ports: messages and calls.
    Ports = 2, "ports";
    /// Locks.
    Locks = 3, "locks";
    /// Devices, lines and channels that a partition has only while it holds them.
    Lent = 4, "lent";
    /// Services: registers of a VM that another partition answers.
    Services = 5, "services";
    /// Networks: interfaces of VMs, and the switch between these.
    Networks = 6, "networks";
    /// Flash: virtual memory of the kind that firmware keeps its variables in.
    Flash = 7, "flash";
    /// Upcalls: events that interrupt a task.
    Upcalls = 8, "upcalls";
    /// Calls of a program to a debugger's host.
    Semihosting = 9, "semihosting";
    /// Records of what each pCPU does.
    Trace = 10, "trace";
    /// The policy `edf`.
    Edf = 11, "edf";
    /// The policy `arinc653`.
    Arinc653 = 12, "arinc653";
    /// The policy `domains`.
    Domains = 13, "domains";
    /// A policy of the user's own ([`crate::own_policy`]). No variant has it.
    OwnPolicy = 14, "own-policy";
    /// The log as text on the board's console. Without it the log leaves as records.
    Text = 15, "text";
    /// Handlers of interrupts that start in the middle of the hypervisor's work; class armv7m.
    EarlyHandlers = 16, "early-handlers";
    /// Masks of a VM in words of its memory; class armv7m.
    MaskWords = 17, "mask-words";
    /// Frames of a VM's interface in memory that the VM sees; class armv7m.
    FrameRing = 18, "frame-ring";
    /// The second pCPU of a microcontroller; class armv8m. No variant has it.
    SecondPcpu = 19, "second-pcpu";
    /// Interrupts of devices that a task reaches by itself; class armv8m.
    TaskLines = 20, "task-lines";
    /// The check who has made the system image. No variant has it.
    Signature = 21, "signature";
    /// Floating point of tasks; class armv8m. No variant has it.
    TaskFloats = 22, "task-floats";
    /// Regions that a partition has while it holds memory; class armv8m. No variant has it.
    HeldRegions = 23, "held-regions";
    /// Secrets of partitions that follow from the secret of the device. No variant has them.
    Secrets = 24, "secrets";
}

impl Part {
    /// Returns the parts that this one is built on.
    #[must_use]
    pub const fn needs(self) -> Parts {
        match self {
            Self::Functions => Parts::of(&[Self::Channels]),
            Self::FrameRing => Parts::of(&[Self::Networks]),
            Self::Lent => Parts::of(&[Self::Channels, Self::Ports]),
            Self::HeldRegions => Parts::of(&[Self::Channels, Self::Ports, Self::Lent]),
            Self::Secrets => Parts::of(&[Self::Signature]),
            _ => Parts::NONE,
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of parts: bit `n` is the part with the number `n`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Parts(pub u32);

impl Parts {
    /// The core alone.
    pub const NONE: Self = Self(0);
    /// All parts.
    pub const ALL: Self = Self::of(Part::ALL);

    /// Returns the set of these parts.
    #[must_use]
    pub const fn of(mut parts: &[Part]) -> Self {
        let mut set = Self::NONE;
        while let [first, rest @ ..] = parts {
            set = set.with(*first);
            parts = rest;
        }
        set
    }

    /// Returns the set with this part too.
    #[must_use]
    pub const fn with(self, part: Part) -> Self {
        Self(self.0 | 1 << part as u8)
    }

    /// Returns the set with this part too, if `is_there`.
    #[must_use]
    pub const fn with_if(self, is_there: bool, part: Part) -> Self {
        if is_there { self.with(part) } else { self }
    }

    /// Returns the parts of both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the parts that are in this set and not in the other one.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Tells whether a part is in the set.
    #[must_use]
    pub const fn has(self, part: Part) -> bool {
        self.0 & 1 << part as u8 != 0
    }

    /// Tells whether all parts of the other set are in this one.
    #[must_use]
    pub const fn covers(self, other: Self) -> bool {
        other.without(self).0 == 0
    }

    /// Returns the parts, and those that they are built on.
    #[must_use]
    pub fn closed(self) -> Self {
        self.iter().fold(self, |all, part| all.and(part.needs()))
    }

    /// Returns the parts in the order of their numbers.
    pub fn iter(self) -> impl Iterator<Item = Part> {
        Part::ALL.iter().copied().filter(move |part| self.has(*part))
    }
}

/// A set of parts with a name, for which class binaries are built ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// The name.
    pub name: &'static str,
    /// The parts.
    pub parts: Parts,
}

/// The variant with everything. The name of its class binaries is the name of their class alone.
pub const FULL: &str = "full";

/// The variants, each within the next one.
pub const VARIANTS: [Variant; 3] = [
    Variant {
        name: "static",
        parts: STATIC,
    },
    Variant {
        name: "ipc",
        parts: IPC,
    },
    Variant {
        name: FULL,
        parts: BUILT_AHEAD,
    },
];

/// The parts that are only in a class binary for one system: the policy of the user's own, the keys of the
/// system's owner, secrets, and on a microcontroller what few systems use.
pub const TAILORED: Parts = Parts::of(&[
    Part::OwnPolicy,
    Part::SecondPcpu,
    Part::Signature,
    Part::TaskFloats,
    Part::HeldRegions,
    Part::Secrets,
]);

/// All parts but those.
const BUILT_AHEAD: Parts = Parts::ALL.without(TAILORED);

/// The parts of which each build has the names. A board may get an image that needs one of them, and the
/// class binary of another system.
const NAMED: Parts = BUILT_AHEAD.with(Part::Signature);

/// VMs and tasks beside each other, with memory that they share.
const STATIC: Parts = Parts::of(&[Part::Channels, Part::Functions, Part::Flash, Part::Text]);
/// Partitions that call each other, under every policy.
const IPC: Parts = STATIC.and(Parts::of(&[
    Part::Ports,
    Part::Locks,
    Part::Lent,
    Part::Upcalls,
    Part::TaskLines,
    Part::Edf,
    Part::Arinc653,
    Part::Domains,
]));

/// True if this build has no part that the variant `static` lacks.
pub const IS_STATIC: bool = STATIC.covers(PARTS);

/// Returns the smallest variant that has these parts; `None` if only a class binary for one system has them.
#[must_use]
pub fn variant_for(parts: Parts) -> Option<Variant> {
    VARIANTS.into_iter().find(|variant| variant.parts.covers(parts))
}

#[cfg(test)]
mod tests {
    use super::{Part, Parts, TAILORED, VARIANTS, variant_for};

    #[test]
    fn each_variant_has_what_its_parts_need_and_is_within_the_next() {
        let mut smaller = Parts::NONE;
        for variant in VARIANTS {
            assert_eq!(variant.parts.closed(), variant.parts, "{}", variant.name);
            assert!(variant.parts.covers(smaller), "{}", variant.name);
            smaller = variant.parts;
        }
        assert_eq!(Parts::ALL.without(smaller), TAILORED);
    }

    #[test]
    fn a_system_gets_the_smallest_variant() {
        let name = |parts: &[Part]| variant_for(Parts::of(parts)).map(|variant| variant.name);
        assert_eq!(name(&[]), Some("static"));
        assert_eq!(name(&[Part::Channels]), Some("static"));
        assert_eq!(name(&[Part::Channels, Part::Ports]), Some("ipc"));
        assert_eq!(name(&[Part::Trace]), Some("full"));
        assert_eq!(name(&[Part::OwnPolicy]), None);
    }

    #[test]
    fn what_a_set_leaves_out_is_named() {
        let lacking = Parts::of(&[Part::Ports, Part::Trace]).without(Parts::of(&[Part::Trace]));
        assert!(lacking.iter().eq([Part::Ports]));
        assert!(
            Parts::of(&[Part::Lent])
                .closed()
                .iter()
                .eq([Part::Channels, Part::Ports, Part::Lent])
        );
    }
}
