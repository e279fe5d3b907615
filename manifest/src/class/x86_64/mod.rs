// SPDX-License-Identifier: Apache-2.0
//! Class `x86_64`: addresses are translated, VMs get boot parameters and ACPI tables, the flashable file is
//! an ELF file that a PVH loader starts.

mod acpi;
mod flash;
mod linux;
mod places;
mod vm;

use bulkhead_arch_api::class::X86_64;
use bulkhead_arch_api::{ClassFacts, EntryState};

use super::{Host, Refuse, VirtualController};
use crate::board::{Board, Class};
use crate::class_binary::{ClassBinary, FlashError};
use crate::diagnostic::Report;
use crate::driver::{ACPI_TIMER, APIC, Driver, NS16550};
use crate::guest::{Context, Guest};
use crate::model::{Manifest, PartitionSpec};
use crate::payload::Loader;
use crate::place::memory::Plan;
use crate::schema::Key;
use crate::schema::form::Whole;
use crate::units::Address;
use crate::value::Table;
use crate::window::Window;

/// The class.
const CLASS: Class = Class::of(&X86_64);
/// Its answers.
pub(super) const HOST: &dyn Host = &X86;

/// The drivers of the class binary.
static DRIVERS: &[&Driver] = &[&NS16550, &APIC, &ACPI_TIMER];

/// Where the class binary is linked. It stays the same on every board.
const LOAD_ADDRESS: u64 = 0x20_0000;
/// First port and line of the first serial line of a PC.
const UART: (u64, u64) = (0x3F8, 4);
/// The places of the interrupt controllers in memory.
const LOCAL_APIC: u64 = 0xFEE0_0000;
pub(super) const IO_APIC: u64 = 0xFEC0_0000;
const APIC_SIZE: u64 = 0x1000;
/// Pins of the I/O APIC.
const LINES: u32 = 32;

struct X86;

impl Host for X86 {
    fn facts(&self) -> &'static ClassFacts {
        &X86_64
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
        let log = self.log(board);
        let own = Window {
            base: log.base,
            size: log.size.saturating_add(1),
        };
        if !board.ram.first().is_some_and(|ram| ram.contains(own)) {
            refuse(
                "ram",
                format!(
                    "the hypervisor is loaded at {LOAD_ADDRESS:#x}, which is not in the first stretch of RAM with room for the log before it"
                ),
                "let the first stretch begin at 1M",
            );
        }
    }

    /// Fills in the machine of a PC: RAM from 0, the first serial line, the pins of the I/O APIC.
    fn settle(&self, manifest: &mut Manifest, _board: &Board) {
        for partition in &mut manifest.partitions {
            let machine = &mut partition.machine;
            if machine.ram_base.key.is_none() {
                machine.ram_base.value = Address::new(0);
            }
            let uart = &mut machine.uart.value;
            if uart.base.key.is_none() {
                uart.base.value = Address::new(UART.0);
            }
            if uart.line.key.is_none() {
                uart.line.value = Whole::new(UART.1).unwrap_or_default();
            }
            machine.board_lines = Some(LINES);
        }
    }

    fn virtual_controller(&self, _spec: &PartitionSpec, _board: Option<&Board>) -> Option<VirtualController> {
        let window = |base| Window {
            base,
            size: APIC_SIZE,
        };
        Some(VirtualController {
            kind: bulkhead_image::layout::VIRTUAL_APIC,
            windows: vec![("local APIC", window(LOCAL_APIC)), ("I/O APIC", window(IO_APIC))],
        })
    }

    fn binary_reserve(&self) -> u64 {
        4 << 20
    }

    fn own_tables(&self) -> usize {
        bulkhead_arch_paging::OWN_TABLES_X86_64
    }

    fn own_memory(&self, _board: &Board, plan: &Plan) -> Vec<(&'static str, Window, &'static str)> {
        vec![("hypervisor, payloads", plan.hypervisor, "rwx")]
    }

    fn initramfs(&self) -> &'static str {
        "@debian/initramfs-amd64"
    }

    /// Finds no fault: an instruction can be anywhere.
    fn entry_fault(&self, _entry: u64, _state: EntryState) -> Option<&'static str> {
        None
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
