// SPDX-License-Identifier: Apache-2.0
//! Upcalls: events that interrupt a task.

pub(crate) mod command;
mod deliver;
