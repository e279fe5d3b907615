// SPDX-License-Identifier: Apache-2.0
//! Turns the manifest that a user writes into the system image that a board boots.
//!
//! [`load`] reads a manifest, checks the manifest against every rule, loads and takes apart the payloads, and
//! finds a place for everything. The result is a [`System`], plain data for tables and charts, or a
//! [`Report`] with precise refusals. [`compile`] turns a system into a system image. [`flashable`] joins the
//! image with the class binary.
//!
//! The modules are in layers. A module takes names from its own layer and from those below:
//!
//! ```text
//! load · compile, flash      a manifest becomes a system, an image, a flashable file
//! timing, parts              what a system promises, and what it needs
//! system                     a checked system as plain data
//! rules · board_file         what judges a manifest · what reads and judges a board file
//! class                      what differs from class to class, a folder for each
//! in_place                   classes that execute code where it is linked
//! place                      the addresses that a manifest leaves open
//! guest                      the contents of a partition's memory
//! payload, class_binary      files, taken apart
//! model                      the tables of a manifest, and what follows from them alone
//! driver, board              facts about hardware
//! window, schema, value      the form of files
//! diagnostic, code, units    findings, and quantities
//! ```
//!
//! The files `json`, `reference` and `shape` of `schema` read the declarations of all layers, and nothing
//! below `load` and `board_file` takes names from them.
//!
//! Nothing here trusts its input. Manifests, board files, payloads and overlays may be damaged or hostile,
//! and a refusal is always a [`Diagnostic`], never a panic.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod board;
mod board_file;
mod class;
mod class_binary;
mod code;
mod compile;
pub mod diagnostic;
pub mod driver;
mod flash;
mod guest;
mod in_place;
mod key;
mod load;
mod model;
mod nearest;
pub mod parts;
mod payload;
mod place;
pub mod reach;
mod render;
mod rules;
mod schema;
pub mod system;
pub mod timing;
mod trust;
mod units;
mod value;
mod window;

pub use board::{AttachmentKind, Board, Class, Emulator};
pub use board_file::{board_names, boards, is_day, read_board};
pub use bulkhead_image::layout::HealthAction;
pub use bulkhead_image::{
    claim_twice, move_base, move_controller, name_policy, need_part, seal, set_version,
};
pub use class_binary::{ClassBinary, FlashError, relocate};
pub use code::{Code, Severity};
pub use compile::limits::table_counts;
pub use compile::{CompileError, CompileInput, compile};
pub use diagnostic::{Diagnostic, Report, Sources};
pub use flash::flashable;
pub use key::PublicKey;
pub use load::{Unchecked, load, load_text, read_manifest};
pub use model::{Access, Kind, OwnPolicy, Policy, PolicyRow, policies, right_names};
pub use nearest::nearest;
pub use payload::initramfs::with_init;
pub use payload::{NoPayloads, PayloadResolver, read_file, reason};
pub use render::render;
pub use schema::json::schema;
pub use schema::reference::{error_index_markdown, reference_markdown};
pub use system::{Attachment, System};
pub use trust::Signature;
pub use units::{format_duration, format_size};
pub use window::Window;
