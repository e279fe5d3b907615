// SPDX-License-Identifier: Apache-2.0
//! The keys that only VMs can have, and the keys that a VM needs to run.

use crate::board::{Board, Class};
use crate::class;
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::model::{Kind, Manifest, PartitionSpec, Placed};

/// Keys of a partition that only a VM can have, with the reason.
const VM_ONLY: [(&str, &str); 11] = [
    ("ramdisk", "a task is one program without a file system"),
    ("init", "a task is one program without a file system"),
    (
        "bootargs",
        "a task has no command line; it finds its capabilities in its startup page",
    ),
    (
        "time",
        "a task has no virtual timer; it reads the time since boot",
    ),
    ("modules", "a task has no kernel"),
    ("interrupt-latency", "a task has no interrupts of devices"),
    ("early-handlers", "a task has no interrupts of devices"),
    ("device-tree-overlay", "a task has no device tree"),
    ("machine", "a task has no virtual machine"),
    ("region", "a task has one stretch of memory"),
    (
        "alternative",
        "a task's memory is mapped as its one program asks for",
    ),
];
/// The payloads that `init` is put into begin with this. They differ by the architecture (`-armhf`).
const INITRAMFS: &str = "@debian/initramfs";
/// The names of the kernels whose modules are at hand begin with this.
const KERNEL: &str = "@debian/linux-";

/// Longest command line: arm64 Linux has room for 2048 bytes, the NUL at the end included.
const BOOTARGS_MAX: usize = 2047;

pub(super) fn check(manifest: &Manifest, board: Option<&Board>, report: &mut Report) {
    let ramdisk = board.map_or(INITRAMFS, |board| class::host(board.class).initramfs());
    for partition in &manifest.partitions {
        if partition.kind == Kind::Task {
            not_for_task(partition, report);
        }
        let alternatives = partition.alternatives.iter();
        for spec in alternatives.map(|other| partition.with(other)) {
            init_needs_initramfs(&spec, ramdisk, report);
            modules_need_debian(&spec, ramdisk, report);
        }
        init_needs_initramfs(partition, ramdisk, report);
        modules_need_debian(partition, ramdisk, report);
        something_to_run(partition, board, report);
        command_lines_are_possible(partition, report);
        console_exists(partition, report);
        floats_have_a_meaning(partition, board, report);
    }
}

fn not_for_task(partition: &PartitionSpec, report: &mut Report) {
    for (key, why) in VM_ONLY {
        if let Some(found) = partition.keys.iter().find(|found| found.value == key) {
            let message = format!("the task `{}` cannot have `{key}`", partition.name.value);
            report.push(
                Diagnostic::at(Code::NotForTask, found.place, message)
                    .label(why)
                    .help(format!(
                        "remove `{key}`, or make the partition a VM: kind = \"vm\""
                    )),
            );
        }
    }
}

/// Checks that the class has a choice about floating point of the partition.
fn floats_have_a_meaning(partition: &PartitionSpec, board: Option<&Board>, report: &mut Report) {
    let Some(place) = partition.floating_point.key else {
        return;
    };
    let class = Class::of_board(board);
    let why = match partition.kind {
        Kind::Vm => "a VM has what its processor has",
        Kind::Task if class.facts().guards_memory() => return,
        Kind::Task => "all tasks of this class have the same registers",
    };
    let message = format!(
        "`floating-point` of `{}` has no meaning on a board of class `{}`",
        partition.name.value,
        class.name()
    );
    report.push(
        Diagnostic::at(Code::NotForClass, place, message)
            .label(why)
            .help("remove it: it is for tasks on boards with a `security` controller"),
    );
}

/// Checks that there is a RAM disk into which `init` can be put. `own` is the one for the usual programs of
/// the class.
fn init_needs_initramfs(partition: &PartitionSpec, own: &str, report: &mut Report) {
    let Some(init) = &partition.init else { return };
    if partition.kind == Kind::Vm
        && partition
            .ramdisk
            .as_ref()
            .is_none_or(|ramdisk| !ramdisk.value.starts_with(INITRAMFS))
    {
        report.push(
            Diagnostic::at(
                Code::InitWithoutInitramfs,
                init.place,
                format!("`init` needs ramdisk = \"{own}\""),
            )
            .help(format!(
                "add `ramdisk = \"{own}\"`, or put the script into your own RAM disk"
            )),
        );
    }
}

/// Checks that the RAM disk is Debian's if modules are given: modules fit one kernel only, and something must
/// load them.
fn modules_need_debian(partition: &PartitionSpec, own: &str, report: &mut Report) {
    let Some(first) = partition.modules.first() else {
        return;
    };
    let is = |name: &Option<Placed<String>>, prefix| {
        name.as_ref().is_some_and(|name| name.value.starts_with(prefix))
    };
    let fits = is(&partition.image, KERNEL) && is(&partition.ramdisk, INITRAMFS);
    if partition.kind == Kind::Vm && !fits {
        let message = format!("`modules` needs a kernel `{KERNEL}...` and ramdisk = \"{own}\"");
        report.push(
            Diagnostic::at(Code::ModulesWithoutKernel, first.place, message)
                .help("name both, or put the modules into your own RAM disk"),
        );
    }
    for module in &partition.modules {
        let possible = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_');
        if module.value.is_empty() || !module.value.chars().all(possible) {
            let message = format!("`{}` cannot be the name of a module", module.value);
            report.push(
                Diagnostic::at(Code::ModulesWithoutKernel, module.place, message)
                    .help("give the name that `lsmod` shows, without `.ko`"),
            );
        }
    }
}

/// Checks the command lines of a VM and of its alternatives.
fn command_lines_are_possible(partition: &PartitionSpec, report: &mut Report) {
    let others = partition.alternatives.iter();
    let others = others.filter_map(|alternative| alternative.bootargs.as_ref());
    for line in partition.bootargs.iter().chain(others) {
        let length = line.value.len();
        let (message, help) = if line.value.contains('\0') {
            (
                "the kernel's command line has a NUL".to_owned(),
                "remove it: a kernel takes it for the end of the line",
            )
        } else if length > BOOTARGS_MAX {
            (
                format!("the kernel's command line has {length} bytes, more than {BOOTARGS_MAX}"),
                "shorten it: Linux cuts off the rest without a word",
            )
        } else {
            continue;
        };
        report.push(Diagnostic::at(Code::BadBootargs, line.place, message).help(help));
    }
}

fn something_to_run(partition: &PartitionSpec, board: Option<&Board>, report: &mut Report) {
    if partition.image.is_some() {
        return;
    }
    let has_code = partition.regions.iter().any(|region| region.payload.is_some())
        || partition.flash.as_ref().is_some_and(|flash| flash.code.is_some());
    // A board that is not known may have firmware.
    let places = board.map_or(Some("a region with a `payload`"), |board| {
        class::host(board.class).firmware()
    });
    let firmware = has_code && partition.machine.entry.is_some() && places.is_some();
    if partition.kind == Kind::Task || !firmware {
        let help = match (partition.kind, places) {
            (Kind::Task, _) => "add `image`: an ELF file".to_owned(),
            (Kind::Vm, None) => "add `image`".to_owned(),
            (Kind::Vm, Some(_)) if has_code => {
                "add the address of the first instruction, such as machine = { entry = 0x0 }".to_owned()
            }
            (Kind::Vm, Some(places)) => {
                format!("add `image`, or `machine.entry` and {places}, that contains it")
            }
        };
        let message = if has_code && partition.kind == Kind::Vm && places.is_some() {
            format!(
                "partition `{}` has firmware, and nobody says where it begins",
                partition.name.value
            )
        } else {
            format!("partition `{}` has nothing to run", partition.name.value)
        };
        report.push(Diagnostic::at(Code::NoImage, partition.name.place, message).help(help));
    } else if let Some(ramdisk) = &partition.ramdisk {
        report.push(
            Diagnostic::at(
                Code::NoImage,
                ramdisk.place,
                format!(
                    "partition `{}` has a ramdisk, but no image to use it",
                    partition.name.value
                ),
            )
            .help("add `image`, or remove `ramdisk`"),
        );
    }
}

fn console_exists(partition: &PartitionSpec, report: &mut Report) {
    let Some(bootargs) = &partition.bootargs else {
        return;
    };
    if !partition.console && bootargs.value.contains("console=ttyAMA") {
        report.push(
            Diagnostic::at(
                Code::SilentConsole,
                bootargs.place,
                "the kernel's console is a UART the partition does not have",
            )
            .help("remove `console = false`, or the console from `bootargs`"),
        );
    }
}
