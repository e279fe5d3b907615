// SPDX-License-Identifier: Apache-2.0
//! Boards: facts about hardware.
//!
//! A board file (`board_file`) gives the facts, and the class of the board adds some.
#![deny(clippy::arithmetic_side_effects)]

mod class;

pub use bulkhead_sched::analysis::Overheads;
use bulkhead_sched::analysis::{Orders, Output};

pub use class::Class;

use crate::driver::{Controller, Driver, LINE_MAX, Role};
use crate::schema::declare::{choices, tables};
use crate::schema::form::{Map, Whole};
use crate::units::{Duration, Size};
use crate::window::Window;
use std::ops::Range;

tables! {
    /// Facts about a piece of hardware.
    pub Board
    with {
        /// Code memory, if the class executes code in place.
        code: Vec<Window>,
        /// The hypervisor's own code memory, if the class executes code in place.
        own_code: Window,
        /// The hypervisor's own RAM, if the class executes code in place.
        own_ram: Window,
        /// The bus address of the hypervisor's first byte, which is also its first instruction.
        load_address: u64,
        /// The devices that the hypervisor drives, by role. Without a console, the log is in RAM only.
        controllers: Vec<Controller>,
        /// Lines of the interrupt controller, private ones included.
        line_count: u32,
        /// Lines of the interrupt controller for virtual devices, if these lines are the board's.
        virtual_lines: Range<u32>,
        /// The window of the hypervisor's log.
        log: Window,
        /// The drivers of the class binary.
        drivers: &'static [&'static Driver],
    }
    = "a board file" {
        /// the board's name
        name "name": String, required;
        /// one line for people
        description "description": String, required;
        /// class of the hypervisor that runs on the board
        class "class": Class, required;
        /// identification of each CPU, in the order of pCPU numbers (aarch64: MPIDR_EL1 affinity fields;
        /// armv7m: 0)
        cpus "cpus": Vec<u64>, required;
        /// stretches of RAM
        ram "ram": Vec<Window>, required;
        /// true if an IOMMU that the hypervisor drives confines DMA
        iommu "iommu": bool, default(false);
        /// devices that can be given to partitions
        devices "device": Map<Device>, optional;
        /// costs of the hypervisor. Without this table the analysis takes the costs to be zero, and says so
        costs "overheads": Option<Costs>, optional;
        /// the machine on which `overheads` were measured; with the basis "measured"
        measurement "measurement": Option<Measurement>, optional;
        /// emulator of the board
        emulator "emulator": Option<Emulator>, optional;
    }

    /// A device, or with `count` a row of equal ones named NAME-0, NAME-1 and so on.
    pub Device
    with {
        /// Name for manifests.
        name: String,
        /// Number in a row of equal ones.
        index: u32,
    }
    = "a device" {
        /// one line for people
        description "description": String, default("");
        /// `compatible` of the device tree node
        compatible "compatible": Vec<String>, required;
        /// registers of the device
        registers "registers": Vec<Window>, required;
        /// interrupt lines of the device
        interrupts "interrupts": Vec<Interrupt>, default([]);
        /// true if the device can read and write memory by itself
        dma "dma": bool, default(false);
        /// true if the DMA of the device sees the caches
        dma_coherent "dma-coherent": bool, default(false);
        /// name of the clock input that gets the fixed bus clock
        clock "clock": Option<String>, optional;
        /// number of devices in the row
        count "count": Option<Whole<1, 256>>, default(1);
        /// bytes from the registers of one device to the registers of the next; with `count`
        stride "stride": Size, optional;
        /// true if the hypervisor may access the registers for the owner, so that devices in one page can
        /// have several owners; only for devices that answer every access
        forward "forward": bool, default(false);
        /// register write that stops the device, interrupts and DMA included, when its owner has ended
        quiesce "quiesce": Option<Quiesce>, optional;
        /// register writes after that which end the interrupts that the device asks for already
        clear "clear": Vec<Quiesce>, default([]);
        /// bit of the board's security controller that lets non-secure software reach the device; armv8m. A
        /// device without it cannot be given to a partition there
        gate "gate": Option<Gate>, optional;
        /// things that the emulator can plug into the device
        plugs "emulator": Plugs, optional;
    }

    /// A write of 32 bits to a register of the device.
    pub Quiesce derive(Copy) = "a register write" {
        /// offset of the register in the first window
        offset "offset": u32, required;
        /// value that is written
        value "value": u32, required;
    }

    /// A bit of a register that says for one device whether non-secure software reaches it.
    pub Gate derive(Copy, PartialEq, Eq) = "a gate" {
        /// offset of the 32-bit register in the registers of `security`
        register "register": u32, required;
        /// number of the bit
        bit "bit": Whole<0, 31>, required;
    }

    /// Emulator arguments that plug something in; `{device}`: the device's name, `{index}`: its number in a
    /// row.
    pub Plugs = "attachments" {
        /// arguments for a disk; `{file}` stands for its image, `{read-only}` for `on` or `off`
        disk "disk": Vec<String>, optional;
        /// arguments for a network
        network "network": Vec<String>, optional;
    }

    /// A shared interrupt line.
    pub Interrupt derive(Copy) = "an interrupt" {
        /// number of the line, as the interrupt controller counts
        line "line": Whole<0, LINE_MAX>, required;
        /// trigger
        trigger "trigger": Trigger, required;
        /// true: the line says what other lines of the device say one by one. A task gets no events of it
        combined "combined": bool, optional;
    }

    /// The command that emulates the board. `{image}`: flashable file, `{cpus}`: number of CPUs, `{port}`:
    /// TCP port.
    pub Emulator = "an emulator" {
        /// program of the emulator
        program "program": String, required;
        /// arguments of the program
        arguments "arguments": Vec<String>, required;
        /// further arguments for runs that repeat exactly
        deterministic "deterministic": Vec<String>, optional;
        /// further arguments that make the emulator wait for a debugger
        gdb "gdb": Vec<String>, optional;
        /// further arguments for a QMP monitor on the socket `{monitor}`. With them the emulator of a board
        /// that is off stays, until the monitor tells the emulator to quit
        monitor "monitor": Vec<String>, optional;
        /// further arguments that leave the file `{secret}` at `{address}` in the board's memory at each
        /// reset, as a boot stage does that hands over a device secret
        device_secret "device-secret": Vec<String>, optional;
        /// further arguments, besides `deterministic`, that make a tick of the counter one instruction
        instruction_clock "instruction-clock": Vec<String>, optional;
        /// arguments that run a program of a VM, `{image}`, without the hypervisor; instead of `arguments`
        bare "bare": Vec<String>, optional;
        /// arguments that start the ISO file `{image}`; instead of `arguments`
        disc "disc": Vec<String>, optional;
        /// arguments that start the PE file `{image}` by the UEFI firmware `{firmware}`; instead of
        /// `arguments`
        uefi "uefi": Vec<String>, optional;
        /// parts of messages of the emulator; a message with such a part means nothing
        ignore "ignore": Vec<String>, optional;
    }

    /// Costs of the hypervisor on the board, for the analysis: figures of `bulkhead bench` or `calibrate`.
    pub Costs derive(Copy) = "a table of overheads" {
        /// the origin of the figures. `check` says so with each verdict
        basis "basis": Basis, required;
        /// the time that an instruction takes in the emulator, where figures are counted; without this key,
        /// 1ns
        instruction "instruction": Duration, optional;
        /// a switch from one vCPU to another
        switch "switch": Duration, required;
        /// an interrupt, from the board to the vCPU
        interrupt "interrupt": Duration, required;
        /// a decision which vCPU runs
        decision "decision": Duration, required;
        /// the longest stretch in which the hypervisor does not look at interrupts; without this key, the
        /// time of an interrupt, a decision and a switch
        longest "longest": Duration, optional;
        /// the time that each vCPU of the pCPU adds to that stretch, because all of them may become ready at
        /// once; without this key, 0
        longest_per_vcpu "longest-per-vcpu": Duration, optional;
        /// the longest step that writes a piece of the log or of a console's output in the time of the vCPU
        /// that runs; without this key, `longest`
        output "output": Duration, optional;
    }
}

tables! {
    /// Where and when the costs of a board were measured. `bulkhead calibrate` writes this table.
    pub Measurement = "a measurement" {
        /// the machine: its name, revision and, if several differ, its serial number
        machine "machine": String, required;
        /// the day of the measurement, as "2026-12-03"
        date "date": String, required;
        /// ticks of the machine's counter in a second: no figure is finer than a tick
        counter_hz "counter-hz": Whole<1, { u32::MAX }>, required;
        /// turns of each measurement, of which the worst counts
        runs "runs": Whole<1, { u32::MAX }>, required;
        /// percent that were added to the worst turn
        margin "margin": Whole<0, 1000>, required;
        /// keys of `overheads` that this measurement has not seen
        estimated "estimated": Vec<String>, optional;
    }
}

choices! {
    /// Where figures of costs are from.
    pub Basis {
        /// counted in the emulator, where an instruction takes a fixed time: a real machine has caches and a
        /// pipeline
        Counted = "counted",
        /// estimated, all or some of them
        Estimated = "estimated",
        /// measured on a machine
        Measured = "measured",
    }
}

choices! {
    /// The signal of an interrupt.
    pub Trigger {
        /// level-triggered, high
        Level = "level",
        /// rising edge
        Edge = "edge",
    }
}

/// A kind of thing that an emulator can plug into a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachmentKind {
    /// A disk.
    Disk,
    /// A network.
    Network,
}

impl AttachmentKind {
    /// Returns the word for the kind in messages and board files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Network => "network",
        }
    }
}

impl Device {
    /// Returns the arguments with which the emulator plugs something into the device. The list is empty if it
    /// cannot.
    #[must_use]
    pub fn attach(&self, kind: AttachmentKind) -> &[String] {
        match kind {
            AttachmentKind::Disk => &self.plugs.disk,
            AttachmentKind::Network => &self.plugs.network,
        }
    }
}

impl Basis {
    /// Returns the word of the board file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counted => "counted",
            Self::Estimated => "estimated",
            Self::Measured => "measured",
        }
    }
}

/// The least time between two steps of output in the time of vCPUs that run: `DRAIN_PERIOD_NS` of
/// `kernel/src/console.rs`.
pub const OUTPUT_SPACE_NS: u64 = 1_000_000;

impl Costs {
    /// Says in a sentence how far a verdict that rests on these figures holds.
    fn caveat(&self) -> String {
        let each = match self.instruction.get() {
            0 | 1 => "one instruction a nanosecond".to_owned(),
            time => format!("one instruction in {time} ns"),
        };
        match self.basis {
            Basis::Counted => {
                format!("the hypervisor's times are counts of the emulator, {each}: no cache, no pipeline")
            }
            Basis::Estimated => format!(
                "the hypervisor's times are estimates, or in part counts of the emulator, {each}: no verdict \
                 here is a proof"
            ),
            Basis::Measured => "the hypervisor's times were measured on a machine".to_owned(),
        }
    }

    /// Returns the costs on a pCPU with this many vCPUs.
    #[must_use]
    pub fn with_vcpus(&self, vcpus: usize) -> Overheads {
        let each = self.longest_per_vcpu.get();
        let more = each.saturating_mul(u64::try_from(vcpus).unwrap_or(u64::MAX));
        let longest = self.longest.get().saturating_add(more);
        let step = match self.output.get() {
            0 => longest,
            step => step,
        };
        Overheads {
            switch: self.switch.get(),
            interrupt: self.interrupt.get(),
            decision: self.decision.get(),
            longest,
            orders: Orders::NONE,
            output: Output {
                step,
                space: OUTPUT_SPACE_NS,
            },
        }
    }
}

impl Measurement {
    /// Says in a sentence how far the figures hold.
    fn caveat(&self) -> String {
        let Self {
            machine,
            date,
            runs,
            margin,
            estimated,
            ..
        } = self;
        let names: Vec<String> = estimated.iter().map(|name| format!("`{name}`")).collect();
        let rest = match names.as_slice() {
            [] => String::new(),
            [one] => format!("; {one} is an estimate"),
            _ => format!("; {} are estimates", names.join(", ")),
        };
        format!(
            "the hypervisor's times were measured on {machine} on {date}, each the worst of {} turns and {} % \
             more{rest}: a machine may be slower than it was seen",
            runs.get(),
            margin.get()
        )
    }
}

/// Refuses a board: the key at fault, the mistake, and the remedy.
pub(crate) type Refuse<'a> = dyn FnMut(&str, String, &str) + 'a;

impl Device {
    /// Returns the registers that are written when the owner of the device has ended, in this order.
    pub(crate) fn writes(&self) -> impl Iterator<Item = Quiesce> {
        self.quiesce.iter().chain(&self.clear).copied()
    }

    /// Returns the lines that the owner of the device gets. A task takes each event for one of an interrupt.
    pub(crate) fn lines_for(&self, is_task: bool) -> impl Iterator<Item = &Interrupt> {
        let lines = self.interrupts.iter();
        lines.filter(move |interrupt| !(is_task && interrupt.combined))
    }

    /// Tells whether the device has this interrupt line.
    pub(crate) fn has_line(&self, line: u32) -> bool {
        self.interrupts
            .iter()
            .any(|interrupt| interrupt.line.get() == line)
    }
}

impl Board {
    /// Says in a sentence how far a verdict holds that rests on the costs of the hypervisor, if they are
    /// known.
    #[must_use]
    pub fn caveat(&self) -> Option<String> {
        let measured = self.measurement.as_ref().map(Measurement::caveat);
        measured.or_else(|| self.costs.map(|costs| costs.caveat()))
    }

    /// Returns the costs of the hypervisor on a pCPU with this many vCPUs. `None`: the costs are not known.
    #[must_use]
    pub fn overheads(&self, vcpus: usize) -> Option<Overheads> {
        self.costs.map(|costs| costs.with_vcpus(vcpus))
    }

    /// Returns the window of the hypervisor's log.
    #[must_use]
    pub fn log(&self) -> Window {
        self.log
    }

    /// Returns the device of that name.
    #[must_use]
    pub fn device(&self, name: &str) -> Option<&Device> {
        self.devices.iter().find(|device| device.name == name)
    }

    /// Returns the devices, other than itself, with registers in one of the pages of `device`'s registers.
    pub fn page_neighbours<'a>(&'a self, device: &'a Device) -> impl Iterator<Item = &'a Device> {
        self.devices.iter().filter(move |other| {
            other.name != device.name
                && device.registers.iter().any(|mine| {
                    other
                        .registers
                        .iter()
                        .any(|theirs| mine.pages().overlaps(theirs.pages()))
                })
        })
    }

    /// Returns the device that the hypervisor drives in that role.
    #[must_use]
    pub fn driven(&self, role: Role) -> Option<&Controller> {
        let mut controllers = self.controllers.iter();
        controllers.find(|controller| controller.driver.role == role)
    }

    /// Returns the interrupt lines that the hypervisor itself uses, with names for people.
    #[must_use]
    pub fn hypervisor_lines(&self) -> Vec<(u32, &'static str)> {
        self.controllers
            .iter()
            .flat_map(Controller::named_lines)
            .collect()
    }

    /// Returns the devices that the hypervisor itself drives: a name for messages, and the registers in
    /// memory.
    #[must_use]
    pub fn hypervisor_devices(&self) -> Vec<(&'static str, Window)> {
        let registers = |controller: &Controller| {
            let name = controller.driver.role.table();
            let windows = controller.windows.clone().into_iter();
            windows.map(move |window| (name, window)).collect::<Vec<_>>()
        };
        let in_memory = self.controllers.iter().filter(|own| !own.driver.uses_ports());
        in_memory.flat_map(registers).collect()
    }
}
