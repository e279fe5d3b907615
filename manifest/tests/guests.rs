// SPDX-License-Identifier: Apache-2.0
//! The memory that a guest finds: device tree, placement, startup page, permissions.

mod support;

use bulkhead_arch_api::class::AARCH64;
use std::path::Path;

use bulkhead_image::layout::{
    CONTROLLER_ARM_TIMER, CONTROLLER_CADENCE_UART, CONTROLLER_GIC_V2, MEMORY_EXECUTE, MEMORY_READ,
    MEMORY_WRITE, VIRTUAL_GIC_V2,
};
use bulkhead_image::{Image, Portable};
use bulkhead_manifest::{CompileInput, Report, System, compile, load_text};
use dtoolkit::fdt::Fdt;
use dtoolkit::model::{DeviceTree, DeviceTreeNode};
use dtoolkit::{Node, Property};

fn try_load_on(board: &str, text: &str) -> Result<System, Report> {
    let path = support::root().join("tests/config-bad/system.toml");
    load_text(&path, &format!("board = \"{board}\"\n{text}"), &support::resolve)
}

fn try_load(text: &str) -> Result<System, Report> {
    try_load_on("qemu-virt-aarch64", text)
}

fn system(text: &str) -> System {
    try_load(text).unwrap_or_else(|report| panic!("{report}"))
}

fn image(system: &System) -> Vec<u8> {
    compile(
        system,
        &CompileInput {
            class_binary_len: 0x2_0000,
            stop_after_ms: None,
            trace_records: None,
        },
    )
    .expect("compiles")
}

fn vm_on(board: &str, keys: &str) -> System {
    let text = format!("[partition.a]\nkind = \"vm\"\nvcpus = [{{ pcpu = 0 }}, {{ pcpu = 1 }}]\n{keys}");
    try_load_on(board, &text).unwrap_or_else(|report| panic!("{report}"))
}

fn vm(keys: &str) -> System {
    vm_on("qemu-virt-aarch64", keys)
}

fn tree(system: &System) -> DeviceTree {
    DeviceTree::from_fdt(&Fdt::new(system.partitions()[0].device_tree()).expect("a device tree"))
}

fn node<'a>(tree: &'a DeviceTree, path: &str) -> &'a DeviceTreeNode {
    tree.find_node(path).unwrap_or_else(|| panic!("no node {path}"))
}

fn value(node: &DeviceTreeNode, name: &str) -> Vec<u8> {
    node.property(name)
        .unwrap_or_else(|| panic!("no property {name}"))
        .value()
        .to_vec()
}

fn cells(node: &DeviceTreeNode, name: &str) -> Vec<u32> {
    value(node, name)
        .chunks(4)
        .map(|cell| u32::from_be_bytes(cell.try_into().expect("whole cells")))
        .collect()
}

#[test]
fn a_zboot_kernel_is_what_is_packed_in_it() {
    let kernel = support::image(32 << 20);
    let path = std::env::temp_dir().join(format!("bulkhead-zboot-{}", std::process::id()));
    std::fs::write(&path, support::zboot("gzip", &support::gzip(&kernel))).expect("a temporary file");
    let text = format!(
        "image = {:?}\nmemory = \"128M\"\nramdisk = \"payloads/ramdisk.cpio\"\n",
        path.display().to_string()
    );
    let system = vm(&text);
    std::fs::remove_file(&path).expect("it is there");
    let bytes = image(&system);
    let image = Image::check(&bytes, &AARCH64, &Portable).expect("valid");
    let payload = image.payload(0);
    assert_eq!(payload, kernel);
    assert_eq!(image.partitions()[0].entry.get(), 0x4020_0000);
    assert!(system.report().diagnostics.is_empty(), "{}", system.report());
}

#[test]
fn the_tree_is_that_of_the_virt_board() {
    let system = vm(
        "image = \"payloads/image\"\nmemory = \"256M\"\nbootargs = \"quiet\"\ndevices = [\"rtc\"]\nramdisk = \"payloads/ramdisk.cpio\"\n",
    );
    let tree = tree(&system);
    assert_eq!(
        cells(node(&tree, "/intc@8000000"), "reg"),
        [0, 0x0800_0000, 0, 0x1_0000, 0, 0x080a_0000, 0, 0x4_0000]
    );
    assert_eq!(
        cells(node(&tree, "/timer"), "interrupts"),
        [1, 13, 4, 1, 14, 4, 1, 11, 4, 1, 10, 4]
    );
    assert_eq!(cells(node(&tree, "/pl011@9000000"), "interrupts"), [0, 1, 4]);
    assert_eq!(
        cells(node(&tree, "/memory@40000000"), "reg"),
        [0, 0x4000_0000, 0, 256 << 20]
    );
    assert_eq!(cells(node(&tree, "/cpus/cpu@1"), "reg"), [1]);
    assert_eq!(value(node(&tree, "/psci"), "method"), b"hvc\0");
    assert_eq!(cells(node(&tree, "/rtc@9010000"), "interrupts"), [0, 2, 4]);
    let chosen = node(&tree, "/chosen");
    assert_eq!(value(chosen, "bootargs"), b"quiet\0");
    assert_eq!(value(chosen, "stdout-path"), b"/pl011@9000000\0");
    // The RAM disk is 128M above the start of RAM, as with QEMU.
    assert_eq!(cells(chosen, "linux,initrd-start"), [0, 0x4800_0000]);
    assert_eq!(cells(chosen, "linux,initrd-end"), [0, 0x4800_4000]);
    let partition = &system.partitions()[0];
    assert_eq!(
        (partition.entry(), partition.argument()),
        (0x4020_0000, 0x4820_0000)
    );
}

/// Checks the tree of a VM on a board with a GICv2: it has that controller, and the rest is as everywhere.
#[test]
fn a_board_with_gic_v2_gives_gic_v2() {
    let system = vm_on(
        "xlnx-zcu102",
        "image = \"payloads/image\"\nmemory = \"256M\"\nmachine.gic = { version = 2 }\n",
    );
    let tree = tree(&system);
    let gic = node(&tree, "/intc@8000000");
    assert_eq!(value(gic, "compatible"), b"arm,cortex-a15-gic\0");
    assert_eq!(
        cells(gic, "reg"),
        [0, 0x0800_0000, 0, 0x1000, 0, 0x0801_0000, 0, 0x2000]
    );
    assert!(gic.property("#redistributor-regions").is_none());
    // Two vCPUs: bits 8 and 9 (GIC binding of version 2).
    assert_eq!(
        cells(node(&tree, "/timer"), "interrupts"),
        [1, 13, 0x304, 1, 14, 0x304, 1, 11, 0x304, 1, 10, 0x304]
    );
    assert_eq!(cells(node(&tree, "/pl011@9000000"), "interrupts"), [0, 1, 4]);
    assert_eq!(
        cells(node(&tree, "/memory@40000000"), "reg"),
        [0, 0x4000_0000, 0, 256 << 20]
    );
    let image = image(&system);
    let image = Image::check(&image, &AARCH64, &Portable).expect("what the hypervisor accepts");
    let kinds: Vec<u32> = image
        .controllers()
        .iter()
        .map(|record| record.compatible.get())
        .collect();
    assert_eq!(
        kinds,
        [CONTROLLER_CADENCE_UART, CONTROLLER_GIC_V2, CONTROLLER_ARM_TIMER]
    );
    let windows = image.controllers()[1].base.map(|base| base.get());
    assert_eq!(windows, [0xf901_0000, 0xf902_f000, 0xf904_0000, 0xf906_f000]);
    let gic = &image.virtual_devices()[0];
    assert_eq!((gic.kind.get(), gic.base[1].get()), (VIRTUAL_GIC_V2, 0x0801_0000));
}

#[test]
fn capabilities_are_in_the_tree() {
    let system = vm("image = \"payloads/vm.elf\"\nmemory = \"2M\"\ncapabilities.clock = { timer = true }\n");
    let tree = tree(&system);
    let hypervisor = node(&tree, "/hypervisor");
    assert_eq!(value(hypervisor, "capability-names"), b"self\0clock\0");
    assert_eq!(cells(hypervisor, "capabilities"), [0, 1]);
    // The tree is at the start of RAM if an ELF image leaves room there.
    assert_eq!(system.partitions()[0].argument(), 0x4000_0000);
}

#[test]
fn an_overlay_changes_the_tree() {
    let system =
        vm("image = \"payloads/vm.elf\"\nmemory = \"2M\"\ndevice-tree-overlay = \"payloads/uart.dtbo\"\n");
    let tree = tree(&system);
    assert_eq!(value(node(&tree, "/pl011@9000000"), "example"), b"");
    assert!(tree.find_node("/fragment@0").is_none());
}

#[test]
fn overlays_are_compiled_if_there_is_a_compiler() {
    if std::process::Command::new("dtc")
        .arg("--version")
        .output()
        .is_err()
    {
        println!("skipped: no dtc");
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(
        folder.join("good.dtso"),
        "/dts-v1/; /plugin/; &uart0 { status = \"disabled\"; };",
    )
    .expect("writable");
    std::fs::write(folder.join("bad.dtso"), "/dts-v1/; /plugin/; &uart0 {").expect("writable");
    let with = |name: &str| {
        let path = folder.join(name);
        try_load(&format!(
            "[partition.a]\nkind = \"vm\"\nimage = \"payloads/vm.elf\"\nmemory = \"2M\"\nvcpus = [{{ pcpu = 0 }}]\ndevice-tree-overlay = {path:?}\n"
        ))
    };
    let system = with("good.dtso").unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(
        value(node(&tree(&system), "/pl011@9000000"), "status"),
        b"disabled\0"
    );
    let report = with("bad.dtso").expect_err("a syntax error");
    assert_eq!(report.diagnostics[0].code.id(), "E065");
}

#[test]
fn a_task_has_the_permissions_of_its_segments() {
    let system = system(
        "[partition.t]\nkind = \"task\"\nimage = \"payloads/task.elf\"\nmemory = \"64K\"\nvcpus = [{ pcpu = 0 }]\ncapabilities.clock = { timer = true }\n",
    );
    let bytes = image(&system);
    let image = Image::check(&bytes, &AARCH64, &Portable).expect("checked");
    let maps: Vec<_> = image
        .memory()
        .iter()
        .map(|m| {
            (
                m.guest.get(),
                m.size.get(),
                m.flags.get() & (MEMORY_READ | MEMORY_WRITE | MEMORY_EXECUTE),
            )
        })
        .collect();
    let (r, rw, rx) = (
        MEMORY_READ,
        MEMORY_READ | MEMORY_WRITE,
        MEMORY_READ | MEMORY_EXECUTE,
    );
    // Constants and data share a page, which must be writable then.
    let expected = [
        (0x4000_0000, 0x1000, rx),
        (0x4000_1000, 0xf000, rw),
        (0x3fff_f000, 0x1000, r),
    ];
    assert_eq!(maps, expected);
    let partition = &image.partitions()[0];
    assert_eq!(
        (partition.argument.get(), partition.stack.get()),
        (0x3fff_f000, 0x4001_0000)
    );
    let startup = image
        .loads()
        .iter()
        .find(|load| load.guest.get() == 0x3fff_f000)
        .expect("a startup page");
    let page = image.payload(startup.payload.get());
    assert_eq!(&page[..8], b"BHSTART1");
    assert_eq!(u32::from_le_bytes(page[8..12].try_into().expect("four bytes")), 2);
    assert_eq!(&page[32..37], b"self\0");
    // Index 1, kind timer, right to read.
    assert_eq!(&page[64 + 24..64 + 30], [1, 0, 0, 0, 3, 1]);
}

#[test]
fn firmware_starts_where_the_manifest_says() {
    let system = vm(
        "memory = \"16M\"\nmachine.entry = 0x0\n[[partition.a.region]]\nguest = 0x0\nsize = \"64M\"\npayload = \"payloads/raw.bin\"\naccess = \"rwx\"\n",
    );
    let partition = &system.partitions()[0];
    assert_eq!((partition.entry(), partition.argument()), (0, 0x4000_0000));
    // A region with a payload is a flash, not memory.
    assert!(tree(&system).find_node("/memory@0").is_none());
}

#[test]
fn partitions_that_run_the_same_file_share_it() {
    let one = "kind = \"vm\"\nimage = \"payloads/image\"\nmemory = \"64M\"\nvcpus = [{ pcpu = 0 }]\n";
    let system = system(&format!("[partition.a]\n{one}[partition.b]\n{one}"));
    let bytes = image(&system);
    let image = Image::check(&bytes, &AARCH64, &Portable).expect("checked");
    let kernels = image
        .payloads()
        .iter()
        .filter(|payload| payload.size.get() == 8192)
        .count();
    assert_eq!(kernels, 1);
}

#[test]
fn unconfined_dma_gets_memory_at_its_own_addresses() {
    let names: Vec<String> = (24..32).map(|n| format!("\"virtio-mmio-{n}\"")).collect();
    let keys = format!(
        "image = \"payloads/image\"\nmemory = \"64M\"\ndevices = [{}]\ntrusted-dma = true\nmachine.ram-base = 0x60000000\n",
        names.join(", ")
    );
    let system = vm(&keys);
    let partition = &system.partitions()[0];
    assert!(partition.unconfined_dma());
    assert!(
        partition
            .mappings()
            .into_iter()
            .all(|mapping| mapping.guest == mapping.host)
    );
    // Eight devices, one page.
    assert_eq!(partition.mappings().len(), 2);
    let bytes = image(&system);
    let image = Image::check(&bytes, &AARCH64, &Portable).expect("checked");
    assert_eq!(image.interrupts().len(), 8);
}
