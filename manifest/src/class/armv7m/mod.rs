// SPDX-License-Identifier: Apache-2.0
//! Class `armv7m`: nothing is translated, programs are executed where they are linked, and their sensitive
//! instructions are replaced.

mod board_memory;
mod disassemble;
mod flash;
mod instructions;
mod mask_words;
mod reread;
mod rewrite;
mod rules;

use bulkhead_abi::log::Layout;
use bulkhead_arch_api::class::ARMV7M;
use bulkhead_arch_api::{ClassFacts, EntryState};
use bulkhead_arch_regions::Region;

use super::{Host, Refuse};
use crate::board::{Board, Class};
use crate::class_binary::{ClassBinary, FlashError};
use crate::diagnostic::Report;
use crate::driver::{CMSDK_UART, DUAL_TIMER, Driver, LAN9118, NVIC, Role};
use crate::guest::{Context, Guest};
use crate::in_place::{self, places, regions};
use crate::model::{Manifest, PartitionSpec};
use crate::payload::Loader;
use crate::place::memory::{Input, Plan};
use crate::schema::Key;
use crate::schema::declare::tables;
use crate::schema::form::{Declared, Whole};
use crate::units::{Address, Size};
use crate::value::Table;
use crate::window::Window;
use instructions::T32;

/// The class.
const CLASS: Class = Class::of(&ARMV7M);
/// Its answers.
pub(super) const HOST: &dyn Host = &Armv7m;

/// The drivers of the class binary.
static DRIVERS: &[&Driver] = &[&CMSDK_UART, &NVIC, &DUAL_TIMER, &LAN9118];

tables! {
    /// Keys of boards of the class.
    BoardKeys = "a board of class `armv7m`" {
        /// stretches of code memory: flash, or RAM that is loaded before reset; armv7m
        code "code": Vec<Window>, required;
        /// memory that the hypervisor keeps for itself; armv7m
        hypervisor "hypervisor": Share, required;
    }

    /// Memory that no partition can be linked to. The class binary is linked to these addresses.
    Share = "the hypervisor's share" {
        /// code memory for class binary and system image
        code "code": Size, required;
        /// address of that code memory; without this key it is at the end of the first stretch of code memory
        code_base "code-base": Option<Address>, optional;
        /// RAM, the log of 4K included; 24K are enough for eight partitions and 32 interrupt lines
        ram "ram": Size, required;
        /// address of that RAM; without this key it is at the end of the first stretch of RAM
        ram_base "ram-base": Option<Address>, optional;
    }
}

struct Armv7m;

impl Host for Armv7m {
    fn facts(&self) -> &'static ClassFacts {
        &ARMV7M
    }

    fn board_keys(&self) -> &'static [Key] {
        BoardKeys::SCHEMA.own
    }

    fn settle_board(&self, table: &Table, board: &mut Board) {
        let BoardKeys {
            code,
            hypervisor: own,
        } = BoardKeys::of(table);
        let share = |windows: &[Window], base: Option<Address>, size: Size| {
            let end = windows.first().map_or(0, |window| window.end());
            let size = size.get();
            Window {
                base: base.map_or(end.saturating_sub(size), Address::get),
                size,
            }
        };
        board.own_code = share(&code, own.code_base, own.code);
        board.own_ram = share(&board.ram, own.ram_base, own.ram);
        board.load_address = board.own_code.base;
        board.code = code;
    }

    fn drivers(&self) -> &'static [&'static Driver] {
        DRIVERS
    }

    fn log(&self, board: &Board) -> Window {
        Window {
            base: board.own_ram.base,
            size: Layout::of(ARMV7M.tables).size as u64,
        }
    }

    fn check_board(&self, board: &Board, refuse: &mut Refuse<'_>) {
        board_memory::check(board, refuse);
    }

    /// Fills in the UART's place and line, and the number of lines, from the board: a program expects them
    /// there.
    fn settle(&self, manifest: &mut Manifest, board: &Board) {
        for partition in &mut manifest.partitions {
            let machine = &mut partition.machine;
            if let Some(console) = board.driven(Role::Console) {
                let window = console.windows.first().copied().unwrap_or_default();
                let uart = &mut machine.uart.value;
                if uart.base.key.is_none() {
                    uart.base.value = Address::new(window.base);
                }
                if uart.line.key.is_none() {
                    let line = console.lines.first().copied().unwrap_or(0);
                    uart.line.value = Whole::new(line.into()).unwrap_or_default();
                }
            }
            machine.board_lines = Some(board.line_count.next_multiple_of(32));
        }
    }

    fn check(&self, manifest: &Manifest, board: &Board, report: &mut Report) {
        rules::check(manifest, board, report);
    }

    fn binary_reserve(&self) -> u64 {
        104 << 10
    }

    fn place_shared(&self, board: &Board, manifest: &Manifest, guests: &mut [Guest], report: &mut Report) {
        places::place_channels(board, manifest, guests, report);
        places::place_frames(board, manifest, guests, report);
    }

    fn plan(&self, input: &Input<'_>, report: &mut Report) -> Option<Plan> {
        places::plan(input, report)
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
        regions::regions(board, spec, guest)
    }

    /// Returns no reason: bit 0 stands for T32, the one instruction set. The reader of the program looks at
    /// this bit.
    fn entry_fault(&self, _entry: u64, _state: EntryState) -> Option<&'static str> {
        None
    }

    fn build_vm(&self, context: &Context<'_>, loader: &mut Loader<'_>, report: &mut Report) -> Option<Guest> {
        in_place::vm::build(context, loader, &T32, report)
    }

    fn build_task(
        &self,
        context: &Context<'_>,
        loader: &mut Loader<'_>,
        report: &mut Report,
    ) -> Option<Guest> {
        in_place::task::build(context, loader, report)
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
        guests: &[Guest],
    ) -> Result<Vec<u8>, FlashError> {
        flash::flash(binary, image, board, guests)
    }
}
