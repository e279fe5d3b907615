// SPDX-License-Identifier: Apache-2.0
//! The second pCPU: its start, and the wishes of one pCPU for VMs of the other.
//!
//! The first pCPU makes the machine of the second one: the spaces and the owners of lines are the same, and
//! everything else is new. It does so when all spaces are built, and changes no space afterwards.

use crate::attribution::Attribution;
use crate::bring_up::window;
use crate::context::Context;
use crate::crash::halt;
use crate::line_set::WORDS;
use crate::lines::{BYTES_OF_LINE, Interrupts, Route, lines};
use crate::machine::Machine;
use crate::pair::{Home, IS_PAIR, LINES, PLACES, Pair, SIGNAL, STACK_BYTES, stop_ticks, take_tick};
use crate::wish::{self, Wish};
use crate::{line_set, log};
use bulkhead_abi::lockdown;
use bulkhead_abi::log::Exits;
use bulkhead_abi::log::count;
use bulkhead_arch_api::{PartitionId, PcpuId, Ticks, VcpuId, VcpuSet, VirtualLine};
use bulkhead_image::Image;
use bulkhead_image::layout::CONTROLLER_SSE200;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

unsafe extern "C" {
    /// The vectors with which the second CPU starts.
    static bulkhead_second_vectors: u8;
}

/// The second pCPU.
const SECOND: PcpuId = PcpuId(1);

/// The stack of the second pCPU. Its lowest bytes have the machine on the way to this pCPU.
#[repr(C, align(8))]
pub(crate) struct Stack(UnsafeCell<[[u8; STACK_BYTES]; PLACES]>);

const _: () = assert!(align_of::<Machine>() <= 8 && size_of::<Machine>() <= STACK_BYTES / 4);

// SAFETY: the first pCPU writes a machine there, once, before it sets `IS_HANDED` and starts the second one.
// Afterwards the stack is only reached by the second pCPU.
unsafe impl Sync for Stack {}

pub(crate) static STACK: Stack = Stack(UnsafeCell::new([[0; STACK_BYTES]; PLACES]));
/// True while the machine is on its way.
static IS_HANDED: AtomicBool = AtomicBool::new(false);

impl Machine {
    /// Returns the pCPU.
    pub(crate) fn pcpu(&self) -> PcpuId {
        self.pair.first().map_or(PcpuId(0), |pair| pair.pcpu)
    }

    /// Returns the facts of the second pCPU, if this is the one.
    pub(crate) fn second(&mut self) -> Option<&mut Pair> {
        self.pair.first_mut().filter(|pair| pair.is_second())
    }

    /// Notes what a system with two pCPUs has of the board.
    pub(crate) fn adopt_pair(&mut self, image: &Image<'static>) {
        let Some(pair) = self.pair.first_mut() else { return };
        let mut records = image.controllers().iter();
        let found = records.find(|record| record.compatible.get() == CONTROLLER_SSE200);
        let is_first = image
            .pcpus()
            .first()
            .is_some_and(|record| record.hardware_id.get() == 0);
        let Some(record) = found.filter(|_| is_first) else {
            halt(lockdown!(
                "no second CPU this hypervisor can start in the board's tables"
            ));
        };
        let [line, ..] = record.lines;
        *pair = Pair::new(window(record, 0), window(record, 1), line.get());
        for (number, record) in (0..).map(VcpuId).zip(image.vcpus()) {
            let home = Home {
                pcpu: PcpuId(record.pcpu.get() as u8),
                vcpu: number,
            };
            pair.on_second += usize::from(home.pcpu.0 != 0);
            if let Some(place) = pair.homes.get_mut(record.partition.get() as usize) {
                *place = Some(home);
            }
        }
        self.own_calls();
    }

    /// Starts the second pCPU. Returns false if it does not start.
    pub(crate) fn start_second(&mut self) -> bool {
        IS_PAIR && self.hand_over().is_some()
    }

    #[inline(never)]
    fn hand_over(&mut self) -> Option<()> {
        let machine = self.for_second()?;
        let place = STACK.0.get().cast::<Self>();
        // SAFETY: there are two pCPUs, so the stack has room for one machine, and the other pCPU has not
        // started.
        unsafe { place.write(machine) }
        IS_HANDED.store(true, Ordering::Release);
        self.pair
            .first()?
            .start((&raw const bulkhead_second_vectors) as u32);
        // The second pCPU needs some hundred instructions. An emulator may give it no turn for a while.
        let end = self.counter.read().saturating_add(self.hertz.into());
        while self.counter.read() < end {
            if !IS_HANDED.load(Ordering::Acquire) {
                return Some(());
            }
            bulkhead_arch_support::relax();
        }
        None
    }

    /// Returns the lines of the second pCPU, whose controller has nothing enabled yet. `routes` is room for
    /// its table.
    fn lines_of_second(&self, routes: &'static mut [Option<Route>]) -> Interrupts {
        for (to, from) in routes.iter_mut().zip(self.irq.routes.iter()) {
            *to = *from;
        }
        Interrupts {
            routes,
            of: self.irq.of,
            own: [0; WORDS],
            shared: self.irq.shared,
            held: [0; WORDS],
            admitted: [u32::MAX; WORDS],
            enabled: [0; WORDS],
            is_shared: false,
            deferred: [0; WORDS],
        }
    }

    /// Returns the attribution for the second pCPU, which changes no blocks.
    const fn attribution_of_second(&self) -> Attribution {
        let mut own = Attribution::new();
        own.devices = self.attribution.devices;
        own.vms = self.attribution.vms;
        own
    }

    /// Makes the machine of the second pCPU.
    fn for_second(&mut self) -> Option<Self> {
        let mut pair = *self.pair.first()?;
        let room =
            pair.on_second * size_of::<Context>().next_multiple_of(8) + lines() as usize * BYTES_OF_LINE;
        let mut pool = self.pool.split(room)?;
        let routes = pool.table(None, lines() as usize)?;
        pair.pcpu = SECOND;
        Some(Self {
            // SAFETY: all spaces are built, no machine builds any more, and `protect`
            // leaves the spaces of a pair alone.
            spaces: unsafe { self.spaces.shared() },
            attribution: self.attribution_of_second(),
            irq: self.lines_of_second(routes),
            pool,
            timer_line: u32::MAX,
            counter: self.counter.clone(),
            hertz: self.hertz,
            is_emulated: self.is_emulated,
            trace: self.trace,
            pair: [pair; PLACES],
            ..Self::new()
        })
    }

    /// Returns the machine of the second pCPU. Called once there, by `entry_point`.
    #[must_use]
    pub fn of_second() -> Option<Self> {
        if !IS_PAIR || !IS_HANDED.load(Ordering::Acquire) {
            return None;
        }
        let place = STACK.0.get().cast::<Self>();
        // SAFETY: the first pCPU has written it, and this stack has not grown so far.
        let mut machine = unsafe { place.read() };
        IS_HANDED.store(false, Ordering::Release);
        machine.start_cpu();
        Attribution::start_unit();
        machine.own_calls();
        Some(machine)
    }

    /// Lets the other pCPU interrupt this one.
    pub(crate) fn own_calls(&mut self) {
        if let Some(pair) = self.pair.first() {
            self.irq.own(pair.line);
        }
    }

    /// Tells whether the exception of SysTick is one of the second pCPU's timer. If not, it is the one by
    /// which the hypervisor leaves the handler of a line. Both can be pending at once, so the timer is set
    /// anew after either.
    pub(crate) fn has_ticked(&mut self) -> bool {
        let running = self.current.filter(|_| self.runs);
        let Some(pair) = self.second() else { return false };
        let has_ticked = !core::mem::take(&mut pair.leaves_line);
        stop_ticks();
        self.armed = Ticks(0);
        if has_ticked {
            match running {
                Some(_) => count(&log::exits(running).interrupts),
                None => count(&self.waiting_exits().interrupts),
            }
        }
        has_ticked
    }

    /// Takes the exception of the second pCPU's timer, if it is pending. Tells whether the kernel's deadline
    /// has come.
    pub(crate) fn take_tick(&mut self) -> bool {
        let is_timers = self.second().is_some_and(|pair| !pair.leaves_line);
        is_timers && take_tick() && self.timer_fired()
    }

    /// Returns the counters of the exceptions that come while this pCPU waits.
    pub(crate) fn waiting_exits(&self) -> &'static Exits {
        match log::area().pcpus.get(usize::from(self.pcpu().0)) {
            Some(pcpu) => &pcpu.exits,
            None => log::exits(None),
        }
    }

    /// Answers a call of the other pCPU. Tells whether the kernel is meant.
    pub(crate) fn called(&mut self) -> bool {
        let why = self.pair.first().map_or(0, |pair| pair.calls());
        if why & LINES != 0 {
            let own = self.pcpu();
            for partition in (0..bulkhead_arch_api::MAX_PARTITIONS as u8).map(PartitionId) {
                if self.home_of(partition) == Some(own) {
                    self.grant(partition);
                }
            }
        }
        why & SIGNAL != 0
    }

    fn home_of(&self, partition: PartitionId) -> Option<PcpuId> {
        let homes = &self.pair.first()?.homes;
        homes
            .get(usize::from(partition.0))
            .copied()
            .flatten()
            .map(|home| home.pcpu)
    }

    /// Makes a wish for a line of a partition on any pCPU. Returns the vCPU that may have something to do.
    pub(crate) fn ask(
        &mut self,
        partition: PartitionId,
        VirtualLine(line): VirtualLine,
        wish: Wish,
    ) -> VcpuSet {
        let pair = self.pair.first();
        let homes = pair.and_then(|pair| pair.homes.get(usize::from(partition.0)));
        let Some(home) = homes.copied().flatten() else {
            return VcpuSet::EMPTY;
        };
        wish::note(partition, line, wish);
        match pair {
            Some(pair) if pair.pcpu != home.pcpu => pair.call(home.pcpu, LINES),
            _ => self.grant(partition),
        }
        VcpuSet::of(home.vcpu)
    }

    /// Carries out the wishes for the lines of a partition of this pCPU.
    fn grant(&mut self, partition: PartitionId) {
        let (Some(vcpu), Some(taken)) = (self.first_of(partition), wish::take(partition)) else {
            return;
        };
        for (mut lines, is_pending) in [(taken.low, false), (taken.once, true)] {
            while let Some(line) = line_set::lowest(&lines) {
                line_set::set(&mut lines, line, false);
                self.set_line(vcpu, line, is_pending);
            }
        }
        if let Some(context) = self.contexts.get(vcpu) {
            context.levels = taken.high;
        }
    }
}
