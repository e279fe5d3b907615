// SPDX-License-Identifier: Apache-2.0
//! Areas of every accepted manifest are apart: from each other and from the hypervisor, and inside the
//! board's RAM.

mod support;

use bulkhead_manifest::system::MappingKind;
use bulkhead_manifest::{Code, load_text};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Boards with the addresses of their RAM.
const BOARDS: [(&str, std::ops::Range<u64>); 4] = [
    ("qemu-virt-aarch64", 0x4000_0000..0xc000_0000),
    ("raspberry-pi-4", 0x10_0000..0x3b20_0000),
    ("xlnx-versal", 0..0x8000_0000),
    ("xlnx-zcu102", 0..0x8000_0000),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, rng_seed: RngSeed::Fixed(2), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn places_are_apart(board in 0..BOARDS.len(), sizes in prop::collection::vec((0_u64..20, 1_u64..8, prop::option::of(0_u64..0x8_0000)), 1..24)) {
        let (board, ram_of_board) = &BOARDS[board];
        let mut text = format!("board = \"{board}\"\n");
        for (index, (scale, factor, place)) in sizes.iter().enumerate() {
            let size = (factor << scale) * 4096 + 0x10_0000;
            text.push_str(&format!("[partition.p{index}]\nkind = \"vm\"\nimage = \"payloads/raw.bin\"\nmemory = {size}\nvcpus = [{{ pcpu = 0 }}]\nautostart = true\n"));
            if let Some(page) = place.filter(|_| index % 4 == 0) {
                text.push_str(&format!("place = {:#x}\n", ram_of_board.start + page * 4096));
            }
        }
        let path = support::root().join("tests/config-bad/system.toml");
        match load_text(&path, &text, &support::resolve) {
            Err(report) => {
                let expected = [Code::RamExhausted, Code::OutsideRam, Code::PlaceOverlap, Code::HypervisorMemory, Code::OddMemory, Code::EqualPriority];
                prop_assert!(report.diagnostics.iter().all(|diagnostic| expected.contains(&diagnostic.code)), "{report}");
            }
            Ok(system) => {
                let rows: Vec<_> = system.memory_map().into_iter().filter(|row| ram_of_board.contains(&row.host)).collect();
                for pair in rows.windows(2) {
                    prop_assert!(pair[0].host + pair[0].size <= pair[1].host);
                }
                prop_assert!(rows.iter().all(|row| row.host + row.size <= ram_of_board.end));
                for partition in system.partitions() {
                    let ram = partition.mappings().into_iter().find(|mapping| mapping.kind == MappingKind::Ram).expect("RAM");
                    let index: usize = partition.name()[1..].parse().expect("a number");
                    let free = !index.is_multiple_of(4) || sizes[index].2.is_none();
                    if free && ram.size >= 2 << 20 {
                        prop_assert_eq!(ram.host % (2 << 20), ram.guest % (2 << 20));
                    }
                }
            }
        }
    }
}

#[test]
fn pages_of_a_ppc405_are_as_large_as_its_memory_allows() {
    const PAGES: [u64; 5] = [16 << 20, 4 << 20, 1 << 20, 256 << 10, 64 << 10];
    let memories = ["33M", "16M", "5M", "1M", "300K", "100K"];
    let mut text = "board = \"ref405ep\"\n".to_owned();
    for (index, memory) in memories.iter().enumerate() {
        text.push_str(&format!("[partition.p{index}]\nkind = \"vm\"\nimage = \"payloads/raw.bin\"\nmemory = \"{memory}\"\nvcpus = [{{ pcpu = 0 }}]\nautostart = true\n"));
    }
    let path = support::root().join("tests/config-bad/system.toml");
    let system = load_text(&path, &text, &support::resolve).expect("a good manifest");
    for partition in system.partitions() {
        for ram in partition
            .mappings()
            .into_iter()
            .filter(|mapping| mapping.kind == MappingKind::Ram)
        {
            let page = PAGES
                .into_iter()
                .find(|page| ram.size >= *page)
                .expect("no smaller memory");
            assert_eq!(
                ram.host % page,
                ram.guest % page,
                "{:#x} for {:#x}",
                ram.host,
                ram.size
            );
        }
    }
}

#[test]
fn areas_that_only_fit_with_smaller_pages_are_placed() {
    let mut text = "board = \"ref405ep\"\n".to_owned();
    for (name, memory) in [("a", "60M"), ("b", "40M")] {
        text.push_str(&format!("[partition.{name}]\nkind = \"vm\"\nimage = \"payloads/raw.bin\"\nmemory = \"{memory}\"\nvcpus = [{{ pcpu = 0 }}]\n"));
    }
    let path = support::root().join("tests/config-bad/system.toml");
    let report = load_text(&path, &text, &support::resolve).err();
    let is_exhausted = |report: &bulkhead_manifest::Report| {
        let mut codes = report.diagnostics.iter().map(|diagnostic| diagnostic.code);
        codes.any(|code| code == Code::RamExhausted)
    };
    assert!(!report.as_ref().is_some_and(is_exhausted), "{report:?}");
}
