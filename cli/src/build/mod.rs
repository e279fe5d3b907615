// SPDX-License-Identifier: Apache-2.0
//! The parts that a run needs and does not have yet: programs, kernels, archives, class binaries.

pub mod artifacts;
pub mod c_guests;
pub mod costs;
pub mod debian;
pub mod efi;
pub mod host;
pub mod initramfs;
pub mod iso;
pub mod kernel_source;
pub mod linker;
pub mod modules;
pub mod output;
pub mod own_policy;
pub mod payload;
pub mod payloads;
pub mod policies;
pub mod prepare;
mod stack;
pub mod start;
pub mod tables;
pub mod target_spec;
pub mod variant;
