// SPDX-License-Identifier: Apache-2.0
//! The host tool `bulkhead` as a library: from a manifest to a running system.
//!
//! The crate `manifest` knows the meaning of a system. This crate has the user's actions on a system: check,
//! build, run. The rooms, from pure to impure:
//!
//! | modules | purpose | touch |
//! |---|---|---|
//! | `serial` | from the serial line to lines of text of each console | nothing |
//! | `ui` | keys to actions, lines to a screen, progress | the terminal |
//! | `emulator` | a run of the emulator, a look at a board | processes, files |
//! | `build` | the parts that a run needs and does not have yet | packages, cargo |
//! | `log` | the log area of a board, files of a run, its summary | files |
//! | `class` | the differences between classes: target, debugger, templates, faults | nothing |
//! | `explain` | the meaning of a health report | symbols of payloads |
//! | `json` | the answers of commands for programs | nothing |
//! | `arinc653` | a manifest from an ARINC 653 configuration in XML | nothing |
//! | `trace`, `gantt` | the record of what a system did: collecting, files, reports, charts | nothing |
//! | `command` | one file per command | all of these |
//!
//! The system tests (crate `bulkhead-tests`) use the same modules as `run` and `demo`.
#![forbid(unsafe_code)]

pub mod arinc653;
pub mod bounds;
pub mod build;
pub mod class;
pub mod command;
pub mod emulator;
pub mod explain;
pub mod gantt;
pub mod hex;
pub mod input;
pub mod json;
pub mod log;
pub mod problem;
pub mod quote;
pub mod serial;
pub mod sign;
pub mod trace;
pub mod ui;
