// SPDX-License-Identifier: Apache-2.0
//! Physical interrupt lines: whose they are, and when they may interrupt.
//!
//! A line of a partition interrupts once; then it is *held*: masked until the guest's handler for it has ended (or, while the
//! partition does not run, until it has run and that has happened). So a device interrupts the hypervisor at most once
//! per interrupt its guest handles, whatever the device does. A line is open if its guest has enabled
//! it and it is not held. Level-triggered lines that are still high when they are opened interrupt again.

use crate::machine::Machine;
use crate::system::{NVIC_ICER, NVIC_ICPR, NVIC_ISER, NVIC_ISPR, read, write};
use bulkhead_arch_api::{Exit, Irqs, Line, PartitionId, Ticks, VcpuSet, VirtualLine};
use bulkhead_arch_deprivileged::VirtualCore;

/// Lines of the interrupt controller that the vector table has vectors for.
pub(crate) const MAX_LINES: u32 = 64;
const WORDS: usize = MAX_LINES as usize / 32;

/// Whose a line is.
#[derive(Clone, Copy)]
struct Route {
    partition: PartitionId,
    virtual_line: u8,
    edge: bool,
}

/// All lines.
pub(crate) struct Interrupts {
    routes: [Option<Route>; MAX_LINES as usize],
    /// Lines of the hypervisor's own.
    own: u64,
    /// Lines that wait for their guest.
    held: u64,
}

const fn bit(line: u32) -> u64 {
    1_u64.wrapping_shl(line)
}

/// Register and bit of a line, in one of the controller's banks of registers.
const fn place(bank: usize, line: u32) -> (usize, u32) {
    (bank + 4 * (line as usize >> 5), 1_u32.wrapping_shl(line))
}

/// Writes the bit of a line in one of the banks.
fn strike(bank: usize, line: u32) {
    let (offset, mask) = place(bank, line);
    write(offset, mask);
}

/// Opens a line that was held. A level-triggered one became pending once more if it was still high when the hypervisor
/// left; if it is high now, it does so again.
fn open(line: u32, route: Route, core: &VirtualCore) {
    if !route.edge {
        strike(NVIC_ICPR, line);
    }
    if core.line_enabled(route.virtual_line) {
        strike(NVIC_ISER, line);
    }
}

/// The lines whose bits are set, lowest first.
fn lines(mut bits: u64) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        if bits == 0 {
            return None;
        }
        let line = bits.trailing_zeros();
        bits &= bits - 1;
        Some(line)
    })
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
    pub(crate) const fn new() -> Self {
        Self {
            routes: [None; MAX_LINES as usize],
            own: 0,
            held: 0,
        }
    }

    fn route_of(&self, line: u32) -> Option<Route> {
        self.routes.get(line as usize).copied().flatten()
    }

    /// The lines of a partition.
    fn lines_of(&self, partition: PartitionId) -> impl Iterator<Item = (u32, Route)> + '_ {
        let routes = (0..MAX_LINES).filter_map(|line| Some((line, self.route_of(line)?)));
        routes.filter(move |(_, route)| route.partition == partition)
    }

    /// The hypervisor takes a line for itself and opens it.
    pub(crate) fn own(&mut self, line: u32) {
        if line < MAX_LINES {
            self.own |= bit(line);
            strike(NVIC_ISER, line);
        }
    }

    /// The guest of a partition may have enabled or disabled lines, or taken a pending state away.
    pub(crate) fn follow(&mut self, partition: PartitionId, core: &VirtualCore) {
        let mut free = 0;
        for (line, route) in self.lines_of(partition) {
            let is_held = self.held & bit(line) != 0;
            if is_held && core.line_is_idle(route.virtual_line) {
                free |= bit(line);
                open(line, route, core);
            } else if is_held || !core.line_enabled(route.virtual_line) {
                strike(NVIC_ICER, line);
            } else {
                strike(NVIC_ISER, line);
            }
        }
        self.held &= !free;
    }

    /// The guest's handler of a virtual line has ended: its physical line, if it has one, is opened again.
    pub(crate) fn ended(&mut self, partition: PartitionId, virtual_line: u8, core: &VirtualCore) {
        let found = self
            .lines_of(partition)
            .find(|(_, route)| route.virtual_line == virtual_line);
        if let Some((line, route)) = found.filter(|(line, _)| self.held & bit(*line) != 0) {
            self.held &= !bit(line);
            open(line, route, core);
        }
    }

    /// A partition starts anew: none of its lines is held, and its guest has enabled none yet.
    pub(crate) fn reset(&mut self, partition: PartitionId) {
        let mut all = 0;
        for (line, _) in self.lines_of(partition) {
            all |= bit(line);
        }
        for line in lines(all) {
            strike(NVIC_ICER, line);
            strike(NVIC_ICPR, line);
        }
        self.held &= !all;
    }

    /// No line of a partition interrupts any more.
    pub(crate) fn shut(&self, partition: PartitionId) {
        for (line, _) in self.lines_of(partition) {
            strike(NVIC_ICER, line);
        }
    }
}

impl Machine {
    /// A line has interrupted, or was found pending. What of it is the kernel's.
    pub(crate) fn interrupt(&mut self, line: u32) -> Option<Exit> {
        if line == self.timer_line {
            self.timer_fired();
            return self.take_deadline().then_some(Exit::Deadline);
        }
        strike(NVIC_ICER, line);
        if line < MAX_LINES && self.irq.own & bit(line) != 0 {
            return Some(Exit::Interrupt(Line(line)));
        }
        let route = self.irq.route_of(line)?;
        self.irq.held |= bit(line);
        let vcpu = self.first_of(route.partition)?;
        let core = &mut self.contexts.get(vcpu)?.core;
        // Also of a level: it is looked at again when the handler has ended.
        core.pulse_line(route.virtual_line);
        let is_running = self.runs && self.current == Some(vcpu);
        (!is_running).then_some(Exit::Device(VcpuSet::of(vcpu), Line(line)))
    }
}

impl Irqs for Machine {
    fn route(&mut self, line: Line, partition: PartitionId, virtual_line: VirtualLine, edge: bool) {
        if let Some(slot) = self.irq.routes.get_mut(line.0 as usize) {
            *slot = Some(Route {
                partition,
                virtual_line: virtual_line.0 as u8,
                edge,
            });
        }
    }

    fn enable(&mut self, line: Line, _edge: bool) {
        self.irq.own(line.0);
    }

    fn disable(&mut self, line: Line) {
        strike(NVIC_ICER, line.0);
    }

    fn complete(&mut self, line: Line) {
        strike(NVIC_ICPR, line.0);
        strike(NVIC_ISER, line.0);
    }
}

/// When a vCPU's own timer wants something next.
pub(crate) fn own_deadline(core: &VirtualCore) -> Ticks {
    core.next_deadline().map_or(Ticks::NEVER, Ticks)
}
