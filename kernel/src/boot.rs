// SPDX-License-Identifier: Apache-2.0
//! From power-on to the loops, and from there to the end.
//!
//! The class binary calls [`primary`] on the boot pCPU and [`secondary`] on each pCPU that the firmware starts
//! afterwards; neither returns. The steps are listed in `prepare`, in order, in one place; nothing is
//! registered, nothing runs because it was linked.
//!
//! Until the image is checked nothing but the console is used, and until everything is in place no partition runs. Any
//! error ends in [`lockdown`]: the reason on the console, all pCPUs stopped.

use crate::cap::Capability;
use crate::dispatch::Pcpu;
use crate::log::Line;
use crate::mailbox::bit;
use crate::network::{Nic, OUTSIDE};
use crate::partition::{Launch, Request};
use crate::record::Found;
use crate::shared::Shared;
use crate::system::System;
use crate::terminal::Reader;
use crate::time::Timebase;
use crate::trace::Tracer;
use bulkhead_abi::hypercall::SELF_CAPABILITY;
use bulkhead_abi::log::Pcpu as Counters;
use bulkhead_abi::{Error, ObjectKind, PartitionState, Rights};
use bulkhead_arch_api::{
    Arch, BuildError, ControllerKind, GuestPhys, HostPhys, Line as IrqLine, LineRoute, MAX_PARTITIONS,
    MAX_PCPUS, MAX_VCPUS, MAX_VCPUS_PER_PARTITION, MemoryKind, PartitionId, PartitionKind, PcpuId,
    Permissions, Region, StartError, VcpuPlan, VirtualController, VirtualLine,
};
use bulkhead_devices::uart::Uart;
use bulkhead_image::layout::{
    FLAG_AUTOSTART, MEMORY_DEVICE, MEMORY_EXECUTE, MEMORY_READ, MEMORY_WRITE, PcpuRecord, TRIGGER_EDGE,
    VIRTUAL_GIC_V2, VIRTUAL_GIC_V3,
};
use bulkhead_image::{Image, ImageError, Part, Sha256};
use bulkhead_sched::{MAX_SLOTS, PcpuPolicy, PolicyError};
use spin::RelaxStrategy;

/// Mappings a partition can have.
const MAX_REGIONS: usize = bulkhead_image::MAX_REGIONS_PER_PARTITION;

const _: () = assert!(
    bulkhead_image::MAX_PARTITIONS == MAX_PARTITIONS
        && bulkhead_image::MAX_VCPUS == MAX_VCPUS
        && bulkhead_image::MAX_VCPUS_PER_PARTITION == MAX_VCPUS_PER_PARTITION
        && bulkhead_image::MAX_VCPUS_PER_PCPU == MAX_SLOTS
        && bulkhead_image::MAX_PCPUS == MAX_PCPUS,
    "the image check lets through what the tables here can hold"
);

/// What the class binary adds to the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Hooks<'h, S> {
    /// Computes SHA-256, with the CPU's own instructions where it has them.
    pub digest: S,
    /// Version of the hypervisor, for the banner.
    pub version: &'h str,
}

/// Why the system did not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootError {
    /// The image is damaged, or not for this hypervisor.
    Image(ImageError),
    /// A policy refused its vCPUs.
    Policy(PcpuId, PolicyError),
    /// A partition's space could not be built.
    Space(PartitionId, BuildError),
    /// A capability could not be put into its slot.
    Capability(PartitionId, bulkhead_abi::Error),
    /// The firmware did not start a pCPU.
    Start(PcpuId, StartError),
    /// A pCPU came up before the system was prepared, or twice.
    Unexpected(PcpuId),
}

impl BootError {
    /// The reason as a line of the log.
    fn describe(&self) -> Line {
        let mut line = Line::new();
        match *self {
            Self::Image(error) => {
                error.describe(&mut |part| {
                    match part {
                        Part::Text(text) => line.text(text),
                        Part::Number(number) => line.decimal(number),
                    };
                });
            }
            Self::Policy(pcpu, error) => {
                line.text("policy of pCPU ")
                    .decimal(pcpu.0.into())
                    .text(match error {
                        PolicyError::TooManyVcpus => ": too many vCPUs",
                        PolicyError::BadParameter => ": parameter out of range",
                        PolicyError::NotSupported | PolicyError::DonationCycle => ": not supported",
                    });
            }
            Self::Space(partition, error) => {
                line.text("space of partition ").decimal(partition.0.into());
                match error {
                    BuildError::TablesExhausted => line.text(": no memory left for translation tables"),
                    BuildError::BadRegion(GuestPhys(address)) => line.text(": bad region at ").hex(address),
                    BuildError::Overlap(GuestPhys(address)) => line.text(": overlap at ").hex(address),
                };
            }
            Self::Capability(partition, _) => {
                line.text("capabilities of partition ")
                    .decimal(partition.0.into())
                    .text(": slot taken");
            }
            Self::Start(pcpu, StartError { code }) => {
                line.text("pCPU ")
                    .decimal(pcpu.0.into())
                    .text(" did not start, firmware says ");
                line.text(if code < 0 { "-" } else { "" })
                    .decimal(code.unsigned_abs());
            }
            Self::Unexpected(pcpu) => {
                line.text("pCPU ")
                    .decimal(pcpu.0.into())
                    .text(" came up unexpectedly");
            }
        }
        line
    }
}

/// The boot pCPU's way into the kernel, with the system image as far as its tables have been checked.
pub fn primary<P: PcpuPolicy, A: Arch, S: Sha256>(
    mut machine: A,
    shared: &'static Shared<'static, A::Relax>,
    image: Result<Image<'static>, ImageError>,
    hooks: &Hooks<'_, S>,
) -> ! {
    prepare_or_end(&mut machine, shared, image, hooks);
    let seat = seat_or_end(&mut machine, shared);
    run::<P, A>(machine, shared, seat)
}

/// Any other pCPU's way into the kernel.
pub fn secondary<P: PcpuPolicy, A: Arch>(mut machine: A, shared: &'static Shared<'static, A::Relax>) -> ! {
    let seat = seat_or_end(&mut machine, shared);
    run::<P, A>(machine, shared, seat)
}

/// The loop. On its own, so that its stack is not needed while the boot pCPU prepares; and the machine is only read here, so that it is
/// copied once, to where it stays.
#[inline(never)]
fn run<P: PcpuPolicy, A: Arch>(
    machine: A,
    shared: &'static Shared<'static, A::Relax>,
    seat: Seat<'static, 'static>,
) -> ! {
    let mut pcpu = take_seat::<P, A>(machine, shared, seat);
    pcpu.adopt_or_end();
    pcpu.run_forever()
}

/// The system does not start. On its own, so that the line is on the stack only then.
#[cold]
#[inline(never)]
fn give_up<A: Arch>(machine: &mut A, shared: &Shared<'_, A::Relax>, error: &BootError) -> ! {
    lockdown(machine, shared, &error.describe())
}

fn prepare_or_end<'i, A: Arch, S: Sha256>(
    machine: &mut A,
    shared: &Shared<'i, A::Relax>,
    image: Result<Image<'i>, ImageError>,
    hooks: &Hooks<'_, S>,
) {
    if let Err(error) = prepare(machine, shared, image, hooks) {
        give_up(machine, shared, &error);
    }
}

/// What [`primary`] does before its loop. Does not return if the system cannot start.
pub fn boot<'s, 'i, P: PcpuPolicy, A: Arch, S: Sha256>(
    mut machine: A,
    shared: &'s Shared<'i, A::Relax>,
    image: Result<Image<'i>, ImageError>,
    hooks: &Hooks<'_, S>,
) -> Pcpu<'s, 'i, A, P> {
    prepare_or_end(&mut machine, shared, image, hooks);
    join(machine, shared)
}

/// What [`secondary`] does before its loop. Does not return if the pCPU cannot take part.
pub fn join<'s, 'i, P: PcpuPolicy, A: Arch>(
    mut machine: A,
    shared: &'s Shared<'i, A::Relax>,
) -> Pcpu<'s, 'i, A, P> {
    let seat = seat_or_end(&mut machine, shared);
    let mut pcpu = take_seat(machine, shared, seat);
    pcpu.adopt_or_end();
    pcpu
}

/// Which pCPU this is, and what of the shared state is its own.
#[derive(Clone, Copy)]
struct Seat<'s, 'i> {
    id: PcpuId,
    system: &'s System<'i>,
    record: &'i PcpuRecord,
    counters: &'static Counters,
}

/// Does not return if no such pCPU is expected.
fn seat_or_end<'s, 'i, A: Arch>(machine: &mut A, shared: &'s Shared<'i, A::Relax>) -> Seat<'s, 'i> {
    let id = machine.current();
    let seat = shared.system.get().and_then(|system| {
        Some(Seat {
            id,
            system,
            record: system.image.pcpus().get(usize::from(id.0))?,
            counters: shared.recorder.pcpu(id)?,
        })
    });
    match seat {
        Some(seat) => seat,
        None => give_up(machine, shared, &BootError::Unexpected(id)),
    }
}

/// A pCPU that knows who it is. Inlined, so that its several KiB are made where they stay.
#[inline(always)]
fn take_seat<'s, 'i, P: PcpuPolicy, A: Arch>(
    machine: A,
    shared: &'s Shared<'i, A::Relax>,
    seat: Seat<'s, 'i>,
) -> Pcpu<'s, 'i, A, P> {
    let tracer = Tracer::new(machine.trace_ring(), seat.counters, seat.id);
    let kind = crate::policy::kind(seat.record, &seat.system.time);
    Pcpu::new(
        machine,
        shared,
        seat.system,
        (seat.id, seat.counters),
        (tracer, &kind),
    )
}

/// Everything that is done once, by the boot pCPU, in order.
#[inline(never)]
fn prepare<'i, A: Arch, S: Sha256>(
    machine: &mut A,
    shared: &Shared<'i, A::Relax>,
    image: Result<Image<'i>, ImageError>,
    hooks: &Hooks<'_, S>,
) -> Result<(), BootError> {
    let time = *shared
        .time
        .call_once(|| Timebase::new(machine.now(), machine.hertz()));
    let found = shared.recorder.open(machine);
    say(
        machine,
        shared,
        Line::of("Bulkhead ")
            .text(hooks.version)
            .text(" class ")
            .text(A::CAPS.class),
    );
    tell_past(machine, shared, &found);
    let system = understand(shared, image, hooks, time)?;
    shared.recorder.describe(system);
    describe_system(machine, shared, system);
    for partition in system.partitions() {
        build_space(machine, system, partition)?;
        if let Some(uart) = system.facts_of(partition).uart {
            *shared.partition(partition).reader.lock() = Reader::Uart(Uart::new(uart.kind));
        }
        shared.terminal.add(
            partition,
            system.name(partition),
            system.facts_of(partition).uart.is_some(),
        );
    }
    for record in system.image.interrupts() {
        let line = IrqLine(record.line.get());
        machine.route(
            line,
            PartitionId(record.partition.get() as u8),
            LineRoute {
                virtual_line: VirtualLine(record.virtual_line.get()),
                edge: record.trigger.get() == TRIGGER_EDGE,
                critical: system.is_critical(line),
                latency: system.time.duration(record.latency.get().into()),
            },
        );
    }
    if A::HAS_NETWORK {
        connect(machine, shared, system);
    }
    endow_capabilities(shared, system)?;
    autostart(shared, system);
    end_if_all_stopped(machine, shared, system);
    if let Some(line) = machine.receive_line() {
        machine.enable(line, false);
    }
    let own = machine.current();
    for pcpu in system.pcpus().filter(|pcpu| *pcpu != own) {
        machine
            .start(pcpu)
            .map_err(|error| BootError::Start(pcpu, error))?;
    }
    Ok(())
}

/// Checks the payloads and derives from the image what stays. On its own, so that the stack it takes is free again afterwards.
#[inline(never)]
fn understand<'s, 'i, R: RelaxStrategy, S: Sha256>(
    shared: &'s Shared<'i, R>,
    image: Result<Image<'i>, ImageError>,
    hooks: &Hooks<'_, S>,
    time: Timebase,
) -> Result<&'s System<'i>, BootError> {
    let image = image.map_err(BootError::Image)?;
    image.check_payloads(&hooks.digest).map_err(BootError::Image)?;
    Ok(shared.system.call_once(|| System::new(image, time)))
}

/// What an earlier life has left, on the console once.
fn tell_past<A: Arch>(machine: &mut A, shared: &Shared<'_, A::Relax>, found: &Found) {
    if found.boot > 1 {
        let mut line = Line::of("boot ");
        line.decimal(u64::from(found.boot))
            .text(", the log of earlier ones is kept in RAM");
        say(machine, shared, &line);
    }
    if let Some((boot, message)) = &found.crash {
        let mut line = Line::of("the hypervisor crashed in boot ");
        line.decimal(u64::from(*boot)).text(": ").join(message);
        say(machine, shared, &line);
    }
}

/// The banner: what is about to run.
#[inline(never)]
fn describe_system<A: Arch>(machine: &mut A, shared: &Shared<'_, A::Relax>, system: &System<'_>) {
    let mut line = Line::of("board ");
    line.text(system.image.board_name())
        .text(", pCPUs ")
        .decimal(system.image.pcpus().len() as u64);
    say(machine, shared, &line);
    for (record, partition) in system.image.partitions().iter().zip(system.partitions()) {
        let facts = system.facts_of(partition);
        let mut line = Line::of("partition ");
        line.text(system.name(partition)).text(match facts.kind {
            PartitionKind::Vm => ": VM, vCPUs on pCPU",
            PartitionKind::Task => ": task, vCPUs on pCPU",
        });
        for index in 0..facts.count {
            line.text(" ")
                .decimal(u64::from(system.binding_of(partition, index).pcpu.0));
        }
        if record.flags.get() & FLAG_AUTOSTART == 0 {
            line.text(", not started");
        }
        say(machine, shared, &line);
    }
}

#[inline(never)]
fn build_space<A: Arch>(
    machine: &mut A,
    system: &System<'_>,
    partition: PartitionId,
) -> Result<(), BootError> {
    const NOTHING: Region = Region {
        guest: GuestPhys(0),
        host: HostPhys(0),
        size: 0,
        permissions: Permissions {
            read: false,
            write: false,
            execute: false,
        },
        kind: MemoryKind::Ram,
    };
    let number = u32::from(partition.0);
    let mut regions = [NOTHING; MAX_REGIONS];
    let mut used = 0_usize;
    let records = system.image.memory_of(number);
    for (region, record) in regions.iter_mut().zip(records) {
        let flags = record.flags.get();
        *region = Region {
            guest: GuestPhys(record.guest.get()),
            host: HostPhys(record.host.get()),
            size: record.size.get(),
            permissions: Permissions {
                read: flags & MEMORY_READ != 0,
                write: flags & MEMORY_WRITE != 0,
                execute: flags & MEMORY_EXECUTE != 0,
            },
            kind: if flags & MEMORY_DEVICE != 0 {
                MemoryKind::Device
            } else {
                MemoryKind::Ram
            },
        };
        used = used.saturating_add(1);
    }
    let controller = controller_of(system, partition);
    machine
        .build(partition, regions.get(..used).unwrap_or(&[]), controller.as_ref())
        .map_err(|error| BootError::Space(partition, error))
}

fn controller_of(system: &System<'_>, partition: PartitionId) -> Option<VirtualController> {
    let number = u32::from(partition.0);
    let lines = system
        .image
        .partitions()
        .get(usize::from(partition.0))?
        .virtual_lines
        .get();
    let device = system
        .image
        .virtual_devices_of(number)
        .find(|device| matches!(device.kind.get(), VIRTUAL_GIC_V2 | VIRTUAL_GIC_V3))?;
    let ([base_0, base_1], [size_0, size_1]) = (device.base, device.size);
    Some(VirtualController {
        kind: if device.kind.get() == VIRTUAL_GIC_V2 {
            ControllerKind::GicV2
        } else {
            ControllerKind::GicV3
        },
        windows: [
            (GuestPhys(base_0.get()), size_0.get()),
            (GuestPhys(base_1.get()), size_1.get()),
        ],
        lines,
    })
}

fn endow_capabilities<R: RelaxStrategy>(
    shared: &Shared<'_, R>,
    system: &System<'_>,
) -> Result<(), BootError> {
    for partition in system.partitions() {
        let own = Capability {
            kind: ObjectKind::Partition,
            object: partition,
            rights: Rights::ALL,
        };
        shared
            .capabilities
            .endow(partition, SELF_CAPABILITY, own)
            .map_err(|error| BootError::Capability(partition, error))?;
    }
    for record in system.image.capabilities() {
        let holder = PartitionId(record.partition.get() as u8);
        let refused = |error| BootError::Capability(holder, error);
        let capability = Capability {
            kind: ObjectKind::from_number(record.kind.get() as u8).ok_or(refused(Error::WrongKind))?,
            object: PartitionId(record.object.get() as u8),
            rights: Rights(record.rights.get() as u8),
        };
        shared
            .capabilities
            .endow(holder, record.index.get(), capability)
            .map_err(refused)?;
    }
    Ok(())
}

/// Networks: the interfaces of partitions, and the board's own.
fn connect<A: Arch>(machine: &mut A, shared: &Shared<'_, A::Relax>, system: &System<'_>) {
    let mut partitions = 0;
    for nic in system.nics() {
        let facts = system.nic(nic);
        *shared.nics.of(nic).lock() = Nic::new(facts.address);
        if facts.network == OUTSIDE {
            partitions |= bit(facts.partition.0);
        }
    }
    machine.open_network(partitions);
}

/// Asks for the start of the partitions that start by themselves; their home pCPUs find the message when
/// they enter their loops.
fn autostart<R: RelaxStrategy>(shared: &Shared<'_, R>, system: &System<'_>) {
    for (record, partition) in system.image.partitions().iter().zip(system.partitions()) {
        if record.flags.get() & FLAG_AUTOSTART == 0 {
            continue;
        }
        let homes = &system.facts_of(partition).homes;
        // Nothing has run yet: the partition is stopped, and a stopped partition can be started.
        let _started = shared
            .partition(partition)
            .control(|control| control.request(Request::Start(Launch::default()), homes));
        let first = system.binding_of(partition, 0);
        // Nobody is signalled: no pCPU is in its loop yet.
        let _wanted = shared.mailboxes.of(first.pcpu).post_load(partition, first.slot);
    }
}

/// Everything that a pCPU does for itself: its vCPUs and its policy.
impl<A: Arch, P: PcpuPolicy> Pcpu<'_, '_, A, P> {
    #[inline(never)]
    fn adopt_or_end(&mut self) {
        if let Err(error) = self.adopt() {
            give_up(&mut self.machine, self.shared, &error);
        }
    }

    fn adopt(&mut self) -> Result<(), BootError> {
        let (system, id) = (self.system, self.id);
        if id.0 == 0 {
            self.local.end_at(system.time_limit);
            self.local.limit_intake(system.intake);
        }
        let unexpected = BootError::Unexpected(id);
        let record = system.image.pcpus().get(usize::from(id.0)).ok_or(unexpected)?;
        let alone = system.vcpus_on(id).count() == 1;
        for vcpu in system.vcpus_on(id) {
            let binding = system.binding(vcpu);
            let facts = system.facts_of(binding.partition);
            let plan = VcpuPlan {
                partition: binding.partition,
                kind: facts.kind,
                index: binding.index,
                first: facts.first,
                count: facts.count,
                time: facts.time,
                aarch32: facts.aarch32,
                idle_in_place: alone,
                semihosting: facts.semihosting,
            };
            self.machine.adopt(vcpu, &plan);
            if let Some(counters) = self.shared.recorder.vcpu(vcpu) {
                self.local.add(vcpu, counters);
            }
        }
        crate::policy::install(self.local.policy_mut(), system, id, record)
            .map_err(|error| BootError::Policy(id, error))
    }
}

fn say<A: Arch>(machine: &mut A, shared: &Shared<'_, A::Relax>, line: &Line) {
    let now = since_boot(machine, shared);
    shared.recorder.line(machine, line, now);
    shared.terminal.output.log_now(machine, line, now);
}

/// The last line of this life.
fn last_words<A: Arch>(machine: &mut A, shared: &Shared<'_, A::Relax>, line: &Line) {
    let now = since_boot(machine, shared);
    shared.recorder.line(machine, line, now);
    shared.terminal.output.last_words(machine, line, now);
}

/// Nanoseconds since boot, also when boot has not come far.
fn since_boot<A: Arch>(machine: &A, shared: &Shared<'_, A::Relax>) -> u64 {
    shared
        .time
        .get()
        .map_or(0, |time| time.nanoseconds(machine.now()))
}

/// Ends everything because the hypervisor cannot vouch for it any longer: the reason on the console, all
/// pCPUs stopped, partitions left where they are.
pub fn lockdown<A: Arch>(machine: &mut A, shared: &Shared<'_, A::Relax>, reason: &Line) -> ! {
    if shared.claim_end() {
        halt_others(machine, shared);
        let mut line = Line::of("LOCKDOWN: ");
        line.join(reason);
        shared.recorder.lockdown(machine, &line);
        last_words(machine, shared, &line);
    }
    machine.stop()
}

/// For a panic handler, which has no machine to signal with: every pCPU stops at its next decision, and nobody else
/// announces an end any more. Only atomics, so it does not matter what the panicking pCPU held.
pub fn abandon<R: RelaxStrategy>(shared: &Shared<'_, R>) {
    let _first = shared.claim_end();
    for pcpu in (0..MAX_PCPUS as u8).map(PcpuId) {
        shared.mailboxes.of(pcpu).post_halt();
    }
}

/// Ends everything because there is nothing left to do, and switches the board off.
pub(crate) fn end_system<A: Arch>(machine: &mut A, shared: &Shared<'_, A::Relax>, reason: &str) -> ! {
    if shared.claim_end() {
        halt_others(machine, shared);
        last_words(machine, shared, &Line::of(reason));
        machine.power_off();
    }
    machine.stop()
}

/// Whether no partition runs or will run.
pub(crate) fn all_stopped<R: RelaxStrategy>(shared: &Shared<'_, R>, system: &System<'_>) -> bool {
    let stopped = |partition| {
        matches!(
            shared.partition(partition).state(),
            PartitionState::Stopped | PartitionState::Failed
        )
    };
    system.partitions().all(stopped)
}

/// When no partition runs or will run, nobody is left who could start one. Of several pCPUs that stop
/// the last partitions at the same time, at least one sees all of them stopped.
pub(crate) fn end_if_all_stopped<A: Arch>(
    machine: &mut A,
    shared: &Shared<'_, A::Relax>,
    system: &System<'_>,
) {
    if all_stopped(shared, system) {
        end_system(machine, shared, "all partitions stopped");
    }
}

fn halt_others<A: Arch>(machine: &mut A, shared: &Shared<'_, A::Relax>) {
    let Some(system) = shared.system.get() else { return };
    let own = machine.current();
    for pcpu in system.pcpus().filter(|pcpu| *pcpu != own) {
        shared.mailboxes.of(pcpu).post_halt();
        machine.signal(pcpu);
    }
}
