// SPDX-License-Identifier: Apache-2.0
//! Numbers as a system image holds them: little-endian on every target, and aligned.
//!
//! The hypervisor reads records in place with alignment checks on, so a number that might be unaligned would
//! be read byte by byte. Tables start at multiples of 8 and no record has padding, so none is; on a
//! little-endian target [`U32::get`] is one load.

use core::fmt;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

macro_rules! numbers {
    ($($(#[$meta:meta])* $name:ident($native:ident))*) => {
        $(
            $(#[$meta])*
            #[derive(Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
            #[repr(transparent)]
            pub struct $name($native);

            impl $name {
                /// 0.
                pub const ZERO: Self = Self(0);

                /// Makes a field of this number.
                #[must_use]
                #[inline]
                pub const fn new(value: $native) -> Self {
                    Self(value.to_le())
                }

                /// Returns the number.
                #[must_use]
                #[inline]
                pub const fn get(self) -> $native {
                    $native::from_le(self.0)
                }
            }

            impl From<$native> for $name {
                #[inline]
                fn from(value: $native) -> Self {
                    Self::new(value)
                }
            }

            impl From<$name> for $native {
                #[inline]
                fn from(value: $name) -> Self {
                    value.get()
                }
            }

            impl PartialEq<$native> for $name {
                fn eq(&self, other: &$native) -> bool {
                    self.get() == *other
                }
            }

            impl fmt::Debug for $name {
                fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                    self.get().fmt(formatter)
                }
            }
        )*
    };
}

numbers! {
    /// 32 bits.
    U32(u32)
    /// 64 bits.
    U64(u64)
}
