// SPDX-License-Identifier: Apache-2.0
//! The host tool `bulkhead` as a library: from a manifest to a running system.
//!
//! `manifest` knows what a system is; this crate is what a user does with one: check, build, run. The
//! rooms, from pure to impure:
//!
//! | modules | what they do | touch |
//! |---|---|---|
//! | `framing`, `line`, `consoles`, `pattern`, `summary` | from the serial line to lines of text and what they mean | nothing |
//! | `keyboard`, `screen`, `initramfs` | keys to actions, lines to a screen, files to an archive | nothing |
//! | `session`, `debugger`, `typing`, `terminal`, `log_files` | a run of the emulator, a look at a board | processes, terminal, files |
//! | `debian`, `payloads`, `artifacts`, `linker`, `c_guests`, `prepare`, `launch`, `host`, `progress` | what a run needs and does not have yet | packages, cargo |
//! | `explain` | what a health report means | symbols of payloads |
//! | `trace` | what a system did and when: collecting, files, reports | nothing |
//! | `bench` | measurements of the hypervisor | the emulator, sources |
//! | `command` | one file per command | all of these |
//!
//! The system tests (crate `bulkhead-tests`) use the same modules as `run` and `demo`.
#![forbid(unsafe_code)]

pub mod artifacts;
pub mod attach;
pub mod bench;
pub mod c_guests;
pub mod command;
pub mod consoles;
pub mod debian;
pub mod debugger;
pub mod explain;
pub mod framing;
pub mod gantt;
pub mod host;
pub mod initramfs;
pub mod keyboard;
pub mod launch;
pub mod line;
pub mod linker;
pub mod log_area;
pub mod log_files;
pub mod modules;
pub mod monitor;
pub mod objects;
pub mod pattern;
pub mod payloads;
pub mod prepare;
pub mod problem;
pub mod progress;
pub mod screen;
pub mod session;
pub mod summary;
pub mod tables;
pub mod target_spec;
pub mod terminal;
pub mod trace;
pub mod typing;
