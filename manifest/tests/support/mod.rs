// SPDX-License-Identifier: Apache-2.0
//! Payloads made to measure, and a resolver that hands them out.
#![allow(dead_code, reason = "each test uses a part of it")]

pub mod firmware;
pub mod microcontroller;
pub mod mutate;

pub use firmware::firmware;
use ihex::Record;
use std::io::Write;
use std::path::{Path, PathBuf};

/// `b .`: the shortest program that does no harm.
const LOOP: [u8; 4] = 0x1400_0000_u32.to_le_bytes();
const AARCH64: u16 = 183;
const X86_64: u16 = 62;
/// The same program for an M-profile CPU.
const LOOP_T32: u16 = 0xe7fe;
const EXECUTABLE: u16 = 2;
const OBJECT: u16 = 1;
const R: u32 = 4;
const RW: u32 = 6;
const RX: u32 = 5;
const RWX: u32 = 7;

/// Returns the root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .expect("the repository exists")
}

/// The corpus of bad manifests, which lie in a folder for each file of rules.
pub const CORPUS: &str = "tests/config-bad";

/// Returns the paths of the bad manifests from the root of the repository, in order.
pub fn bad_manifests() -> Vec<PathBuf> {
    let inside = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(root().join(folder)).expect("the corpus exists");
        let names = entries.flatten().map(|entry| entry.file_name());
        names.map(|name| folder.join(name)).collect()
    };
    let mut paths = inside(Path::new(CORPUS));
    paths.retain(|path| !path.ends_with("boards"));
    let (folders, mut manifests): (Vec<_>, Vec<_>) =
        paths.into_iter().partition(|path| root().join(path).is_dir());
    manifests.extend(folders.iter().flat_map(|folder| inside(folder)));
    manifests.retain(|path| path.extension().is_some_and(|end| end == "toml"));
    manifests.sort();
    manifests
}

/// A segment of an ELF file: address, permissions, contents, bytes in memory.
pub struct Segment<'a>(pub u64, pub u32, pub &'a [u8], pub u64);

/// Makes a 64-bit little-endian ELF file.
pub fn elf(machine: u16, kind: u16, entry: u64, segments: &[Segment<'_>]) -> Vec<u8> {
    let mut out = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    out.extend(kind.to_le_bytes());
    out.extend(machine.to_le_bytes());
    out.extend(1_u32.to_le_bytes());
    out.extend([entry, 64, 0].iter().flat_map(|word| word.to_le_bytes()));
    out.extend(0_u32.to_le_bytes());
    out.extend(
        [64, 56, segments.len() as u16, 0, 0, 0]
            .iter()
            .flat_map(|half| half.to_le_bytes()),
    );
    let mut offset = 64 + 56 * segments.len() as u64;
    for Segment(address, flags, contents, size) in segments {
        out.extend(1_u32.to_le_bytes());
        out.extend(flags.to_le_bytes());
        out.extend(
            [offset, *address, *address, contents.len() as u64, *size, 1]
                .iter()
                .flat_map(|w| w.to_le_bytes()),
        );
        offset += contents.len() as u64;
    }
    for Segment(_, _, contents, _) in segments {
        out.extend_from_slice(contents);
    }
    out
}

/// Makes a Linux Image of 8 KiB that asks for `size` bytes of memory.
pub fn image(size: u64) -> Vec<u8> {
    let mut bytes = vec![0; 8192];
    bytes[..4].copy_from_slice(&LOOP);
    bytes[16..24].copy_from_slice(&size.to_le_bytes());
    bytes[56..60].copy_from_slice(b"ARM\x64");
    bytes
}

/// Makes an EFI program with one section of `section` bytes at 4096.
fn efi(mut bytes: Vec<u8>, machine: u16, section: u32) -> Vec<u8> {
    bytes[..2].copy_from_slice(b"MZ");
    bytes[0x3c..0x40].copy_from_slice(&64_u32.to_le_bytes());
    bytes[64..68].copy_from_slice(b"PE\0\0");
    bytes[68..70].copy_from_slice(&machine.to_le_bytes());
    bytes[70..72].copy_from_slice(&1_u16.to_le_bytes());
    bytes[88 + 16..88 + 20].copy_from_slice(&section.to_le_bytes());
    bytes[88 + 20..88 + 24].copy_from_slice(&4096_u32.to_le_bytes());
    bytes
}

/// Packs `bytes`.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).expect("writes to memory");
    encoder.finish().expect("writes to memory")
}

/// Makes a kernel of `packed` bytes that unpacks itself when EFI starts it.
pub fn zboot(method: &str, packed: &[u8]) -> Vec<u8> {
    let mut bytes = b"MZ\0\0zimg".to_vec();
    bytes.extend(128_u32.to_le_bytes());
    bytes.extend((packed.len() as u32).to_le_bytes());
    bytes.extend([0; 8]);
    bytes.extend(method.as_bytes());
    bytes.resize(128, 0);
    bytes.extend(packed);
    bytes
}

/// Makes a compiled overlay that changes the node with the label `label`. `dtc -@` makes the same of
/// `&label { example; };`.
pub fn overlay(label: &str) -> Vec<u8> {
    use dtoolkit::model::{DeviceTree, DeviceTreeNode, DeviceTreeProperty};
    let node = |name: &str| DeviceTreeNode::new_unchecked(name);
    let mut change = node("__overlay__");
    change.add_property(DeviceTreeProperty::new_unchecked("example", Vec::<u8>::new()));
    let mut fragment = node("fragment@0");
    fragment.add_property(DeviceTreeProperty::new_unchecked("target", u32::MAX));
    fragment.add_child(change);
    let mut fixups = node("__fixups__");
    fixups.add_property(DeviceTreeProperty::new_unchecked(label, "/fragment@0:target:0"));
    let mut tree = DeviceTree::new();
    tree.root.add_child(fragment);
    tree.root.add_child(fixups);
    tree.to_dtb()
}

/// Makes a program for a VM on the default machine.
pub fn vm_elf() -> Vec<u8> {
    elf(
        AARCH64,
        EXECUTABLE,
        0x4008_0000,
        &[
            Segment(0x4008_0000, RX, &LOOP, 4096),
            Segment(0x4008_1000, RW, b"data", 8192),
        ],
    )
}

/// Makes a program for a task: code, constants, and data that starts in the page of the constants.
pub fn task_elf() -> Vec<u8> {
    let segments = [
        Segment(0x4000_0000, RX, &LOOP, 4),
        Segment(0x4000_1000, R, b"constant", 8),
        Segment(0x4000_1800, RW, &[7; 4096], 0x3000),
    ];
    elf(AARCH64, EXECUTABLE, 0x4000_0000, &segments)
}

/// Makes a Linux kernel for x86: a setup header of the 64-bit boot protocol, and some bytes of a kernel.
fn bzimage() -> Vec<u8> {
    let mut file = vec![0; 0x1000];
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    put(0x1F1, &[1]);
    put(0x1FE, &[0x55, 0xAA, 0xEB, 0x6A]);
    put(0x202, b"HdrS\x0F\x02");
    put(0x236, &[1]);
    put(0x258, &0x100_0000_u64.to_le_bytes());
    // `jmp .`, where the 64-bit boot protocol enters the kernel after one sector of setup.
    put(0x600, &[0xEB, 0xFE]);
    put(0x260, &0x10_0000_u32.to_le_bytes());
    file
}

/// Makes a program for a microcontroller that loops for ever.
pub fn firmware_at(base: u32, ram: u32) -> Vec<u8> {
    firmware(base, ram, &[LOOP_T32], &[(0, "$t")])
}

/// Returns the payloads of the corpus that can be loaded and never run.
/// Makes an archive as the build of Linux does, of members with a path, a mode and contents.
pub fn newc(members: &[(&str, u32, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (path, mode, contents) in members.iter().chain(&[("TRAILER!!!", 0, &b""[..])]) {
        let (size, name) = (contents.len() as u32, path.len() as u32 + 1);
        out.extend(b"070701");
        for field in [1, *mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name, 0] {
            out.extend(format!("{field:08x}").as_bytes());
        }
        out.extend(path.as_bytes());
        out.push(0);
        out.resize(out.len().next_multiple_of(4), 0);
        out.extend(*contents);
        out.resize(out.len().next_multiple_of(4), 0);
    }
    out
}

/// Returns RAM disks without a first program that Linux can start.
fn ramdisks() -> Vec<(&'static str, Vec<u8>)> {
    let (folder, program) = (0o040_755, 0o100_755);
    let (other, object) = (plain_program(X86_64, EXECUTABLE), plain_program(AARCH64, OBJECT));
    vec![
        ("init-object.cpio", newc(&[("init", program, &object)])),
        (
            "init-early.cpio",
            newc(&[
                ("sbin/start", program, &plain_program(AARCH64, EXECUTABLE)),
                ("sbin", folder, b""),
            ]),
        ),
        // The beginning of an xz file with a check of 64 bits.
        ("foreign-check.cpio.xz", b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4F".to_vec()),
        (
            "no-init.cpio",
            newc(&[("sbin", folder, b""), ("sbin/init", program, b"#!/bin/sh\n")]),
        ),
        (
            "plain-init.cpio.gz",
            gzip(&newc(&[("./init", 0o100_644, b"#!/bin/sh\n")])),
        ),
        ("shell.cpio", shell(AARCH64)),
        ("shell-x86.cpio", shell(X86_64)),
        ("shell-less.cpio", newc(&[("init", program, b"#! /bin/sh -e\n")])),
        (
            "init-x86.cpio",
            newc(&[("start", 0o120_777, b"/own"), ("own", program, &other)]),
        ),
    ]
}

/// Makes an ELF file with one segment.
fn plain_program(machine: u16, kind: u16) -> Vec<u8> {
    elf(machine, kind, 0x40_0000, &[Segment(0x40_0000, RX, &LOOP, 64)])
}

/// Returns an archive with a shell, padded with zeros.
fn shell(machine: u16) -> Vec<u8> {
    let (folder, program, link) = (0o040_755, 0o100_755, 0o120_777);
    let busybox = plain_program(machine, EXECUTABLE);
    let mut archive = newc(&[
        ("bin", folder, b""),
        ("bin/busybox", program, &busybox),
        ("bin/sh", link, b"busybox"),
        ("usr", folder, b""),
        ("usr/bin", folder, b""),
        ("usr/bin/env", link, b"../../bin/busybox"),
    ]);
    archive.resize(16384, 0);
    archive
}

/// Returns a text in UTF-16.
fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// Returns a program that a loader of shared libraries starts.
fn dynamic() -> Vec<u8> {
    const LOADER: &[u8] = b"/lib/ld-linux-aarch64.so.1\0";
    let segments = [
        Segment(0x40_0000, R, LOADER, LOADER.len() as u64),
        Segment(0x41_0000, RX, &LOOP, 64),
    ];
    let mut bytes = elf(AARCH64, EXECUTABLE, 0x41_0000, &segments);
    // The type of the first segment: PT_INTERP.
    bytes[64..68].copy_from_slice(&3_u32.to_le_bytes());
    bytes
}

/// Returns the header of a member of a tar archive.
fn tar() -> Vec<u8> {
    let mut header = vec![0; 512];
    header[..5].copy_from_slice(b"hello");
    header[257..262].copy_from_slice(b"ustar");
    header
}

fn unstartable() -> Vec<(&'static str, Vec<u8>)> {
    let one = |address, flags| vec![Segment(address, flags, &LOOP, 64)];
    vec![
        ("init-without.sh", b"echo hello\n".to_vec()),
        ("init-return.sh", b"#!/bin/sh\r\necho hello\r\n".to_vec()),
        ("init-dynamic", dynamic()),
        ("init-bash.sh", b"#!/bin/bash\necho hello\n".to_vec()),
        ("init-itself.sh", b"#!/init\necho hello\n".to_vec()),
        (
            "init-long.sh",
            format!("#!/bin/{}\necho hello\n", "a".repeat(300)).into_bytes(),
        ),
        ("init-env.sh", b"#!/usr/bin/env python3\nprint(1)\n".to_vec()),
        ("init-nothing.sh", b"#!\necho hello\n".to_vec()),
        ("init-mark.sh", b"\xef\xbb\xbf#!/bin/sh\necho hello\n".to_vec()),
        ("init-space.sh", b" #!/bin/sh\necho hello\n".to_vec()),
        ("init-wide.sh", wide("#!/bin/sh\necho hello\n")),
        ("text.bin", b"A text, and no program.\n".to_vec()),
        (
            "latin.bin",
            b"Gr\xf6\xdfe: Breite mal H\xf6he, in Pixeln.\n".to_vec(),
        ),
        ("picture.bin", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01".to_vec()),
        ("tar.bin", tar()),
        ("short.bin", vec![0x14]),
        (
            "odd.elf",
            elf(AARCH64, EXECUTABLE, 0x4008_0002, &one(0x4008_0000, RX)),
        ),
        (
            "zeros.elf",
            elf(AARCH64, EXECUTABLE, 0x4008_0020, &one(0x4008_0000, RX)),
        ),
        ("zeros.bin", vec![0; 64]),
    ]
}

/// Returns the contents of a program for a microcontroller, as `objcopy -O binary` writes them.
pub fn raw_binary(program: &[u8]) -> Vec<u8> {
    let word = |at: usize| u32::from_le_bytes(program[at..at + 4].try_into().expect("four bytes")) as usize;
    // Offset and length in the first program header.
    program[word(56)..word(56) + word(68)].to_vec()
}

/// Makes a position-independent program: vector table and code from `base` on, variables at `ram`. Its words
/// with addresses are relocated: stack, reset vector and, by a relocation of the type `kind`, a constant.
pub fn movable(base: u32, ram: u32, kind: u32) -> Vec<u8> {
    const CONTENTS: u32 = 52 + 3 * 32;
    const RELOCATIONS: u32 = 72;
    const DYNAMIC: u32 = 96;
    let mut contents = vec![ram + 0x1000, base + 0x41];
    contents.resize(16, 0);
    // `b .` twice, and the address of a variable.
    contents.extend([0xe7fe_e7fe, ram + 8]);
    contents.extend([base, 23, base + 4, 23, base + 68, kind]);
    // REL, RELSZ, FLAGS_1 with PIE, and the end.
    contents.extend([17, base + RELOCATIONS, 18, 24, 0x6fff_fffb, 0x0800_0000, 0, 0]);
    let length = 4 * contents.len() as u32;
    let header = [
        0x464c_457f,
        0x0001_0101,
        0,
        0,
        0x0028_0002,
        1,
        base + 0x41,
        52,
        0,
        0x0500_0000,
    ];
    let counts = [0x0020_0034, 0x0028_0003, 0];
    let segments = [
        [1, CONTENTS, base, base, length, length, RX, 4],
        [1, 0, ram, ram, 0, 64, RW, 4],
        [
            2,
            CONTENTS + DYNAMIC,
            base + DYNAMIC,
            base + DYNAMIC,
            32,
            32,
            RW,
            4,
        ],
    ];
    let words = header
        .into_iter()
        .chain(counts)
        .chain(segments.into_iter().flatten());
    words.chain(contents).flat_map(u32::to_le_bytes).collect()
}

/// Returns contents as a file of Intel HEX.
pub fn intel_hex(address: u32, contents: &[u8]) -> String {
    let mut records = vec![Record::ExtendedLinearAddress((address >> 16) as u16)];
    records.extend(
        (address as u16..)
            .step_by(16)
            .zip(contents.chunks(16))
            .map(|(offset, value)| {
                let value = value.to_vec();
                Record::Data { offset, value }
            }),
    );
    records.push(Record::EndOfFile);
    ihex::create_object_file_representation(&records).expect("records") + "\n"
}

/// Makes the file a shared one (ET_DYN), as linkers write position-independent programs.
fn shared(mut program: Vec<u8>) -> Vec<u8> {
    program[16] = 3;
    program
}

/// Returns images without program headers.
fn flat_images() -> Vec<(&'static str, Vec<u8>)> {
    let world = raw_binary(&firmware(0x2_0000, 0x2801_0000, &[LOOP_T32], &[]));
    let hex = intel_hex(0x2_0000, &world);
    let mut even = world.clone();
    even[4] &= 0xfe;
    vec![
        ("world-broken.hex", hex.replacen("FEE7", "FEE6", 1).into_bytes()),
        ("world.hex", hex.into_bytes()),
        ("world-even.bin", even),
        ("world.bin", world),
        (
            "world.srec",
            b"S00F000068656C6C6F202020202000003C\nS9030000FC\n".to_vec(),
        ),
        ("movable.elf", movable(0x2_0000, 0x2801_0000, 23)),
        ("movable-odd.elf", movable(0x2_0000, 0x2801_0000, 2)),
        ("shared-odd.elf", shared(movable(0x2_0000, 0x2801_0000, 2))),
        (
            "mcu-masks.bin",
            raw_binary(&firmware(0x3_0000, 0x2001_0000, &[LOOP_T32, 0xb672], &[])),
        ),
    ]
}

/// Returns programs for microcontrollers.
fn programs_in_place() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("mcu.elf", firmware_at(0x3_0000, 0x2001_0000)),
        ("mcu-hello.elf", firmware_at(0, 0x2000_0000)),
        ("mcu-rtic.elf", firmware_at(0x4_0000, 0x2001_8000)),
        ("mcu-serial.elf", firmware_at(0x8_0000, 0x2005_0000)),
        ("mcu-high.elf", firmware_at(0x3d_9000, 0x2001_0000)),
        ("mcu-nowhere.elf", firmware_at(0x3_0000, 0x3000_0000)),
        (
            "mcu-stripped.elf",
            firmware(0x3_0000, 0x2001_0000, &[LOOP_T32, 0xb672, 0x4770], &[]),
        ),
        (
            "mcu-semihosting.elf",
            firmware(0x3_0000, 0x2001_0000, &[0xbeab, LOOP_T32], &[(0, "$t")]),
        ),
        ("mcu-headless.elf", {
            // No section headers at all.
            let mut file = firmware_at(0x3_0000, 0x2001_0000);
            file[32..36].fill(0);
            file[48..52].fill(0);
            file
        }),
        // Programs without symbols, for a class that replaces nothing.
        ("mcu-world.elf", firmware(0x2_0000, 0x2801_0000, &[LOOP_T32], &[])),
        (
            "mcu-world-2.elf",
            firmware(0x3_0000, 0x2802_0000, &[LOOP_T32], &[]),
        ),
        (
            "mcu-world-3.elf",
            firmware(0x4_0000, 0x2804_0000, &[LOOP_T32], &[]),
        ),
        (
            "mcu-world-4.elf",
            firmware(0x5_0000, 0x2806_0000, &[LOOP_T32], &[]),
        ),
        (
            "mcu-world-5.elf",
            firmware(0x6_0000, 0x2808_0000, &[LOOP_T32], &[]),
        ),
        ("mcu-near.elf", firmware(0x200, 0x2802_0000, &[LOOP_T32], &[])),
        ("mcu-unaligned.elf", firmware_at(0x3_0040, 0x2001_0000)),
    ]
}

/// Returns every payload of the corpus.
pub fn payloads() -> Vec<(&'static str, Vec<u8>)> {
    let one = |address, flags| vec![Segment(address, flags, &LOOP, 64)];
    let mut arm32 = vm_elf();
    arm32[4] = 1;
    let damaged = gzip(&image(0));
    let mut all = unstartable();
    all.extend(ramdisks());
    all.extend(programs_in_place());
    all.extend(flat_images());
    all.extend([
        ("raw.bin", LOOP.to_vec()),
        ("empty.bin", Vec::new()),
        ("vm.elf", vm_elf()),
        ("task.elf", task_elf()),
        (
            "rwx-task.elf",
            elf(AARCH64, EXECUTABLE, 0x4000_0000, &one(0x4000_0000, RWX)),
        ),
        (
            "outside.elf",
            elf(AARCH64, EXECUTABLE, 0x9000_0000, &one(0x9000_0000, RX)),
        ),
        (
            "overlap.elf",
            elf(
                AARCH64,
                EXECUTABLE,
                0x4008_0000,
                &[
                    Segment(0x4008_0000, RX, &LOOP, 64),
                    Segment(0x4008_0020, RW, &LOOP, 64),
                ],
            ),
        ),
        ("truncated.elf", vm_elf()[..176].to_vec()),
        (
            "x86.elf",
            elf(X86_64, EXECUTABLE, 0x4008_0000, &one(0x4008_0000, RX)),
        ),
        ("pc.elf", elf(X86_64, EXECUTABLE, 0x10_0000, &one(0x10_0000, RX))),
        (
            "pc-task.elf",
            elf(X86_64, EXECUTABLE, 0x4000_0000, &one(0x4000_0000, RX)),
        ),
        ("bzimage", bzimage()),
        ("object.elf", elf(AARCH64, 1, 0x4008_0000, &one(0x4008_0000, RX))),
        ("arm32.elf", arm32),
        ("image", image(32 << 20)),
        ("truncated-image", efi(image(32 << 20), 0xaa64, 8192)),
        ("x86.efi", efi(vec![0; 4096], 0x8664, 0)),
        ("zboot-zstd", zboot("zstd", b"\x28\xb5\x2f\xfd")),
        ("truncated-zboot", zboot("gzip", &damaged)[..160].to_vec()),
        ("kernel.xz", b"\xfd7zXZ\0\0\x04".to_vec()),
        ("bomb.gz", gzip(&vec![0; 4 << 20])),
        ("truncated.gz", damaged[..damaged.len() / 2].to_vec()),
        ("ramdisk.cpio", [&b"070701"[..], &[b'0'; 16378]].concat()),
        ("init.sh", b"#!/bin/sh\n".to_vec()),
        ("bad.dtbo", b"\xd0\x0d\xfe\xed is all there is".to_vec()),
        ("label.dtbo", overlay("no_such_label")),
        ("uart.dtbo", overlay("uart0")),
    ]);
    all
}

/// Finds named payloads among stand-ins in the corpus.
pub fn resolve(name: &str) -> Result<PathBuf, String> {
    let file = match name {
        "@debian/linux-arm64" | "@debian/linux-armhf" => "image",
        "@debian/initramfs" | "@debian/initramfs-armhf" => "shell.cpio",
        "@debian/initramfs-amd64" => "shell-x86.cpio",
        name if name.starts_with("@debian/linux-arm64/modules/") => "ramdisk.cpio",
        "@guests/supervisor"
        | "@guests/hello-task"
        | "@guests/modes"
        | "@guests/monitor"
        | "@guests/apex-sensor"
        | "@guests/apex-control"
        | "@guests/device-server" => "task.elf",
        "@guests/linux-regulator" | "@guests/linux-serial" => "init.sh",
        "@debian/linux-cloud-amd64" => "bzimage",
        "@guests/x86-hello" | "@guests/x86-control" | "@guests/x86-rogue" | "@guests/x86-direct" => "pc.elf",
        "@guests/x86-supervisor" => "pc-task.elf",
        "@guests/mcu-hello" => "mcu-hello.elf",
        "@guests/world-hello-task" | "@guests/world-control" => "mcu-world.elf",
        "@guests/world-monitor" => "mcu-world-2.elf",
        "@guests/world-freertos" => "mcu-world-3.elf",
        "@guests/world-freertos-b" => "mcu-world-4.elf",
        "@guests/world-driver" => "mcu-world-5.elf",
        "@guests/mcu-ticker" | "@guests/mcu-rtos" | "@guests/mcu-rtos-net" => "mcu.elf",
        "@guests/mcu-rtic" | "@guests/mcu-supervisor" | "@guests/mcu-sensor" => "mcu-rtic.elf",
        "@guests/mcu-serial" | "@guests/mcu-rtos-wild" | "@guests/mcu-monitor" => "mcu-serial.elf",
        "@debian/linux-ppc405" | "@guests/ppc-hello" | "@guests/ppc-control" => "ppc-vm.elf",
        "@guests/ppc-shell" => "ramdisk.cpio",
        "@guests/ppc-hello-task" => "ppc-task.elf",
        "@guests/sensor"
        | "@guests/serial-echo"
        | "@guests/regulator"
        | "@guests/hello"
        | "@guests/control-loop"
        | "@guests/noisy"
        | "@guests/rogue" => "vm.elf",
        _ => return Err("there is no payload of this name".to_owned()),
    };
    Ok(root().join("tests/config-bad/payloads").join(file))
}
