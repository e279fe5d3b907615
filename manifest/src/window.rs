// SPDX-License-Identifier: Apache-2.0
//! Windows: stretches of an address space.
#![deny(clippy::arithmetic_side_effects)]

use crate::schema::ValueKind;
use crate::schema::declare::tables;
use crate::schema::form::Form;
use crate::units::{self, Address, PAGE, Size};
use crate::value::Value;

/// A stretch of an address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Window {
    /// First address.
    pub base: u64,
    /// Bytes.
    pub size: u64,
}

impl Window {
    /// Returns the address after the last one. The result saturates at the end of the 64-bit space.
    #[must_use]
    pub const fn end(self) -> u64 {
        self.base.saturating_add(self.size)
    }

    /// Tells whether the two windows share an address.
    #[must_use]
    pub const fn overlaps(self, other: Self) -> bool {
        self.size > 0 && other.size > 0 && self.base < other.end() && other.base < self.end()
    }

    /// Tells whether all of `other` is inside the window.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.base <= other.base && other.end() <= self.end() && other.base.checked_add(other.size).is_some()
    }

    /// Returns the whole pages that the window touches.
    #[must_use]
    pub fn pages(self) -> Self {
        let base = self.base & !(PAGE - 1);
        let end = units::align_up(self.end(), PAGE).unwrap_or(!(PAGE - 1));
        Self {
            base,
            size: end.saturating_sub(base),
        }
    }
}

impl Form for Window {
    const KIND: ValueKind = <Stretch as Form>::KIND;

    fn read(value: &Value) -> Option<Self> {
        let Stretch { base, size } = <Stretch as Form>::read(value)?;
        Some(Self {
            base: base.get(),
            size: size.get(),
        })
    }
}

tables! {
    /// A stretch of the board's address space.
    pub(crate) Stretch = "a window" {
        /// first address
        base "base": Address, required;
        /// bytes
        size "size": Size, required;
    }
}

/// Writes the first and the last address of a window.
pub(crate) fn range(window: Window) -> String {
    format!("{:#x} to {:#x}", window.base, window.end().saturating_sub(1))
}

/// Writes the first and the last addresses of windows.
pub(crate) fn ranges(windows: &[Window]) -> String {
    windows
        .iter()
        .map(|window| range(*window))
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::Window;

    #[test]
    fn windows_meet_only_where_they_share_an_address() {
        let a = Window {
            base: 0x1000,
            size: 0x1000,
        };
        assert!(!a.overlaps(Window {
            base: 0x2000,
            size: 1
        }));
        assert!(a.overlaps(Window {
            base: 0x1fff,
            size: 1
        }));
        assert!(!a.contains(Window {
            base: u64::MAX,
            size: 2
        }));
        assert_eq!(
            Window {
                base: 0x1234,
                size: 1
            }
            .pages(),
            Window {
                base: 0x1000,
                size: 0x1000
            }
        );
    }
}
