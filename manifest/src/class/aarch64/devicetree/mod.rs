// SPDX-License-Identifier: Apache-2.0
//! The device tree of a VM: the tree of QEMU's `virt` board, without the parts that the VM lacks.
//!
//! Node names, properties and interrupt flags are the board's own (hw/arm/virt.c, QEMU 7.2), so that firmware
//! and kernels built for the board find what they expect. No author writes an address or an interrupt number
//! twice: both come from the machine of the manifest and from the board's device list. Labels of the nodes
//! are kept in `/__symbols__`, so that a user's overlay can refer to `&gic`, `&uart0`, `&apb_pclk` and to
//! each device by its name (with `_` for `-`).
#![deny(clippy::arithmetic_side_effects)]

#[allow(
    clippy::arithmetic_side_effects,
    reason = "offsets in a blob that is bounded by its length"
)]
pub(crate) mod overlay;

use bulkhead_abi::ObjectKind;
use dtoolkit::model::{DeviceTree, DeviceTreeNode, DeviceTreeProperty};

use super::gic::{Gic, virtual_controller};
use crate::board::{Device, Trigger};
use crate::diagnostic::Report;
use crate::guest::{Area, AreaKind, Context};
use crate::model::capability::Capability;
use crate::model::devices::owned;
use crate::model::machine::UART_SIZE;
use crate::model::served::Served;
use crate::model::side::Side;
use crate::model::{Access, FlashSpec, Placed};
use crate::place::channels::{BRIDGE, BRIDGE_MEMORY};
use crate::window::Window;

const GIC_PHANDLE: u32 = 0x8001;
const CLOCK_PHANDLE: u32 = 0x8000;
/// Interrupt specifiers of the GIC binding: kind of line, number within the kind, trigger.
const SHARED: u32 = 0;
const PRIVATE: u32 = 1;
const EDGE_RISING: u32 = 1;
const LEVEL_HIGH: u32 = 4;
/// The first shared line. The binding counts shared lines from 0.
const FIRST_SHARED: u32 = 32;
/// The first private line that a device can have. The binding counts private lines from 0, too.
const FIRST_PRIVATE: u32 = 16;
/// Private lines of the virtual machine's timers (the INTID less 16): secure physical, physical, virtual,
/// EL2.
const TIMER_LINES: [u32; 4] = [13, 14, 11, 10];

/// Node of the event gate's interrupt.
const EVENT_GATE: &str = "event-gate";

/// The machine that the tree describes.
pub(crate) struct Machine<'a> {
    pub context: &'a Context<'a>,
    pub areas: &'a [Area],
    pub ramdisk: Option<Window>,
}

/// Returns the interrupt specifier of a line, by its INTID.
fn interrupt(line: u32, trigger: u32) -> [u32; 3] {
    match line.checked_sub(FIRST_SHARED) {
        Some(number) => [SHARED, number, trigger],
        None => [PRIVATE, line.saturating_sub(FIRST_PRIVATE), trigger],
    }
}

/// A node that is being put together.
struct Node(DeviceTreeNode);

impl Node {
    fn new(name: impl Into<String>) -> Self {
        Self(DeviceTreeNode::new_unchecked(name))
    }

    fn bytes(mut self, name: &str, value: Vec<u8>) -> Self {
        self.0
            .add_property(DeviceTreeProperty::new_unchecked(name, value));
        self
    }

    fn cells(self, name: &str, cells: &[u32]) -> Self {
        self.bytes(name, cells.iter().flat_map(|cell| cell.to_be_bytes()).collect())
    }

    fn numbers(self, name: &str, numbers: &[u64]) -> Self {
        self.bytes(
            name,
            numbers.iter().flat_map(|number| number.to_be_bytes()).collect(),
        )
    }

    fn texts(self, name: &str, texts: &[&str]) -> Self {
        self.bytes(
            name,
            texts.iter().flat_map(|text| text.bytes().chain([0])).collect(),
        )
    }

    fn flag(self, name: &str) -> Self {
        self.bytes(name, Vec::new())
    }

    fn child(mut self, child: Self) -> Self {
        self.0.add_child(child.0);
        self
    }
}

/// Returns the tree as a blob, with the user's overlay applied; `None` if something was reported.
pub(crate) fn generate(
    machine: &Machine<'_>,
    overlay: Option<(&Placed<String>, &[u8])>,
    report: &mut Report,
) -> Option<Vec<u8>> {
    let mut tree = DeviceTree::new();
    tree.root = root(machine).0;
    if let Some((name, overlay)) = overlay {
        overlay::apply(&mut tree, name, overlay, report)?;
    }
    Some(tree.to_dtb())
}

fn root(machine: &Machine<'_>) -> Node {
    let spec = machine.context.spec;
    let mut symbols = vec![
        ("gic".to_owned(), format!("/{}", gic_name(machine))),
        ("apb_pclk".to_owned(), "/apb-pclk".to_owned()),
    ];
    let mut root = Node::new("")
        .cells("#address-cells", &[2])
        .cells("#size-cells", &[2])
        .texts("compatible", &["bulkhead,vm", "linux,dummy-virt"])
        .texts("model", &["bulkhead,vm"])
        .cells("interrupt-parent", &[GIC_PHANDLE])
        .child(chosen(machine));
    for area in machine
        .areas
        .iter()
        .filter(|area| describes_memory(area, machine))
    {
        let Window { base, size } = area.window;
        root = root.child(
            Node::new(format!("memory@{base:x}"))
                .texts("device_type", &["memory"])
                .numbers("reg", &[base, size]),
        );
    }
    root = root
        .child(cpus(spec.vcpus.len()))
        .child(psci())
        .child(timer(machine))
        .child(gic(machine))
        .child(clock());
    if spec.console {
        root = root.child(uart(machine));
        symbols.push(("uart0".to_owned(), format!("/{}", uart_name(machine))));
    }
    if let Some(node) = event_gate(machine) {
        root = root.child(node);
        symbols.push(("event_gate".to_owned(), format!("/{EVENT_GATE}")));
    }
    if let Some(flash) = &spec.flash {
        root = root.child(flash_node(flash));
        symbols.push(("flash".to_owned(), format!("/{}", flash_name(flash))));
    }
    if spec.machine.functions != 0 {
        root = root.child(bridge(machine));
    }
    for side in machine.context.sides.iter().filter(|side| has_node(side)) {
        let name = &side.channel.name.value;
        let node = channel(side, machine);
        symbols.push((
            format!("channel_{}", name.replace('-', "_")),
            format!("/{}", dtoolkit::Node::name(&&node.0)),
        ));
        root = root.child(node);
    }
    for served in &spec.machine.served {
        root = root.child(virtio(served));
    }
    for (_, device) in owned(spec, machine.context.board) {
        let node = passed_through(device);
        symbols.push((
            device.name.replace('-', "_"),
            format!("/{}", dtoolkit::Node::name(&&node.0)),
        ));
        root = root.child(node);
    }
    root = root.child(hypervisor(machine));
    let table = symbols
        .iter()
        .fold(Node::new("__symbols__"), |node, (label, path)| {
            node.texts(label, &[path])
        });
    root.child(table)
}

/// Tells whether an area is in the tree as memory: RAM always, and regions that are memory like any other.
fn describes_memory(area: &Area, machine: &Machine<'_>) -> bool {
    let plain = area.access == Access::ALL;
    let filled = machine.context.spec.regions.iter().any(|region| {
        region.payload.is_some()
            && region
                .guest
                .as_ref()
                .is_some_and(|guest| guest.value.get() == area.window.base)
    });
    area.kind == AreaKind::Ram || (area.kind == AreaKind::Region && plain && !filled)
}

fn chosen(machine: &Machine<'_>) -> Node {
    let spec = machine.context.spec;
    let mut node = Node::new("chosen");
    if spec.console {
        node = node.texts("stdout-path", &[&format!("/{}", uart_name(machine))]);
    }
    if spec.machine.functions != 0 {
        // The addresses of the functions are where their memory is mapped.
        node = node.cells("linux,pci-probe-only", &[1]);
    }
    if let Some(bootargs) = &spec.bootargs {
        node = node.texts("bootargs", &[&bootargs.value]);
    }
    if let Some(ramdisk) = machine.ramdisk {
        node = node
            .numbers("linux,initrd-start", &[ramdisk.base])
            .numbers("linux,initrd-end", &[ramdisk.end()]);
    }
    node
}

fn cpus(count: usize) -> Node {
    let node = Node::new("cpus")
        .cells("#address-cells", &[1])
        .cells("#size-cells", &[0]);
    (0..count as u32).fold(node, |node, index| {
        node.child(
            Node::new(format!("cpu@{index:x}"))
                .texts("device_type", &["cpu"])
                .texts("compatible", &["arm,armv8"])
                .texts("enable-method", &["psci"])
                .cells("reg", &[index]),
        )
    })
}

/// Returns the node of the PSCI firmware. The function numbers are in Arm DEN 0022, chapter 5.
fn psci() -> Node {
    Node::new("psci")
        .texts("compatible", &["arm,psci-1.0", "arm,psci-0.2", "arm,psci"])
        .texts("method", &["hvc"])
        .cells("cpu_suspend", &[0xc400_0001])
        .cells("cpu_off", &[0x8400_0002])
        .cells("cpu_on", &[0xc400_0003])
        .cells("migrate", &[0xc400_0005])
}

fn timer(machine: &Machine<'_>) -> Node {
    // The binding of the GICv2 names the CPUs that a private line goes to, with one bit each from bit 8 on.
    let cpus = match Gic::of(Some(machine.context.board)) {
        Gic::V2 => cpu_mask(machine.context.spec.vcpus.len()),
        Gic::V3 => 0,
    };
    let lines: Vec<u32> = TIMER_LINES
        .iter()
        .flat_map(|line| [PRIVATE, *line, LEVEL_HIGH | cpus << 8])
        .collect();
    Node::new("timer")
        .texts("compatible", &["arm,armv8-timer"])
        .cells("interrupts", &lines)
        .flag("always-on")
}

/// Returns a mask with one bit for each of so many CPUs; there are at most eight.
fn cpu_mask(count: usize) -> u32 {
    let bits = u8::MAX.checked_shl(u32::try_from(count).unwrap_or(u32::MAX));
    u32::from(!bits.unwrap_or(0))
}

fn gic_name(machine: &Machine<'_>) -> String {
    format!("intc@{:x}", machine.context.spec.machine.gic.distributor.get())
}

fn gic(machine: &Machine<'_>) -> Node {
    let gic = Gic::of(Some(machine.context.board));
    let windows = virtual_controller(machine.context.spec, gic).windows;
    let registers: Vec<u64> = windows
        .iter()
        .flat_map(|(_, window)| [window.base, window.size])
        .collect();
    let node = Node::new(gic_name(machine))
        .texts(
            "compatible",
            match gic {
                Gic::V2 => &["arm,cortex-a15-gic"],
                Gic::V3 => &["arm,gic-v3"],
            },
        )
        .flag("interrupt-controller")
        .cells("#interrupt-cells", &[3])
        .cells("#address-cells", &[2])
        .cells("#size-cells", &[2])
        .flag("ranges");
    let node = match gic {
        Gic::V2 => node.numbers("reg", &registers),
        // The node of QEMU's board has the maintenance line, although no EL2 of a VM can use the line.
        Gic::V3 => node
            .cells("#redistributor-regions", &[1])
            .numbers("reg", &registers)
            .cells("interrupts", &[PRIVATE, 9, LEVEL_HIGH]),
    };
    node.cells("phandle", &[GIC_PHANDLE])
}

fn clock() -> Node {
    Node::new("apb-pclk")
        .texts("compatible", &["fixed-clock"])
        .cells("#clock-cells", &[0])
        .cells("clock-frequency", &[24_000_000])
        .texts("clock-output-names", &["clk24mhz"])
        .cells("phandle", &[CLOCK_PHANDLE])
}

fn uart_name(machine: &Machine<'_>) -> String {
    format!("pl011@{:x}", machine.context.spec.machine.uart.base.get())
}

fn uart(machine: &Machine<'_>) -> Node {
    let spec = machine.context.spec;
    Node::new(uart_name(machine))
        .texts("compatible", &["arm,pl011", "arm,primecell"])
        .numbers("reg", &[spec.machine.uart.base.get(), UART_SIZE])
        .cells("interrupts", &interrupt(spec.machine.uart.line.get(), LEVEL_HIGH))
        .cells("clocks", &[CLOCK_PHANDLE, CLOCK_PHANDLE])
        .texts("clock-names", &["uartclk", "apb_pclk"])
}

fn flash_name(flash: &FlashSpec) -> String {
    format!("flash@{:x}", flash.base.get())
}

/// Returns the node of both banks, as QEMU's board has it: chips of 16 bits, two side by side.
fn flash_node(flash: &FlashSpec) -> Node {
    let banks: Vec<u64> = flash
        .banks()
        .iter()
        .flat_map(|bank| [bank.base, bank.size])
        .collect();
    Node::new(flash_name(flash))
        .texts("compatible", &["cfi-flash"])
        .numbers("reg", &banks)
        .cells("bank-width", &[4])
}

/// Returns the node for a driver of the partition's own gate: the interrupt for the events of the gate, and
/// the capability by which they are taken. The level of the interrupt is high while there are events.
fn event_gate(machine: &Machine<'_>) -> Option<Node> {
    let spec = machine.context.spec;
    let own = spec.own_gate().filter(|_| spec.has_gate_interrupt())?;
    let mut known = machine.context.capabilities.iter();
    let index = known.find(|capability| capability.name == own.name.value)?.index;
    let line = spec.machine.gate_line();
    Some(
        Node::new(EVENT_GATE)
            .texts("compatible", &["bulkhead,event-gate"])
            .cells("interrupts", &interrupt(line, LEVEL_HIGH))
            .cells("capability", &[index]),
    )
}

/// Returns the node of the PCI host bridge (IEEE 1275 PCI binding, generic ECAM host). Device n has its INTx
/// on the line of the side that it is.
fn bridge(machine: &Machine<'_>) -> Node {
    /// Memory in 32 bits that cannot be prefetched.
    const MEMORY_32: u32 = 0x0200_0000;
    /// The bits of an address with the number of a device.
    const DEVICE_BITS: u32 = 0xf800;
    let [(_, config), _] = BRIDGE;
    let split = |number: u64| [(number >> 32) as u32, number as u32];
    let [base_high, base_low] = split(BRIDGE_MEMORY.base);
    let [size_high, size_low] = split(BRIDGE_MEMORY.size);
    let functions = machine.context.sides.iter().filter(|side| *side.spec.pci);
    let map: Vec<u32> = functions
        .zip(0_u32..)
        .flat_map(|(side, device)| {
            let line = side.spec.interrupt.as_ref().map_or(0, |line| line.value.get());
            let [kind, number, trigger] = interrupt(line, LEVEL_HIGH);
            // Unit address and pin of the function; controller, and its unit address, which means nothing.
            [device << 11, 0, 0, 1, GIC_PHANDLE, 0, 0, kind, number, trigger]
        })
        .collect();
    Node::new(format!("pcie@{:x}", config.base))
        .texts("compatible", &["pci-host-ecam-generic"])
        .texts("device_type", &["pci"])
        .cells("#address-cells", &[3])
        .cells("#size-cells", &[2])
        .cells("#interrupt-cells", &[1])
        .numbers("reg", &[config.base, config.size])
        .cells("bus-range", &[0, 0])
        .cells(
            "ranges",
            &[
                MEMORY_32, base_high, base_low, base_high, base_low, size_high, size_low,
            ],
        )
        .cells("interrupt-map-mask", &[DEVICE_BITS, 0, 0, 7])
        .cells("interrupt-map", &map)
        .flag("dma-coherent")
}

/// Tells whether a driver finds a side by a node of its own: a PCI function is found by its bridge, and the
/// driver of a device that is lent knows the device.
fn has_node(side: &Side<'_>) -> bool {
    !*side.spec.pci && side.channel.device.is_none()
}

/// Returns the node for a driver of a channel: its memory, the interrupt of its doorbell, and the capability
/// by which the VM rings at the others.
fn channel(side: &Side<'_>, machine: &Machine<'_>) -> Node {
    let Window { base, size } = side.window;
    let mut node = Node::new(format!("channel-{}@{base:x}", side.channel.name.value))
        .texts("compatible", &["bulkhead,channel"])
        .numbers("reg", &[base, size]);
    if let Some(line) = &side.spec.interrupt {
        node = node.cells("interrupts", &interrupt(line.value.get(), EDGE_RISING));
    }
    if !side.spec.access.write {
        node = node.flag("read-only");
    }
    if *side.spec.held {
        node = node.flag("held");
    }
    let is_it = |known: &&Capability| known.kind == ObjectKind::Channel && known.object == side.number;
    match machine.context.capabilities.iter().find(is_it) {
        Some(known) => node.cells("capability", &[known.index]),
        None => node,
    }
}

/// Returns the node of a device that another partition serves (Linux binding `virtio/mmio.yaml`).
fn virtio(served: &Served) -> Node {
    let Window { base, size } = served.window;
    Node::new(format!("virtio_mmio@{base:x}"))
        .texts("compatible", &["virtio,mmio"])
        .numbers("reg", &[base, size])
        .cells("interrupts", &interrupt(served.line, LEVEL_HIGH))
        .flag("dma-coherent")
}

/// Returns the node of a device of the board, at the addresses and lines that it has there.
fn passed_through(device: &Device) -> Node {
    let generic = device
        .name
        .trim_end_matches(|c: char| c.is_ascii_digit())
        .trim_end_matches('-');
    let base = device.registers.first().map_or(0, |window| window.base);
    let compatible: Vec<&str> = device.compatible.iter().map(String::as_str).collect();
    let registers: Vec<u64> = device
        .registers
        .iter()
        .flat_map(|window| [window.base, window.size])
        .collect();
    let mut node = Node::new(format!("{generic}@{base:x}"))
        .texts("compatible", &compatible)
        .numbers("reg", &registers);
    let interrupts: Vec<u32> = device
        .interrupts
        .iter()
        .flat_map(|interrupt| {
            let trigger = if interrupt.trigger == Trigger::Edge {
                EDGE_RISING
            } else {
                LEVEL_HIGH
            };
            self::interrupt(interrupt.line.get(), trigger)
        })
        .collect();
    if !interrupts.is_empty() {
        node = node.cells("interrupts", &interrupts);
    }
    if let Some(clock) = &device.clock {
        node = node
            .cells("clocks", &[CLOCK_PHANDLE])
            .texts("clock-names", &[clock]);
    }
    if device.dma_coherent {
        node = node.flag("dma-coherent");
    }
    node
}

/// Returns the node that tells the guest how to call the hypervisor, with the names and indices of its
/// capabilities.
fn hypervisor(machine: &Machine<'_>) -> Node {
    let capabilities = machine.context.capabilities;
    let names: Vec<&str> = capabilities
        .iter()
        .map(|capability| capability.name.as_str())
        .collect();
    let indices: Vec<u32> = capabilities.iter().map(|capability| capability.index).collect();
    Node::new("hypervisor")
        .texts("compatible", &["bulkhead,hypervisor"])
        .texts("method", &["hvc"])
        .texts("capability-names", &names)
        .cells("capabilities", &indices)
}
