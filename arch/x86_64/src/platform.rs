// SPDX-License-Identifier: Apache-2.0
//! The interrupt controllers and timers of VMs: a local APIC for each vCPU, and what the vCPUs of a VM share.
//!
//! Each state machine has a lock of its own, which is held for a bounded number of steps. The lock of the
//! shared ones comes before the lock of a local APIC.

use crate::board::BOARD;
use crate::physical;
use bulkhead_arch_api::class::device;
use bulkhead_arch_api::{
    AddressSpace, GuestPhys, MAX_PARTITIONS, MAX_VCPUS, PartitionId, PcpuId, REGISTER_WINDOW, ResetKind,
    VcpuId, VcpuPlan, VcpuSet, VirtualDevice, VirtualLine,
};
use bulkhead_arch_translating::Relax;
use bulkhead_arch_x86_64_core::ioapic::{self, IoApic, Message};
use bulkhead_arch_x86_64_core::lapic::{self, Delivery, Ipi, Lapic, Target};
use bulkhead_arch_x86_64_core::pic::Pic;
use bulkhead_arch_x86_64_core::pit::Pit;
use bulkhead_arch_x86_64_core::pm::{Power, Wish};
use bulkhead_arch_x86_64_core::rtc::Rtc;
use bulkhead_arch_x86_64_core::time::NANOS;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use spin::mutex::{TicketMutex, TicketMutexGuard};

/// A non-maskable interrupt is pending.
const NMI: u8 = 1;
/// The vCPU was reset by another one.
const INIT: u8 = 2;
/// Something has changed since the vCPU looked at its interrupts last.
const CHANGED: u8 = 4;
/// The pin of the I/O APIC that counter 0 of the PIT is at; its line of the 8259 is 0.
const PIT_PIN: u32 = 2;

/// The parts that the vCPUs of a VM share.
struct Shared {
    ioapic: IoApic,
    pic: Pic,
    pit: Pit,
    rtc: Rtc,
    power: Power,
}

impl Shared {
    const fn new() -> Self {
        Self {
            ioapic: IoApic::new(),
            pic: Pic::new(),
            pit: Pit::new(),
            rtc: Rtc::new(),
            power: Power::new(),
        }
    }
}

/// A VM: its shared parts, and facts that are read without a lock.
pub(crate) struct Vm {
    shared: TicketMutex<Shared, Relax>,
    /// First vCPU, and number of vCPUs.
    vcpus: [AtomicU8; 2],
    /// The 8259 asks for vCPU 0.
    asks: AtomicBool,
    /// When counter 0 of the PIT rises next, in the guest's ticks.
    pit_due: AtomicU64,
    /// First port of the console, and ports; 0 if there is none.
    console: AtomicU32,
}

/// A vCPU's local APIC, and facts that are read without a lock.
pub(crate) struct Local {
    apic: TicketMutex<Lapic, Relax>,
    /// `NMI`, `INIT`, `CHANGED`.
    news: AtomicU8,
    home: AtomicU8,
    /// Its pCPU runs it, and looks at it before each entry. Such a vCPU is none of the kernel's business.
    runs: AtomicBool,
}

#[expect(
    clippy::declare_interior_mutable_const,
    reason = "the first value of an array's entries"
)]
const VM: Vm = Vm {
    shared: TicketMutex::new(Shared::new()),
    vcpus: [AtomicU8::new(0), AtomicU8::new(0)],
    asks: AtomicBool::new(false),
    pit_due: AtomicU64::new(u64::MAX),
    console: AtomicU32::new(0),
};
#[expect(
    clippy::declare_interior_mutable_const,
    reason = "the first value of an array's entries"
)]
const LOCAL: Local = Local {
    apic: TicketMutex::new(Lapic::new(0)),
    news: AtomicU8::new(CHANGED),
    home: AtomicU8::new(0),
    runs: AtomicBool::new(false),
};

static VMS: [Vm; MAX_PARTITIONS] = [VM; MAX_PARTITIONS];
static LOCALS: [Local; MAX_VCPUS] = [LOCAL; MAX_VCPUS];

fn vm(partition: PartitionId) -> Option<&'static Vm> {
    VMS.get(usize::from(partition.0))
}

/// Returns the local part of a vCPU.
#[inline(always)]
pub(crate) fn local(vcpu: VcpuId) -> Option<&'static Local> {
    LOCALS.get(usize::from(vcpu.0))
}

impl Local {
    /// Locks the local APIC.
    #[inline(always)]
    pub(crate) fn apic(&self) -> TicketMutexGuard<'_, Lapic, Relax> {
        self.apic.lock()
    }

    /// Notes whether a pCPU runs the vCPU. A pCPU that ceases to run a vCPU that idles must ask
    /// [`Local::is_changed`] after it.
    #[inline(always)]
    pub(crate) fn note_running(&self, runs: bool) {
        self.runs.store(runs, Ordering::SeqCst);
    }

    /// Tells whether the vCPU has to look at its interrupts.
    #[inline(always)]
    pub(crate) fn is_changed(&self) -> bool {
        self.news.load(Ordering::SeqCst) & CHANGED != 0
    }
}

/// Returns the local APIC of a vCPU.
#[inline]
pub(crate) fn apic(vcpu: VcpuId) -> Option<TicketMutexGuard<'static, Lapic, Relax>> {
    Some(local(vcpu)?.apic.lock())
}

/// Notes where a device of a VM is.
pub(crate) fn note_device(partition: PartitionId, found: &VirtualDevice) {
    let is_console = found.kind() == device::NS16550.number && found.is_in(AddressSpace::Ports);
    if let Some(vm) = vm(partition).filter(|_| is_console) {
        let window = found.base() as u32 & 0xFFFF | found.size() << 16;
        vm.console.store(window, Ordering::Release);
    }
}

/// The ports of a console: the first one in bits 15:0, and their number.
#[derive(Clone, Copy)]
pub(crate) struct Ports(u32);

impl Ports {
    const fn first(self) -> u64 {
        self.0 as u64 & 0xFFFF
    }

    /// Tells whether a port is in the window.
    pub(crate) const fn has(self, port: u64) -> bool {
        port.wrapping_sub(self.first()) < self.0 as u64 >> 16
    }

    /// Returns the place of a port of the window, as a [`bulkhead_arch_api::RegisterAccess`] has it.
    pub(crate) const fn place_of(self, port: u64) -> GuestPhys {
        GuestPhys(self.first() * REGISTER_WINDOW + port.wrapping_sub(self.first()))
    }
}

/// Returns the console's ports; there are none if there is none.
#[inline(always)]
pub(crate) fn console(partition: PartitionId) -> Ports {
    Ports(vm(partition).map_or(0, |vm| vm.console.load(Ordering::Acquire)))
}

/// Notes a vCPU. See [`bulkhead_arch_api::Vcpus::adopt`].
pub(crate) fn adopt(vcpu: VcpuId, plan: &VcpuPlan, pcpu: PcpuId) {
    if let (Some(local), Some(vm)) = (local(vcpu), vm(plan.partition)) {
        local.home.store(pcpu.0, Ordering::Release);
        let [first, count] = &vm.vcpus;
        first.store(plan.first.0, Ordering::Release);
        count.store(plan.count, Ordering::Release);
    }
}

/// Resets a vCPU's local APIC. `started`: by another vCPU.
pub(crate) fn reset_local(vcpu: VcpuId, index: u8, started: bool) {
    if let Some(local) = local(vcpu) {
        let mut apic = local.apic.lock();
        *apic = if started {
            apic.after_init()
        } else {
            Lapic::new(index.into())
        };
        drop(apic);
        local.news.store(CHANGED, Ordering::Release);
    }
}

/// Resets what the vCPUs of a VM share, and the local APICs of those that another one starts.
pub(crate) fn reset(partition: PartitionId) {
    if let Some(vm) = vm(partition) {
        let [first, count] = [&vm.vcpus[0], &vm.vcpus[1]].map(|value| value.load(Ordering::Acquire));
        for index in 1..count {
            reset_local(VcpuId(first.wrapping_add(index)), index, false);
        }
        *vm.shared.lock() = Shared::new();
        vm.asks.store(false, Ordering::Release);
        vm.pit_due.store(u64::MAX, Ordering::Release);
    }
}

/// Takes a pending non-maskable interrupt.
pub(crate) fn take_nmi(vcpu: VcpuId) -> bool {
    take_event(vcpu, NMI)
}

/// Takes the reset by another vCPU.
pub(crate) fn take_init(vcpu: VcpuId) -> bool {
    take_event(vcpu, INIT)
}

#[inline]
fn take_event(vcpu: VcpuId, event: u8) -> bool {
    let Some(local) = local(vcpu) else { return false };
    let events = &local.news;
    events.load(Ordering::Acquire) & event != 0 && events.fetch_and(!event, Ordering::AcqRel) & event != 0
}

/// Tells whether the vCPU was reset or has a non-maskable interrupt that it can take. `in_nmi`: it handles
/// one.
pub(crate) fn has_event_for(vcpu: VcpuId, in_nmi: bool) -> bool {
    let taken = if in_nmi { INIT } else { INIT | NMI };
    local(vcpu).is_some_and(|local| local.news.load(Ordering::Acquire) & taken != 0)
}

/// Returns the VM of a vCPU if the vCPU is its first one, which alone gets the interrupts of 8259 and PIT.
#[inline(always)]
pub(crate) fn vm_of_first(plan: &VcpuPlan) -> Option<&'static Vm> {
    if plan.index == 0 { vm(plan.partition) } else { None }
}

/// Tells whether the 8259 asks for the first vCPU of a VM.
#[inline(always)]
pub(crate) fn external_asks(vm: Option<&Vm>) -> bool {
    vm.is_some_and(|vm| vm.asks.load(Ordering::Acquire))
}

/// Takes the vector of the 8259.
pub(crate) fn take_external(partition: PartitionId) -> Option<u8> {
    let vm = vm(partition)?;
    let mut shared = vm.shared.lock();
    let vector = shared.pic.asks().then(|| shared.pic.take());
    vm.asks.store(shared.pic.asks(), Ordering::Release);
    vector
}

/// The events of a vCPU since its last look. A non-maskable interrupt stays until it is taken.
#[derive(Clone, Copy)]
pub(crate) struct News(u8);

impl News {
    /// Tells whether there is anything.
    pub(crate) const fn is_any(self) -> bool {
        self.0 != 0
    }

    /// Tells whether the vCPU was reset or has a non-maskable interrupt.
    pub(crate) const fn has_event(self) -> bool {
        self.0 & (NMI | INIT) != 0
    }
}

/// Takes what has happened to a vCPU.
#[inline(always)]
pub(crate) fn take_news(local: &Local) -> News {
    let news = local.news.load(Ordering::Acquire);
    if news & CHANGED == 0 {
        return News(news);
    }
    local.news.fetch_and(!CHANGED, Ordering::SeqCst);
    // An event that came before a change that is taken is seen here.
    News(local.news.load(Ordering::Acquire) | CHANGED)
}

/// Tells a vCPU that it has something to do: an entry that is to come looks, and another pCPU that runs it is
/// interrupted. Returns true if no pCPU runs it, so that the kernel has to wake it.
fn tell(local: &Local, own: PcpuId) -> bool {
    local.news.fetch_or(CHANGED, Ordering::SeqCst);
    if !local.runs.load(Ordering::SeqCst) {
        return true;
    }
    let home = local.home.load(Ordering::Acquire);
    if home != own.0 {
        let ids = BOARD.get().map(|board| &board.hardware_ids);
        if let Some(target) = ids.and_then(|ids| ids.get(usize::from(home))) {
            physical::interrupt(*target, physical::KICK);
        }
    }
    false
}

/// Tells the first vCPU of a VM. Returns the set of it if the kernel has to wake it.
fn tell_first(vm: &Vm, own: PcpuId) -> VcpuSet {
    let first = VcpuId(vm.vcpus[0].load(Ordering::Acquire));
    let wakes = local(first).is_some_and(|local| tell(local, own));
    if wakes { VcpuSet::of(first) } else { VcpuSet::EMPTY }
}

/// The outcome of a message: the vCPUs that have something to do, and those that are to start.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sent {
    pub(crate) wake: VcpuSet,
    /// Indices of vCPUs that a start-up IPI names.
    pub(crate) starting: u8,
}

/// Sends a vector to one other vCPU of a VM by its number, which is below the number of vCPUs: [`send`]
/// without everything else. Returns that vCPU if the kernel has to wake it.
#[inline(never)]
pub(crate) fn send_vector(plan: &VcpuPlan, id: u8, vector: u8, own: PcpuId) -> VcpuSet {
    let vcpu = VcpuId(plan.first.0.wrapping_add(id));
    let Some(local) = local(vcpu) else {
        return VcpuSet::EMPTY;
    };
    let is_told = local.apic.lock().accept(vector, false);
    if is_told && tell(local, own) {
        VcpuSet::of(vcpu)
    } else {
        VcpuSet::EMPTY
    }
}

/// Sends a message to the vCPUs of a VM that it is for. `sender`: index of the vCPU that sends it.
pub(crate) fn send(partition: PartitionId, ipi: Ipi, is_level: bool, sender: u32, own: PcpuId) -> Sent {
    let mut sent = Sent::default();
    let Some(vm) = vm(partition) else { return sent };
    let [first, count] = [&vm.vcpus[0], &vm.vcpus[1]].map(|value| value.load(Ordering::Acquire));
    // An id is the index of a vCPU, so a message for one needs no look at the others.
    let all = match ipi.target {
        Target::Physical(id) if id < u32::from(count) => id as u8..id as u8 + 1,
        _ => 0..count,
    };
    for index in all {
        let vcpu = VcpuId(first.wrapping_add(index));
        let Some(local) = local(vcpu) else { break };
        let mut apic = local.apic.lock();
        if !apic.is_for(ipi.target, sender) {
            continue;
        }
        let is_told = match ipi.delivery {
            Delivery::Fixed | Delivery::Lowest => apic.accept(ipi.vector, is_level),
            Delivery::Nmi => {
                local.news.fetch_or(NMI, Ordering::AcqRel);
                true
            }
            // The boot processor is never reset by others, and no processor resets itself so.
            Delivery::Init => {
                let is_other = index != 0 && u32::from(index) != sender;
                if is_other {
                    local.news.fetch_or(INIT, Ordering::AcqRel);
                }
                is_other
            }
            Delivery::Startup => {
                if u32::from(index) != sender {
                    sent.starting |= 1_u8.wrapping_shl(index.into());
                }
                false
            }
            Delivery::External | Delivery::None => false,
        };
        drop(apic);
        if is_told {
            if tell(local, own) {
                sent.wake.insert_all(VcpuSet::of(vcpu));
            }
            if ipi.delivery == Delivery::Lowest {
                break;
            }
        }
    }
    sent
}

/// Sends what the I/O APIC has to send, and notes whether the 8259 asks.
fn settle(partition: PartitionId, vm: &Vm, shared: &mut Shared, own: PcpuId) -> VcpuSet {
    let mut wake = VcpuSet::EMPTY;
    for _ in 0..ioapic::PINS {
        let Some(message) = shared.ioapic.next() else {
            break;
        };
        let Message {
            vector,
            delivery,
            target,
            is_level,
        } = message;
        let ipi = Ipi {
            vector,
            delivery,
            target,
        };
        wake.insert_all(send(partition, ipi, is_level, u32::MAX, own).wake);
    }
    wake.insert_all(settle_external(vm, shared, own));
    wake
}

/// Notes whether the 8259 asks.
#[inline(always)]
fn settle_external(vm: &Vm, shared: &Shared, own: PcpuId) -> VcpuSet {
    let asks = shared.pic.asks();
    if asks == vm.asks.load(Ordering::Acquire) {
        return VcpuSet::EMPTY;
    }
    vm.asks.store(asks, Ordering::Release);
    if asks { tell_first(vm, own) } else { VcpuSet::EMPTY }
}

/// Changes the level of a line, or sends a vector. Returns the vCPUs that have something to do.
pub(crate) fn set_line(partition: PartitionId, line: VirtualLine, is_high: bool, own: PcpuId) -> VcpuSet {
    let Some(vm) = vm(partition) else {
        return VcpuSet::EMPTY;
    };
    if let Some(vector) = line.as_vector() {
        let ipi = Ipi {
            vector,
            delivery: Delivery::Fixed,
            target: Target::Physical(0),
        };
        return if is_high {
            send(partition, ipi, false, u32::MAX, own).wake
        } else {
            VcpuSet::EMPTY
        };
    }
    let mut shared = vm.shared.lock();
    shared.ioapic.set(line.0, is_high);
    shared.pic.set(line.0, is_high);
    settle(partition, vm, &mut shared, own)
}

/// Tells the I/O APIC that a vector has ended.
pub(crate) fn end(partition: PartitionId, vector: u8, own: PcpuId) -> VcpuSet {
    let Some(vm) = vm(partition) else {
        return VcpuSet::EMPTY;
    };
    let mut shared = vm.shared.lock();
    shared.ioapic.end(vector);
    settle(partition, vm, &mut shared, own)
}

/// Carries out an access to a register of the I/O APIC. Returns what was read.
pub(crate) fn access_ioapic(
    partition: PartitionId,
    offset: u64,
    store: Option<u32>,
    own: PcpuId,
) -> (u32, VcpuSet) {
    let Some(vm) = vm(partition) else {
        return (0, VcpuSet::EMPTY);
    };
    let mut shared = vm.shared.lock();
    match store {
        None => (shared.ioapic.read(offset), VcpuSet::EMPTY),
        Some(value) => {
            shared.ioapic.write(offset, value);
            (0, settle(partition, vm, &mut shared, own))
        }
    }
}

/// The answer to an access to a port.
pub(crate) enum PortAnswer {
    /// The value that was read; 0 for a store.
    Done(u64, VcpuSet),
    /// The machine ends or begins anew.
    Reset(ResetKind),
    /// No device of the platform has the port.
    Nobody,
}

/// Carries out an access to a port of the platform. `now`: the guest's counter.
pub(crate) fn access_port(
    partition: PartitionId,
    port: u64,
    store: Option<u64>,
    now: u64,
    own: PcpuId,
) -> PortAnswer {
    let (Some(vm), Some(board)) = (vm(partition), BOARD.get()) else {
        return PortAnswer::Nobody;
    };
    let mut shared = vm.shared.lock();
    // The 8259 first: systems mask its lines at each interrupt, and it has no time.
    if let Some(value) = store
        && shared.pic.write(port, value as u8)
    {
        return PortAnswer::Done(0, settle_external(vm, &shared, own));
    }
    let pit = board.pit.apply(now);
    let Some(value) = store else {
        let seconds = board.epoch + board.nanos.apply(now) / NANOS;
        let byte = shared
            .pic
            .read(port)
            .or_else(|| shared.pit.read(port, pit))
            .or_else(|| shared.rtc.read(port, seconds));
        let found = byte
            .map(u64::from)
            .or_else(|| shared.power.read(port, board.pm.apply(now)));
        return found.map_or(PortAnswer::Nobody, |value| {
            PortAnswer::Done(value, VcpuSet::EMPTY)
        });
    };
    let byte = value as u8;
    if shared.pit.write(port, byte, pit) {
        note_pit(vm, &shared, pit, board);
        return PortAnswer::Done(0, tell_first(vm, own));
    }
    if shared.rtc.write(port, byte) {
        return PortAnswer::Done(0, VcpuSet::EMPTY);
    }
    match shared.power.write(port, value) {
        Some(Wish::Nothing) => PortAnswer::Done(0, VcpuSet::EMPTY),
        Some(Wish::Off) => PortAnswer::Reset(ResetKind::Off),
        Some(Wish::Reset) => PortAnswer::Reset(ResetKind::Cold),
        None => PortAnswer::Nobody,
    }
}

/// Notes when counter 0 of the PIT rises next. `now`: in ticks of the PIT.
fn note_pit(vm: &Vm, shared: &Shared, now: u64, board: &crate::board::Board) {
    // One tick later, so that the PIT has risen then.
    let due = shared
        .pit
        .next_rise(now)
        .map_or(u64::MAX, |rise| board.from_pit.apply(rise + 1));
    vm.pit_due.store(due, Ordering::Release);
}

/// Returns when counter 0 of the PIT interrupts the first vCPU of a VM next, in the guest's ticks.
#[inline(always)]
pub(crate) fn pit_due(vm: Option<&Vm>) -> u64 {
    vm.map_or(u64::MAX, |vm| vm.pit_due.load(Ordering::Acquire))
}

/// Lets counter 0 of the PIT interrupt, if it has risen.
pub(crate) fn advance_pit(partition: PartitionId, now: u64, own: PcpuId) -> VcpuSet {
    let (Some(vm), Some(board)) = (vm(partition), BOARD.get()) else {
        return VcpuSet::EMPTY;
    };
    let mut shared = vm.shared.lock();
    let mut wake = VcpuSet::EMPTY;
    let pit = board.pit.apply(now);
    if shared.pit.has_risen(pit) {
        for is_high in [true, false] {
            shared.pic.set(0, is_high);
            shared.ioapic.set(PIT_PIN, is_high);
            wake.insert_all(settle(partition, vm, &mut shared, own));
        }
    }
    note_pit(vm, &shared, pit, board);
    wake
}

/// The window of a local APIC's registers in memory, and the window of the I/O APIC.
pub(crate) const WINDOWS: [u64; 2] = [lapic::ADDRESS, ioapic::ADDRESS];
