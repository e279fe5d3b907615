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
/// The logarithm of the bytes of a region of real-mode storage.
const REGION: u32 = 27;
/// TCR.PIE.
const TIMER_INTERRUPT: u32 = 0x0400_0000;

impl Machine {
    /// Returns the machine, and the system image or its error. Called once, by `entry_point`.
    pub fn primary() -> (Self, Result<Image<'static>, ImageError>) {
        let bytes = layout::system_image();
        console::find(bytes);
        let image = bulkhead_arch_trust::check(bytes, &class::PPC405, &Portable);
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
    let (mut ram, mut devices) = (0, 0);
    for record in image.map() {
        // A record ends in the 4 GiB that the bus has.
        let (first, size) = (record.base.get() as u32, record.size.get() as u32);
        let last = first.wrapping_add(size.wrapping_sub(1));
        let from = u32::MAX >> (first >> REGION);
        let bits = from & !((u32::MAX >> (last >> REGION)) >> 1);
        match record.kind.get() {
            MAP_RAM => ram |= bits,
            MAP_DEVICE => devices |= bits,
            _ => {}
        }
    }
    ram & !devices
}
