// SPDX-License-Identifier: Apache-2.0
//! A payload from Debian, as the list of a class has it.

use crate::build::kernel_source::Recipe;

/// A payload from Debian.
#[derive(Debug, PartialEq, Eq)]
pub struct Payload {
    /// Its name after `@debian/`.
    pub name: &'static str,
    /// The description of the payload.
    pub description: &'static str,
    /// Debian's name of the architecture.
    pub architecture: &'static str,
    /// Where its file is from.
    pub source: Source,
}

/// The origin of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The kernel that this package depends on.
    Kernel(&'static str),
    /// Busybox with an `/init`.
    Busybox,
    /// This file of this package.
    File(&'static str, &'static str),
    /// A kernel that is built from its source, which suits every architecture.
    Built(&'static Recipe),
}
