// SPDX-License-Identifier: Apache-2.0
//! Class `stub`, a proof that a class is a folder: its part of `manifest`.
//!
//! A program is bytes at the start of RAM, and the flashable file is the class binary with the system image
//! after it.

use bulkhead_abi::log::Layout;
use bulkhead_arch_api::ClassFacts;
use bulkhead_arch_api::class::STUB;

use super::{Host, Refuse};
use crate::board::{Board, Class};
use crate::class_binary::{ClassBinary, FlashError, Marks};
use crate::diagnostic::Report;
use crate::driver::{ARM_TIMER, Driver, NVIC, PL011};
use crate::guest::{Area, AreaKind, Context, Guest, Part};
use crate::model::Access;
use crate::payload::{Loader, Piece, Stretch, blob_name};
use crate::place::memory::Plan;
use crate::schema::Key;
use crate::value::Table;
use crate::window::Window;

/// Its answers.
pub(super) const HOST: &dyn Host = &Stub;

/// First bytes of a class binary.
const MAGIC: &[u8] = b"STUB";

/// The drivers of the class binary.
static DRIVERS: &[&Driver] = &[&PL011, &NVIC, &ARM_TIMER];

struct Stub;

impl Host for Stub {
    fn facts(&self) -> &'static ClassFacts {
        &STUB
    }

    fn board_keys(&self) -> &'static [Key] {
        &[]
    }

    fn settle_board(&self, _table: &Table, board: &mut Board) {
        let first = board.ram.first().map_or(0, |window| window.base);
        board.load_address = first + Layout::of(STUB.tables).size as u64;
    }

    fn drivers(&self) -> &'static [&'static Driver] {
        DRIVERS
    }

    fn check_board(&self, board: &Board, refuse: &mut Refuse<'_>) {
        if board.cpus.len() > 1 {
            refuse(
                "cpus",
                "a board of class `stub` has one CPU".to_owned(),
                "list one CPU",
            );
        }
    }

    fn binary_reserve(&self) -> u64 {
        64 << 10
    }

    fn own_memory(&self, _board: &Board, plan: &Plan) -> Vec<(&'static str, Window, &'static str)> {
        vec![("hypervisor", plan.hypervisor, "rwx")]
    }

    fn build_vm(&self, context: &Context<'_>, loader: &mut Loader<'_>, report: &mut Report) -> Option<Guest> {
        let (name, memory) = (context.spec.image.as_ref()?, context.spec.memory.as_ref()?);
        let base = context.spec.machine.ram_base.get();
        let areas = vec![Area {
            kind: AreaKind::Ram,
            window: Window {
                base,
                size: memory.value.get(),
            },
            access: Access::ALL,
            at: context.spec.at.clone(),
            place: memory.place,
        }];
        let program = loader.load(name, report)?;
        Some(Guest {
            parts: Part::whole(&areas),
            areas,
            pieces: vec![Piece::whole(blob_name(context.name(), "program"), program, base)],
            entry: base,
            ..Guest::default()
        })
    }

    fn is_binary(&self, elf: &[u8]) -> bool {
        elf.starts_with(MAGIC)
    }

    fn read_binary(&self, elf: &[u8]) -> Result<ClassBinary, FlashError> {
        Ok(ClassBinary {
            marks: Marks::default(),
            class: Class::of(&STUB),
            stretches: vec![Stretch {
                address: 0,
                bytes: elf.to_vec(),
            }],
            entry: 0,
            end: elf.len() as u64,
            ram: Window::default(),
        })
    }

    fn flash(
        &self,
        binary: &ClassBinary,
        image: &[u8],
        _board: &Board,
        _guests: &[Guest],
    ) -> Result<Vec<u8>, FlashError> {
        let own = binary.stretches.iter().flat_map(|stretch| &stretch.bytes);
        Ok(own.chain(image).copied().collect())
    }
}
