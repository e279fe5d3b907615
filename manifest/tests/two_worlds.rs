// SPDX-License-Identifier: Apache-2.0
//! Systems of class `armv8m`: programs where they are linked and as they are, and what the hypervisor has to
//! know of the controllers that keep two worlds apart.

mod support;

use bulkhead_abi::hypercall::DEVICE_EVENT;
use bulkhead_arch_api::class::ARMV8M;
use bulkhead_image::layout::{
    CONTROLLER_ARM_MPC, CONTROLLER_IOTKIT_SECURITY, MEMORY_CLEAR, MEMORY_DEVICE, MEMORY_EXECUTE, MEMORY_READ,
    MEMORY_SHARED, MEMORY_WRITE, REGISTERS_GATED, REGISTERS_QUIESCED, ROLE_PROCESSORS, ROLE_SECURITY,
    SIDE_DEVICE, SIDE_HELD, SIDE_WRITES,
};
use bulkhead_image::{Image, Portable};
use bulkhead_manifest::parts::Part;
use bulkhead_manifest::{ClassBinary, FlashError, flashable};
use std::ops::Range;
use support::firmware::class_binary;
use support::microcontroller::{contents, image, system_of};
use support::{firmware, firmware_at, intel_hex, movable, raw_binary};

/// Addresses of class binary and RAM of the hypervisor on this board.
const BINARY: u32 = 0x3d_6000;
const OWN_RAM: Range<u32> = 0x283f_8000..0x2840_0000;
const CODE: u32 = 0x2_0000;
const RAM: u32 = 0x2801_0000;

const VM: &str = r#"
board = "mps2-an505"
[partition.rtos]
kind = "vm"
image = "@guests/rtos"
memory = "16K"
devices = ["uart1", "timer1"]
vcpus = [{ pcpu = 0 }]
"#;

const TASK: &str = r#"
board = "mps2-an505"
[partition.driver]
kind = "task"
image = "@guests/driver"
memory = "5K"
vcpus = [{ pcpu = 0 }]
[partition.driver.capabilities]
clock = { timer = true }
"#;

/// `cpsid i; wfi; b .`: instructions that another class replaces. No symbol says what they are.
fn program() -> Vec<u8> {
    firmware(CODE, RAM, &[0xb672, 0xbf30, 0xe7fe], &[])
}

#[test]
fn the_image_says_what_guards_memory_and_devices() {
    let system = system_of(VM, "guards", &program()).expect("a system");
    let bytes = image(&system);
    let image = Image::check(&bytes, &ARMV8M, &Portable).expect("checked");
    let security: Vec<_> = image
        .controllers()
        .iter()
        .filter(|controller| controller.role.get() == ROLE_SECURITY)
        .map(|controller| {
            let [registers, memory, ..] = controller.base;
            let [_, size, ..] = controller.size;
            (
                controller.compatible.get(),
                registers.get(),
                memory.get(),
                size.get(),
            )
        })
        .collect();
    let expected = [
        (CONTROLLER_IOTKIT_SECURITY, 0x5008_0000, 0, 0),
        (CONTROLLER_ARM_MPC, 0x5800_7000, 0, 4 << 20),
        (CONTROLLER_ARM_MPC, 0x5800_8000, 0x2800_0000, 2 << 20),
        (CONTROLLER_ARM_MPC, 0x5800_9000, 0x2820_0000, 2 << 20),
        (CONTROLLER_ARM_MPC, 0x5008_3000, 0x2000_0000, 32 << 10),
    ];
    assert_eq!(security, expected);
    let gates: Vec<_> = image
        .registers()
        .iter()
        .map(|record| {
            assert_eq!(record.flags.get(), REGISTERS_GATED | REGISTERS_QUIESCED);
            (record.host.get(), record.gate_offset.get(), record.gate_bit.get())
        })
        .collect();
    // Two registers of each device are written at the end of the VM: one stops the device, one clears it.
    let expected = [
        (0x4020_1000, 0x84, 6),
        (0x4020_100c, 0x84, 6),
        (0x4000_1000, 0x70, 1),
        (0x4000_100c, 0x70, 1),
    ];
    assert_eq!(gates, expected);
    let writes = image.registers().iter().map(|record| {
        let register = record.host.get() + u64::from(record.quiesce_offset.get());
        (register & 0xfff, record.size.get(), record.quiesce_value.get())
    });
    let expected = [(8, 0xc, 0), (0xc, 0xff4, 0xf), (0, 0xc, 0), (0xc, 0xff4, 1)];
    assert!(writes.eq(expected));
    // The registers of the hypervisor's own devices are in the memory map, and what they guard is not.
    let rows = system.memory_map();
    assert_eq!(rows.iter().filter(|row| row.what == "security").count(), 5);
    assert!(rows.iter().all(|row| row.what != "security" || row.size == 4096));
}

#[test]
fn a_task_has_a_device_by_its_own_gate_and_one_event() {
    let manifest = TASK.replace("vcpus", "devices = [\"uart2\"]\nvcpus");
    let system = system_of(&manifest, "driver", &firmware_at(CODE, RAM + 0x400)).expect("a system");
    let bytes = image(&system);
    let image = Image::check(&bytes, &ARMV8M, &Portable).expect("checked");
    let mut gates = image
        .registers()
        .iter()
        .map(|record| (record.gate_offset.get(), record.gate_bit.get()));
    assert!(gates.len() == 2 && gates.all(|gate| gate == (0x84, 7)));
    let lines = image.interrupts().iter();
    let lines: Vec<_> = lines
        .map(|record| (record.line.get(), record.virtual_line.get()))
        .collect();
    assert_eq!(lines, [(36, DEVICE_EVENT), (37, DEVICE_EVENT)]);
    let rows = system
        .interrupts()
        .into_iter()
        .filter(|row| row.owner == "driver");
    assert!(rows.clone().count() == 2 && rows.clone().all(|row| row.is_event));
    // The startup page names the device after the capabilities.
    let page = image.residents().iter().map(|resident| resident.size.get()).max();
    let list = size_of::<bulkhead_abi::startup::StartupDevice>() + 16;
    assert!(page.is_some_and(|bytes| bytes >= list as u64));
}

#[test]
fn a_device_that_is_lent_has_a_gate_for_tasks_and_no_rights() {
    let lent = r#"line = { interrupt = "clock" }
[channel.clock]
device = "timer0"
side = [{ partition = "driver" }]
"#;
    let manifest = format!("{TASK}{lent}");
    let system = system_of(&manifest, "driver", &firmware_at(CODE, RAM + 0x400)).expect("a system");
    let bytes = image(&system);
    let image = Image::check(&bytes, &ARMV8M, &Portable).expect("checked");
    let [record] = image.registers() else {
        panic!("one window of registers")
    };
    assert_eq!(
        record.flags.get(),
        REGISTERS_GATED,
        "the hypervisor writes nothing there"
    );
    assert_eq!((record.gate_offset.get(), record.gate_bit.get()), (0x70, 0));
    let window = image
        .memory_of(0)
        .find(|mapping| mapping.guest.get() == 0x4000_0000);
    let flags = window.map(|mapping| (mapping.size.get(), mapping.flags.get()));
    assert_eq!(flags, Some((0x1000, MEMORY_SHARED | MEMORY_DEVICE)));
    let [side] = image.sides() else { panic!("one side") };
    assert_eq!(side.flags.get(), SIDE_DEVICE | SIDE_HELD | SIDE_WRITES);
    assert_eq!(side.line.get(), 3 + 1);
}

#[test]
fn a_program_of_a_vm_stays_as_it_is_and_has_whole_blocks() {
    let before = program();
    let system = system_of(VM, "blocks", &before).expect("a system");
    assert_eq!(system.replaced(0), None);
    assert_eq!(system.mpu_regions(0), []);
    let bytes = image(&system);
    let image = Image::check(&bytes, &ARMV8M, &Portable).expect("checked");
    let memory: Vec<_> = image
        .memory_of(0)
        .map(|mapping| (mapping.guest.get(), mapping.size.get(), mapping.flags.get()))
        .collect();
    let data = MEMORY_READ | MEMORY_WRITE | MEMORY_EXECUTE | MEMORY_CLEAR;
    assert_eq!(memory[0], (RAM.into(), 0x4000, data));
    assert_eq!(memory[1], (CODE.into(), 0x400, MEMORY_READ | MEMORY_EXECUTE));
    assert_eq!(image.partitions()[0].virtual_lines.get(), 128);
    assert_eq!(image.lookalikes().len(), 0);
    let uart = &image.virtual_devices()[0];
    // The place is the place of the board's UART. The hypervisor has the line of that UART.
    assert_eq!((uart.base[0].get(), uart.virtual_line.get()), (0x4020_0000, 16));
    let binary = ClassBinary::from_elf(&class_binary(BINARY, OWN_RAM)).expect("a class binary");
    let file = flashable(&binary, &bytes, &system).expect("a file");
    let found = contents(&file, CODE).expect("the program");
    assert_eq!(found[..], before[116..116 + found.len()]);
    assert_eq!(image.check_resident(0, &found, &Portable), Ok(()));
    // The CPU starts with the vectors at the secure name of address 0.
    let vectors = contents(&file, 0x1000_0000).expect("the reset vectors");
    assert_eq!(vectors, [[0; 4], (BINARY | 1).to_le_bytes()].concat());
}

/// Returns the VM with an image that does not say where its variables are.
fn silent_vm(machine: &str) -> String {
    VM.replace("memory =", &format!("place = {RAM:#x}\n{machine}\nmemory ="))
}

#[test]
fn a_raw_binary_and_a_hex_file_are_the_same_program_as_the_elf_file() {
    let elf = program();
    let raw = raw_binary(&elf);
    let hex = intel_hex(CODE, &raw);
    let image_of = |manifest: &str, file: &[u8]| image(&system_of(manifest, "flat", file).expect("a system"));
    let expected = image_of(&silent_vm(""), &elf);
    let load_at = format!("machine.load-at = {CODE:#x}");
    assert!(image_of(&silent_vm(&load_at), &raw) == expected, "the raw binary");
    assert!(
        image_of(&silent_vm(""), hex.as_bytes()) == expected,
        "the file of Intel HEX"
    );
}

#[test]
fn a_position_independent_program_stays_where_it_is_linked() {
    let image_of =
        |manifest: &str, file: &[u8]| image(&system_of(manifest, "stays", file).expect("a system"));
    let program = movable(CODE, RAM, 23);
    // A file that says of itself that it can be loaded anywhere (ET_DYN) is no other one.
    let mut shared = program.clone();
    shared[16] = 3;
    assert!(image_of(VM, &shared) == image_of(VM, &program), "not moved");
}

#[test]
fn two_copies_of_a_position_independent_program_are_two_partitions() {
    let copy = format!(
        "[partition.copy]\nkind = \"vm\"\nimage = \"@guests/rtos\"\nmemory = \"16K\"\n\
         vcpus = [{{ pcpu = 0 }}]\nmachine.load-at = {:#x}\n",
        CODE + 0x4000
    );
    let system = system_of(&format!("{VM}{copy}"), "copies", &movable(CODE, RAM, 23)).expect("a system");
    let bytes = image(&system);
    let image = Image::check(&bytes, &ARMV8M, &Portable).expect("checked");
    let windows = |number| -> Vec<u64> {
        image
            .memory_of(number)
            .map(|mapping| mapping.guest.get())
            .collect()
    };
    assert_eq!(windows(0)[..2], [RAM, CODE].map(u64::from));
    assert_eq!(windows(1)[..2], [RAM + 0x4000, CODE + 0x4000].map(u64::from));
    assert_eq!(
        [0, 1].map(|number| system.partitions()[number].moved_by()),
        [0, 0x4000]
    );
    let binary = ClassBinary::from_elf(&class_binary(BINARY, OWN_RAM)).expect("a class binary");
    let file = flashable(&binary, &bytes, &system).expect("a file");
    let copy = contents(&file, CODE + 0x4000).expect("the copy");
    let word = |at: usize| u32::from_le_bytes(copy[at..at + 4].try_into().expect("four bytes"));
    assert_eq!((word(0), word(4)), (RAM + 0x5000, CODE + 0x4041));
    assert_eq!(
        word(68),
        RAM + 0x4008,
        "a constant with the address of a variable"
    );
}

#[test]
fn a_vm_can_have_a_dma_controller_that_is_trusted() {
    let trusted = VM.replace("[\"uart1\", \"timer1\"]", "[\"dma\"]\ntrusted-dma = true");
    let system = system_of(&trusted, "dma", &program()).expect("a system");
    assert!(system.partitions()[0].unconfined_dma());
}

#[test]
fn a_task_has_memory_of_any_number_of_blocks() {
    let system = system_of(TASK, "task", &firmware_at(CODE, RAM + 0x400)).expect("a system");
    let bytes = image(&system);
    let image = Image::check(&bytes, &ARMV8M, &Portable).expect("checked");
    let memory: Vec<_> = image
        .memory_of(0)
        .map(|mapping| (mapping.guest.get(), mapping.size.get(), mapping.flags.get()))
        .collect();
    let data = MEMORY_READ | MEMORY_WRITE | MEMORY_CLEAR;
    assert_eq!(memory[0], (u64::from(RAM) + 0x400, 0x1400, data));
    assert_eq!(image.partitions()[0].stack.get(), u64::from(RAM) + 0x1800);
}

#[test]
fn a_system_image_begins_at_a_block() {
    let system = system_of(VM, "begins", &program()).expect("a system");
    // The end of the class binary is the second symbol's value.
    let mut file = class_binary(BINARY, OWN_RAM);
    let end = (BINARY + 0x8020).to_le_bytes();
    file[92 + 16 + 4..92 + 16 + 8].copy_from_slice(&end);
    let binary = ClassBinary::from_elf(&file).expect("a class binary");
    let refused = FlashError::BadEnd(u64::from(BINARY) + 0x8020);
    assert_eq!(flashable(&binary, &[], &system), Err(refused));
}

#[test]
fn a_system_has_what_starts_a_second_pcpu_only_if_it_has_one() {
    let on = |pcpu: u32| {
        let text = VM
            .replace("mps2-an505", "mps2-an521")
            .replace("pcpu = 0", &format!("pcpu = {pcpu}"));
        let system = system_of(&text, "pcpus", &program()).expect("a system");
        let parts = system.parts(false);
        let is_part = parts.iter().any(|used| used.part == Part::SecondPcpu);
        let bytes = image(&system);
        let image = Image::check(&bytes, &ARMV8M, &Portable).expect("checked");
        let mut controllers = image.controllers().iter();
        let starts = controllers.any(|record| record.role.get() == ROLE_PROCESSORS);
        (image.pcpus().len(), is_part, starts)
    };
    assert_eq!(on(0), (1, false, false));
    assert_eq!(on(1), (2, true, true));
}

#[test]
fn lines_of_tasks_are_a_part_only_of_a_system_whose_task_has_a_device() {
    let uses = |text: &str| {
        let system = system_of(text, "task-lines", &firmware_at(CODE, RAM + 0x400)).expect("a system");
        let parts = system.parts(false);
        parts.iter().any(|used| used.part == Part::TaskLines)
    };
    assert!(!uses(TASK));
    assert!(uses(&TASK.replace("vcpus", "devices = [\"uart2\"]\nvcpus")));
}
