// SPDX-License-Identifier: Apache-2.0
//! The Non-secure world of a VM: all state of the processor that the VM can change without the hypervisor, as
//! it is while another VM has the hardware.
//!
//! The state of a line that belongs to another owner reads as zero through the Non-secure alias, and cannot
//! be changed there (D1.2.190, NVIC_ITNS). So the alias alone is enough to move a VM's lines.

use crate::line_set::{Lines, WORDS};
use crate::sysreg::{self, CCR_ALIGNED};

/// ICSR (D1.2.147): PendSV and SysTick are pending.
const PENDSVSET: u32 = 1 << 28;
const PENDSTSET: u32 = 1 << 26;
/// SysTick's CSR (D1.2.250).
const ENABLE: u32 = 1;
const TICKINT: u32 = 1 << 1;
const CLKSOURCE: u32 = 1 << 2;
const COUNTFLAG: u32 = 1 << 16;
/// SHCSR.SYSTICKACT (D1.2.240).
const SYSTICKACT: u32 = 1 << 11;
/// In the rest of a period: COUNTFLAG is to be set.
const OWES_FLAG: u32 = 1 << 31;
/// A stack pointer below which a frame would be Secure memory.
pub(crate) const NO_STACK: u32 = 0x100;
/// The largest value of RVR (D1.2.253).
const MAX_RELOAD: u32 = 0xFF_FFFF;
/// The least rest of a period that SysTick is started with, in cycles. The instructions that wait until
/// SysTick has taken the rest look every few cycles, and must not miss it.
const LEAST_REST: u32 = 64;
/// The most cycles that a move can cost the timer.
const LONGEST_MOVE: u32 = 256;
/// FPCCR.ASPEN and LSPEN, which are set after a reset.
const PRESERVED: u32 = 0xC000_0000;

/// The state of the lines of a world.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct LineState {
    pub(crate) enabled: Lines,
    pub(crate) pending: Lines,
    /// Lines whose handlers have begun and not ended.
    pub(crate) active: Lines,
    priorities: [u32; 32],
}

const _: () = assert!(size_of::<LineState>() == (12 + 32) * 4);

/// The Non-secure world. The assembly in `entry` has the order of its words.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct World {
    /// MSP, PSP, MSPLIM, PSPLIM, CONTROL, BASEPRI, FAULTMASK.
    special: [u32; 7],
    /// VTOR, AIRCR, SCR, CCR, SHPR1 to SHPR3, SHCSR.
    block: [u32; 8],
    /// ICSR.
    waiting: u32,
    /// MMFAR, CPACR, MPU_CTRL, MPU_RNR, MPU_MAIR0, MPU_MAIR1, FPCCR, FPCAR, FPDSCR.
    more: [u32; 9],
    pub(crate) regions: [u32; 32],
    /// SysTick: CSR, RVR and CVR.
    pub(crate) timer: [u32; 3],
    /// PRIMASK, which is set in the hardware while the VM does not run.
    pub(crate) primask: u32,
    pub(crate) lines: LineState,
    /// The time at which the world was left.
    left: u64,
    /// The end of the timer's period as it was put into the hardware. It is 0 unless the timer goes on in
    /// real time.
    end: u64,
}

unsafe extern "C" {
    /// Takes the Non-secure world out of the processor.
    fn bulkhead_save_world(world: *mut World);
    /// Puts it back, with this rest of its timer's period (see [`World::rest`]) and these bits of
    /// ICSR.
    fn bulkhead_load_world(world: *const World, rest: u32, waiting: u32);
    /// Takes the state of the Non-secure lines.
    fn bulkhead_save_lines(lines: *mut LineState);
    /// Puts it back.
    fn bulkhead_load_lines(lines: *const LineState);
    /// Leaves nothing pending in the Non-secure world.
    fn bulkhead_clear_other();
    /// Reads CSR, RVR and CVR of the Non-secure SysTick.
    fn bulkhead_read_timer(to: *mut [u32; 3]);
}

/// Returns the rest of a division. Mostly the number is small.
fn remainder(number: u64, divisor: u32) -> u32 {
    match u32::try_from(number) {
        Ok(number) => number.checked_rem(divisor).unwrap_or(0),
        Err(_) => number.checked_rem(divisor.into()).unwrap_or(0) as u32,
    }
}

/// Returns the cycles until a timer interrupts, if it runs with the clock of the hypervisor's counter.
fn timer_end(timer: &[u32; 3]) -> Option<u32> {
    const INTERRUPTS: u32 = ENABLE | TICKINT | CLKSOURCE;
    let [control, reload, left] = *timer;
    let runs = control & INTERRUPTS == INTERRUPTS && reload != 0;
    runs.then_some(if left == 0 { reload } else { left })
}

/// Returns the cycles until the timer of the world in the hardware interrupts, if it does. Requires: the
/// Non-secure block is open.
pub(crate) fn timer_left() -> Option<u32> {
    let mut timer = [0; 3];
    // SAFETY: `timer` has room for the three words. The Non-secure block is open.
    unsafe { bulkhead_read_timer(&raw mut timer) }
    timer_end(&timer)
}

/// Tells whether an interrupt of the world in the hardware waits that its program has enabled.
pub(crate) fn has_work() -> bool {
    let registers = sysreg::other_space();
    let waits = |word| {
        registers.read32(sysreg::NVIC_ISPR + 4 * word) & registers.read32(sysreg::NVIC_ISER + 4 * word) != 0
    };
    registers.read32(sysreg::ICSR) & (PENDSVSET | PENDSTSET) != 0 || (0..WORDS).any(waits)
}

impl World {
    /// Returns the world after a reset (B3.1), with the stack pointer and the vector table of a program.
    pub(crate) const fn new(main_stack: u32, vectors: u32) -> Self {
        Self {
            special: [main_stack, 0, 0, 0, 0, 0, 0],
            block: [vectors, 0, 0, CCR_ALIGNED | 1, 0, 0, 0, 0],
            waiting: 0,
            more: [0, 0, 0, 0, 0, 0, PRESERVED, 0, 0],
            regions: [0; 32],
            timer: [0; 3],
            primask: 0,
            lines: LineState {
                enabled: [0; 4],
                pending: [0; 4],
                active: [0; 4],
                priorities: [0; 32],
            },
            left: 0,
            end: 0,
        }
    }

    /// Takes the world out of the hardware, but for lines and floating-point registers, at `now`. Requires:
    /// the Non-secure block is open, and no exception of the world can be taken.
    pub(crate) fn save(&mut self, now: impl FnOnce() -> u64) {
        // SAFETY: the function writes the words of `self` up to `timer`. The Non-secure block is open.
        unsafe { bulkhead_save_world(self) }
        self.left = now();
        self.keep_time();
    }

    /// Takes away what the last move has cost the timer. Without this, each move would lose the cycles
    /// between the stop of the timer and the look at the clock, and the program's time would be slow. Does
    /// nothing if the program has started the timer anew since then: the phase is another one.
    fn keep_time(&mut self) {
        const COUNTS: u32 = ENABLE | CLKSOURCE;
        let [control, reload, left] = self.timer;
        if self.end == 0 || control & COUNTS != COUNTS {
            return;
        }
        let period = (reload & MAX_RELOAD).wrapping_add(1);
        let measured = self.left.wrapping_add(left.into());
        let late = remainder(measured.wrapping_sub(self.end), period);
        if late < LONGEST_MOVE && late < left {
            self.timer = [control, reload, left.wrapping_sub(late)];
        }
    }

    /// Takes the state of its lines out of the hardware, active handlers included.
    pub(crate) fn save_lines(&mut self) {
        // SAFETY: the function writes all words of `lines`.
        unsafe { bulkhead_save_lines(&raw mut self.lines) }
    }

    /// Adds what has become pending since the state was taken: free lines, lines whose handlers are active,
    /// and the timer.
    pub(crate) fn take_late(&mut self) {
        self.waiting |= sysreg::other_space().read32(sysreg::ICSR) & PENDSTSET;
        for (index, pending) in self.lines.pending.iter_mut().enumerate() {
            *pending |= sysreg::other_space().read32(sysreg::NVIC_ISPR + 4 * index);
        }
    }

    /// Empties the hardware of the world that was there: nothing is pending, enabled or active but handlers
    /// of lines.
    pub(crate) fn clear() {
        // SAFETY: the function writes registers of the Non-secure world, which no code of the hypervisor
        // uses.
        unsafe { bulkhead_clear_other() }
    }

    /// Puts the world into the hardware at `now`, but for PRIMASK, lines and floating-point registers. With
    /// `real`, its own timer has run on meanwhile. Requires: as for [`World::save`], and [`World::clear`].
    pub(crate) fn load(&mut self, now: u64, real: bool) {
        let (rest, pended) = self.rest(now, real);
        self.end = if real && rest != 0 {
            now.wrapping_add((rest & MAX_RELOAD).into())
        } else {
            0
        };
        let waiting = self.waiting & (PENDSVSET | PENDSTSET) | pended;
        // SAFETY: the function reads the words of `self`. The Non-secure block is open.
        unsafe { bulkhead_load_world(self, rest, waiting) }
    }

    /// Puts the state of its lines into the hardware.
    pub(crate) fn load_lines(&self) {
        // SAFETY: the function reads all words of `lines`.
        unsafe { bulkhead_load_lines(&raw const self.lines) }
    }

    /// Returns the rest of SysTick's period, and PENDSTSET if a period has ended meanwhile, or will in a
    /// moment. The rest is 0 if SysTick is off. Otherwise it is a value of the 24 bits of RVR, and long
    /// enough for the instructions that wait for SysTick to have taken it. With [`OWES_FLAG`] the program may
    /// ask COUNTFLAG whether a period has ended.
    fn rest(&self, now: u64, real: bool) -> (u32, u32) {
        let [control, reload, left] = self.timer;
        if control & ENABLE == 0 || reload == 0 {
            return (0, 0);
        }
        let period = (reload & MAX_RELOAD).wrapping_add(1);
        // The timer has just been started, or the end of its period is noted already.
        let left = if left == 0 { period } else { left };
        let (mut rest, mut ended) = (left, false);
        // Only the processor's own clock is the counter's clock.
        if real && control & CLKSOURCE != 0 {
            let passed = now.wrapping_sub(self.left);
            if passed < u64::from(left) {
                rest = left.wrapping_sub(passed as u32);
            } else {
                let over = passed.wrapping_sub(u64::from(left));
                rest = period.wrapping_sub(remainder(over, period));
                ended = true;
            }
        }
        // The next end is so near that it is taken for past. So no time is lost from move to move.
        if rest < LEAST_REST && real {
            rest = rest.wrapping_add(period);
            ended = true;
        }
        let pended = if ended && control & TICKINT != 0 {
            PENDSTSET
        } else {
            0
        };
        let is_owed = control & CLKSOURCE != 0 && (ended || control & COUNTFLAG != 0 && self.may_ask());
        let flag = if is_owed { OWES_FLAG } else { 0 };
        (rest.clamp(LEAST_REST, MAX_RELOAD) | flag, pended)
    }

    /// Tells whether the program may still ask for the end of the last period: its handler has not ended, or
    /// it has none. A kernel that never asks leaves COUNTFLAG set for ever, and setting it takes some cycles.
    const fn may_ask(&self) -> bool {
        let [control, ..] = self.timer;
        let [.., handlers] = self.block;
        self.waiting & PENDSTSET != 0 || control & TICKINT == 0 || handlers & SYSTICKACT != 0
    }

    /// Returns the time at which its own timer interrupts next, as far as is known while the world is not in
    /// the hardware; `u64::MAX` if it does not.
    pub(crate) fn timer_due(&self) -> u64 {
        timer_end(&self.timer).map_or(u64::MAX, |left| self.left.saturating_add(left.into()))
    }

    /// Keeps the stack pointers, and leaves the hardware pointers to where no frame can be pushed: a task can
    /// make the CPU push one (BXNS is not privileged).
    pub(crate) fn take_stacks(&mut self) {
        let [main, process, main_limit, process_limit, ..] = &mut self.special;
        (*main, *process) = (sysreg::main_stack(), sysreg::process_stack());
        (*main_limit, *process_limit) = (sysreg::main_limit(), sysreg::process_limit());
        sysreg::set_main_limit(0);
        sysreg::set_process_limit(0);
        sysreg::set_main_stack(NO_STACK);
        sysreg::set_process_stack(NO_STACK);
    }

    /// Ends that.
    pub(crate) fn put_stacks(&self) {
        let [main, process, main_limit, process_limit, ..] = self.special;
        sysreg::set_main_stack(main);
        sysreg::set_process_stack(process);
        sysreg::set_main_limit(main_limit);
        sysreg::set_process_limit(process_limit);
    }

    /// Tells whether an interrupt waits that its program has enabled, as far as is known while the world is
    /// not in the hardware.
    pub(crate) fn has_work(&self) -> bool {
        self.waiting & (PENDSVSET | PENDSTSET) != 0 || self.has_lines()
    }

    /// Tells whether a line waits that its program has enabled, as far as the state of its lines is known.
    pub(crate) fn has_lines(&self) -> bool {
        let lines = self.lines.pending.iter().zip(&self.lines.enabled);
        let waits = lines.fold(0, |waits, (pending, enabled)| waits | pending & enabled);
        waits != 0
    }
}
