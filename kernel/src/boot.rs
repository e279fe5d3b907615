// SPDX-License-Identifier: Apache-2.0
//! The way from power-on to the loops of the pCPUs, and from there to the end.
//!
//! The class binary calls [`primary`] on the boot pCPU, and [`secondary`] on each pCPU that the firmware
//! starts afterwards. Neither returns. The steps are listed in `prepare`, in order, in one place. Nothing is
//! registered, and nothing runs because it was linked.
//!
//! Until the image is checked nothing but the console is used, and until everything is in place no partition
//! runs. Any error ends in [`lockdown`]: the reason on the console, all pCPUs stopped.

use crate::cap::Capability;
use crate::dispatch::{Pcpu, Seat};
use crate::log::{Entries, LogLine, numbered};
use crate::mailbox::bit;
use crate::network::OUTSIDE;
use crate::partition::{Launch, Request};
use crate::parts::{EARLY_HANDLERS, If, MASK_WORDS, NETWORKS, SECRETS};
use crate::port::PortId;
use crate::secret::{NoDeviceSecret, hand_out};
use crate::shared::Shared;
use crate::system::{System, windows};
use crate::terminal::Reader;
use crate::time::Timebase;
use bulkhead_abi::hypercall::SELF_CAPABILITY;
use bulkhead_abi::log::ending::{Ending, LOCKDOWN};
use bulkhead_abi::log::entry::{IS_NOT_STARTED, IS_TASK};
use bulkhead_abi::log::text::PLACED_VCPUS;
use bulkhead_abi::log::{Entry, Kind};
use bulkhead_abi::{Error, ObjectKind, PartitionState, Rights};
use bulkhead_arch_api::class::DeviceRole;
use bulkhead_arch_api::{
    Arch, BuildError, Drivers, GuestPhys, HostPhys, Line as IrqLine, LineRoute, MAX_PARTITIONS, MAX_PCPUS,
    MAX_VCPUS, MAX_VCPUS_PER_PARTITION, MemoryKind, PartitionId, PartitionKind, PcpuId, Permissions,
    REGISTER_WINDOW, Region, SpacePlan, StartError, VcpuId, VcpuPlan, VirtualLine,
};
use bulkhead_devices::uart::Uart;
use bulkhead_image::layout::{
    FLAG_AUTOSTART, INTERRUPT_EARLY, MEMORY_DEVICE, MEMORY_EXECUTE, MEMORY_READ, MEMORY_WRITE, SIDE_DEVICE,
    TRIGGER_EDGE,
};
use bulkhead_image::{Image, ImageError, Phrase, Sha256};
use bulkhead_sched::{MAX_SLOTS, PcpuPolicy, PolicyError};
use spin::RelaxStrategy;

/// Mappings that a partition can have.
const MAX_REGIONS: usize = bulkhead_image::MAX_REGIONS_PER_PARTITION;

const _: () = assert!(
    bulkhead_image::MAX_PARTITIONS == MAX_PARTITIONS
        && bulkhead_image::MAX_VCPUS == MAX_VCPUS
        && bulkhead_image::MAX_VCPUS_PER_PARTITION == MAX_VCPUS_PER_PARTITION
        && bulkhead_image::MAX_VCPUS_PER_PCPU == MAX_SLOTS
        && bulkhead_image::MAX_PCPUS == MAX_PCPUS,
    "the image check lets through what the tables here can hold"
);

/// The parts that the class binary adds to the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Hooks<'h, S> {
    /// The function for SHA-256. It uses the CPU's own instructions where the CPU has them.
    pub digest: S,
    /// The version of the hypervisor, for the banner.
    pub version: &'h str,
}

/// The reason why the system did not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootError {
    /// The image is damaged, or not for this hypervisor.
    Image(ImageError),
    /// A policy refused its vCPUs.
    Policy(PcpuId, PolicyError),
    /// The space of a partition could not be built.
    Space(PartitionId, BuildError),
    /// A capability could not be put into its slot.
    Capability(PartitionId, bulkhead_abi::Error),
    /// The firmware did not start a pCPU.
    Start(PcpuId, StartError),
    /// A pCPU came up before the system was prepared, or twice.
    Unexpected(PcpuId),
    /// A partition has a secret, and the boot stage before has left no device secret.
    NoDeviceSecret(If<SECRETS, NoDeviceSecret>),
}

impl BootError {
    /// Returns the reason as a line of the log.
    fn describe(&self) -> LogLine {
        let mut line = LogLine::new();
        let (what, number, why, address) = match *self {
            Self::Image(error) => {
                error.describe(&mut |part| {
                    match part {
                        Phrase::Byte(byte) => line.bytes(&[byte]),
                        Phrase::Text(text) => line.text(text),
                        Phrase::Number(number) => line.decimal(number),
                    };
                });
                return line;
            }
            Self::Policy(PcpuId(pcpu), error) => {
                let why = match error {
                    PolicyError::TooManyVcpus => ": too many vCPUs",
                    PolicyError::BadParameter => ": parameter out of range",
                    PolicyError::NotSupported | PolicyError::DonationCycle => ": not supported",
                };
                ("policy of pCPU ", pcpu, why, None)
            }
            Self::Space(PartitionId(partition), error) => {
                let (why, address) = match error {
                    BuildError::TablesExhausted => (": no memory left for translation tables", None),
                    BuildError::BadRegion(address) => (": bad region at ", Some(address.0)),
                    BuildError::Overlap(address) => (": overlap at ", Some(address.0)),
                };
                ("space of partition ", partition, why, address)
            }
            Self::Capability(PartitionId(partition), _) => {
                ("capabilities of partition ", partition, ": slot taken", None)
            }
            Self::Start(PcpuId(pcpu), _) => ("pCPU ", pcpu, " did not start, firmware says ", None),
            Self::Unexpected(PcpuId(pcpu)) => ("pCPU ", pcpu, " came up unexpectedly", None),
            Self::NoDeviceSecret(_) => return LogLine::of("no device secret was handed over"),
        };
        line.text(what).decimal(number.into()).text(why);
        if let Some(address) = address {
            line.hex(address);
        }
        if let Self::Start(_, StartError { code }) = *self {
            line.text(if code < 0 { "-" } else { "" })
                .decimal(code.unsigned_abs());
        }
        line
    }
}

/// Starts the kernel on the boot pCPU, with the system image as far as its tables have been checked.
pub fn primary<P: PcpuPolicy, A: Arch, D: Drivers, S: Sha256>(
    mut machine: A,
    mut drivers: D,
    shared: &'static Shared<'static, A::Relax>,
    image: Result<Image<'static>, ImageError>,
    hooks: &Hooks<'_, S>,
) -> ! {
    // The arguments are not a pair: the machine would be copied into the pair, and the stack is small.
    prepare_or_end(&mut machine, &mut drivers, shared, image, hooks);
    let seat = seat_or_end(&mut machine, &mut drivers, shared);
    run::<P, A, D>(machine, drivers, shared, seat)
}

/// Starts the kernel on any other pCPU.
pub fn secondary<P: PcpuPolicy, A: Arch, D: Drivers>(
    mut machine: A,
    mut drivers: D,
    shared: &'static Shared<'static, A::Relax>,
) -> ! {
    let seat = seat_or_end(&mut machine, &mut drivers, shared);
    run::<P, A, D>(machine, drivers, shared, seat)
}

/// Runs the loop. The function is not inlined, so its stack is not needed while the boot pCPU prepares. Only
/// here the machine is moved, so it is copied once, to the place where it stays.
#[inline(never)]
fn run<P: PcpuPolicy, A: Arch, D: Drivers>(
    machine: A,
    drivers: D,
    shared: &'static Shared<'static, A::Relax>,
    seat: Seat<'static, 'static>,
) -> ! {
    let mut pcpu = Pcpu::<A, D, P>::new(machine, drivers, shared, seat);
    pcpu.adopt_or_end();
    pcpu.run_forever()
}

/// Gives up the start of the system. The function is not inlined, so the line is on the stack only then.
#[cold]
#[inline(never)]
fn give_up<A: Arch, D: Drivers>(
    machine: &mut A,
    drivers: &mut D,
    shared: &Shared<'_, A::Relax>,
    error: &BootError,
) -> ! {
    lockdown(machine, drivers, shared, &error.describe())
}

fn prepare_or_end<'i, A: Arch, D: Drivers, S: Sha256>(
    machine: &mut A,
    drivers: &mut D,
    shared: &Shared<'i, A::Relax>,
    image: Result<Image<'i>, ImageError>,
    hooks: &Hooks<'_, S>,
) {
    if let Err(error) = prepare(machine, drivers, shared, image, hooks) {
        give_up(machine, drivers, shared, &error);
    }
}

/// Does the work of [`primary`] before its loop. Does not return if the system cannot start.
pub fn boot<'s, 'i, P: PcpuPolicy, A: Arch, D: Drivers, S: Sha256>(
    mut machine: A,
    mut drivers: D,
    shared: &'s Shared<'i, A::Relax>,
    image: Result<Image<'i>, ImageError>,
    hooks: &Hooks<'_, S>,
) -> Pcpu<'s, 'i, A, D, P> {
    prepare_or_end(&mut machine, &mut drivers, shared, image, hooks);
    join(machine, drivers, shared)
}

/// Does the work of [`secondary`] before its loop. Does not return if the pCPU cannot take part.
pub fn join<'s, 'i, P: PcpuPolicy, A: Arch, D: Drivers>(
    mut machine: A,
    mut drivers: D,
    shared: &'s Shared<'i, A::Relax>,
) -> Pcpu<'s, 'i, A, D, P> {
    let seat = seat_or_end(&mut machine, &mut drivers, shared);
    let mut pcpu = Pcpu::new(machine, drivers, shared, seat);
    pcpu.adopt_or_end();
    pcpu
}

/// Returns the seat of this pCPU. Does not return if no such pCPU is expected.
fn seat_or_end<'s, 'i, A: Arch, D: Drivers>(
    machine: &mut A,
    drivers: &mut D,
    shared: &'s Shared<'i, A::Relax>,
) -> Seat<'s, 'i> {
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
        None => give_up(machine, drivers, shared, &BootError::Unexpected(id)),
    }
}

/// Prepares everything that is done once, by the boot pCPU, in order.
#[inline(never)]
fn prepare<'i, A: Arch, D: Drivers, S: Sha256>(
    machine: &mut A,
    drivers: &mut D,
    shared: &Shared<'i, A::Relax>,
    image: Result<Image<'i>, ImageError>,
    hooks: &Hooks<'_, S>,
) -> Result<(), BootError> {
    let time = *shared
        .time
        .call_once(|| Timebase::new(machine.now(), machine.hertz()));
    let device = hand_out::take_over(machine);
    open_log(machine, drivers, shared, hooks.version);
    let system = understand(shared, image, hooks, time)?;
    shared.recorder.describe(system);
    describe_system(machine, drivers, shared, system);
    for partition in system.partitions() {
        build_space(machine, system, partition)?;
        let console = system.console_of(partition);
        if let Some(DeviceRole::Console(uart)) = console.and_then(|device| system.role_of(device)) {
            *shared.partition(partition).reader.lock() = Reader::Uart(Uart::new(uart));
        }
        shared
            .terminal
            .add(partition, system.name(partition), console.is_some());
    }
    clear_channels(machine, system)?;
    for record in system.image.interrupts() {
        let owner = PartitionId(record.partition.get() as u8);
        if system.facts_of(owner).kind == PartitionKind::Task {
            // The line is the hypervisor's own, and an event for the task.
            continue;
        }
        let line = IrqLine(record.line.get());
        machine.route(
            line,
            owner,
            LineRoute {
                virtual_line: VirtualLine(record.virtual_line.get()),
                edge: record.trigger.get() == TRIGGER_EDGE,
                critical: system.is_critical(line),
                latency: system.time.duration(record.latency.get().into()),
                early: EARLY_HANDLERS && record.flags.get() & INTERRUPT_EARLY != 0,
            },
        );
    }
    if D::HAS_NETWORK && NETWORKS {
        connect(machine, drivers, shared, system);
    }
    endow_capabilities(shared, system)?;
    hand_out::hand_out(shared, system, device, &hooks.digest).map_err(BootError::NoDeviceSecret)?;
    autostart(shared, system);
    end_if_all_stopped(machine, drivers, shared, system);
    if let Some(line) = drivers.receive_line() {
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

/// Checks the payloads, and derives the lasting facts from the image. The function is not inlined, so its
/// stack is free again afterwards.
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

/// Opens the log, and writes the banner and the remains of an earlier life to the console, once. The function
/// is not inlined, so that the stack of its lines is free again afterwards.
#[inline(never)]
fn open_log<A: Arch, D: Drivers>(
    machine: &mut A,
    drivers: &mut D,
    shared: &Shared<'_, A::Relax>,
    version: &str,
) {
    let found = shared.recorder.open(machine);
    let mut class = LogLine::of(version);
    class.text(" class ").text(A::CAPS.name);
    let mut banner = Entry::text(0, class.as_bytes());
    banner.kind = Kind::Begin;
    say(machine, drivers, shared, banner, &[]);
    if found.boot > 1 {
        say(machine, drivers, shared, numbered(Kind::Boot, found.boot), &[]);
    }
    if let Some((boot, message)) = found.crash {
        let entry = numbered(Kind::Crashed, boot);
        say(machine, drivers, shared, entry, message.as_bytes());
    }
}

/// Writes the banner: the system that is about to run.
#[inline(never)]
fn describe_system<A: Arch, D: Drivers>(
    machine: &mut A,
    drivers: &mut D,
    shared: &Shared<'_, A::Relax>,
    system: &System<'_>,
) {
    let mut board = Entry::new(Kind::Board, 0);
    board.put_bytes(system.image.board_name().as_bytes());
    let [.., pcpus, _] = &mut board.facts;
    *pcpus = system.image.pcpus().len() as u64;
    say(machine, drivers, shared, board, &[]);
    for (record, partition) in system.image.partitions().iter().zip(system.partitions()) {
        let mut entry = describe_partition(system, partition);
        if record.flags.get() & FLAG_AUTOSTART == 0 {
            entry.flags |= IS_NOT_STARTED;
        }
        say(machine, drivers, shared, entry, &[]);
    }
}

/// Returns the entry that says which partition has a number, and where its vCPUs are.
fn describe_partition(system: &System<'_>, partition: PartitionId) -> Entry {
    let facts = system.facts_of(partition);
    let mut entry = Entry::new(Kind::Partition, 0);
    entry.partition = partition.0;
    entry.detail = facts.count;
    if facts.kind == PartitionKind::Task {
        entry.flags = IS_TASK;
    }
    entry.put_bytes(system.name(partition).as_bytes());
    let places = (0..facts.count.min(PLACED_VCPUS)).map(|index| system.binding_of(partition, index).pcpu);
    let [.., pcpus, _] = &mut entry.facts;
    for (pcpu, index) in places.zip(0_u32..) {
        *pcpus |= u64::from(pcpu.0 & 15).wrapping_shl(index.saturating_mul(4));
    }
    entry
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
    let lines = system.image.partitions().get(usize::from(partition.0));
    let plan = SpacePlan {
        regions: regions.get(..used).unwrap_or(&[]),
        lines: lines.map_or(0, |record| record.virtual_lines.get()),
    };
    let class = system.image.facts();
    let devices = system
        .image
        .virtual_devices_of(number)
        .flat_map(|record| windows(class, record));
    machine
        .build(partition, &plan, devices)
        .map_err(|error| BootError::Space(partition, error))
}

/// Clears the memory of the channels, once: no start of a side does so later. The registers of a device that
/// is lent are no memory, and stay as they are. The longest chunk is what
/// [`Spaces::clear`](bulkhead_arch_api::Spaces::clear) does at once. Nothing runs yet that could wait.
fn clear_channels<A: Arch>(machine: &mut A, system: &System<'_>) -> Result<(), BootError> {
    for (channel, number) in system.image.channels().iter().zip(0_u32..) {
        let Some(side) = system.image.sides_of(number).first() else {
            continue;
        };
        if side.flags.get() & SIDE_DEVICE != 0 {
            continue;
        }
        let (mut guest, mut left) = (side.guest.get(), channel.size.get());
        let partition = PartitionId(side.partition.get() as u8);
        while left != 0 {
            let refused = |_| BootError::Space(partition, BuildError::BadRegion(GuestPhys(guest)));
            let done = machine
                .clear(partition, GuestPhys(guest), left)
                .map_err(refused)?;
            // At least one byte is cleared each time.
            let done = done.clamp(1, left);
            guest = guest.saturating_add(done);
            left = left.saturating_sub(done);
        }
    }
    Ok(())
}

fn endow_capabilities<R: RelaxStrategy>(
    shared: &Shared<'_, R>,
    system: &System<'_>,
) -> Result<(), BootError> {
    for partition in system.partitions() {
        let own = Capability {
            kind: ObjectKind::Partition,
            object: partition.0,
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
            object: record.object.get() as u8,
            rights: Rights(record.rights.get() as u8),
        };
        shared
            .capabilities
            .endow(holder, record.index.get(), capability)
            .map_err(refused)?;
    }
    for (_, number) in system.image.ports().iter().zip(0_u8..) {
        let facts = system.port(PortId(number));
        let mut queue = shared.ports.of(PortId(number)).lock();
        queue.server = facts.receiver.filter(|_| facts.has_one_receiver);
    }
    for record in system.image.capabilities() {
        if record.kind.get() == ObjectKind::Port as u32 {
            let sender = PartitionId(record.partition.get() as u8);
            let port = PortId(record.object.get() as u8);
            shared.ports.of(port).lock().keep_for(sender, record.room() as u8);
        }
    }
    Ok(())
}

/// Connects the networks: the interfaces of partitions, and the board's own.
fn connect<A: Arch, D: Drivers>(
    machine: &mut A,
    drivers: &mut D,
    shared: &Shared<'_, A::Relax>,
    system: &System<'_>,
) {
    let mut partitions = 0;
    for nic in system.nics() {
        let facts = system.nic(nic);
        shared.nics.of(nic).lock().reset(facts);
        if facts.network == OUTSIDE {
            partitions |= bit(facts.partition.0);
        }
    }
    drivers.open_network();
    if let Some(line) = drivers.network_line() {
        machine.share(line, partitions);
    }
}

/// Asks for the start of the partitions that start by themselves. Their home pCPUs find the message when they
/// enter their loops.
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
        // No pCPU is signalled: none is in its loop yet.
        let _wanted = shared.mailboxes.of(first.pcpu).post_load(partition, first.slot);
    }
}

/// The work that a pCPU does for itself: taking its vCPUs and making its policy.
impl<A: Arch, D: Drivers, P: PcpuPolicy> Pcpu<'_, '_, A, D, P> {
    #[inline(never)]
    fn adopt_or_end(&mut self) {
        if let Err(error) = self.adopt() {
            give_up(&mut self.machine, &mut self.drivers, self.shared, &error);
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
        self.adopt_vcpus();
        crate::policy::install(self.local.policy_mut(), system, id, record)
            .map_err(|error| BootError::Policy(id, error))
    }

    /// Takes the vCPUs of this pCPU. The function is not inlined, so its stack is not needed while the policy
    /// is made.
    #[inline(never)]
    fn adopt_vcpus(&mut self) {
        let (system, id) = (self.system, self.id);
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
                entry_state: facts.entry_state,
                idle_in_place: alone,
                semihosting: facts.semihosting,
                masks: if MASK_WORDS { system.masks_of(vcpu) } else { 0 },
                direct: facts.direct,
            };
            self.machine.adopt(vcpu, &plan);
            self.shorten(vcpu, binding.partition);
            if let Some(counters) = self.shared.recorder.vcpu(vcpu) {
                self.local.add(vcpu, counters);
            }
        }
    }

    /// Tells the backend about the console of a partition, if it has a page of registers to itself.
    fn shorten(&mut self, vcpu: VcpuId, partition: PartitionId) {
        let Some(console) = self.system.console_of(partition) else {
            return;
        };
        let (base, size) = console.registers();
        if size == REGISTER_WINDOW && base % REGISTER_WINDOW == 0 {
            self.machine.shorten(vcpu, GuestPhys(base));
        }
    }
}

/// Writes a line of the boot: an entry, and a text after it.
#[inline(never)]
fn say<A: Arch, D: Drivers>(
    machine: &mut A,
    drivers: &mut D,
    shared: &Shared<'_, A::Relax>,
    mut entry: Entry,
    text: &[u8],
) {
    let now = since_boot(machine, shared);
    entry.time = now;
    shared.recorder.line(machine, Entries::of(entry, text));
    shared.terminal.output.pump_all(&shared.recorder, drivers, now);
}

/// Writes the last line of this life.
#[inline(never)]
fn last_words<A: Arch, D: Drivers>(
    machine: &mut A,
    drivers: &mut D,
    shared: &Shared<'_, A::Relax>,
    line: &mut Entries<'_>,
) {
    let now = since_boot(machine, shared);
    let mut left = shared.terminal.output.drain(&shared.recorder, drivers, now);
    line.entry.time = now;
    // A line has at most `LINE_ENTRIES` entries.
    loop {
        shared.recorder.entry(machine, &line.entry);
        left.show(&shared.recorder, drivers, &line.entry);
        if !line.advance() {
            break;
        }
    }
    shared.recorder.skip();
}

/// Returns the nanoseconds since boot, also when boot has not come far.
fn since_boot<A: Arch>(machine: &A, shared: &Shared<'_, A::Relax>) -> u64 {
    shared
        .time
        .get()
        .map_or(0, |time| time.nanoseconds(machine.now()))
}

/// Ends everything because the hypervisor cannot vouch for the system any longer: the reason on the console,
/// all pCPUs stopped, partitions left where they are.
pub fn lockdown<A: Arch, D: Drivers>(
    machine: &mut A,
    drivers: &mut D,
    shared: &Shared<'_, A::Relax>,
    reason: &LogLine,
) -> ! {
    if shared.claim_end() {
        halt_others(machine, shared);
        let mut line = LogLine::of(LOCKDOWN);
        line.bytes(reason.as_bytes());
        shared.recorder.lockdown(machine, &line);
        last_words(machine, drivers, shared, &mut Entries::of_text(line.as_bytes()));
    }
    machine.stop()
}

/// Stops every pCPU at its next decision, and keeps all others from announcing an end. This function is for a
/// panic handler, which has no machine to signal with. It uses only atomics, so the locks of the panicking
/// pCPU do not matter.
pub fn abandon<R: RelaxStrategy>(shared: &Shared<'_, R>) {
    let _first = shared.claim_end();
    for pcpu in (0..MAX_PCPUS as u8).map(PcpuId) {
        shared.mailboxes.of(pcpu).post_halt();
    }
}

/// Ends everything because there is nothing left to do, and switches the board off.
pub(crate) fn end_system<A: Arch, D: Drivers>(
    machine: &mut A,
    drivers: &mut D,
    shared: &Shared<'_, A::Relax>,
    reason: Ending,
) -> ! {
    if shared.claim_end() {
        halt_others(machine, shared);
        let mut entry = Entry::new(Kind::Ended, 0);
        entry.detail = reason as u8;
        last_words(machine, drivers, shared, &mut Entries::of(entry, &[]));
        machine.power_off();
    }
    machine.stop()
}

/// Tells whether no partition runs or will run.
pub(crate) fn all_stopped<R: RelaxStrategy>(shared: &Shared<'_, R>, system: &System<'_>) -> bool {
    let stopped = |partition| {
        matches!(
            shared.partition(partition).state(),
            PartitionState::Stopped | PartitionState::Failed
        )
    };
    system.partitions().all(stopped)
}

/// Ends the system if no partition runs or will run: then no partition is left that could start one. Several
/// pCPUs may stop the last partitions at the same time. At least one of these pCPUs sees all partitions
/// stopped.
pub(crate) fn end_if_all_stopped<A: Arch, D: Drivers>(
    machine: &mut A,
    drivers: &mut D,
    shared: &Shared<'_, A::Relax>,
    system: &System<'_>,
) {
    if all_stopped(shared, system) {
        end_system(machine, drivers, shared, Ending::AllStopped);
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
