// SPDX-License-Identifier: Apache-2.0
//! Class `aarch64`: addresses are translated, VMs get a device tree, the flashable file is flat.

mod devicetree;
mod flash;
mod gic;
mod image;
mod kernel;
mod linux;
mod load_address;
mod virtual_flash;
mod vm;

use bulkhead_arch_api::class::{AARCH32, AARCH64};
use bulkhead_arch_api::{ClassFacts, EntryState};

use super::{Host, Refuse, VirtualController};
use crate::board::{Board, Class};
use crate::class_binary::{ClassBinary, FlashError};
use crate::diagnostic::Report;
use crate::driver::{ARM_TIMER, CADENCE_UART, Driver, GIC_V2, GIC_V3, PL011};
use crate::guest::{Context, Guest};
use crate::model::PartitionSpec;
use crate::payload::Loader;
use crate::place::memory::Plan;
use crate::schema::Key;
use crate::schema::declare::tables;
use crate::schema::form::Declared;
use crate::units::Size;
use crate::value::Table;
use crate::window::Window;
use gic::Gic;

/// The class.
const CLASS: Class = Class::of(&AARCH64);
/// Its answers.
pub(super) const HOST: &dyn Host = &Aarch64;

/// The drivers of the class binary.
static DRIVERS: &[&Driver] = &[&PL011, &CADENCE_UART, &GIC_V3, &GIC_V2, &ARM_TIMER];

tables! {
    /// Keys of boards of the class.
    BoardKeys = "a board of class `aarch64`" {
        /// load address of the flashable file, as an offset from the start of the first stretch of RAM. The
        /// 64K before it hold the log; aarch64
        load_offset "load-offset": Size, required;
    }
}

struct Aarch64;

impl Host for Aarch64 {
    fn facts(&self) -> &'static ClassFacts {
        &AARCH64
    }

    fn board_keys(&self) -> &'static [Key] {
        BoardKeys::SCHEMA.own
    }

    fn settle_board(&self, table: &Table, board: &mut Board) {
        let keys = BoardKeys::of(table);
        let first = board.ram.first().map_or(0, |window| window.base);
        board.load_address = first.saturating_add(keys.load_offset.get());
    }

    fn drivers(&self) -> &'static [&'static Driver] {
        DRIVERS
    }

    fn check_board(&self, board: &Board, refuse: &mut Refuse<'_>) {
        load_address::check(board, refuse);
    }

    fn virtual_controller(&self, spec: &PartitionSpec, board: Option<&Board>) -> Option<VirtualController> {
        Some(gic::virtual_controller(spec, Gic::of(board)))
    }

    fn check_machine(&self, spec: &PartitionSpec, board: Option<&Board>, report: &mut Report) {
        gic::check(spec, board, report);
        virtual_flash::check(spec, report);
    }

    fn binary_reserve(&self) -> u64 {
        2 << 20
    }

    fn own_tables(&self) -> usize {
        bulkhead_arch_paging::OWN_TABLES_AARCH64
    }

    fn own_memory(&self, _board: &Board, plan: &Plan) -> Vec<(&'static str, Window, &'static str)> {
        vec![("hypervisor, payloads", plan.hypervisor, "rwx")]
    }

    fn finds_services(&self) -> bool {
        true
    }

    fn firmware(&self) -> Option<&'static str> {
        Some("a region with a `payload`, or a flash with `code`")
    }

    /// Allows T32 code, for which bit 0 stands, where a program begins in AArch32 state.
    fn entry_fault(&self, entry: u64, state: EntryState) -> Option<&'static str> {
        let is_narrow = state == AARCH32 && entry & 1 == 1;
        (!is_narrow && !entry.is_multiple_of(4))
            .then_some("is no multiple of 4, as the address of an instruction is")
    }

    /// Allows them in AArch32 state: `ANDEQ R0, R0, R0` in A32, `MOVS R0, R0` in T32 (ARM DDI 0487, F5.1).
    fn runs_zeros(&self, state: EntryState) -> bool {
        state == AARCH32
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
        _board: &Board,
        _guests: &[Guest],
    ) -> Result<Vec<u8>, FlashError> {
        Ok(flash::join(binary, image))
    }
}
