// SPDX-License-Identifier: Apache-2.0
//! The system as the kernel sees it: what the image says, in the form the kernel asks for it.
//!
//! Derived once at boot from the checked image and constant afterwards, so every pCPU reads it without
//! a lock. What hot paths need (where is this vCPU bound, which action has this class) is one table look-up;
//! everything else stays in the image's own records.

use crate::mailbox::bit;
use crate::network::{Intake, NicFacts, NicId, PerNic};
use crate::partition::Homes;
use crate::table::{PerPartition, PerPcpu, PerVcpu, Table};
use crate::time::Timebase;
use bulkhead_abi::HealthClass;
use bulkhead_abi::size::{IS_SMALL, limit};
use bulkhead_arch_api::{
    GuestPhys, HostPhys, Line, MAX_PARTITIONS, MAX_PCPUS, MAX_VCPUS, PartitionId, PartitionKind, PcpuId,
    Ticks, TimeMode, VcpuId, VcpuReset, VcpuSet, VirtualLine,
};
use bulkhead_devices::uart::Kind;
use bulkhead_image::layout::HealthAction;
use bulkhead_image::layout::{
    FLAG_AARCH32, FLAG_FROZEN_TIME, FLAG_NO_SEMIHOSTING, FLAG_WINDOW_EVENTS, INTERRUPT_CRITICAL, NONE,
    PARTITION_TASK, PartitionRecord, REGISTERS_FORWARDED, REGISTERS_QUIESCED, VIRTUAL_CMSDK_UART,
    VIRTUAL_EVENT_GATE, VIRTUAL_LAN9118, VIRTUAL_PL011, VirtualDeviceRecord,
};
use bulkhead_image::{Image, MAX_NICS};
use bulkhead_sched::Slot;

/// Where a vCPU belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Its partition.
    pub partition: PartitionId,
    /// Its number within the partition.
    pub index: u8,
    /// Its pCPU.
    pub pcpu: PcpuId,
    /// Its slot in that pCPU's policy.
    pub slot: Slot,
}

/// The virtual UART of a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UartWindow {
    /// Which UART it is.
    pub kind: Kind,
    /// First register.
    pub base: GuestPhys,
    /// Bytes of the window.
    pub size: u64,
    /// Its interrupt, if it has one.
    pub line: Option<VirtualLine>,
}

/// Some of the board's lines; its interrupt controllers have less than 1024 (Arm IHI 0048, 0069: 1020), those of microcontrollers less than
/// 512 (Arm DDI 0403E, B3.4.2: 496).
#[derive(Debug)]
struct LineSet([u32; limit(16, 32)]);

impl LineSet {
    const EMPTY: Self = Self([0; limit(16, 32)]);

    fn insert(&mut self, line: Line) {
        if let Some(word) = self.0.get_mut((line.0 >> 5) as usize) {
            *word |= bit((line.0 & 31) as u8);
        }
    }

    #[inline]
    fn has(&self, line: Line) -> bool {
        let word = self.0.get((line.0 >> 5) as usize).copied().unwrap_or(0);
        word & bit((line.0 & 31) as u8) != 0
    }
}

/// What the kernel must know of a partition at any time.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// VM or task.
    pub kind: PartitionKind,
    /// Whether its vCPUs start in AArch32 state.
    pub aarch32: bool,
    /// Whether a microcontroller's calls of a debugger are answered.
    pub semihosting: bool,
    /// What its time does while it is ready but not running.
    pub time: TimeMode,
    /// Its first vCPU; the others follow.
    pub first: VcpuId,
    /// Its vCPUs.
    pub count: u8,
    /// Their pCPUs.
    pub homes: Homes,
    /// Watchdog period, [`Ticks::NEVER`] if it has none.
    pub watchdog: Ticks,
    /// Partitions whose gates get an event when its state changes, as a bitmap.
    pub watchers: u32,
    /// Whether the starts of its windows raise events at its gate.
    pub window_events: bool,
    /// Its virtual UART.
    pub uart: Option<UartWindow>,
    /// Its interface to a network.
    pub nic: Option<NicId>,
    /// The interrupt of its event gate.
    pub gate_line: Option<VirtualLine>,
    /// Restarts by health actions before it stays failed, or `NONE`.
    pub restart_limit: u32,
    /// Alternatives to the payloads of its own section.
    pub alternatives: u8,
    actions: [u8; 8],
}

impl Facts {
    const NOTHING: Self = Self {
        kind: PartitionKind::Vm,
        aarch32: false,
        semihosting: false,
        time: TimeMode::Real,
        first: VcpuId(0),
        count: 0,
        homes: Homes::NONE,
        watchdog: Ticks::NEVER,
        watchers: 0,
        window_events: false,
        uart: None,
        nic: None,
        gate_line: None,
        restart_limit: NONE,
        alternatives: 0,
        actions: [0; 8],
    };

    /// What the manifest wants done about faults of this class.
    #[must_use]
    pub fn action(&self, class: HealthClass) -> HealthAction {
        let number = self.actions.get(class as usize).copied();
        // The check of the image has refused other numbers.
        number
            .and_then(HealthAction::from_number)
            .unwrap_or(HealthAction::Stop)
    }
}

/// The system.
#[derive(Debug)]
pub struct System<'i> {
    /// The system image.
    pub image: Image<'i>,
    /// Ticks and nanoseconds.
    pub time: Timebase,
    /// When the board is to be powered off.
    pub time_limit: Ticks,
    partitions: PerPartition<Facts>,
    bindings: PerVcpu<Binding>,
    /// Time for frames from outside, as it is given.
    pub(crate) intake: Intake,
    nics: PerNic<NicFacts>,
    /// vCPUs of VMs that have one.
    nic_vcpus: VcpuSet,
    /// Lines whose interrupts are critical.
    critical: LineSet,
    /// vCPUs with a critical line.
    critical_vcpus: VcpuSet,
}

impl<'i> System<'i> {
    /// Derives everything. Bounded by the number of records. In place and without a result that could fail: the
    /// tables are large, and the image's own rules have seen to it that all fits.
    #[must_use]
    pub fn new(image: Image<'i>, time: Timebase) -> Self {
        const UNBOUND: Binding = Binding {
            partition: PartitionId(0),
            index: 0,
            pcpu: PcpuId(0),
            slot: Slot(0),
        };
        let time_limit = match image.board().stop_after_ms.get() {
            NONE => Ticks::NEVER,
            milliseconds => time.at(u64::from(milliseconds).saturating_mul(1_000_000)),
        };
        let intake = Intake::given(image.board(), &time);
        let mut system = Self {
            image,
            intake,
            time,
            time_limit,
            partitions: Table::new([Facts::NOTHING; MAX_PARTITIONS]),
            bindings: Table::new([UNBOUND; MAX_VCPUS]),
            nics: Table::new([NicFacts::NOTHING; MAX_NICS]),
            nic_vcpus: VcpuSet::EMPTY,
            critical: LineSet::EMPTY,
            critical_vcpus: VcpuSet::EMPTY,
        };
        let image = system.image;
        for (record, number) in image.partitions().iter().zip(0..) {
            *system.partitions.of_mut(PartitionId(number)) = system.facts(u32::from(number), record);
        }
        system.bind_vcpus();
        for interrupt in image.interrupts() {
            if interrupt.flags.get() & INTERRUPT_CRITICAL != 0 {
                system.critical.insert(Line(interrupt.line.get()));
                let owner = PartitionId(interrupt.partition.get() as u8);
                let first = system.partitions.of(owner).first;
                system.critical_vcpus.insert_all(VcpuSet::of(first));
            }
        }
        system.find_nics();
        for watch in image.watches() {
            let watched = PartitionId(watch.watched.get() as u8);
            system.partitions.of_mut(watched).watchers |= bit(watch.watcher.get() as u8);
        }
        for device in image.virtual_devices() {
            let owner = system
                .partitions
                .of_mut(PartitionId(device.partition.get() as u8));
            match device.kind.get() {
                VIRTUAL_PL011 => owner.uart = Some(uart(Kind::Pl011, device)),
                VIRTUAL_CMSDK_UART => owner.uart = Some(uart(Kind::Cmsdk, device)),
                VIRTUAL_EVENT_GATE => owner.gate_line = line_of(device),
                _ => {}
            }
        }
        system
    }

    fn facts(&self, number: u32, record: &PartitionRecord) -> Facts {
        let frozen = record.flags.get() & FLAG_FROZEN_TIME != 0;
        Facts {
            kind: if record.kind.get() == PARTITION_TASK {
                PartitionKind::Task
            } else {
                PartitionKind::Vm
            },
            aarch32: record.flags.get() & FLAG_AARCH32 != 0,
            semihosting: IS_SMALL
                && record.kind.get() != PARTITION_TASK
                && record.flags.get() & FLAG_NO_SEMIHOSTING == 0,
            time: if frozen { TimeMode::Frozen } else { TimeMode::Real },
            first: VcpuId(record.first_vcpu.get() as u8),
            count: record.vcpu_count.get() as u8,
            window_events: record.flags.get() & FLAG_WINDOW_EVENTS != 0,
            watchdog: match record.watchdog_ns.get() {
                0 => Ticks::NEVER,
                period => self.time.duration(period),
            },
            restart_limit: record.restart_limit.get(),
            alternatives: self.image.alternatives_of(number).count() as u8,
            actions: record.health,
            ..Facts::NOTHING
        }
    }

    fn find_nics(&mut self) {
        let image = self.image;
        for (record, number) in image.nics().iter().zip(0_u8..) {
            let mut devices = image.virtual_devices_of(record.partition.get());
            // The check of the image has found it.
            if let Some(device) = devices.find(|device| device.kind.get() == VIRTUAL_LAN9118) {
                let facts = NicFacts::new(record, device, line_of(device));
                let owner = self.partitions.of_mut(facts.partition);
                owner.nic = Some(NicId(number));
                self.nic_vcpus.insert_all(VcpuSet::of(owner.first));
                *self.nics.of_mut(NicId(number)) = facts;
            }
        }
    }

    fn bind_vcpus(&mut self) {
        let mut used: PerPcpu<u8> = Table::new([0; MAX_PCPUS]);
        let image = self.image;
        for (record, number) in image.vcpus().iter().zip(0_u8..) {
            let pcpu = PcpuId(record.pcpu.get() as u8);
            let partition = PartitionId(record.partition.get() as u8);
            let facts = self.partitions.of_mut(partition);
            facts.homes.push(pcpu);
            let slot = *used.of(pcpu);
            *used.of_mut(pcpu) = slot.saturating_add(1);
            let index = number.saturating_sub(facts.first.0);
            *self.bindings.of_mut(VcpuId(number)) = Binding {
                partition,
                index,
                pcpu,
                slot: Slot(slot),
            };
        }
    }

    /// Facts of a partition.
    #[inline]
    #[must_use]
    pub fn facts_of(&self, partition: PartitionId) -> &Facts {
        self.partitions.of(partition)
    }

    /// Where a vCPU belongs.
    #[inline]
    #[must_use]
    pub fn binding(&self, vcpu: VcpuId) -> Binding {
        *self.bindings.of(vcpu)
    }

    /// Where vCPU `index` of a partition belongs.
    #[must_use]
    pub fn binding_of(&self, partition: PartitionId, index: u8) -> Binding {
        self.binding(VcpuId(self.facts_of(partition).first.0.saturating_add(index)))
    }

    /// The register of the board behind an access of a partition to registers that are forwarded. Bounded by
    /// the number of windows.
    #[must_use]
    pub fn register_at(&self, partition: PartitionId, address: GuestPhys, size: u8) -> Option<HostPhys> {
        let windows = self.image.registers().iter();
        let mut own = windows.filter(|window| {
            window.partition.get() == u32::from(partition.0) && window.flags.get() & REGISTERS_FORWARDED != 0
        });
        own.find_map(|window| {
            let offset = address.0.checked_sub(window.guest.get())?;
            let inside = offset.checked_add(u64::from(size))? <= window.size.get();
            // Guest and bus address agree within a page, so this is the alignment on the bus, too.
            let aligned = address.0.is_multiple_of(u64::from(size));
            (inside && aligned).then_some(HostPhys(window.host.get().checked_add(offset)?))
        })
    }

    /// What to write where when a partition has ended, so that its devices leave memory alone.
    pub fn quiescing(&self, partition: PartitionId) -> impl Iterator<Item = (HostPhys, u32)> + use<'i> {
        let windows = self.image.registers().iter();
        let own = windows.filter(move |window| {
            window.partition.get() == u32::from(partition.0) && window.flags.get() & REGISTERS_QUIESCED != 0
        });
        own.map(|window| {
            let register = window
                .host
                .get()
                .saturating_add(window.quiesce_offset.get().into());
            (HostPhys(register), window.quiesce_value.get())
        })
    }

    /// The first vCPUs of partitions with critical interrupts.
    #[inline]
    #[must_use]
    pub const fn critical_vcpus(&self) -> VcpuSet {
        self.critical_vcpus
    }

    /// Whether the manifest calls the interrupts of this line critical.
    #[inline]
    #[must_use]
    pub fn is_critical(&self, line: Line) -> bool {
        self.critical.has(line)
    }

    /// All interfaces to networks.
    pub fn nics(&self) -> impl Iterator<Item = NicId> + use<> {
        (0..self.image.nics().len().min(MAX_NICS) as u8).map(NicId)
    }

    /// Whether the vCPU's partition has an interface.
    #[inline]
    pub(crate) fn has_nic(&self, vcpu: VcpuId) -> bool {
        self.nic_vcpus.contains(vcpu)
    }

    /// What is known of an interface.
    #[inline]
    #[must_use]
    pub fn nic(&self, nic: NicId) -> &NicFacts {
        self.nics.of(nic)
    }

    /// All partitions.
    pub fn partitions(&self) -> impl Iterator<Item = PartitionId> + use<> {
        (0..self.image.partitions().len().min(MAX_PARTITIONS) as u8).map(PartitionId)
    }

    /// All pCPUs.
    pub fn pcpus(&self) -> impl Iterator<Item = PcpuId> + use<> {
        (0..self.image.pcpus().len().min(MAX_PCPUS) as u8).map(PcpuId)
    }

    /// The vCPUs bound to a pCPU, in the order of their slots.
    pub fn vcpus_on(&self, pcpu: PcpuId) -> impl Iterator<Item = VcpuId> + '_ {
        let count = self.image.vcpus().len().min(MAX_VCPUS) as u8;
        (0..count)
            .map(VcpuId)
            .filter(move |vcpu| self.binding(*vcpu).pcpu == pcpu)
    }

    /// How vCPU 0 of a partition starts with its own payloads (`alternative` 0) or with others.
    #[must_use]
    pub fn first_state(&self, partition: PartitionId, alternative: u8) -> Option<VcpuReset> {
        let (entry, argument, stack) = match usize::from(alternative).checked_sub(1) {
            None => {
                let record = self.image.partitions().get(usize::from(partition.0))?;
                (record.entry, record.argument, record.stack)
            }
            Some(index) => {
                let record = self.image.alternatives_of(u32::from(partition.0)).nth(index)?;
                (record.entry, record.argument, record.stack)
            }
        };
        Some(VcpuReset {
            entry: GuestPhys(entry.get()),
            argument: argument.get(),
            stack: stack.get(),
        })
    }

    /// The name of a partition's alternative; `None` for its own payloads.
    #[must_use]
    pub fn alternative_name(&self, partition: PartitionId, alternative: u8) -> Option<&'i str> {
        let index = usize::from(alternative).checked_sub(1)?;
        let record = self.image.alternatives_of(u32::from(partition.0)).nth(index)?;
        record.name.text().ok()
    }

    /// A partition's name.
    #[must_use]
    pub fn name(&self, partition: PartitionId) -> &'i str {
        self.image
            .partitions()
            .get(usize::from(partition.0))
            .map_or("?", |record| self.image.name(&record.name))
    }
}

fn uart(kind: Kind, device: &VirtualDeviceRecord) -> UartWindow {
    let [base, _] = device.base;
    let [size, _] = device.size;
    UartWindow {
        kind,
        base: GuestPhys(base.get()),
        size: size.get(),
        line: line_of(device),
    }
}

fn line_of(device: &VirtualDeviceRecord) -> Option<VirtualLine> {
    Some(device.virtual_line.get())
        .filter(|line| *line != NONE)
        .map(VirtualLine)
}
