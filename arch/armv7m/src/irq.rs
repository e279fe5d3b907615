// SPDX-License-Identifier: Apache-2.0
//! Physical interrupt lines: whose they are, and when they may interrupt.
//!
//! A line of a partition interrupts once; then it is *held*: masked until the guest's handler for it has ended (or, while the
//! partition does not run, until it has run and that has happened). So a device interrupts the hypervisor at most once
//! per interrupt its guest handles, whatever the device does. A line is open if its guest has enabled it, it is not held, and
//! the kernel has *admitted* its partition: that it wakes up would change who runs. So devices of partitions that do not
//! matter now do not interrupt at all; what they ask for stays pending in the controller. Level-triggered lines that are
//! still high when they are opened interrupt again.
//!
//! **Priorities.** Two levels preempt: prompt lines (`arrival`), for a dozen instructions, and everything else, which never interrupts the
//! hypervisor. Within the latter the CPU's own exceptions and the timer come first.

use crate::arrival;
use crate::machine::Machine;
use crate::pool::Pool;
use crate::system::{
    AIRCR, ICTR, NVIC_ICER, NVIC_ICPR, NVIC_IPR, NVIC_ISER, NVIC_ISPR, SHPR, control_space, read, write,
};
use bulkhead_arch_api::{Exit, Irqs, Line, LineRoute, MAX_PARTITIONS, PartitionId, Ticks, VcpuSet};
use bulkhead_arch_deprivileged::VirtualCore;
use core::num::NonZeroU32;

/// Lines of the interrupt controller that the vector table has vectors for.
pub(crate) const MAX_LINES: u32 = 64;
const WORDS: usize = MAX_LINES as usize / 32;

/// Whose a line is.
#[derive(Clone, Copy)]
struct Route {
    partition: PartitionId,
    virtual_line: u8,
    edge: bool,
    critical: bool,
    /// Ticks from its arrival to its owner, if that is constant.
    latency: Option<NonZeroU32>,
}

/// What a line takes of the pool.
pub(crate) const BYTES_OF_LINE: usize = size_of::<Option<Route>>();

/// All lines, as sets of one bit each.
pub(crate) struct Interrupts {
    /// By line; as many as the controller has.
    routes: &'static mut [Option<Route>],
    /// Lines of each partition.
    of: [u64; MAX_PARTITIONS],
    /// Lines of the hypervisor's own.
    own: u64,
    /// Those of the hypervisor's own that are open only while some partitions are admitted, as if they were theirs.
    shared: u64,
    /// Lines that interrupt the hypervisor, to have the time of their arrival noted.
    prompt: u64,
    /// Lines that their guests have enabled.
    enabled: u64,
    /// Lines that wait for their guest.
    held: u64,
    /// Lines of partitions that may interrupt what runs now.
    admitted: u64,
    /// Lines of partitions that are open in the hardware.
    open: u64,
}

/// In two halves: a shift of 64 bits is a call.
const fn bit(line: u32) -> u64 {
    let bit = 1_u32.wrapping_shl(line) as u64;
    if line < 32 { bit } else { bit << 32 }
}

/// The lines whose bit is set, lowest first; at most [`MAX_LINES`] steps.
fn members(mut lines: u64) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        let line = (lines != 0).then(|| lines.trailing_zeros())?;
        lines &= lines - 1;
        Some(line)
    })
}

/// Writes the bit of a line in one of the controller's banks of registers.
fn strike(bank: usize, line: u32) {
    write(bank + 4 * (line as usize >> 5), 1_u32.wrapping_shl(line));
}

/// The bit of a line in one of the banks.
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

/// AIRCR (B3.2.6): the key, and PRIGROUP 6: the highest bit of a priority decides about preemption, the others about order.
const TWO_GROUPS: u32 = 0x05FA << 16 | 6 << 8;
/// Priority of lines that interrupt the hypervisor.
const PROMPT: u8 = 0;
/// Priority of the CPU's own exceptions and of the timer.
pub(crate) const OWN: u8 = 0x80;
/// Priority of the lines of partitions.
pub(crate) const PARTITIONS: u8 = 0xC0;
/// System handlers that have a priority: MemManage to SysTick (B3.2.10 and the following).
const HANDLERS: usize = 12;

fn set_priority(line: u32, priority: u8) {
    control_space().write8(NVIC_IPR + line as usize, priority);
}

/// Lines of the controller (B3.4.2), as far as there are vectors for them.
pub(crate) fn lines() -> u32 {
    (32 * ((read(ICTR) & 0xF) + 1)).min(MAX_LINES)
}

/// The timer comes before any device: of pending lines of one priority the one with the lowest number would.
pub(crate) fn set_priorities(timer: u32) {
    // The hypervisor itself is the handler of one of them.
    for handler in 0..HANDLERS {
        control_space().write8(SHPR + handler, OWN);
    }
    for line in 0..MAX_LINES {
        set_priority(line, if line == timer { OWN } else { PARTITIONS });
    }
    write(AIRCR, TWO_GROUPS);
}

/// Whether a line would interrupt if the hypervisor did not run.
pub(crate) fn is_pending() -> bool {
    (0..WORDS).any(|word| read(NVIC_ISPR + 4 * word) & read(NVIC_ISER + 4 * word) != 0)
}

/// A line that would interrupt if the hypervisor did not run; it is no longer pending.
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
    pub(crate) fn new(pool: &mut Pool) -> Self {
        Self {
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

    fn route_of(&self, line: u32) -> Option<Route> {
        self.routes.get(line as usize).copied().flatten()
    }

    /// The lines of a partition.
    fn lines_of(&self, partition: PartitionId) -> impl Iterator<Item = (u32, Route)> + '_ {
        members(self.all_of(partition)).filter_map(|line| Some((line, self.route_of(line)?)))
    }

    fn all_of(&self, partition: PartitionId) -> u64 {
        self.of.get(usize::from(partition.0)).copied().unwrap_or(0) & !self.shared
    }

    /// Opens and masks what has to be.
    fn apply(&mut self) {
        let wanted = self.enabled & !self.held & self.admitted;
        if wanted == self.open {
            return;
        }
        strike_all(NVIC_ICER, self.open & !wanted);
        for line in members(wanted & !self.open & self.prompt) {
            set_priority(line, PROMPT);
            if is_set(NVIC_ISPR, line)
                && let Some(route) = self.route_of(line)
            {
                arrival::came_unseen(route.partition);
            }
        }
        strike_all(NVIC_ISER, wanted & !self.open);
        self.open = wanted;
    }

    /// The hypervisor takes a line for itself and opens it.
    pub(crate) fn own(&mut self, line: u32) {
        if line < MAX_LINES {
            self.own |= bit(line);
            strike(NVIC_ISER, line);
        }
    }

    /// The hypervisor takes a line for itself that matters to these partitions (a bitmap) only.
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

    /// The end of an interrupt of the hypervisor's own. A shared line may long ask again by then, and an emulator pends a level when it rises
    /// and when a handler of it ends, not when it is opened (a CPU would: B3.4.1): what is pending stays so. At worst nothing is there to be done.
    fn complete(&mut self, line: u32) {
        if self.shared & bit(line) != 0 {
            self.held &= !bit(line);
            self.apply();
        } else {
            strike(NVIC_ICPR, line);
            strike(NVIC_ISER, line);
        }
    }

    /// A held line is free again. A level-triggered one became pending once more if it was still high when the hypervisor
    /// left; if it is high now, it does so again.
    fn release(&mut self, line: u32, route: Route) {
        self.held &= !bit(line);
        if !route.edge {
            strike(NVIC_ICPR, line);
        }
    }

    /// The guest of a partition may have enabled or disabled lines, or taken a pending state away.
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

    /// The guest's handler of a virtual line has ended: its physical line, if it has one, is free again.
    pub(crate) fn ended(&mut self, partition: PartitionId, virtual_line: u8) {
        let found = self
            .lines_of(partition)
            .find(|(line, route)| route.virtual_line == virtual_line && self.held & bit(*line) != 0);
        if let Some((line, route)) = found {
            self.release(line, route);
            self.apply();
        }
    }

    /// A partition starts anew, or has ended: its guest has enabled no line.
    pub(crate) fn reset(&mut self, partition: PartitionId) {
        let all = self.all_of(partition);
        self.enabled &= !all;
        self.held &= !all;
        self.apply();
        strike_all(NVIC_ICPR, all);
    }

    /// Only these lines of partitions may interrupt from now on. What the others ask for stays pending.
    fn admit(&mut self, lines: u64) {
        self.admitted = lines;
        self.apply();
    }
}

impl Machine {
    /// A partition starts anew, or has ended: nothing of its lines is left.
    pub(crate) fn forget_lines(&mut self, partition: PartitionId) {
        self.irq.reset(partition);
        if let Some(held) = self.held.get_mut(usize::from(partition.0)) {
            *held = None;
        }
    }

    /// A line has interrupted, or was found pending. Whether something of it is the kernel's: then that is the exit.
    pub(crate) fn interrupt(&mut self, line: u32) -> bool {
        if line == self.timer_line {
            self.timer_fired();
            self.exit = Exit::Deadline;
            return self.take_deadline();
        }
        if line < MAX_LINES && self.irq.own & bit(line) != 0 {
            if self.irq.shared & bit(line) != 0 {
                self.irq.held |= bit(line);
                self.irq.apply();
            } else {
                strike(NVIC_ICER, line);
            }
            self.exit = Exit::Interrupt(Line(line));
            return true;
        }
        let Some(route) = self.irq.route_of(line) else {
            return false;
        };
        self.irq.held |= bit(line);
        self.irq.apply();
        let Some(vcpu) = self.first_of(route.partition) else {
            return false;
        };
        if let Some(context) = self.contexts.get(vcpu) {
            // Also of a level: it is looked at again when the handler has ended.
            context.core.pulse_line(route.virtual_line);
        }
        let is_running = self.runs && self.current == Some(vcpu);
        if let Some(latency) = route.latency {
            self.hold(route.partition, line, latency);
        }
        self.exit = Exit::Device(VcpuSet::of(vcpu), Line(line));
        route.critical || !is_running
    }
}

impl Irqs for Machine {
    fn route(&mut self, line: Line, partition: PartitionId, route: LineRoute) {
        if let Some(slot) = self.irq.routes.get_mut(line.0 as usize) {
            *slot = Some(Route {
                partition,
                virtual_line: route.virtual_line.0 as u8,
                edge: route.edge,
                critical: route.critical,
                latency: NonZeroU32::new(route.latency.0 as u32),
            });
            if route.latency.0 != 0 {
                self.irq.prompt |= bit(line.0);
            }
            if let Some(lines) = self.irq.of.get_mut(usize::from(partition.0)) {
                *lines |= bit(line.0);
            }
        }
    }

    fn enable(&mut self, line: Line, _edge: bool) {
        self.irq.own(line.0);
    }

    fn disable(&mut self, line: Line) {
        strike(NVIC_ICER, line.0);
    }

    fn admit(&mut self, vcpus: VcpuSet) {
        if vcpus == self.admitted {
            return;
        }
        self.admitted = vcpus;
        let mut admitted = 0;
        for (vcpu, lines) in self.first.iter().zip(&self.irq.of) {
            if vcpu.is_some_and(|vcpu| vcpus.contains(vcpu)) {
                admitted |= lines;
            }
        }
        self.irq.admit(admitted);
    }

    fn complete(&mut self, line: Line) {
        self.irq.complete(line.0);
    }
}

/// When a vCPU's own timer wants something next.
pub(crate) fn own_deadline(core: &VirtualCore) -> Ticks {
    core.next_deadline().map_or(Ticks::NEVER, Ticks)
}
