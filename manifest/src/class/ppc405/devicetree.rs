// SPDX-License-Identifier: Apache-2.0
//! The device tree of a VM: a PPC405EP with RAM, its interrupt controller and a UART.
//!
//! Nodes and properties are taken from `arch/powerpc/boot/dts/hotfoot.dts` of Linux 6.1, without the parts
//! that the VM lacks. Linux takes a board by the compatible of the root: `est,hotfoot` is one that needs
//! nothing beyond the CPU.
#![deny(clippy::arithmetic_side_effects)]

use dtoolkit::model::{DeviceTree, DeviceTreeNode, DeviceTreeProperty};

use crate::driver::Role;
use crate::guest::{Area, AreaKind, Context};
use crate::window::Window;

const CPU_PHANDLE: u32 = 1;
const UIC_PHANDLE: u32 = 2;
/// Interrupt specifier of a UIC: level, active high.
const LEVEL_HIGH: u32 = 4;
/// First device control register of the UIC, and how many it has.
const UIC_REGISTERS: [u32; 2] = [0xC0, 9];
/// Bytes of a cache and of its lines.
const CACHE: u32 = 16 << 10;
const LINE: u32 = 32;
/// Bytes of the UART's registers, its clock, and its rate.
const UART_SIZE: u32 = 8;
const UART_CLOCK: u32 = 11_059_200;
const UART_RATE: u32 = 115_200;

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

    /// Says that addresses and sizes of the children are a cell each.
    fn one_cell(self) -> Self {
        self.cells("#address-cells", &[1]).cells("#size-cells", &[1])
    }
}

/// Returns the tree as a blob.
pub(super) fn generate(context: &Context<'_>, areas: &[Area], ramdisk: Option<Window>) -> Vec<u8> {
    let mut root = Node::new("")
        .one_cell()
        .texts("model", &["bulkhead,vm"])
        .texts("compatible", &["bulkhead,vm", "est,hotfoot"])
        .cells("dcr-parent", &[CPU_PHANDLE])
        .child(chosen(context, ramdisk))
        .child(cpus(context));
    for area in areas.iter().filter(|area| area.kind == AreaKind::Ram) {
        let Window { base, size } = area.window;
        root = root.child(
            Node::new(format!("memory@{base:x}"))
                .texts("device_type", &["memory"])
                .cells("reg", &[base as u32, size as u32]),
        );
    }
    root = root.child(controller());
    if context.spec.console {
        let path = uart_path(context);
        root = root.child(Node::new("aliases").texts("serial0", &[&path])).child(
            bus("plb", &["ibm,plb3"]).child(bus("opb", &["ibm,opb-405ep", "ibm,opb"]).child(uart(context))),
        );
    }
    if !context.capabilities.is_empty() {
        root = root.child(hypervisor(context));
    }
    let mut tree = DeviceTree::new();
    tree.root = root.0;
    tree.to_dtb()
}

fn uart_name(context: &Context<'_>) -> String {
    format!("serial@{:x}", context.spec.machine.uart.base.get())
}

fn uart_path(context: &Context<'_>) -> String {
    format!("/plb/opb/{}", uart_name(context))
}

fn chosen(context: &Context<'_>, ramdisk: Option<Window>) -> Node {
    let arguments = context.spec.bootargs.as_ref();
    let mut node =
        Node::new("chosen").texts("bootargs", &[arguments.map_or("", |arguments| &arguments.value)]);
    if context.spec.console {
        let path = uart_path(context);
        node = node
            .texts("stdout-path", &[&path])
            .texts("linux,stdout-path", &[&path]);
    }
    match ramdisk {
        Some(window) => node
            .cells("linux,initrd-start", &[window.base as u32])
            .cells("linux,initrd-end", &[window.end() as u32]),
        None => node,
    }
}

fn cpus(context: &Context<'_>) -> Node {
    let timer = context.board.driven(Role::Timer);
    let hertz = timer.map_or(0, |timer| timer.clock_hz);
    let cpu = Node::new("cpu@0")
        .texts("device_type", &["cpu"])
        .texts("model", &["PowerPC,405EP"])
        .cells("reg", &[0])
        .cells("clock-frequency", &[hertz])
        .cells("timebase-frequency", &[hertz])
        .cells("i-cache-line-size", &[LINE])
        .cells("d-cache-line-size", &[LINE])
        .cells("i-cache-size", &[CACHE])
        .cells("d-cache-size", &[CACHE])
        .flag("dcr-controller")
        .texts("dcr-access-method", &["native"])
        .cells("phandle", &[CPU_PHANDLE]);
    Node::new("cpus")
        .cells("#address-cells", &[1])
        .cells("#size-cells", &[0])
        .child(cpu)
}

fn controller() -> Node {
    Node::new("interrupt-controller")
        .texts("compatible", &["ibm,uic"])
        .flag("interrupt-controller")
        .cells("cell-index", &[0])
        .cells("dcr-reg", &UIC_REGISTERS)
        .cells("#address-cells", &[0])
        .cells("#size-cells", &[0])
        .cells("#interrupt-cells", &[2])
        .cells("phandle", &[UIC_PHANDLE])
}

fn bus(name: &str, compatible: &[&str]) -> Node {
    Node::new(name)
        .texts("compatible", compatible)
        .one_cell()
        .flag("ranges")
        .cells("clock-frequency", &[0])
}

fn uart(context: &Context<'_>) -> Node {
    let uart = &context.spec.machine.uart;
    let base = uart.base.get() as u32;
    Node::new(uart_name(context))
        .texts("device_type", &["serial"])
        .texts("compatible", &["ns16550"])
        .cells("reg", &[base, UART_SIZE])
        .cells("virtual-reg", &[base])
        .cells("clock-frequency", &[UART_CLOCK])
        .cells("current-speed", &[UART_RATE])
        .cells("interrupt-parent", &[UIC_PHANDLE])
        .cells("interrupts", &[uart.line.get(), LEVEL_HIGH])
}

/// Returns the node that tells the guest how to call the hypervisor, with the names and indices of its
/// capabilities.
fn hypervisor(context: &Context<'_>) -> Node {
    let capabilities = context.capabilities;
    let names: Vec<&str> = capabilities
        .iter()
        .map(|capability| capability.name.as_str())
        .collect();
    let indices: Vec<u32> = capabilities.iter().map(|capability| capability.index).collect();
    Node::new("hypervisor")
        .texts("compatible", &["bulkhead,hypervisor"])
        .texts("method", &["sc"])
        .texts("capability-names", &names)
        .cells("capabilities", &indices)
}
