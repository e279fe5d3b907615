// SPDX-License-Identifier: Apache-2.0
//! Makes the initramfs of the stock Linux guest: busybox, its applets, and an `/init`.
//!
//! The archive is `newc` cpio (Linux: Documentation/driver-api/early-userspace/buffer-format.rst). It is
//! uncompressed, because the guest's own time is dearer than the host's. Equal input gives equal bytes: inode
//! numbers are counted, times are zero, entries come in a fixed order.

use crate::build::modules::Module;

const DIRECTORY: u32 = 0o040_755;
const EXECUTABLE: u32 = 0o100_755;
const FILE: u32 = 0o100_644;
const LINK: u32 = 0o120_777;
const CHARACTER_DEVICE: u32 = 0o020_600;

/// Directories of the archive.
const DIRECTORIES: &[&str] = &[
    "bin", "dev", "etc", "proc", "root", "run", "sbin", "sys", "tmp", "usr", "usr/bin", "usr/sbin",
];

/// Applets that get a link in `/bin`. Any other applet runs as `busybox NAME`.
const APPLETS: &[&str] = &[
    "[",
    "ash",
    "awk",
    "basename",
    "cat",
    "chmod",
    "clear",
    "cmp",
    "cp",
    "cut",
    "cttyhack",
    "date",
    "dd",
    "devmem",
    "df",
    "dirname",
    "dmesg",
    "du",
    "echo",
    "env",
    "expr",
    "false",
    "find",
    "free",
    "grep",
    "gunzip",
    "gzip",
    "halt",
    "head",
    "hexdump",
    "hostname",
    "id",
    "ifconfig",
    "insmod",
    "ip",
    "kill",
    "killall",
    "less",
    "ln",
    "ls",
    "lsmod",
    "md5sum",
    "mkdir",
    "mknod",
    "modprobe",
    "mount",
    "mv",
    "nc",
    "nproc",
    "od",
    "pgrep",
    "pidof",
    "ping",
    "poweroff",
    "printf",
    "ps",
    "pwd",
    "reboot",
    "rm",
    "rmdir",
    "rmmod",
    "sed",
    "seq",
    "setsid",
    "sh",
    "sha256sum",
    "sleep",
    "sort",
    "stat",
    "stty",
    "sync",
    "sysctl",
    "tail",
    "tar",
    "taskset",
    "tee",
    "test",
    "time",
    "timeout",
    "top",
    "touch",
    "tr",
    "true",
    "tty",
    "udhcpc",
    "umount",
    "uname",
    "uniq",
    "uptime",
    "usleep",
    "vi",
    "watch",
    "wc",
    "which",
    "xargs",
    "yes",
    "zcat",
];

/// `/init`, unless the manifest's `init` puts another in its place: an interactive shell on the console.
const DEFAULT_INIT: &str = "\
#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/root PS1='~ # '
cd /root
echo \"Linux $(uname -r) on $(nproc) CPUs\"
while :; do setsid cttyhack sh; done
";

/// Folder of the modules. A number in front of each name lets the shell list them in the order of loading.
const MODULES: &str = "lib/modules";

/// `/init` of an archive of modules: loads them and becomes `/sbin/init`.
const LOADING_INIT: &str = "\
#!/bin/sh
for module in /lib/modules/*.ko; do
    insmod \"$module\" || echo \"init: cannot load $module\"
done
exec /sbin/init
";

/// Returns an archive to put after the one of [`build`]. The archive's `/init` loads `modules` in their order
/// and becomes `/sbin/init`, which can be replaced by a script of the user's.
#[must_use]
pub fn build_modules(modules: &[Module]) -> Vec<u8> {
    let mut archive = Archive::default();
    archive.entry("lib", DIRECTORY, &[]);
    archive.entry(MODULES, DIRECTORY, &[]);
    for (number, module) in modules.iter().enumerate() {
        let name = format!("{MODULES}/{number:03}-{}.ko", module.name);
        archive.entry(&name, FILE, &module.bytes);
    }
    archive.entry("sbin/init", EXECUTABLE, DEFAULT_INIT.as_bytes());
    archive.entry("init", EXECUTABLE, LOADING_INIT.as_bytes());
    archive.finish()
}

/// Returns the archive with `busybox` as `/bin/busybox`.
#[must_use]
pub fn build(busybox: &[u8]) -> Vec<u8> {
    let mut archive = Archive::default();
    for name in DIRECTORIES {
        archive.entry(name, DIRECTORY, &[]);
    }
    archive.node("dev/console", CHARACTER_DEVICE, 5, 1, &[]);
    archive.node("dev/null", CHARACTER_DEVICE | 0o066, 1, 3, &[]);
    archive.entry("bin/busybox", EXECUTABLE, busybox);
    for applet in APPLETS {
        archive.entry(&format!("bin/{applet}"), LINK, b"busybox");
    }
    archive.entry("init", EXECUTABLE, DEFAULT_INIT.as_bytes());
    archive.finish()
}

#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    inode: u32,
}

impl Archive {
    /// Adds a file, folder or link.
    fn entry(&mut self, name: &str, mode: u32, data: &[u8]) {
        self.node(name, mode, 0, 0, data);
    }

    /// Adds a file of any kind. `major` and `minor` are the numbers of a device.
    fn node(&mut self, name: &str, mode: u32, major: u32, minor: u32, data: &[u8]) {
        self.inode += 1;
        // All fields are 8 hexadecimal digits. The files of these archives are far smaller than 4 GiB.
        let size = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let name_size = u32::try_from(name.len() + 1).unwrap_or(u32::MAX);
        let links = if mode & 0o170_000 == DIRECTORY & 0o170_000 {
            2
        } else {
            1
        };
        let fields = [
            self.inode, mode, 0, 0, links, 0, size, 0, 0, major, minor, name_size, 0,
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.align(4);
        self.bytes.extend_from_slice(data);
        self.align(4);
    }

    fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.align(512);
        self.bytes
    }

    fn align(&mut self, multiple: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(multiple), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names, modes and data of an archive.
    fn entries(mut archive: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let mut found = Vec::new();
        loop {
            assert_eq!(&archive[..6], b"070701");
            let field = |index: usize| {
                let digits = std::str::from_utf8(&archive[6 + 8 * index..14 + 8 * index]).unwrap();
                u32::from_str_radix(digits, 16).unwrap() as usize
            };
            let (mode, size, name_size) = (field(1), field(6), field(11));
            let name = String::from_utf8(archive[110..110 + name_size - 1].to_vec()).unwrap();
            if name == "TRAILER!!!" {
                return found;
            }
            let data = (110 + name_size).next_multiple_of(4);
            found.push((
                name,
                u32::try_from(mode).unwrap(),
                archive[data..data + size].to_vec(),
            ));
            archive = &archive[(data + size).next_multiple_of(4)..];
        }
    }

    #[test]
    fn the_archive_has_what_linux_needs() {
        let archive = build(b"ELF!!");
        assert_eq!(archive.len() % 512, 0);
        let entries = entries(&archive);
        let find = |name: &str| entries.iter().find(|entry| entry.0 == name).unwrap();
        assert_eq!(find("bin/busybox").2, b"ELF!!");
        assert!(find("init").2.starts_with(b"#!/bin/sh\n"));
        assert_eq!(find("init").1, 0o100_755);
        assert_eq!(find("dev/console").1, 0o020_600);
        assert_eq!(find("dev/null").1, 0o020_666);
        assert_eq!(find("bin/sh").2, b"busybox");
        assert!(
            entries.iter().position(|entry| entry.0 == "bin")
                < entries.iter().position(|entry| entry.0 == "bin/sh")
        );
    }

    #[test]
    fn modules_are_listed_in_the_order_of_loading() {
        let module = |name: &str| Module {
            name: name.to_owned(),
            bytes: b"ELF".to_vec(),
        };
        let archive = build_modules(&[module("virtio_mmio"), module("ext4")]);
        let entries = entries(&archive);
        let files: Vec<&str> = entries
            .iter()
            .map(|entry| entry.0.as_str())
            .filter(|name| name.ends_with(".ko"))
            .collect();
        assert_eq!(
            files,
            ["lib/modules/000-virtio_mmio.ko", "lib/modules/001-ext4.ko"]
        );
        assert!(
            entries
                .iter()
                .any(|entry| entry.0 == "sbin/init" && entry.1 == EXECUTABLE)
        );
        assert_eq!(entries.last().unwrap().0, "init");
    }

    /// Returns a program of one loadable segment for a 64-bit Arm, as Linux starts it.
    fn shell() -> Vec<u8> {
        let mut elf = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\xb7\0\x01\0\0\0".to_vec();
        elf.extend([0, 64, 0].map(u64::to_le_bytes).concat());
        elf.extend([0, 0, 64, 56, 1, 0, 0, 0].map(u16::to_le_bytes).concat());
        elf.extend([1, 5].map(u32::to_le_bytes).concat());
        elf.extend([0_u8; 48]);
        elf
    }

    /// Checks a VM whose script is for `interpreter`, with the tool's own archive, as a manifest has it.
    fn checked(interpreter: &str) -> String {
        let folder = std::env::temp_dir().join(format!("bulkhead-initramfs-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let archive = folder.join("initramfs.cpio");
        std::fs::write(&archive, build(&shell())).unwrap();
        std::fs::write(folder.join("init.sh"), format!("#!{interpreter}\n")).unwrap();
        let manifest = "board = \"qemu-virt-aarch64\"\n[partition.a]\nkind = \"vm\"\nimage = \"@debian/linux-arm64\"\n\
                        memory = \"128M\"\nvcpus = [{ pcpu = 0 }]\nramdisk = \"@debian/initramfs\"\ninit = \"init.sh\"\n";
        let mut image = vec![0; 8192];
        image[56..60].copy_from_slice(b"ARM\x64");
        std::fs::write(folder.join("image"), image).unwrap();
        let resolve = |name: &str| {
            Ok(folder.join(if name.ends_with("initramfs") {
                "initramfs.cpio"
            } else {
                "image"
            }))
        };
        let checked = bulkhead_manifest::load_text(&folder.join("system.toml"), manifest, &resolve);
        std::fs::remove_dir_all(&folder).unwrap();
        checked.map_or_else(|report| report.render(false), |_| String::new())
    }

    #[test]
    fn a_script_is_for_a_program_of_the_archive() {
        for there in ["/bin/sh", "/bin/busybox sh", "/bin/env awk"] {
            assert_eq!(checked(there), "", "{there}");
        }
        for missing in ["/bin/bash", "/usr/bin/env sh", "/bin/env python3", ""] {
            let report = checked(missing);
            assert!(report.contains("E105"), "{missing}: {report}");
        }
    }

    #[test]
    fn equal_input_gives_equal_bytes() {
        assert_eq!(build(b"a"), build(b"a"));
        assert_ne!(build(b"a"), build(b"b"));
    }
}
