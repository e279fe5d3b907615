// SPDX-License-Identifier: Apache-2.0
//! The tables of a partition.

use bulkhead_abi::{HealthClass, Rights};
use bulkhead_image::layout::HealthAction;

use super::served::Served;
use super::{ArincSpec, DemandSpec, Given, Map, Placed, VcpuSpec, WorkSpec};
use crate::diagnostic::Place;
use crate::schema::declare::{choices, tables, words};
use crate::schema::form::{Declared, Form, Whole, Words, word};
use crate::units::{Address, Duration, Size};
use crate::value;

/// The base of a task's memory.
pub(crate) const TASK_BASE: u64 = 0x4000_0000;

tables! {
    /// The unit of isolation. Its name has up to 31 letters, digits, `-`, `_`, a letter first, and is not
    /// `bulkhead`.
    pub(crate) PartitionSpec [name, keys] = "a partition" {
        /// kind of the partition
        kind "kind": Kind, required;
        /// program of the partition. A VM takes a Linux Image (raw, gzip or EFI zboot with gzip), an ELF file
        /// or a raw binary, and on a microcontroller a file of Intel HEX, too. A task takes an ELF file.
        /// The value is a path relative to the manifest, or the name of a payload of the host tool (`@...`).
        /// A VM needs no image if `machine.entry` is in a region with a payload
        image "image": Option<Placed<String>>, optional;
        /// initial RAM disk for the kernel; VM only
        ramdisk "ramdisk": Option<Placed<String>>, optional;
        /// script that becomes `/init` of `@debian/initramfs`; VM only
        init "init": Option<Placed<String>>, optional;
        /// modules of the kernel (an `@debian/linux-...` image). `@debian/initramfs` loads them, with all
        /// that they need, before `init` runs; VM only
        modules "modules": Vec<Placed<String>>, optional;
        /// kernel command line; VM only
        bootargs "bootargs": Option<Placed<String>>, optional;
        /// other payloads of the partition, numbered from 1 in the order of the file, at most 8. A holder of
        /// a capability with the right `control` can start the partition with them; VM only
        alternatives "alternative": Map<AlternativeSpec>, optional;
        /// size of the RAM; a multiple of 4K
        memory "memory": Option<Placed<Size>>, required;
        /// address of the RAM on the board; without this key the tool finds a place
        at "place": Option<Placed<Address>>, optional;
        /// the virtual CPUs, at most 8; a task has one
        vcpus "vcpus": Given<Vec<VcpuSpec>>, required;
        /// work that the partition has to do, with its deadlines
        demand "demand": Option<DemandSpec>, optional;
        /// activity of the partition in `simulate`
        workload "workload": Vec<WorkSpec>, optional;
        /// true if the partition has a console. The console of a VM is a virtual PL011
        console "console": bool, default(true);
        /// virtual time of the partition; VM only
        time "time": Given<Clock>, default("real");
        /// true if the VM takes the interrupts of its pCPU itself and waits there itself, without exits. Its
        /// pCPU has policy `pinned` and is not 0; class x86_64, VM only
        direct "direct": Given<bool>, default(false);
        /// true if the partition is started at boot
        autostart "autostart": bool, default(true);
        /// longest time between two kicks, 1ms to 1000s
        watchdog "watchdog": Option<Placed<Duration>>, optional;
        /// devices of the board that the partition owns, by their names in the board file; a task as well on
        /// classes `aarch64` and `armv8m`
        devices "devices": Vec<Placed<String>>, default([]);
        /// network that the partition's virtual Ethernet controller is on. The VM finds this controller where
        /// the board has its own; VM only
        network "network": Option<Placed<String>>, optional;
        /// address of the virtual Ethernet controller, as in "02:00:00:00:00:01"; without this key the
        /// address follows from the partition's number
        mac "mac": Option<Placed<String>>, optional;
        /// true if the VM sees the 8K of memory in which its frames wait. A driver that knows Bulkhead then
        /// takes and gives frames there instead of a word at a time; others run as before
        frame_ring "frame-ring": Given<bool>, default(false);
        /// true if the task uses floating point; class `armv8m`. A hypervisor is compiled for such a system
        /// alone
        floating_point "floating-point": Given<bool>, default(false);
        /// those devices of the partition whose interrupts are handled in the first domain of the pCPU,
        /// whichever domain has its turn, if the vCPU waits by a call; policy `domains`
        critical "critical": Vec<Placed<String>>, default([]);
        /// exact time from the arrival of an interrupt of the partition's devices to its delivery, also
        /// while others run. An interrupt that could be delivered earlier waits; class armv7m, VM only
        interrupt_latency "interrupt-latency": Option<Placed<Duration>>, optional;
        /// most time for which a handler of an interrupt of the partition's devices may run before the
        /// hypervisor has done with what it interrupts, 1us to 1ms. The handler then starts at once; one
        /// partition can have that; class armv7m, VM only
        early_handlers "early-handlers": Option<Placed<Duration>>, optional;
        /// true to accept devices that do DMA although no IOMMU confines them. The partition can then
        /// overwrite everything
        trusted_dma "trusted-dma": bool, default(false);
        /// overlay for the generated device tree (`.dtbo`, or `.dtso` compiled with `dtc`); VM only
        overlay "device-tree-overlay": Option<Placed<String>>, optional;
        /// number of restarts by a health action before the partition stays failed; without this key there is
        /// no limit
        restart_limit "restart-limit": Option<Whole<0, 1_000_000>>, optional;
        /// actions of the hypervisor when the partition misbehaves
        health "health": HealthSpec, optional;
        /// departures from the default virtual machine; VM only
        machine "machine": MachineSpec, optional;
        /// memory of the partition besides its RAM; VM only
        regions "region": Vec<RegionSpec>, optional;
        /// virtual parallel flash of the partition, for firmware and its variables; class aarch64, VM only
        flash "flash": Option<FlashSpec>, optional;
        /// rights of the partition to other objects. Index 0 is always the partition itself; the others
        /// follow in the order of the file
        capabilities "capabilities": Map<CapabilitySpec>, optional;
        /// events of others that the partition is told about
        watch "watch": WatchSpec, optional;
        /// facts of an ARINC 653 partition; task only
        arinc653 "arinc653": Option<ArincSpec>, optional;
    }

    /// Other payloads of a VM. An absent key is as for the VM; memory, vCPUs, devices and all else stay the
    /// same.
    pub(crate) AlternativeSpec [name] = "an alternative" {
        /// program of the VM
        image "image": Option<Placed<String>>, optional;
        /// initial RAM disk
        ramdisk "ramdisk": Option<Placed<String>>, optional;
        /// script that becomes `/init` of `@debian/initramfs`
        init "init": Option<Placed<String>>, optional;
        /// modules that `@debian/initramfs` loads before `init` runs
        modules "modules": Vec<Placed<String>>, optional;
        /// kernel command line
        bootargs "bootargs": Option<Placed<String>>, optional;
    }

    /// Health action per class of health event.
    pub(crate) HealthSpec = "a health table" {
        /// an access to memory or a device that is not the partition's own
        memory "memory": Option<Placed<HealthAction>>, default("stop");
        /// a use of a system register or instruction that the partition may not use
        system "system": Option<Placed<HealthAction>>, otherwise("\"inject\", for a task \"stop\"");
        /// a hypercall with a bad number, capability or argument
        hypercall "hypercall": Option<Placed<HealthAction>>, default("log");
        /// a watchdog period without a kick
        watchdog "watchdog": Option<Placed<HealthAction>>, default("restart");
        /// an instruction of a task from which the task cannot go on; task only
        task "task": Option<Placed<HealthAction>>, default("stop");
    }

    /// A VM's machine. By default software for QEMU's `virt` board with GICv3 runs unmodified: same memory
    /// map.
    pub(crate) MachineSpec
    with {
        /// The lines of the interrupt controller where the board leaves no choice.
        board_lines: Option<u32>,
        /// The sides of channels that are PCI functions.
        functions: usize,
        /// The devices that other partitions serve to the VM.
        served: Vec<Served>,
    } = "a machine" {
        /// address at which the partition sees its RAM
        ram_base "ram-base": Given<Address>, default(0x40000000);
        /// the virtual interrupt controller
        gic "gic": Given<GicSpec>, optional;
        /// the virtual PL011 of the VM's console
        uart "uart": Given<UartSpec>, optional;
        /// the interrupt of the VM's event gate
        event_gate "event-gate": Given<GateSpec>, optional;
        /// load address of a raw binary; raw binaries only. Classes armv7m and armv8m: the address for
        /// which a raw binary is linked, without a default, or the address to which a position-independent
        /// ELF file is moved
        load_at "load-at": Option<Placed<Address>>, otherwise("RAM base + 0x80000");
        /// address of the first instruction; raw binaries and VMs without image only. Classes armv7m and
        /// armv8m: the address of the program's vector table
        entry "entry": Option<Placed<Address>>, otherwise("the image's own");
        /// true if the program's calls of a debugger (`BKPT 0xAB`) are answered with its console, its name
        /// and its end. If false, such a call is a HardFault of the program; class armv7m only
        semihosting "semihosting": Given<bool>, default(true);
        /// address of 32 bytes of the VM's memory that its program does not use, a multiple of 32. The
        /// program then reads and writes BASEPRI, PRIMASK and PSP without a trap; class armv7m only
        mask_words "mask-words": Option<Placed<Address>>, optional;
    }

    /// The virtual interrupt controller.
    pub(crate) GicSpec = "an interrupt controller" {
        /// GIC architecture version; only the version of the board's own interrupt controller is possible
        version "version": Option<Placed<Whole<2, 3>>>, otherwise("the board's");
        /// address of the distributor, 64K (version 2: 4K)
        distributor "distributor": Given<Address>, default(0x08000000);
        /// address of the redistributors, 128K per vCPU; version 3
        redistributor "redistributor": Given<Address>, default(0x080a0000);
        /// address of the CPU interface, 8K; version 2
        cpu_interface "cpu-interface": Given<Address>, default(0x08010000);
        /// number of interrupt lines, private ones included; a multiple of 32
        lines "lines": Given<Whole<64, 992>>, default(288);
    }

    /// The virtual PL011.
    pub(crate) UartSpec = "a UART" {
        /// address of the registers, 4K
        base "base": Given<Address>, default(0x09000000);
        /// interrupt line (INTID). Classes armv7m and armv8m: the NVIC's external interrupt for receive,
        /// before the one for transmit. The default is the board's own line, and on class armv8m the
        /// lowest from 16 on that no device of the board has
        line "line": Given<Whole<0, 991>>, default(33);
    }

    /// A level-triggered interrupt of a VM that can wait at its own gate. It is high while the gate has
    /// events.
    pub(crate) GateSpec = "the interrupt of an event gate" {
        /// interrupt line (INTID)
        line "line": Given<Whole<0, 991>>, default(47);
    }

    /// Memory of a VM besides its RAM. A region `rwx` without payload is memory in the guest's device tree.
    pub(crate) RegionSpec [start] = "a memory region" {
        /// address at which the partition sees the region
        guest "guest": Option<Placed<Address>>, required;
        /// bytes; a multiple of 4K
        size "size": Option<Placed<Size>>, required;
        /// file that is copied to the start of the region when the partition starts, for example a firmware
        /// image
        payload "payload": Option<Placed<String>>, optional;
        /// accesses that the partition may make
        access "access": Access, default("rwx");
        /// address of the region on the board; without this key the tool finds a place
        at "place": Option<Placed<Address>>, optional;
    }

    /// Two banks of NOR flash with the Intel command set, as QEMU's `virt` has. A restart keeps the contents.
    pub(crate) FlashSpec [place] = "a flash" {
        /// contents of the first bank, for example a firmware image; the rest is erased
        code "code": Option<Placed<String>>, optional;
        /// contents of the second bank, for example a store of variables; the rest is erased
        data "data": Option<Placed<String>>, optional;
        /// file of the host in which `run` keeps the second bank. If the file exists, it is used instead of
        /// `data`; at the end of a run, `run` writes the bank into it
        keep "keep": Option<Placed<String>>, optional;
        /// address of the first bank; a multiple of 2M
        base "base": Given<Address>, default(0x00000000);
        /// address of the second bank; a multiple of 2M
        data_base "data-base": Given<Address>, default(0x04000000);
        /// bytes of each bank; a power of two from 2M to 64M
        size "size": Given<Size>, default("2M");
    }

    /// Right to the object in exactly one of the first eleven keys. The capability's name has up to 23
    /// characters.
    pub(crate) CapabilitySpec [name] by "name the partition knows it by" = "a capability" {
        /// a partition, the holder itself included
        partition "partition": Option<Placed<String>>, optional;
        /// the event gate of a partition
        event_gate "event-gate": Option<Placed<String>>, optional;
        /// `true`: the system clock, and sleeping on it
        timer "timer": bool, optional;
        /// `true`: the partition's own console
        console "console": bool, optional;
        /// the schedules of this pCPU, which has policy `arinc653`. The right `read` tells which schedule is
        /// in force; the right `control` changes the schedule
        schedule "schedule": Option<Placed<u32>>, optional;
        /// a port: `write` sends, `read` receives, `grant` sends capabilities along
        port "port": Option<Placed<String>>, optional;
        /// a lock: `write` takes and releases
        lock "lock": Option<Placed<String>>, optional;
        /// a channel at which the holder has a side: `write` rings, `read` tells where its memory is
        channel "channel": Option<Placed<String>>, optional;
        /// a channel of a device at which the holder has a side: `read` holds the registers for loads,
        /// `write` also for stores
        device "device": Option<Placed<String>>, optional;
        /// a channel of a device: `read` takes the interrupts of the device's line
        line "interrupt": Option<Placed<String>>, optional;
        /// `true`: the windows of the services that the holder serves
        service "service": bool, optional;
        /// the secret of the holder, which follows from the secret of the device. The holder can take it once
        /// in each of its lives. Needs the table `signature`
        secret "secret": Option<Placed<SecretBound>>, optional;
        /// of a port that the holder sends to: messages of the holder for which the port keeps room. Without
        /// this key the port keeps room for one of each of several senders, if it has more than that
        room "room": Option<Placed<Whole<0, 255>>>, optional;
        /// of a port that the holder receives from: the event that a message which has to wait raises at the
        /// holder's gate
        event "event": Option<Placed<Whole<0, 63>>>, optional;
        /// operations that the holder may carry out
        rights "rights": Option<Placed<Vec<Placed<Rights>>>>, otherwise("[\"read\"]; console, channel, device and service: [\"read\", \"write\"]");
    }

    /// Sources of events at the partition's own event gate, besides holders of a capability for the gate.
    pub(crate) WatchSpec = "a watch table" {
        /// partitions whose state changes raise the event bit of their number
        partitions "partitions": Vec<Placed<String>>, default([]);
        /// true if the start of each of the partition's own windows raises event 62, and the start of its
        /// periodic processing event 63; policy `arinc653`
        windows "windows": Given<bool>, default(false);
    }
}

choices! {
    /// Kind of a partition.
    pub Kind {
        /// an unmodified operating system or bare-metal program on virtual hardware
        Vm = "vm",
        /// one user-level program directly on the hypervisor
        Task = "task",
    }
}

impl Kind {
    /// Returns the word for the kind in a manifest.
    #[must_use]
    pub fn name(self) -> &'static str {
        word(self)
    }
}

choices! {
    /// The things that change the secret of a partition, besides the device and the partition's name.
    pub(crate) SecretBound {
        /// nothing more: the secret is the same under each image
        Device = "device",
        /// the programs and data that the partition is started with
        Program = "program",
        /// these, the system image and the class binary: each release has other secrets
        System = "system",
    }
}

choices! {
    /// Virtual time of a partition.
    pub(crate) Clock {
        /// goes on while the partition is not running
        Real = "real",
        /// stands still while the partition is ready but not running; one vCPU only
        Frozen = "frozen",
    }
}

words! {
    HealthAction {
        /// write the event to the log and go on
        "log" => HealthAction::Log,
        /// report the event to the partition, as its architecture would; VM only
        "inject" => HealthAction::Inject,
        /// stop the partition, which is then failed
        "stop" => HealthAction::Stop,
        /// stop the partition and start it cold: memory cleared, payloads copied anew
        "restart" => HealthAction::Restart,
        /// stop the partition and start it warm: memory stays as it is, all else is as at the first start
        "restart-warm" => HealthAction::RestartWarm,
    }
}

/// The right of a partition to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Access {
    /// Loads.
    pub read: bool,
    /// Stores.
    pub write: bool,
    /// Instruction fetches.
    pub execute: bool,
}

impl Access {
    /// Nothing.
    pub const NONE: Self = Self {
        read: false,
        write: false,
        execute: false,
    };
    /// Everything.
    pub const ALL: Self = Self {
        read: true,
        write: true,
        execute: true,
    };
    /// Loads and stores.
    pub const DATA: Self = Self {
        read: true,
        write: true,
        execute: false,
    };
    /// Loads only.
    pub const READ: Self = Self {
        read: true,
        write: false,
        execute: false,
    };
    /// Loads and instruction fetches.
    pub const CODE: Self = Self {
        read: true,
        write: false,
        execute: true,
    };

    /// Returns the access as in a manifest: `rwx`.
    #[must_use]
    pub fn name(self) -> String {
        let letters = [(self.read, 'r'), (self.write, 'w'), (self.execute, 'x')];
        letters
            .iter()
            .filter(|(allowed, _)| *allowed)
            .map(|(_, letter)| letter)
            .collect()
    }
}

words! {
    Access {
        /// read, write, execute
        "rwx" => Access::ALL,
        /// read, write
        "rw" => Access::DATA,
        /// read, execute
        "rx" => Access::CODE,
        /// read
        "r" => Access::READ,
    }
}

words! {
    Rights {
        /// look: read the status, wait, read data, receive
        "read" => Rights::READ,
        /// write, signal or send
        "write" => Rights::WRITE,
        /// start, stop, restart, kick
        "control" => Rights::CONTROL,
        /// put capabilities into the partition's space, or pass this capability on
        "grant" => Rights::GRANT,
    }
}

/// Returns the names of the rights in `rights`.
#[must_use]
pub fn right_names(rights: Rights) -> Vec<&'static str> {
    Rights::WORDS
        .iter()
        .filter(|(_, right)| rights.contains(*right))
        .map(|(name, _)| *name)
        .collect()
}

/// The object of a capability.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target<'a> {
    Partition(&'a Placed<String>),
    EventGate(&'a Placed<String>),
    Timer,
    Console,
    /// The schedules of a pCPU.
    Schedule(&'a Placed<u32>),
    Port(&'a Placed<String>),
    /// A lock.
    Lock(&'a Placed<String>),
    Channel(&'a Placed<String>),
    /// The registers of a device that is lent.
    Device(&'a Placed<String>),
    /// The line of such a device.
    Interrupt(&'a Placed<String>),
    /// The windows that the holder serves.
    Service,
    /// The secret of the holder.
    Secret,
}

impl CapabilitySpec {
    /// Returns every object that the capability names. A correct capability names exactly one.
    pub fn targets(&self) -> Vec<Target<'_>> {
        let targets = [
            self.partition.as_ref().map(Target::Partition),
            self.event_gate.as_ref().map(Target::EventGate),
            self.timer.then_some(Target::Timer),
            self.console.then_some(Target::Console),
            self.schedule.as_ref().map(Target::Schedule),
            self.port.as_ref().map(Target::Port),
            self.lock.as_ref().map(Target::Lock),
            self.channel.as_ref().map(Target::Channel),
            self.device.as_ref().map(Target::Device),
            self.line.as_ref().map(Target::Interrupt),
            self.service.then_some(Target::Service),
            self.secret.as_ref().map(|_| Target::Secret),
        ];
        targets.into_iter().flatten().collect()
    }

    /// Returns the object that the capability names.
    pub fn target(&self) -> Option<Target<'_>> {
        self.targets().into_iter().next()
    }

    /// Returns the rights that the manifest gives.
    pub fn listed(&self) -> &[Placed<Rights>] {
        self.rights.as_ref().map_or(&[], |rights| &rights.value)
    }

    /// Tells whether the manifest gives this right.
    pub fn gives(&self, right: Rights) -> bool {
        self.listed().iter().any(|given| given.value.contains(right))
    }
}

impl HealthSpec {
    /// Returns the action of each class, as far as the manifest gives one.
    pub fn given(&self) -> [(HealthClass, Option<&Placed<HealthAction>>); 5] {
        [
            (HealthClass::Memory, self.memory.as_ref()),
            (HealthClass::System, self.system.as_ref()),
            (HealthClass::Hypercall, self.hypercall.as_ref()),
            (HealthClass::Watchdog, self.watchdog.as_ref()),
            (HealthClass::Task, self.task.as_ref()),
        ]
    }

    /// Returns the actions that the manifest gives.
    pub fn actions(&self) -> impl Iterator<Item = (HealthClass, &Placed<HealthAction>)> {
        let given = |(class, action): (_, Option<_>)| Some((class, action?));
        self.given().into_iter().filter_map(given)
    }

    /// Returns the action of each class in a partition of this kind, with the defaults that are declared.
    pub fn complete(&self, kind: Kind) -> [(HealthClass, HealthAction); 5] {
        let declared = |class: HealthClass| {
            let mut keys = Self::SCHEMA.own.iter();
            let key = keys.find(|key| key.name == class.name())?;
            HealthAction::read(&value::literal(key.need.literal()?)?)
        };
        let by_kind = match kind {
            Kind::Task => HealthAction::Stop,
            Kind::Vm => HealthAction::Inject,
        };
        self.given().map(|(class, given)| {
            let given = given.map(|given| given.value);
            (class, given.or_else(|| declared(class)).unwrap_or(by_kind))
        })
    }
}

impl MachineSpec {
    /// Returns the number of lines of the interrupt controller.
    pub fn lines(&self) -> u32 {
        self.board_lines.unwrap_or(self.gic.lines.get())
    }

    /// Returns the line of the event gate. The default is at most the last line of the interrupt controller,
    /// if the board says which line that is.
    pub fn gate_line(&self) -> u32 {
        let line = &self.event_gate.line;
        match self.board_lines {
            Some(lines) if line.key.is_none() => line.get().min(lines.saturating_sub(1)),
            _ => line.get(),
        }
    }
}

impl PartitionSpec {
    /// Returns the payloads that the partition needs. A flash whose second bank is kept in a file may need no
    /// `data`.
    pub fn payloads(&self) -> impl Iterator<Item = &Placed<String>> {
        let own = [&self.image, &self.ramdisk, &self.init, &self.overlay];
        let others = self.alternatives.iter();
        let others = others.flat_map(|other| [&other.image, &other.ramdisk, &other.init]);
        let regions = self.regions.iter().map(|region| &region.payload);
        let banks = self.flash.iter().flat_map(|flash| {
            let data = Some(&flash.data).filter(|_| flash.keep.is_none());
            [Some(&flash.code), data].into_iter().flatten()
        });
        own.into_iter()
            .chain(others)
            .chain(regions)
            .chain(banks)
            .flatten()
    }

    /// Tells whether the partition can wait for the events of its own gate.
    pub fn can_wait(&self) -> bool {
        self.own_gate().is_some()
    }

    /// Tells whether the machine of the partition has an interrupt for the events of its gate.
    pub fn has_gate_interrupt(&self) -> bool {
        self.kind == Kind::Vm && self.can_wait()
    }

    /// Returns the capability by which the partition takes the events of its own gate.
    pub fn own_gate(&self) -> Option<&CapabilitySpec> {
        self.capabilities.iter().find(|capability| {
            let target = capability.target();
            let own = matches!(target, Some(Target::EventGate(name)) if name.value == self.name.value);
            own && (capability.rights.is_none() || capability.gives(Rights::READ))
        })
    }

    /// Tells whether the partition can serve others.
    pub fn serves(&self) -> bool {
        self.capabilities.iter().any(|capability| capability.service)
    }

    /// Returns the place that freezes the virtual time, if the manifest does so.
    pub fn frozen(&self) -> Option<Place> {
        self.time.place.filter(|_| self.time.value == Clock::Frozen)
    }

    /// Returns the place that asks for events at the starts of windows, if the manifest does so.
    pub fn watch_windows(&self) -> Option<Place> {
        let windows = &self.watch.windows;
        windows.place.filter(|_| windows.value)
    }

    /// Returns the partition with the payloads of an alternative.
    pub fn with(&self, alternative: &AlternativeSpec) -> Self {
        let mut spec = self.clone();
        let pairs = [
            (&mut spec.image, &alternative.image),
            (&mut spec.ramdisk, &alternative.ramdisk),
            (&mut spec.init, &alternative.init),
            (&mut spec.bootargs, &alternative.bootargs),
        ];
        for (own, other) in pairs {
            if other.is_some() {
                own.clone_from(other);
            }
        }
        if !alternative.modules.is_empty() {
            spec.modules.clone_from(&alternative.modules);
        }
        spec.alternatives.clear();
        spec
    }
}
