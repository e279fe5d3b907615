// SPDX-License-Identifier: Apache-2.0
//! Physical interrupt lines: their owners, and the times in which they may interrupt.
//!
//! A line of a partition interrupts once. Then the line is *held*: masked until the guest's handler for it
//! has ended. While the partition does not run, the line stays masked until the partition has run and its
//! handler has ended. So a device interrupts the hypervisor at most once per interrupt its guest handles,
//! with any behaviour of the device. A line is open if its guest has enabled it, it is not held, and the
//! kernel has *admitted* its partition: a wake-up of this partition would change the running vCPU. So devices
//! of partitions that do not matter now do not interrupt at all. Their requests stay pending in the
//! controller. Level-triggered lines that are still high when they are opened interrupt again.
//!
//! **Priorities.** There are two levels that preempt. Prompt lines (`arrival`) interrupt the hypervisor, for
//! a dozen instructions, and so do lines whose handlers start early (`early`), for longer. Everything else
//! never interrupts the hypervisor. Within this second level the CPU's own exceptions and the timer come
//! first.

use crate::arrival::add;
use crate::starts;
use crate::sysreg::{
    AIRCR, ICTR, MAX_LINES, NVIC_ICER, NVIC_ICPR, NVIC_IPR, NVIC_ISER, NVIC_ISPR, SHPR, control_space, read,
    write,
};
use bulkhead_abi::log::Area;
use bulkhead_arch_api::{MAX_PARTITIONS, PartitionId};
use bulkhead_arch_armv7m_core::VirtualCore;
use bulkhead_arch_one_pcpu::Pool;
use core::num::NonZeroU32;

const WORDS: usize = MAX_LINES as usize / 32;

/// The owner of a line, and the way to the owner.
#[derive(Clone, Copy)]
pub(crate) struct Route {
    pub(crate) partition: PartitionId,
    pub(crate) virtual_line: u8,
    pub(crate) edge: bool,
    pub(crate) critical: bool,
    /// Ticks from the interrupt's arrival to its owner, if that time is constant.
    pub(crate) latency: Option<NonZeroU32>,
}

/// The bytes of the pool that a line takes.
pub(crate) const BYTES_OF_LINE: usize = size_of::<Option<Route>>();

/// All lines, as sets of one bit each.
pub(crate) struct Interrupts {
    log: &'static Area,
    /// The routes by line, as many as the controller has lines.
    pub(crate) routes: &'static mut [Option<Route>],
    /// Lines of each partition.
    pub(crate) of: [u64; MAX_PARTITIONS],
    /// Lines of the hypervisor's own.
    pub(crate) own: u64,
    /// Lines of the hypervisor's own that are open only while some partitions are admitted, as if the lines
    /// were theirs.
    pub(crate) shared: u64,
    /// Lines that interrupt the hypervisor: to have the time of their arrival noted, or to start their
    /// handler early.
    pub(crate) prompt: u64,
    /// Lines that their guests have enabled.
    enabled: u64,
    /// Lines that wait for their guest.
    pub(crate) held: u64,
    /// Lines of partitions that may interrupt the code that runs now.
    admitted: u64,
    /// Lines of partitions that are open in the hardware.
    open: u64,
}

/// Returns the bit of a line. The function works in two halves, because a shift of 64 bits is a call.
pub(crate) const fn bit(line: u32) -> u64 {
    let bit = 1_u32.wrapping_shl(line) as u64;
    if line < 32 { bit } else { bit << 32 }
}

/// Returns the lines whose bit is set, lowest first; at most [`MAX_LINES`] steps.
fn members(mut lines: u64) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        let line = (lines != 0).then(|| lines.trailing_zeros())?;
        lines &= lines - 1;
        Some(line)
    })
}

/// Writes the bit of a line in one of the controller's banks of registers.
pub(crate) fn strike(bank: usize, line: u32) {
    write(bank + 4 * (line as usize >> 5), 1_u32.wrapping_shl(line));
}

/// Returns the bit of a line in one of the banks.
fn is_set(bank: usize, line: u32) -> bool {
    read(bank + 4 * (line as usize >> 5)) & 1_u32.wrapping_shl(line) != 0
}

/// Writes the bits of these lines in one of the banks.
fn strike_all(bank: usize, lines: u64) {
    let (low, high) = (lines as u32, (lines >> 32) as u32);
    if low != 0 {
        write(bank, low);
    }
    if high != 0 {
        write(bank + 4, high);
    }
}

const _: () = assert!(WORDS == 2);

/// AIRCR (B3.2.6): the key, and PRIGROUP 6. The highest bit of a priority then decides about preemption, and
/// the others decide about order.
const TWO_GROUPS: u32 = 0x05FA << 16 | 6 << 8;
/// Priority of lines whose handlers start early.
pub(crate) const EARLY: u8 = 0;
/// Priority of lines that interrupt the hypervisor to have their time noted.
const PROMPT: u8 = 0x40;
/// Priority of the CPU's own exceptions and of the timer.
pub(crate) const OWN: u8 = 0x80;
/// Priority of PendSV, the end of an early start: it must not come before the exception of the guest that was
/// interrupted, which waits.
const EARLY_END: u8 = 0xA0;
/// Priority of the lines of partitions.
pub(crate) const PARTITIONS: u8 = 0xC0;
/// System handlers that have a priority: MemManage to SysTick (B3.2.10 and the following).
const HANDLERS: usize = 12;
/// The place of PendSV among them.
const PENDSV: usize = 10;

fn set_priority(line: u32, priority: u8) {
    control_space().write8(NVIC_IPR + line as usize, priority);
}

/// Returns the number of lines of the controller (B3.4.2), as far as there are vectors for them.
pub(crate) fn lines() -> u32 {
    (32 * ((read(ICTR) & 0xF) + 1)).min(MAX_LINES)
}

/// Sets the priorities so that the timer comes before any device. Without them the timer would not: of
/// pending lines of one priority the one with the lowest number comes first.
pub(crate) fn set_priorities(timer: u32) {
    // The hypervisor itself is the handler of one of these exceptions.
    for handler in 0..HANDLERS {
        control_space().write8(SHPR + handler, OWN);
    }
    if starts::IS_THERE {
        control_space().write8(SHPR + PENDSV, EARLY_END);
    }
    for line in 0..MAX_LINES {
        set_priority(line, if line == timer { OWN } else { PARTITIONS });
    }
    write(AIRCR, TWO_GROUPS);
}

/// Tells whether a line would interrupt if the hypervisor did not run.
pub(crate) fn is_pending() -> bool {
    (0..WORDS).any(|word| read(NVIC_ISPR + 4 * word) & read(NVIC_ISER + 4 * word) != 0)
}

/// Takes a line that would interrupt if the hypervisor did not run. The line is then no longer pending.
pub(crate) fn take_pending() -> Option<u32> {
    for word in 0..WORDS {
        let pending = read(NVIC_ISPR + 4 * word) & read(NVIC_ISER + 4 * word);
        if pending != 0 {
            let line = 32 * word as u32 + pending.trailing_zeros();
            strike(NVIC_ICPR, line);
            return Some(line);
        }
    }
    None
}

impl Interrupts {
    /// Makes the lines. The area `log` counts interrupts that came while their line was masked.
    pub(crate) fn new(pool: &mut Pool, log: &'static Area) -> Self {
        Self {
            log,
            routes: pool.table(None, lines() as usize).unwrap_or(&mut []),
            of: [0; MAX_PARTITIONS],
            own: 0,
            shared: 0,
            prompt: 0,
            enabled: 0,
            held: 0,
            admitted: u64::MAX,
            open: 0,
        }
    }

    pub(crate) fn route_of(&self, line: u32) -> Option<Route> {
        self.routes.get(line as usize).copied().flatten()
    }

    /// Returns the lines of a partition.
    fn lines_of(&self, partition: PartitionId) -> impl Iterator<Item = (u32, Route)> + '_ {
        members(self.all_of(partition)).filter_map(|line| Some((line, self.route_of(line)?)))
    }

    fn all_of(&self, partition: PartitionId) -> u64 {
        self.of.get(usize::from(partition.0)).copied().unwrap_or(0) & !self.shared
    }

    /// Counts an interrupt that came while its line was masked. The line is opened now and has been pending.
    fn came_unseen(&self, partition: PartitionId) {
        if let Some(place) = self.log.partitions.get(usize::from(partition.0)) {
            add(&place.prompt.unknown);
        }
    }

    /// Opens and masks lines as their state demands.
    pub(crate) fn apply(&mut self) {
        let mut wanted = self.enabled & !self.held & self.admitted;
        if wanted == self.open {
            return;
        }
        // The line of an early start that is not told yet is masked.
        if let Some(line) = starts::masked() {
            self.held |= bit(line);
            wanted &= !self.held;
        }
        strike_all(NVIC_ICER, self.open & !wanted);
        for line in members(wanted & !self.open & self.prompt) {
            if starts::IS_THERE && self.starts_early(line) {
                set_priority(line, EARLY);
                continue;
            }
            set_priority(line, PROMPT);
            if is_set(NVIC_ISPR, line)
                && let Some(route) = self.route_of(line)
            {
                self.came_unseen(route.partition);
            }
        }
        strike_all(NVIC_ISER, wanted & !self.open);
        self.open = wanted;
    }

    /// Tells whether the handler of a prompt line starts early.
    fn starts_early(&self, line: u32) -> bool {
        self.route_of(line).is_some_and(|route| route.latency.is_none())
    }

    /// Tells whether handlers of a partition start early.
    pub(crate) fn has_early(&self, partition: PartitionId) -> bool {
        members(self.all_of(partition) & self.prompt).any(|line| self.starts_early(line))
    }

    /// Masks a line until its guest's handler has ended.
    pub(crate) fn hold(&mut self, line: u32) {
        self.held |= bit(line);
        self.apply();
    }

    /// Takes a line for the hypervisor itself and opens it.
    pub(crate) fn own(&mut self, line: u32) {
        if line < MAX_LINES {
            self.own |= bit(line);
            strike(NVIC_ISER, line);
        }
    }

    /// Takes a line for the hypervisor itself that matters to these partitions (a bitmap) only.
    pub(crate) fn share(&mut self, line: u32, partitions: u32) {
        if line < MAX_LINES {
            self.own |= bit(line);
            self.shared |= bit(line);
            for (number, lines) in (0_u32..).zip(&mut self.of) {
                if partitions & 1_u32.wrapping_shl(number) != 0 {
                    *lines |= bit(line);
                }
            }
            self.enabled |= bit(line);
            self.apply();
        }
    }

    /// Ends an interrupt of the hypervisor's own. The line may ask again by then. An emulator makes a level
    /// pending when it rises and when a handler of it ends, but not when the line is opened (a CPU would:
    /// B3.4.1). A pending line therefore stays pending: otherwise a byte that arrives just now would be the
    /// last one. At worst there is nothing to do for it.
    pub(crate) fn complete(&mut self, line: u32) {
        if self.shared & bit(line) != 0 {
            self.held &= !bit(line);
            self.apply();
        } else {
            strike(NVIC_ISER, line);
        }
    }

    /// Frees a held line. A level-triggered line became pending once more if it was still high when the
    /// hypervisor left. If the line is high now, it becomes pending again.
    fn release(&mut self, line: u32, route: Route) {
        self.held &= !bit(line);
        if !route.edge {
            strike(NVIC_ICPR, line);
        }
    }

    /// Follows the guest of a partition, which may have enabled or disabled lines, or taken a pending state
    /// away.
    pub(crate) fn follow(&mut self, partition: PartitionId, core: &VirtualCore) {
        for line in members(self.all_of(partition)) {
            let Some(route) = self.route_of(line) else {
                continue;
            };
            if core.line_enabled(route.virtual_line) {
                self.enabled |= bit(line);
            } else {
                self.enabled &= !bit(line);
            }
            if self.held & bit(line) != 0 && core.line_is_idle(route.virtual_line) {
                self.release(line, route);
            }
        }
        self.apply();
    }

    /// Frees the physical line of a virtual line, if it has one: the guest's handler of the virtual line has
    /// ended.
    pub(crate) fn ended(&mut self, partition: PartitionId, virtual_line: u8) {
        let found = self
            .lines_of(partition)
            .find(|(line, route)| route.virtual_line == virtual_line && self.held & bit(*line) != 0);
        if let Some((line, route)) = found {
            self.release(line, route);
            self.apply();
        }
    }

    /// Disables all lines of a partition that starts anew or has ended: its guest has enabled no line.
    pub(crate) fn reset(&mut self, partition: PartitionId) {
        let all = self.all_of(partition);
        self.enabled &= !all;
        self.held &= !all;
        self.apply();
        strike_all(NVIC_ICPR, all);
    }

    /// Lets only these lines of partitions interrupt from now on. Interrupts of the other lines stay pending.
    pub(crate) fn admit(&mut self, lines: u64) {
        self.admitted = lines;
        self.apply();
    }
}
