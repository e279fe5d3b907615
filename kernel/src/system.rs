// SPDX-License-Identifier: Apache-2.0
//! The system as the kernel sees it: the facts of the image, in the form in which the kernel asks for them.
//!
//! The system is derived once at boot from the checked image and is constant afterwards. So every pCPU reads
//! it without a lock. Facts that hot paths need (the binding of this vCPU, the action for this class) are one
//! table look-up. Everything else stays in the image's own records.

use crate::channel::command::ChannelId;
use crate::channel::{Bell, Bells};
use crate::function::{FunctionFacts, FunctionId, MAX_FUNCTIONS};
use crate::mailbox::bit;
use crate::network::{Intake, NIC_ENTRIES, NicFacts, NicId, PerNic};
use crate::partition::Homes;
use crate::port::{PORT_ENTRIES, PerPort, PortFacts, PortId};
use crate::service::WindowId;
use crate::table::{PerPartition, PerPcpu, PerVcpu, Table};
use crate::time::Timebase;
use bulkhead_abi::size::{IS_SMALL, limit};
use bulkhead_abi::{HealthClass, ObjectKind, Rights};
use bulkhead_arch_api::class::DeviceRole;
use bulkhead_arch_api::{
    AddressSpace, ClassFacts, EntryState, GuestPhys, HostPhys, Line, MAX_PARTITIONS, MAX_PCPUS, MAX_VCPUS,
    PartitionId, PartitionKind, PcpuId, Ticks, TimeMode, VcpuId, VcpuReset, VcpuSet, VirtualDevice,
    VirtualLine,
};
use bulkhead_image::layout::HealthAction;
use bulkhead_image::layout::{
    FLAG_DIRECT, FLAG_FROZEN_TIME, FLAG_NO_SEMIHOSTING, FLAG_WINDOW_EVENTS, INTERRUPT_CRITICAL, NONE,
    PARTITION_TASK, PartitionRecord, REGISTERS_FORWARDED, REGISTERS_QUIESCED, SIDE_FUNCTION, ServedRecord,
    U64, VirtualDeviceRecord,
};
use bulkhead_image::{Image, MAX_VIRTUAL_DEVICES};
use bulkhead_sched::Slot;

/// The place that a vCPU belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The partition of the vCPU.
    pub partition: PartitionId,
    /// The number of the vCPU within its partition.
    pub index: u8,
    /// The pCPU of the vCPU.
    pub pcpu: PcpuId,
    /// The slot of the vCPU in the policy of that pCPU.
    pub slot: Slot,
}

/// The most virtual devices that the kernel answers, of all partitions: on a microcontroller three per
/// partition.
const MAX_DEVICES: usize = limit(3 * MAX_PARTITIONS, MAX_VIRTUAL_DEVICES + MAX_PARTITIONS);

/// A part of the table of virtual devices.
#[derive(Clone, Copy, Debug)]
struct Range {
    first: u8,
    end: u8,
}

/// A set of the board's lines. The interrupt controllers of boards have fewer than 1024 lines (Arm IHI 0048,
/// 0069: 1020). The interrupt controllers of microcontrollers have fewer than 512 (Arm DDI 0403E, B3.4.2:
/// 496).
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

/// The facts of a partition that the kernel must know at any time.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// VM or task.
    pub kind: PartitionKind,
    /// The state in which the partition's vCPU 0 starts.
    pub entry_state: EntryState,
    /// True if a microcontroller's calls of a debugger are answered.
    pub semihosting: bool,
    /// True if the partition takes the interrupts of its pCPU itself.
    pub direct: bool,
    /// The behaviour of the partition's time while the partition is ready but not running.
    pub time: TimeMode,
    /// The first vCPU of the partition. The others follow it.
    pub first: VcpuId,
    /// The number of the partition's vCPUs.
    pub count: u8,
    /// The pCPUs of these vCPUs.
    pub homes: Homes,
    /// The watchdog period, [`Ticks::NEVER`] if the partition has none.
    pub watchdog: Ticks,
    /// The partitions whose gates get an event when this partition's state changes, as a bitmap.
    pub watchers: u32,
    /// True if the starts of the partition's windows raise events at its gate.
    pub window_events: bool,
    /// The virtual devices of the partition.
    devices: Range,
    /// The partition's interface to a network.
    pub nic: Option<NicId>,
    /// The number of restarts by health actions before the partition stays failed, or `NONE`.
    pub restart_limit: u32,
    /// The number of alternatives to the payloads of the partition's own section.
    pub alternatives: u8,
    actions: [u8; 8],
}

impl Facts {
    const NOTHING: Self = Self {
        kind: PartitionKind::Vm,
        entry_state: EntryState::USUAL,
        semihosting: false,
        direct: false,
        time: TimeMode::Real,
        first: VcpuId(0),
        count: 0,
        homes: Homes::NONE,
        watchdog: Ticks::NEVER,
        watchers: 0,
        window_events: false,
        devices: Range { first: 0, end: 0 },
        nic: None,
        restart_limit: NONE,
        alternatives: 0,
        actions: [0; 8],
    };

    /// Returns the action that the manifest demands on faults of this class.
    #[must_use]
    pub fn action(&self, class: HealthClass) -> HealthAction {
        let number = self.actions.get(class as usize).copied();
        // The check of the image has refused other numbers.
        number
            .and_then(HealthAction::from_number)
            .unwrap_or(HealthAction::Stop)
    }
}

/// The system: the image, and the tables derived from it.
#[derive(Debug)]
pub struct System<'i> {
    /// The system image.
    pub image: Image<'i>,
    /// Ticks and nanoseconds.
    pub time: Timebase,
    /// The time at which the board is to be powered off.
    pub time_limit: Ticks,
    partitions: PerPartition<Facts>,
    bindings: PerVcpu<Binding>,
    /// The virtual devices that the kernel answers. The devices of a partition are one after the other.
    devices: [VirtualDevice; MAX_DEVICES],
    ports: PerPort<PortFacts>,
    bells: Bells,
    /// The time for frames from outside, as the manifest gives it.
    pub(crate) intake: Intake,
    nics: PerNic<NicFacts>,
    functions: [FunctionFacts; MAX_FUNCTIONS],
    /// The vCPUs of VMs that have a network interface.
    nic_vcpus: VcpuSet,
    /// The lines whose interrupts are critical.
    critical: LineSet,
    /// The vCPUs with a critical line.
    critical_vcpus: VcpuSet,
}

impl<'i> System<'i> {
    /// Derives the system from the image. The work is bounded by the number of records. The work is done in
    /// place and without a result that could fail: the tables are large, and the image's own rules ensure
    /// that everything fits.
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
            devices: [VirtualDevice::NOTHING; MAX_DEVICES],
            ports: Table::new([PortFacts::NOTHING; PORT_ENTRIES]),
            bells: Bell::NOWHERE,
            nics: Table::new([NicFacts::NOTHING; NIC_ENTRIES]),
            functions: [FunctionFacts::NOTHING; MAX_FUNCTIONS],
            nic_vcpus: VcpuSet::EMPTY,
            critical: LineSet::EMPTY,
            critical_vcpus: VcpuSet::EMPTY,
        };
        let image = system.image;
        for (record, number) in image.partitions().iter().zip(0..) {
            *system.partitions.of_mut(PartitionId(number)) = system.facts(u32::from(number), record);
        }
        system.bind_vcpus();
        system.place_ports();
        if !IS_SMALL {
            for number in 0..image.channels().len() as u8 {
                *system.bells.of_mut(ChannelId(number)) = Bell::of(image.sides_of(number.into()));
            }
        }
        for interrupt in image.interrupts() {
            if interrupt.flags.get() & INTERRUPT_CRITICAL != 0 {
                system.critical.insert(Line(interrupt.line.get()));
                let owner = PartitionId(interrupt.partition.get() as u8);
                let first = system.partitions.of(owner).first;
                system.critical_vcpus.insert_all(VcpuSet::of(first));
            }
        }
        system.find_devices();
        system.find_nics();
        system.find_functions();
        for watch in image.watches() {
            let watched = PartitionId(watch.watched.get() as u8);
            system.partitions.of_mut(watched).watchers |= bit(watch.watcher.get() as u8);
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
            entry_state: EntryState(record.entry_state.get() as u8),
            semihosting: self.image.facts().semihosting
                && record.kind.get() != PARTITION_TASK
                && record.flags.get() & FLAG_NO_SEMIHOSTING == 0,
            direct: record.flags.get() & FLAG_DIRECT != 0,
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

    /// Fills the table of virtual devices.
    fn find_devices(&mut self) {
        let class = self.image.facts();
        let mut rest = self.devices.iter_mut();
        let mut end = 0_u8;
        for partition in (0..self.image.partitions().len() as u8).map(PartitionId) {
            let first = end;
            for record in self.image.virtual_devices_of(partition.0.into()) {
                let facts = class.device(record.kind.get());
                // The backend answers the interrupt controller.
                let Some(role) = facts.map(|facts| facts.role) else {
                    continue;
                };
                let [first, second] = windows(class, record);
                let own = match role {
                    DeviceRole::Controller => [None, None],
                    // The backend's own devices, which have no place here, leave room for the second window.
                    DeviceRole::Flash | DeviceRole::Bridge => [Some(first), Some(second)],
                    DeviceRole::Console(_) | DeviceRole::Network | DeviceRole::Gate => [Some(first), None],
                };
                for window in own.into_iter().flatten() {
                    if let Some(place) = rest.next() {
                        *place = window;
                        end = end.saturating_add(1);
                    }
                }
            }
            self.partitions.of_mut(partition).devices = Range { first, end };
        }
    }

    fn find_nics(&mut self) {
        let image = self.image;
        for (record, number) in image.nics().iter().zip(0_u8..) {
            let partition = PartitionId(record.partition.get() as u8);
            // The check of the image has found the device.
            if let Some(device) = self.device_with(partition, |role| role == DeviceRole::Network) {
                *self.nics.of_mut(NicId(number)) = NicFacts::new(record, *device);
                let owner = self.partitions.of_mut(partition);
                owner.nic = Some(NicId(number));
                self.nic_vcpus.insert_all(VcpuSet::of(owner.first));
            }
        }
    }

    /// Numbers the sides of channels that are PCI functions, and counts them for each VM.
    fn find_functions(&mut self) {
        let image = self.image;
        let mut devices: PerPartition<u8> = Table::new([0; MAX_PARTITIONS]);
        let mut found = 0_usize;
        for (channel, number) in image.channels().iter().zip(0_u32..) {
            for (side, position) in image.sides_of(number).iter().zip(0_u8..) {
                if side.flags.get() & SIDE_FUNCTION == 0 {
                    continue;
                }
                let partition = PartitionId(side.partition.get() as u8);
                let mut windows = self.devices_of(partition).iter();
                let is_registers = |device: &&VirtualDevice| {
                    device.window() == 1 && self.role_of(device) == Some(DeviceRole::Bridge)
                };
                let device = *devices.of(partition);
                // The check of the image has found the bridge, and bounds the number of functions.
                if let Some(registers) = windows.find(is_registers).copied()
                    && let Some(place) = self.functions.get_mut(found)
                {
                    *place = FunctionFacts::new(side, channel, position, &registers, device);
                    found = found.saturating_add(1);
                }
                *devices.of_mut(partition) = device.saturating_add(1);
            }
        }
    }

    /// Returns all functions, in the order of the sides.
    pub fn functions(&self) -> impl Iterator<Item = (FunctionId, &FunctionFacts)> {
        let used = |(_, facts): &(FunctionId, &FunctionFacts)| facts.place.size != 0;
        (0..).map(FunctionId).zip(&self.functions).take_while(used)
    }

    /// Returns the function at a device number of a VM. The work is bounded by the number of functions.
    #[must_use]
    pub fn function_at(&self, partition: PartitionId, device: u64) -> Option<(FunctionId, &FunctionFacts)> {
        let mut functions = self.functions();
        functions.find(|(_, facts)| facts.partition == partition && u64::from(facts.device) == device)
    }

    /// Gives each port its part of the memory for messages.
    fn place_ports(&mut self) {
        let mut first = 0_u32;
        let image = self.image;
        for (record, number) in image.ports().iter().zip(0_u8..) {
            *self.ports.of_mut(PortId(number)) = PortFacts::new(record, first);
            first = first.saturating_add(record.words());
        }
        for record in image.capabilities() {
            let receives = record.rights.get() as u8 & Rights::READ.0 != 0;
            if record.kind.get() == ObjectKind::Port as u32 && receives {
                let holder = PartitionId(record.partition.get() as u8);
                let facts = self.partitions.of(holder);
                let (first, count) = (facts.first, facts.count);
                let port = self.ports.of_mut(PortId(record.object.get() as u8));
                port.receives(first, count);
                if let Some(event) = record.event() {
                    port.tells(holder, 1_u64.wrapping_shl(event));
                }
            }
        }
    }

    /// Returns the facts of a port.
    #[inline]
    #[must_use]
    pub fn port(&self, port: PortId) -> &PortFacts {
        self.ports.of(port)
    }

    /// Returns the bell of a channel.
    #[inline]
    #[must_use]
    pub(crate) fn bell(&self, channel: ChannelId) -> &Bell {
        self.bells.of(channel)
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

    /// Returns the facts of a partition.
    #[inline]
    #[must_use]
    pub fn facts_of(&self, partition: PartitionId) -> &Facts {
        self.partitions.of(partition)
    }

    /// Returns the virtual devices of a partition that the kernel answers.
    #[inline]
    #[must_use]
    pub fn devices_of(&self, partition: PartitionId) -> &[VirtualDevice] {
        let Range { first, end } = self.facts_of(partition).devices;
        self.devices
            .get(usize::from(first)..usize::from(end))
            .unwrap_or(&[])
    }

    /// Returns the part that a virtual device plays.
    #[must_use]
    pub fn role_of(&self, device: &VirtualDevice) -> Option<DeviceRole> {
        self.image.facts().device(device.kind()).map(|facts| facts.role)
    }

    fn device_with(
        &self,
        partition: PartitionId,
        plays: impl Fn(DeviceRole) -> bool,
    ) -> Option<&VirtualDevice> {
        let mut devices = self.devices_of(partition).iter();
        devices.find(|device| self.role_of(device).is_some_and(&plays))
    }

    /// Returns the virtual device that is the console of a partition, if there is one.
    #[must_use]
    pub fn console_of(&self, partition: PartitionId) -> Option<&VirtualDevice> {
        self.device_with(partition, |role| matches!(role, DeviceRole::Console(_)))
    }

    /// Returns the interrupt of a partition's event gate, if it has one.
    #[must_use]
    pub fn gate_line_of(&self, partition: PartitionId) -> Option<VirtualLine> {
        self.device_with(partition, |role| role == DeviceRole::Gate)?
            .interrupt()
    }

    /// Returns the place that a vCPU belongs to.
    #[inline]
    #[must_use]
    pub fn binding(&self, vcpu: VcpuId) -> Binding {
        *self.bindings.of(vcpu)
    }

    /// Returns the priority that the manifest gives a vCPU.
    #[must_use]
    pub fn priority(&self, vcpu: VcpuId) -> u32 {
        let record = self.image.vcpus().get(usize::from(vcpu.0));
        record.map_or(0, |record| record.priority.get())
    }

    /// Returns the place that vCPU `index` of a partition belongs to.
    #[must_use]
    pub fn binding_of(&self, partition: PartitionId, index: u8) -> Binding {
        self.binding(VcpuId(self.facts_of(partition).first.0.saturating_add(index)))
    }

    /// Returns the register of the board that an access of a partition reaches, if the register is forwarded.
    /// The work is bounded by the number of windows.
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

    /// Returns the window for an access of a partition that another partition answers, and the offset in the
    /// window. The work is bounded by the number of windows.
    #[must_use]
    pub fn served_at(
        &self,
        partition: PartitionId,
        address: GuestPhys,
        size: u8,
    ) -> Option<(WindowId, &'i ServedRecord, u64)> {
        let mut windows = self.image.served().iter().zip(0_u8..);
        windows.find_map(|(record, number)| {
            if record.client.get() != u32::from(partition.0) {
                return None;
            }
            let offset = address.0.checked_sub(record.guest.get())?;
            let is_inside = offset.checked_add(u64::from(size))? <= record.size.get();
            is_inside.then_some((WindowId(number), record, offset))
        })
    }

    /// Returns the registers to write when a partition has ended, each with its value. These writes make the
    /// devices of the partition leave memory alone.
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

    /// Returns the first vCPUs of partitions with critical interrupts.
    #[inline]
    #[must_use]
    pub const fn critical_vcpus(&self) -> VcpuSet {
        self.critical_vcpus
    }

    /// Tells whether the manifest calls the interrupts of this line critical.
    #[inline]
    #[must_use]
    pub fn is_critical(&self, line: Line) -> bool {
        self.critical.has(line)
    }

    /// Returns all interfaces to networks.
    pub fn nics(&self) -> impl Iterator<Item = NicId> + use<> {
        (0..self.image.nics().len().min(NIC_ENTRIES) as u8).map(NicId)
    }

    /// Tells whether the vCPU's partition has an interface.
    #[inline]
    pub(crate) fn has_nic(&self, vcpu: VcpuId) -> bool {
        self.nic_vcpus.contains(vcpu)
    }

    /// Returns the facts of an interface.
    #[inline]
    #[must_use]
    pub fn nic(&self, nic: NicId) -> &NicFacts {
        self.nics.of(nic)
    }

    /// Returns all partitions.
    pub fn partitions(&self) -> impl Iterator<Item = PartitionId> + use<> {
        (0..self.image.partitions().len().min(MAX_PARTITIONS) as u8).map(PartitionId)
    }

    /// Returns all pCPUs.
    pub fn pcpus(&self) -> impl Iterator<Item = PcpuId> + use<> {
        (0..self.image.pcpus().len().min(MAX_PCPUS) as u8).map(PcpuId)
    }

    /// Returns the address of a vCPU's mask words, 0 if it has none.
    pub(crate) fn masks_of(&self, vcpu: VcpuId) -> u32 {
        let record = self.image.vcpus().get(usize::from(vcpu.0));
        record.map_or(0, |record| record.masks.get())
    }

    /// Returns the vCPUs bound to a pCPU, in the order of their slots.
    pub fn vcpus_on(&self, pcpu: PcpuId) -> impl Iterator<Item = VcpuId> + '_ {
        let count = self.image.vcpus().len().min(MAX_VCPUS) as u8;
        (0..count)
            .map(VcpuId)
            .filter(move |vcpu| self.binding(*vcpu).pcpu == pcpu)
    }

    /// Returns the state in which vCPU 0 of a partition starts with its own payloads (`alternative` 0) or
    /// with others.
    #[must_use]
    pub fn first_state(&self, partition: PartitionId, alternative: u8) -> Option<VcpuReset> {
        let own = self.image.partitions().get(usize::from(partition.0))?;
        let (entry, argument, stack) = match usize::from(alternative).checked_sub(1) {
            None => {
                let record = own;
                (record.entry, record.argument, record.stack)
            }
            Some(index) => {
                let record = self.image.alternatives_of(u32::from(partition.0)).nth(index)?;
                (record.entry, record.argument, record.stack)
            }
        };
        Some(VcpuReset {
            state: EntryState(own.entry_state.get() as u8),
            entry: GuestPhys(entry.get()),
            argument: argument.get(),
            stack: stack.get(),
        })
    }

    /// Returns the name of a partition's alternative, or `None` for the partition's own payloads.
    #[must_use]
    pub fn alternative_name(&self, partition: PartitionId, alternative: u8) -> Option<&'i str> {
        let index = usize::from(alternative).checked_sub(1)?;
        let record = self.image.alternatives_of(u32::from(partition.0)).nth(index)?;
        record.name.text().ok()
    }

    /// Returns a partition's name.
    #[must_use]
    pub fn name(&self, partition: PartitionId) -> &'i str {
        self.image
            .partitions()
            .get(usize::from(partition.0))
            .map_or("?", |record| self.image.name(&record.name))
    }
}

/// Returns the windows of a virtual device. A window that the device does not have is empty.
pub(crate) fn windows(class: &ClassFacts, device: &VirtualDeviceRecord) -> [VirtualDevice; 2] {
    let ([base_0, base_1], [size_0, size_1]) = (device.base, device.size);
    let line = Some(device.virtual_line.get()).filter(|line| *line != NONE);
    // A class without other address spaces is not asked.
    let facts = class
        .device(device.kind.get())
        .filter(|_| class.has_other_spaces());
    let [space_0, space_1] = facts.map_or([AddressSpace::Memory; 2], |facts| {
        let [first, second] = facts.windows;
        [first.space, second.space]
    });
    let window = |number, base: U64, size: U64| {
        let place = (base.get(), size.get());
        VirtualDevice::new(device.kind.get(), number, place, line.map(VirtualLine))
    };
    [
        window((0, space_0), base_0, size_0),
        window((1, space_1), base_1, size_1),
    ]
}
