// SPDX-License-Identifier: Apache-2.0
//! Every example loads without a finding that its README does not name, and compiles to an image that the
//! hypervisor accepts.

mod support;

use bulkhead_arch_api::class::AARCH64;
use std::path::PathBuf;

use bulkhead_image::{Image, Portable};
use bulkhead_manifest::system::MappingKind;
use bulkhead_manifest::{CompileInput, System, boards, compile, load, load_text};

fn example(name: &str) -> System {
    let folder = support::root().join("examples").join(name);
    let path = folder.join("system.toml");
    let system = load(&path, &support::resolve).unwrap_or_else(|report| panic!("{name}:\n{report}"));
    let readme = std::fs::read_to_string(folder.join("README.md")).unwrap_or_default();
    let findings = &system.report().diagnostics;
    assert!(
        findings.iter().all(|finding| readme.contains(finding.code.id())),
        "{name}:\n{}",
        system.report()
    );
    system
}

fn names() -> Vec<String> {
    let folders = std::fs::read_dir(support::root().join("examples")).expect("there are examples");
    let paths: Vec<PathBuf> = folders.filter_map(|entry| Some(entry.ok()?.path())).collect();
    let with_manifest = paths.iter().filter(|path| path.join("system.toml").is_file());
    with_manifest
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .collect()
}

#[test]
fn every_example_compiles() {
    let names = names();
    assert!(names.len() >= 3);
    for name in names {
        let system = example(&name);
        let board = system.board();
        let lengths = if board.class.facts().runs_in_place() {
            [0x4000, 0x1_0000]
        } else {
            [0x2_0000, 0x80_0000]
        };
        for class_binary_len in lengths {
            let input = CompileInput {
                class_binary_len,
                stop_after_ms: Some(1000),
                trace_records: None,
            };
            let bytes = compile(&system, &input).unwrap_or_else(|error| panic!("{name}: {error}"));
            let image = Image::check(&bytes, board.class.facts(), &Portable).expect("the writer checked it");
            assert_eq!(image.partitions().len(), system.partitions().len());
            assert_eq!(
                image.board().image_base.get(),
                board.load_address + class_binary_len
            );
            assert_eq!(image.board().stop_after_ms.get(), 1000);
        }
    }
}

#[test]
fn what_new_makes_is_right_on_every_board() {
    for board in boards() {
        let folder = support::root()
            .join("cli/src/class")
            .join(board.class.name())
            .join("template");
        let path = folder.join("system.toml");
        let text = std::fs::read_to_string(&path).expect("each class has a template");
        let text = text.replace("@BOARD@", &board.name);
        let system = load_text(&path, &text, &support::resolve)
            .unwrap_or_else(|report| panic!("{}:\n{report}", board.name));
        assert!(system.report().diagnostics.is_empty(), "{}", system.report());
        assert_eq!(system.board().name, board.name);
        assert_eq!(system.partitions().len(), 2);
    }
}

#[test]
fn every_example_is_described() {
    for name in names() {
        assert!(
            support::root()
                .join("examples")
                .join(&name)
                .join("README.md")
                .is_file(),
            "{name} has no README.md"
        );
    }
}

#[test]
fn the_showcase_is_what_it_says() {
    let system = example("aarch64-linux-rt");
    let partitions: Vec<_> = system
        .partitions()
        .iter()
        .map(|partition| partition.name())
        .collect();
    assert_eq!(partitions, ["linux", "control", "supervisor", "rogue"]);
    assert_eq!(system.pcpus().len(), 2);
    let shared = &system.cpu_assignment()[0];
    assert_eq!(
        shared.vcpus,
        [("control".to_owned(), 0, 24), ("linux".to_owned(), 0, 4)]
    );
    let linux = &system.partitions()[0];
    let ram = linux
        .mappings()
        .into_iter()
        .find(|mapping| mapping.kind == MappingKind::Ram)
        .expect("RAM");
    assert_eq!((ram.guest, ram.size), (0x4000_0000, 256 << 20));
    assert_eq!(ram.host % (2 << 20), 0);
    let touches = system.who_can_touch_what();
    let supervisor: Vec<_> = touches
        .iter()
        .filter(|row| row.partition == "supervisor")
        .collect();
    assert!(
        supervisor
            .iter()
            .any(|row| row.object == "partition linux" && row.how == "read, control")
    );
    // The control loop aligns itself with the clock. Only the supervisor has more.
    let others = touches.iter().filter(|row| row.partition != "supervisor");
    assert!(
        others
            .map(|row| (row.partition.as_str(), row.object.as_str(), row.how.as_str()))
            .eq([("control", "system clock", "read")])
    );
}

#[test]
fn places_do_not_depend_on_the_class_binary() {
    let system = example("aarch64-linux-rt");
    let places = |class_binary_len| {
        let bytes = compile(
            &system,
            &CompileInput {
                class_binary_len,
                stop_after_ms: None,
                trace_records: None,
            },
        )
        .expect("compiles");
        let image = Image::check(&bytes, &AARCH64, &Portable).expect("checked");
        image
            .memory()
            .iter()
            .map(|mapping| mapping.host.get())
            .collect::<Vec<_>>()
    };
    assert_eq!(places(0x1_0000), places(0x20_0000));
}

#[test]
fn ram_of_a_vm_with_unconfined_dma_is_where_it_seems_to_be() {
    let system = example("aarch64-linux-disk-net");
    let linux = &system.partitions()[0];
    let ram: Vec<_> = linux
        .mappings()
        .into_iter()
        .filter(|mapping| mapping.kind == MappingKind::Ram)
        .collect();
    assert_eq!(ram.len(), 1);
    assert!(linux.unconfined_dma());
    assert_eq!(ram[0].guest, ram[0].host);
    let node = format!("memory@{:x}", ram[0].host);
    let text = String::from_utf8_lossy(linux.device_tree()).into_owned();
    assert!(text.contains(&node), "the device tree has no {node}");
    // The same place for a class binary of any size within its reserve.
    for class_binary_len in [0x1000, 0x20_0000] {
        let input = CompileInput {
            class_binary_len,
            stop_after_ms: None,
            trace_records: None,
        };
        let bytes = compile(&system, &input).expect("it compiles");
        let image = Image::check(&bytes, &AARCH64, &Portable).expect("the writer checked it");
        let mapping = image.memory_of(0).next().expect("RAM");
        assert_eq!(
            (mapping.guest, mapping.host),
            (ram[0].guest.into(), ram[0].host.into())
        );
        // Both devices share a page with others, so nothing of that page is mapped.
        assert_eq!(image.memory_of(0).count(), 1);
        assert_eq!(image.registers().len(), 2);
    }
}
