// SPDX-License-Identifier: Apache-2.0
//! Bring-up: the machine is made once, out of the checked system image.

use crate::buffer::Buffer;
use crate::context::{ContextTable, Registers};
use crate::crash::halt;
use crate::lines::Lines;
use crate::machine::Machine;
use crate::regions::SpaceTable;
use crate::sysreg::{self, PID, PIT, TCR, TSR, ZPR};
use crate::{console, layout};
use bulkhead_abi::lockdown;
use bulkhead_arch_api::{Exit, MAX_PARTITIONS, Ticks, class};
use bulkhead_image::layout::{CONTROLLER_PPC_TIMER, MAP_DEVICE, MAP_RAM, NONE, ROLE_TIMER};
use bulkhead_image::{Image, ImageError, Portable};

/// MSR of the code that waits: supervisor state, no translation, interrupts.
const IDLE_STATE: u32 = 0x8000;
/// The logarithm of the bytes of a region of real-mode storage, and the bit of the first region.
const REGION: u32 = 27;
const FIRST_REGION: u32 = 1 << 31;
/// TCR.PIE.
const TIMER_INTERRUPT: u32 = 0x0400_0000;

impl Machine {
    /// Returns the machine, and the system image or its error. Called once, by `entry_point`.
    pub fn primary() -> (Self, Result<Image<'static>, ImageError>) {
        let bytes = layout::system_image();
        console::find(bytes);
        let image = Image::check_here(bytes, &class::PPC405, &Portable);
        let mut machine = Self::new();
        if let Ok(image) = &image {
            machine.adopt_board(image);
        }
        (machine, image)
    }

    fn new() -> Self {
        sysreg::write_spr::<TCR>(0);
        sysreg::write_spr::<PIT>(0);
        sysreg::write_spr::<TSR>(u32::MAX);
        sysreg::write_spr::<TCR>(TIMER_INTERRUPT);
        sysreg::write_spr::<ZPR>(0);
        sysreg::write_spr::<PID>(0);
        let mut machine = Self {
            contexts: ContextTable::new(),
            spaces: SpaceTable::new(),
            buffer: Buffer::new(),
            lines: Lines::new(),
            current: None,
            runs: false,
            exit: Exit::Signal,
            lent: None,
            first: [None; MAX_PARTITIONS],
            deadline: Ticks::NEVER,
            armed: Ticks(0),
            hertz: 0,
            is_emulated: false,
            idle: Registers::new(IDLE_STATE),
            trace: (0, 0),
        };
        machine.buffer.clear();
        machine.lines.init();
        machine
    }

    fn adopt_board(&mut self, image: &Image<'static>) {
        let board = image.board();
        if board.load_address.get() != layout::load_address() as u64 {
            halt(lockdown!("loaded at the wrong address"));
        }
        if board.log_base.get() != layout::log_address() as u64 {
            halt(lockdown!(
                "the log's place is not directly below the load address"
            ));
        }
        let timer = image.controllers().iter().find(|record| {
            record.role.get() == ROLE_TIMER && record.compatible.get() == CONTROLLER_PPC_TIMER
        });
        let Some(timer) = timer else {
            halt(lockdown!(
                "no timer this hypervisor can use in the board's tables"
            ));
        };
        sysreg::cache(cached(image));
        self.hertz = timer.clock_hz.get().max(1);
        self.is_emulated = board.stop_after_ms.get() != NONE;
        self.trace = (
            board.trace_base.get() as usize,
            board.trace_records.get() as usize,
        );
    }
}

/// Returns the regions of 128 MiB with RAM and without a device, as [`sysreg::cache`] wants them. The
/// translation of guests is cached, and an access past the cache would not see what guests have stored.
fn cached(image: &Image<'_>) -> u32 {
    let regions = |kind| {
        let of_kind = image.map().iter().filter(move |record| record.kind.get() == kind);
        of_kind.fold(0, |found, record| {
            let (first, size) = (record.base.get(), record.size.get());
            let last = first.saturating_add(size.saturating_sub(1)).min(u32::MAX.into());
            let between = (first >> REGION)..=(last >> REGION);
            between.fold(found, |found, region| {
                found | FIRST_REGION.unbounded_shr(region as u32)
            })
        })
    };
    regions(MAP_RAM) & !regions(MAP_DEVICE)
}
