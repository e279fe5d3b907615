// SPDX-License-Identifier: Apache-2.0
//! The sides of channels, and what the channels are in a system image.

use super::{ChannelSpec, Manifest, SideSpec};
use crate::board::{Board, Device};
use crate::window::Window;

/// A partition at a channel.
#[derive(Clone, Copy)]
pub(crate) struct Side<'a> {
    /// Number of the channel.
    pub number: usize,
    pub channel: &'a ChannelSpec,
    pub spec: &'a SideSpec,
    /// The addresses at which the partition sees the memory. A class without translation finds them with the
    /// places of everything.
    pub window: Window,
}

/// Returns the number of a channel in the system image.
pub(crate) fn number(manifest: &Manifest, name: &str) -> Option<usize> {
    manifest
        .channels
        .iter()
        .position(|channel| channel.name.value == name)
}

/// Returns the device whose registers are the memory of a channel.
pub(crate) fn lent<'b>(channel: &ChannelSpec, board: &'b Board) -> Option<&'b Device> {
    board.device(&channel.device.as_ref()?.value)
}
