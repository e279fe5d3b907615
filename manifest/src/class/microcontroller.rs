// SPDX-License-Identifier: Apache-2.0
//! The host of a class of microcontrollers. A class gives what differs from other classes of this kind.

use bulkhead_abi::log::Layout;
use bulkhead_arch_api::{ClassFacts, EntryState};
use bulkhead_arch_regions::Region;

use super::{Host, Refuse};
use crate::board::Board;
use crate::class_binary::{ClassBinary, FlashError};
use crate::diagnostic::Report;
use crate::driver::Driver;
use crate::guest::{Context, Guest};
use crate::in_place::protection::{Parts, mapped};
use crate::in_place::{board, flash, places, rules, task, vm};
use crate::model::{Manifest, PartitionSpec};
use crate::payload::Loader;
use crate::place::memory::{Input, Plan};
use crate::schema::Key;
use crate::schema::form::Declared;
use crate::value::Table;
use crate::window::Window;

/// A class of microcontrollers.
pub(crate) struct Microcontroller {
    /// The facts that the target reads, too.
    pub facts: &'static ClassFacts,
    /// The drivers of the class binary.
    pub drivers: &'static [&'static Driver],
    /// The instructions that are replaced, and the hardware that keeps partitions apart.
    pub parts: Parts,
    /// Keys of a partition that have no meaning on boards of the class beside those that have none on any
    /// microcontroller, with the reason.
    pub foreign: &'static [(&'static str, &'static str)],
    /// Bytes that are kept for the class binary while its size is not known.
    pub binary_reserve: u64,
    /// Another address of the reset vectors, if the CPU reads them there.
    pub reset_alias: Option<u64>,
    /// Returns the line of a VM's UART if the manifest gives none.
    pub uart_line: fn(&Board) -> u32,
    /// Fills in what a manifest leaves to the board, besides the place of the UART.
    pub settle: fn(&mut Manifest, &Board),
    /// Refuses facts that no board of the class can have, although another microcontroller has them.
    pub check_board: fn(&Board, &mut Refuse<'_>),
    /// Reports mistakes in a manifest that only this class knows.
    pub check: fn(&Manifest, &Board, &mut Report),
}

impl Host for Microcontroller {
    fn facts(&self) -> &'static ClassFacts {
        self.facts
    }

    fn board_keys(&self) -> &'static [Key] {
        board::BoardKeys::SCHEMA.own
    }

    fn settle_board(&self, table: &Table, board: &mut Board) {
        board::settle(table, board);
    }

    fn drivers(&self) -> &'static [&'static Driver] {
        self.drivers
    }

    fn log(&self, board: &Board) -> Window {
        Window {
            base: board.own_ram.base,
            size: Layout::of(self.facts.tables).size as u64,
        }
    }

    fn check_board(&self, board: &Board, refuse: &mut Refuse<'_>) {
        board::check(board, refuse);
        (self.check_board)(board, refuse);
    }

    fn settle(&self, manifest: &mut Manifest, board: &Board) {
        board::settle_machines(manifest, board, (self.uart_line)(board));
        (self.settle)(manifest, board);
    }

    fn check(&self, manifest: &Manifest, board: &Board, report: &mut Report) {
        rules::check(manifest, board, self.parts, self.foreign, report);
        (self.check)(manifest, board, report);
    }

    fn binary_reserve(&self) -> u64 {
        self.binary_reserve
    }

    fn place_shared(&self, board: &Board, manifest: &Manifest, guests: &mut [Guest], report: &mut Report) {
        places::place_channels(self.parts.protection, board, manifest, guests, report);
        places::place_frames(self.parts.protection, board, manifest, guests, report);
    }

    fn plan(&self, input: &Input<'_>, report: &mut Report) -> Option<Plan> {
        places::plan(self.parts.protection, input, report)
    }

    fn own_memory(&self, board: &Board, plan: &Plan) -> Vec<(&'static str, Window, &'static str)> {
        vec![
            // All of the hypervisor's share: the part that a class binary takes is known only when the binary
            // is there.
            ("hypervisor, system image", board.own_code, "rx"),
            ("hypervisor", plan.pool, "rw"),
        ]
    }

    fn regions(&self, board: &Board, spec: &PartitionSpec, guest: &Guest) -> Vec<Region> {
        self.parts.protection.regions(&mapped(board, spec, guest))
    }

    /// Returns no reason: bit 0 stands for T32, the one instruction set. The reader of the program looks at
    /// this bit.
    fn entry_fault(&self, _entry: u64, _state: EntryState) -> Option<&'static str> {
        None
    }

    fn build_vm(&self, context: &Context<'_>, loader: &mut Loader<'_>, report: &mut Report) -> Option<Guest> {
        vm::build(context, loader, self.parts, report)
    }

    fn build_task(
        &self,
        context: &Context<'_>,
        loader: &mut Loader<'_>,
        report: &mut Report,
    ) -> Option<Guest> {
        task::build(context, loader, self.parts.protection, report)
    }

    fn is_binary(&self, elf: &[u8]) -> bool {
        flash::is_for_us(elf)
    }

    fn read_binary(&self, elf: &[u8]) -> Result<ClassBinary, FlashError> {
        flash::read(elf, self.facts)
    }

    fn flash(
        &self,
        binary: &ClassBinary,
        image: &[u8],
        board: &Board,
        guests: &[Guest],
    ) -> Result<Vec<u8>, FlashError> {
        flash::flash(binary, image, board, guests, self.reset_alias)
    }
}
