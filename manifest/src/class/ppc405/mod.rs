// SPDX-License-Identifier: Apache-2.0
//! Class `ppc405`: addresses are translated, VMs get a device tree, the flashable file is one ELF file.

mod devicetree;
mod flash;
mod rules;
mod vm;

use bulkhead_arch_api::ClassFacts;
use bulkhead_arch_api::class::PPC405;
use bulkhead_arch_api::class::driver::PPC405EP_UART_OFFSET;

use super::{Host, Refuse};
use crate::board::{Board, Class};
use crate::class_binary::{ClassBinary, FlashError};
use crate::diagnostic::Report;
use crate::driver::{Driver, PPC_TIMER, PPC405EP_UART, Role, UIC};
use crate::guest::{Context, Guest};
use crate::model::Manifest;
use crate::payload::Loader;
use crate::place::memory::Plan;
use crate::schema::Key;
use crate::schema::form::Whole;
use crate::units::Address;
use crate::value::Table;
use crate::window::Window;

/// The class.
const CLASS: Class = Class::of(&PPC405);
/// Its answers.
pub(super) const HOST: &dyn Host = &Ppc405;

/// The drivers of the class binary.
static DRIVERS: &[&Driver] = &[&PPC405EP_UART, &UIC, &PPC_TIMER];

/// The address that class binaries are linked for. It is beyond the first 16M, so that a VM can have them: a
/// page of 16M maps all that a small Linux needs.
const LOAD_ADDRESS: u64 = 0x0101_0000;
/// Sizes of pages of the translation buffer. All 64 entries are written by software, one by one, so memory
/// that needs fewer of them is faster and has more of them left for programs.
const BLOCKS: &[u64] = &[16 << 20, 4 << 20, 1 << 20, 256 << 10, 64 << 10, 16 << 10];
/// Lines of a virtual interrupt controller.
const LINES: u32 = 32;

struct Ppc405;

impl Host for Ppc405 {
    fn facts(&self) -> &'static ClassFacts {
        &PPC405
    }

    fn blocks(&self) -> &'static [u64] {
        BLOCKS
    }

    fn board_keys(&self) -> &'static [Key] {
        &[]
    }

    fn settle_board(&self, _table: &Table, board: &mut Board) {
        board.load_address = LOAD_ADDRESS;
    }

    fn drivers(&self) -> &'static [&'static Driver] {
        DRIVERS
    }

    fn check_board(&self, board: &Board, refuse: &mut Refuse<'_>) {
        rules::check_board(board, self.log(board), refuse);
    }

    /// Fills in the places that programs for the board expect: RAM from address 0 on, where the vectors of a
    /// reset are, and the UART of the board.
    fn settle(&self, manifest: &mut Manifest, board: &Board) {
        for partition in &mut manifest.partitions {
            let machine = &mut partition.machine;
            machine.board_lines = Some(LINES);
            if machine.ram_base.key.is_none() {
                machine.ram_base.value = Address::new(0);
            }
            let Some(console) = board.driven(Role::Console) else {
                continue;
            };
            let window = console.windows.first().copied().unwrap_or_default();
            let uart = &mut machine.uart.value;
            if uart.base.key.is_none() {
                uart.base.value = Address::new(window.base.saturating_add(PPC405EP_UART_OFFSET));
            }
            if uart.line.key.is_none() {
                let line = console.lines.first().copied().unwrap_or(0);
                uart.line.value = Whole::new(line.into()).unwrap_or_default();
            }
        }
    }

    fn check(&self, manifest: &Manifest, _board: &Board, report: &mut Report) {
        rules::check(manifest, report);
    }

    fn binary_reserve(&self) -> u64 {
        1 << 20
    }

    fn own_memory(&self, _board: &Board, plan: &Plan) -> Vec<(&'static str, Window, &'static str)> {
        vec![("hypervisor, payloads", plan.hypervisor, "rwx")]
    }

    fn firmware(&self) -> Option<&'static str> {
        Some("a region with a `payload`")
    }

    fn build_vm(&self, context: &Context<'_>, loader: &mut Loader<'_>, report: &mut Report) -> Option<Guest> {
        vm::build(context, loader, report)
    }

    fn is_binary(&self, elf: &[u8]) -> bool {
        flash::is_for_us(elf)
    }

    fn read_binary(&self, elf: &[u8]) -> Result<ClassBinary, FlashError> {
        flash::read(elf)
    }

    fn flash(
        &self,
        binary: &ClassBinary,
        image: &[u8],
        board: &Board,
        _guests: &[Guest],
    ) -> Result<Vec<u8>, FlashError> {
        flash::flash(binary, image, board)
    }
}
