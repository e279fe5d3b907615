// SPDX-License-Identifier: Apache-2.0
//! The tables of a partition.

use bulkhead_abi::{HealthClass, Rights};
use bulkhead_image::layout::HealthAction;

use super::{DemandSpec, Given, Map, Placed, VcpuSpec, WorkSpec};
use crate::diagnostic::Place;
use crate::schema::declare::{choices, tables, words};
use crate::schema::form::{Declared, Form, Whole, Words, word};
use crate::units::{Address, Duration, Size};
use crate::value;

tables! {
    /// The unit of isolation. Its name has up to 31 letters, digits, `-` and `_`, starts with a letter, and
    /// is not `bulkhead`.
    pub(crate) PartitionSpec [name, keys] = "a partition" {
        /// what the partition is
        kind "kind": Kind, required;
        /// what it runs: for a VM a Linux Image (raw, gzip or EFI zboot with gzip), an ELF file or a raw
        /// binary, for a task an ELF file; a path relative to the manifest, or the name of a payload of the
        /// host tool (`@...`); a VM can do without if `machine.entry` is in a region with a payload
        image "image": Option<Placed<String>>, optional;
        /// initial RAM disk handed to the kernel; VM only
        ramdisk "ramdisk": Option<Placed<String>>, optional;
        /// script that becomes `/init` of `@debian/initramfs`; VM only
        init "init": Option<Placed<String>>, optional;
        /// modules of the kernel (an `@debian/linux-...` image) that `@debian/initramfs` loads, with all they
        /// need, before `init` runs; VM only
        modules "modules": Vec<Placed<String>>, optional;
        /// kernel command line; VM only
        bootargs "bootargs": Option<Placed<String>>, optional;
        /// other payloads that a holder of a capability with the right `control` can start it with, numbered
        /// from 1 in the order of the file, at most 8; VM only
        alternatives "alternative": Map<AlternativeSpec>, optional;
        /// RAM; a multiple of 4K
        memory "memory": Option<Placed<Size>>, required;
        /// where on the board the RAM is; without it the tool finds a place
        at "place": Option<Placed<Address>>, optional;
        /// the virtual CPUs, at most 8; a task has one
        vcpus "vcpus": Given<Vec<VcpuSpec>>, required;
        /// what it has to do, and by when
        demand "demand": Option<DemandSpec>, optional;
        /// what it does in `simulate`
        workload "workload": Vec<WorkSpec>, optional;
        /// whether it has a console: a virtual PL011 for a VM
        console "console": bool, default(true);
        /// what its virtual time does; VM only
        time "time": Given<Clock>, default("real");
        /// whether it is started at boot
        autostart "autostart": bool, default(true);
        /// longest time between two kicks, 1ms to 1000s
        watchdog "watchdog": Option<Placed<Duration>>, optional;
        /// devices of the board that become its own, by the names of the board file; VM only
        devices "devices": Vec<Placed<String>>, default([]);
        /// network that its virtual Ethernet controller is on, which it finds where the board has its own; VM
        /// only
        network "network": Option<Placed<String>>, optional;
        /// address of that controller, as in "02:00:00:00:00:01"; without it one that follows from the
        /// partition's number
        mac "mac": Option<Placed<String>>, optional;
        /// those of its devices whose interrupts are handled in the first domain of the pCPU, whoever has his
        /// turn; policy `domains`
        critical "critical": Vec<Placed<String>>, default([]);
        /// interrupts of its devices reach it exactly this long after their arrival, whatever ran: what is
        /// quicker waits; class armv7m, VM only
        interrupt_latency "interrupt-latency": Option<Placed<Duration>>, optional;
        /// accept devices that do DMA although no IOMMU confines them: the partition can then overwrite
        /// everything
        trusted_dma "trusted-dma": bool, default(false);
        /// overlay (`.dtbo`, or `.dtso` compiled with `dtc`) applied to the generated device tree; VM only
        overlay "device-tree-overlay": Option<Placed<String>>, optional;
        /// restarts by a health action before the partition stays failed; without it there is no limit
        restart_limit "restart-limit": Option<Whole<0, 1_000_000>>, optional;
        /// what happens when the partition misbehaves
        health "health": HealthSpec, optional;
        /// departures from the default virtual machine; VM only
        machine "machine": MachineSpec, optional;
        /// memory besides its RAM; VM only
        regions "region": Vec<RegionSpec>, optional;
        /// what it may do to other objects; index 0 is always the partition itself, the others follow in the
        /// order of the file
        capabilities "capabilities": Map<CapabilitySpec>, optional;
        /// what it is told about others
        watch "watch": WatchSpec, optional;
    }

    /// Payloads that a VM can run instead of its own. A key that is not given is that of the partition;
    /// memory, vCPUs, devices and all else stay the same.
    pub(crate) AlternativeSpec [name] = "an alternative" {
        /// what it runs
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
        /// an access to memory or a device that is not its own
        memory "memory": Option<Placed<HealthAction>>, default("stop");
        /// a system register or instruction it may not use
        system "system": Option<Placed<HealthAction>>, otherwise("\"inject\", for a task \"stop\"");
        /// a hypercall with a bad number, capability or argument
        hypercall "hypercall": Option<Placed<HealthAction>>, default("log");
        /// the watchdog period passed without a kick
        watchdog "watchdog": Option<Placed<HealthAction>>, default("restart");
        /// a task executed an instruction it cannot go on from; task only
        task "task": Option<Placed<HealthAction>>, default("stop");
    }

    /// A VM's machine. The default is the memory map of QEMU's `virt` board with GICv3, so that software
    /// built for that board runs unmodified.
    pub(crate) MachineSpec
    with {
        /// The lines of the interrupt controller where the board leaves no choice.
        board_lines: Option<u32>,
    } = "a machine" {
        /// where the partition sees its RAM
        ram_base "ram-base": Given<Address>, default(0x40000000);
        /// the virtual interrupt controller
        gic "gic": Given<GicSpec>, optional;
        /// the virtual PL011 of its console
        uart "uart": Given<UartSpec>, optional;
        /// the interrupt of its event gate
        event_gate "event-gate": Given<GateSpec>, optional;
        /// where a raw binary is loaded; raw binaries only
        load_at "load-at": Option<Placed<Address>>, otherwise("RAM base + 0x80000");
        /// first instruction; raw binaries and VMs without image only
        entry "entry": Option<Placed<Address>>, otherwise("the image's own");
        /// answer the program's calls of a debugger (`BKPT 0xAB`) with its console, its name and its end; if
        /// not, they are its HardFault; class armv7m only
        semihosting "semihosting": Given<bool>, default(true);
    }

    /// The virtual interrupt controller.
    pub(crate) GicSpec = "an interrupt controller" {
        /// GIC architecture version; no other than that of the board's own interrupt controller
        version "version": Option<Placed<Whole<2, 3>>>, otherwise("the board's");
        /// distributor, 64K (version 2: 4K)
        distributor "distributor": Given<Address>, default(0x08000000);
        /// redistributors, 128K per vCPU; version 3
        redistributor "redistributor": Given<Address>, default(0x080a0000);
        /// CPU interface, 8K; version 2
        cpu_interface "cpu-interface": Given<Address>, default(0x08010000);
        /// interrupt lines, private ones included; a multiple of 32
        lines "lines": Given<Whole<64, 992>>, default(288);
    }

    /// The virtual PL011.
    pub(crate) UartSpec = "a UART" {
        /// registers, 4K
        base "base": Given<Address>, default(0x09000000);
        /// interrupt line (INTID; armv7m: external interrupt of the NVIC for receive, before the one for
        /// transmit, by default the board's own)
        line "line": Given<Whole<0, 991>>, default(33);
    }

    /// A VM that can wait for the events of its own gate has a level-triggered interrupt for them, high while
    /// there are any.
    pub(crate) GateSpec = "the interrupt of an event gate" {
        /// interrupt line (INTID)
        line "line": Given<Whole<0, 991>>, default(47);
    }

    /// Memory of a VM besides its RAM, for example where a firmware image is expected. Regions with access
    /// `rwx` and without payload appear in the guest's device tree as memory.
    pub(crate) RegionSpec [start] = "a memory region" {
        /// where the partition sees it
        guest "guest": Option<Placed<Address>>, required;
        /// bytes; a multiple of 4K
        size "size": Option<Placed<Size>>, required;
        /// file copied to its start when the partition starts
        payload "payload": Option<Placed<String>>, optional;
        /// what the partition may do with it
        access "access": Access, default("rwx");
        /// where on the board it is; without it the tool finds a place
        at "place": Option<Placed<Address>>, optional;
    }

    /// The right to use one object. Exactly one of the first six keys names it. The capability's own name
    /// has up to 23 characters.
    pub(crate) CapabilitySpec [name] by "name the partition knows it by" = "a capability" {
        /// a partition, the own one included
        partition "partition": Option<Placed<String>>, optional;
        /// the event gate of a partition
        event_gate "event-gate": Option<Placed<String>>, optional;
        /// `true`: the system clock, and sleeping on it
        timer "timer": bool, optional;
        /// `true`: the partition's own console
        console "console": bool, optional;
        /// the schedules of this pCPU, which has policy `arinc653`: `read` tells which one is in force,
        /// `control` changes it
        schedule "schedule": Option<Placed<u32>>, optional;
        /// a port: `write` sends, `read` receives, `grant` sends capabilities along
        port "port": Option<Placed<String>>, optional;
        /// what the holder may do
        rights "rights": Option<Placed<Vec<Placed<Rights>>>>, otherwise("[\"read\"]; console: [\"read\", \"write\"]");
    }

    /// Sources of events at the partition's own event gate, besides those who hold a capability for it.
    pub(crate) WatchSpec = "a watch table" {
        /// partitions whose state changes raise the event bit of their number
        partitions "partitions": Vec<Placed<String>>, default([]);
        /// whether the start of each of its own windows raises event 62, and the start of its periodic
        /// processing event 63; policy `arinc653`
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
    /// Returns the word for it in a manifest.
    #[must_use]
    pub fn name(self) -> &'static str {
        word(self)
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
        /// write it to the log and go on
        "log" => HealthAction::Log,
        /// reflect it into the partition as its architecture would report it; VM only
        "inject" => HealthAction::Inject,
        /// stop the partition; it is then failed
        "stop" => HealthAction::Stop,
        /// stop the partition and start it cold: memory cleared, payloads copied anew
        "restart" => HealthAction::Restart,
        /// stop the partition and start it warm: memory stays as it is, all else is as at first
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

    /// Returns it as in a manifest: `rwx`.
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
        /// look: status, wait, read, receive
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
}

impl CapabilitySpec {
    /// Returns every object that it names; that is exactly one if it is right.
    pub fn targets(&self) -> Vec<Target<'_>> {
        let targets = [
            self.partition.as_ref().map(Target::Partition),
            self.event_gate.as_ref().map(Target::EventGate),
            self.timer.then_some(Target::Timer),
            self.console.then_some(Target::Console),
            self.schedule.as_ref().map(Target::Schedule),
            self.port.as_ref().map(Target::Port),
        ];
        targets.into_iter().flatten().collect()
    }

    /// Returns the object that it names.
    pub fn target(&self) -> Option<Target<'_>> {
        self.targets().into_iter().next()
    }

    /// Returns the rights that the manifest gives it.
    pub fn listed(&self) -> &[Placed<Rights>] {
        self.rights.as_ref().map_or(&[], |rights| &rights.value)
    }

    /// Tells whether the manifest gives it this right.
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
    /// Returns the number of lines of its interrupt controller.
    pub fn lines(&self) -> u32 {
        self.board_lines.unwrap_or(self.gic.lines.get())
    }

    /// Returns the line of its event gate. The default is at most the last one where the board says which
    /// that is.
    pub fn gate_line(&self) -> u32 {
        let line = &self.event_gate.line;
        match self.board_lines {
            Some(lines) if line.key.is_none() => line.get().min(lines.saturating_sub(1)),
            _ => line.get(),
        }
    }
}

impl PartitionSpec {
    /// Tells whether it can wait for the events of its own gate.
    pub fn can_wait(&self) -> bool {
        self.own_gate().is_some()
    }

    /// Tells whether its machine has an interrupt for the events of its gate.
    pub fn has_gate_interrupt(&self) -> bool {
        self.kind == Kind::Vm && self.can_wait()
    }

    /// Returns the capability by which it takes the events of its own gate.
    pub fn own_gate(&self) -> Option<&CapabilitySpec> {
        self.capabilities.iter().find(|capability| {
            let target = capability.target();
            let own = matches!(target, Some(Target::EventGate(name)) if name.value == self.name.value);
            own && (capability.rights.is_none() || capability.gives(Rights::READ))
        })
    }

    /// Returns where its virtual time is frozen, if it is.
    pub fn frozen(&self) -> Option<Place> {
        self.time.place.filter(|_| self.time.value == Clock::Frozen)
    }

    /// Returns where it asks for the starts of its windows, if it does.
    pub fn watch_windows(&self) -> Option<Place> {
        let windows = &self.watch.windows;
        windows.place.filter(|_| windows.value)
    }

    /// Returns the partition as it is with an alternative's payloads.
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
