// SPDX-License-Identifier: Apache-2.0
//! The boards on which Linux is measured: kernel, program, operations and bars.

use bulkhead_manifest::board::Board;

/// A board with Linux.
pub(super) struct Setup {
    pub board: &'static str,
    /// The page with the table.
    pub page: &'static str,
    /// The kernel, among the payloads of Debian.
    pub kernel: &'static str,
    /// The archive that has the program as its `/init`. Without one the program is the whole RAM disk.
    pub archive: Option<&'static str>,
    /// The program, among the guests.
    pub guest: &'static str,
    pub memory: &'static str,
    pub bootargs: &'static str,
    pub rows: &'static [&'static [Row]],
    pub waivers: &'static [Waiver],
    /// True if the page has a table of exits by their causes.
    pub has_exits: bool,
}

/// An operation.
pub(super) struct Row {
    /// The name that the program prints.
    pub key: &'static str,
    pub title: &'static str,
    /// Most that the operation may cost in a VM, in percent of its cost on the bare board.
    pub bar: Option<u64>,
    /// The slack of the figure, in nanoseconds: a smaller figure differs by more than the bar without a
    /// cause.
    pub slack: u64,
}

/// A bar that does not hold yet: most that the operation may cost until then, in percent, and the reason.
pub(super) struct Waiver {
    pub key: &'static str,
    pub most: u64,
    pub why: &'static str,
}

/// The bar of operations that need no exit, in percent.
const USUAL: u64 = 105;
/// The usual slack, in nanoseconds.
const SLACK: u64 = 100;
/// The slack of a byte by a pipe, in nanoseconds. The kernel wakes the other process in one of two ways,
/// which differ by a twentieth, and keeps to one way for a whole run.
const WAKE: u64 = 800;
/// The slack of the lateness of sleeps, in nanoseconds. Ticks and background work of the kernel fall among
/// the sleeps of one run and not of the other, so this lateness has a slack of its own.
const LATER: u64 = 10_000;

/// The time from the first instruction of the kernel, or on the bare board of the board, to the first line of
/// the program.
pub(super) const BOOT: &str = "boot";

const fn row(key: &'static str, title: &'static str, bar: u64) -> Row {
    Row {
        key,
        title,
        bar: Some(bar),
        slack: SLACK,
    }
}

const fn usual(key: &'static str, title: &'static str) -> Row {
    row(key, title, USUAL)
}

/// The lateness of sleeps: the mean, and the keys and titles of the least and the most.
const LATE: &str = "how late a sleep of 1 ms ends";
const LEAST: &str = "sleep-least";
const MOST: &str = "sleep-most";
const LATE_LEAST: &str = "how late it ends at least, of two thousand";
const LATE_MOST: &str = "how late it ends at most, of two thousand";

const SOCKET: Row = usual("socket", "byte to another process and back, socket");

/// Returns an operation without a bar.
const fn free(key: &'static str, title: &'static str) -> Row {
    Row {
        key,
        title,
        bar: None,
        slack: SLACK,
    }
}

/// The boot, where the bare board has other devices than the VM.
const BOOT_FREE: &[Row] = &[free(BOOT, BOOT_TITLE)];
const BOOT_TITLE: &str = "boot of Linux, to the first line of its first program";

/// The operations that need no exit.
const OPERATIONS: &[Row] = &[
    usual("syscall", "system call (getppid)"),
    usual("read", "read of a byte from /dev/zero"),
    usual("write", "write of a byte to /dev/null"),
    usual("stat", "stat"),
    usual("open", "open and close"),
    usual("signal-install", "signal handler installed"),
    usual("signal", "signal to itself, handled"),
    usual("map", "mmap and munmap of 256 KiB"),
    usual("fault", "page fault of anonymous memory"),
    Row {
        key: "pipe",
        title: "byte to another process and back, pipe",
        bar: Some(USUAL),
        slack: WAKE,
    },
    SOCKET,
    usual("fork", "fork, exit, wait"),
    usual("exec", "fork, exec, exit, wait"),
    Row {
        key: "sleep",
        title: LATE,
        bar: Some(USUAL),
        slack: LATER,
    },
    free(LEAST, LATE_LEAST),
    free(MOST, LATE_MOST),
];

/// The small applications.
const APPLICATIONS: &[Row] = &[
    usual("untar", "application: tar archive unpacked"),
    usual("groups", "application: messages in groups of processes"),
    usual("store", "application: store of keys and values, by TCP"),
    usual("transfer", "application: file of 16 MiB by HTTP"),
    usual("database", "application: transactions and queries of a database"),
];

/// The operations where each privileged instruction traps.
const TRAPPING: &[Row] = &[
    row(BOOT, BOOT_TITLE, 110),
    row("syscall", "system call (getppid)", 300),
    free("read", "read of a byte from /dev/zero"),
    free("write", "write of a byte to /dev/null"),
    free("stat", "stat"),
    free("open", "open and close"),
    free("signal-install", "signal handler installed"),
    free("signal", "signal to itself, handled"),
    free("map", "mmap and munmap of 256 KiB"),
    free("fault", "page fault of anonymous memory"),
    free(
        "miss",
        "touch of a page in the tables, without an entry in the translation buffer",
    ),
    row("fork", "fork, exit, wait", 200),
    free("exec", "fork, exec, exit, wait"),
    free("sleep", LATE),
    free(LEAST, LATE_LEAST),
    free(MOST, LATE_MOST),
];

/// The setups, the first one for the board that holds where nothing names another one.
pub(super) static SETUPS: &[Setup] = &[
    Setup {
        board: "qemu-virt-aarch64",
        page: "docs/timing.md",
        kernel: "linux-arm64",
        archive: Some("initramfs"),
        guest: "linux-bench",
        memory: "256M",
        bootargs: "console=ttyAMA0 quiet nokaslr",
        rows: &[OPERATIONS, APPLICATIONS, BOOT_FREE],
        has_exits: false,
        waivers: &[],
    },
    Setup {
        board: "qemu-q35-x86_64",
        page: "docs/timing-x86.md",
        kernel: "linux-cloud-amd64",
        archive: Some("initramfs-amd64"),
        guest: "x86-linux-bench",
        memory: "256M",
        bootargs: "console=ttyS0 quiet nokaslr",
        rows: &[OPERATIONS, APPLICATIONS, BOOT_FREE],
        has_exits: true,
        waivers: &[],
    },
    Setup {
        board: "ref405ep",
        page: "docs/timing-ppc405.md",
        kernel: "linux-ppc405",
        archive: None,
        guest: "ppc-linux-bench",
        memory: "32M",
        bootargs: "console=ttyS0,115200 quiet",
        rows: &[TRAPPING],
        has_exits: false,
        waivers: &[],
    },
];

impl Setup {
    /// Returns the setup of a board.
    pub fn of(board: &Board) -> Option<&'static Self> {
        SETUPS.iter().find(|setup| setup.board == board.name)
    }

    /// Returns the operations in the order of the table.
    pub fn rows(&self) -> impl Iterator<Item = &'static Row> + use<> {
        self.rows.iter().copied().flatten()
    }

    /// Returns the manifest of the program's system.
    pub fn manifest(&self) -> String {
        let Self {
            board,
            kernel,
            guest,
            bootargs,
            memory,
            ..
        } = self;
        let disk = match self.archive {
            Some(archive) => format!("ramdisk = \"@debian/{archive}\"\ninit = \"@guests/{guest}\"\n"),
            None => format!("ramdisk = \"@guests/{guest}\"\n"),
        };
        format!(
            "board = \"{board}\"\n[partition.linux]\nkind = \"vm\"\nimage = \"@debian/{kernel}\"\n{disk}\
             bootargs = \"{bootargs}\"\nmemory = \"{memory}\"\nvcpus = [{{ pcpu = 0 }}]\n"
        )
    }
}
