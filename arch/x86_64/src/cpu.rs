// SPDX-License-Identifier: Apache-2.0
//! Physical CPUs: start by INIT and start-up IPI (Intel SDM 3A, 8.4.4.1), signals, waiting.

use crate::board::{BOARD, hardware_id};
use crate::machine::Machine;
use crate::mmu::TRAMPOLINE;
use crate::parking::park;
use crate::{entry, physical, sysreg};
use bulkhead_arch_api::{Cpus, Exit, PcpuId, StartError, Ticks};
use bulkhead_arch_support::physical as memory;
use core::sync::atomic::Ordering;

/// [`StartError`] code: the board has no such pCPU.
const NO_SUCH_PCPU: i64 = -2;
/// Interrupts taken at a time outside a guest.
const BURST: usize = 4;
/// Waits between the messages of a start, in microseconds.
const AFTER_INIT: u64 = 10_000;
const AFTER_STARTUP: u64 = 200;
/// PM1a control: the bit that puts the board to sleep, with the type that means off.
const CONTROL: u16 = 4;
const SLEEP: u16 = 1 << 13;

fn wait_micros(micros: u64) {
    let hertz = BOARD.get().map_or(0, |board| board.hertz);
    let end = sysreg::counter().saturating_add(hertz / 1_000_000 * micros);
    while sysreg::counter() < end {
        bulkhead_arch_support::relax();
    }
}

impl Cpus for Machine {
    fn current(&self) -> PcpuId {
        self.pcpu
    }

    fn start(&mut self, pcpu: PcpuId) -> Result<(), StartError> {
        let target = hardware_id(pcpu).ok_or(StartError { code: NO_SUCH_PCPU })?;
        if let Some(index) = entry::BULKHEAD_INDICES.get(target as usize) {
            index.store(pcpu.0, Ordering::SeqCst);
        }
        let (code, length) = entry::trampoline();
        // SAFETY: the code between the two symbols, which no code writes.
        let bytes = unsafe { core::slice::from_raw_parts(code as *const u8, length) };
        // SAFETY: the trampoline's page is mapped for this alone, and nothing refers to it.
        unsafe { memory::write(TRAMPOLINE as usize, bytes) }
        physical::reset(target);
        wait_micros(AFTER_INIT);
        for _ in 0..2 {
            physical::start(target, TRAMPOLINE);
            wait_micros(AFTER_STARTUP);
        }
        Ok(())
    }

    fn signal(&mut self, pcpu: PcpuId) {
        if let Some(target) = hardware_id(pcpu) {
            physical::interrupt(target, physical::SIGNAL);
        }
    }

    fn wait(&mut self) -> Exit {
        loop {
            if let Some(exit) = self.take_note() {
                return exit;
            }
            let next = self.next_look();
            self.set_timer(next);
            let vector = sysreg::wait_for_interrupt();
            if let Some(exit) = self.handle_vector(vector) {
                return exit;
            }
        }
    }

    fn poll(&mut self) -> Option<Exit> {
        if self.direct {
            return self.take_note();
        }
        self.set_timer(Ticks::NEVER);
        for _ in 0..BURST {
            let vector = sysreg::take_interrupt()?;
            if let Some(exit) = self.handle_vector(vector) {
                return Some(exit);
            }
        }
        None
    }

    fn stop(&mut self) -> ! {
        park()
    }

    fn power_off(&mut self) {
        if let Some(board) = BOARD.get() {
            sysreg::write_port16(board.power + CONTROL, SLEEP);
        }
    }
}
