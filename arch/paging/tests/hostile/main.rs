// SPDX-License-Identifier: Apache-2.0
//! Trees on a machine that is as hostile as the architecture permits ([`machine`]). The instructions with
//! which class `aarch64` stores entries and forgets translations are read from its sources, so the model
//! judges the order that the hypervisor has. Each instruction that is left out is found.

mod machine;
mod numbers;

use bulkhead_arch_api::{HostPhys, MemoryKind, Permissions};
use bulkhead_arch_paging::vmsa::Stage2;
use bulkhead_arch_paging::{Attributes, Format, Geometry, Mapping, PAGE_SIZE, Tree};
use machine::{Machine, ROOT, rights};
use proptest::prelude::*;

const SPACE: &str = include_str!("../../../aarch64/src/space.rs");
const TABLES: &str = include_str!("../../../aarch64/src/tables.rs");

/// Where pages are mapped from and to: two blocks of 2 MiB, side by side.
const INPUT: u64 = 0x4000_0000;
const OUTPUT: u64 = 0x8000_0000;
const BLOCK: u64 = 0x20_0000;
/// The pages that are looked at: some of the first block, some of the second.
const LOOKED_AT: [u64; 7] = [0, 1, 2, 3, 511, 512, 513];

const DATA: Permissions = Permissions {
    read: true,
    write: true,
    execute: false,
};
const CODE: Permissions = Permissions {
    read: true,
    write: false,
    execute: true,
};
const NOTHING: Permissions = Permissions {
    read: false,
    write: false,
    execute: false,
};

/// Returns the instructions of a function of a source file, in their order. A store of an entry is "store".
fn instructions(source: &str, function: &str) -> Vec<String> {
    let (_, rest) = source
        .split_once(&format!("fn {function}("))
        .expect("the function");
    let indent = if rest.contains("\n    }\n") && source.contains(&format!("    fn {function}(")) {
        "\n    }\n"
    } else {
        "\n}\n"
    };
    let body = rest.split(indent).next().expect("a body");
    let lines = body.lines().map(str::trim).filter(|line| !line.starts_with("//"));
    let found: Vec<String> = lines
        .filter_map(|line| {
            if line.contains("write_word(") {
                return Some("store".to_owned());
            }
            let (_, rest) = line.split_once("instruction").filter(|_| line.contains('!'))?;
            rest.split('"').nth(1).map(str::to_owned)
        })
        .collect();
    assert!(!found.is_empty(), "{function} has no instructions");
    found
}

/// Returns the machine as class `aarch64` uses it.
fn machine() -> Machine {
    let geometry = Geometry::concatenated_root(40).expect("a geometry");
    let write = instructions(TABLES, "write");
    let forget = instructions(SPACE, "forget");
    Machine::new(geometry, [write, forget, instructions(SPACE, "forget_several")])
}

fn tree(machine: &mut Machine) -> Tree<Stage2> {
    for page in LOOKED_AT {
        machine.allow(INPUT + page * PAGE_SIZE, &[]);
    }
    Tree::new(ROOT, Geometry::concatenated_root(40).expect("a geometry"))
}

fn is_looked_at(first: u64, count: u64) -> impl Iterator<Item = u64> {
    LOOKED_AT
        .into_iter()
        .filter(move |page| *page >= first && *page < first + count)
}

/// Maps pages, and fills what is mapped already.
fn fill(machine: &mut Machine, tree: &Tree<Stage2>, first: u64, count: u64) {
    for page in is_looked_at(first, count) {
        let (input, output) = (INPUT + page * PAGE_SIZE, OUTPUT + page * PAGE_SIZE);
        if machine.pages[&input].is_empty() {
            machine.allow(input, &[(output, rights(DATA))]);
        }
    }
    let mapping = Mapping {
        input: INPUT + first * PAGE_SIZE,
        output: HostPhys(OUTPUT + first * PAGE_SIZE),
        size: count * PAGE_SIZE,
        attributes: Attributes {
            permissions: DATA,
            kind: MemoryKind::Ram,
        },
    };
    tree.fill(machine, &mapping).expect("room");
    machine.watch();
}

/// Changes the rights to pages. Meanwhile the old ones and the new ones are allowed, afterwards what the tree
/// says: a part of a block keeps its rights.
fn protect(machine: &mut Machine, tree: &Tree<Stage2>, first: u64, count: u64, permissions: Permissions) {
    for page in is_looked_at(first, count) {
        let input = INPUT + page * PAGE_SIZE;
        let before: Vec<_> = machine.pages[&input]
            .iter()
            .map(|found| (found.output, found.rights))
            .collect();
        let after = before.iter().map(|(output, _)| (*output, rights(permissions)));
        let both: Vec<_> = before.iter().copied().chain(after).collect();
        machine.allow(input, &both);
    }
    let (input, size) = (INPUT + first * PAGE_SIZE, count * PAGE_SIZE);
    tree.protect(machine, input, size, permissions).expect("pages");
    for page in is_looked_at(first, count) {
        let input = INPUT + page * PAGE_SIZE;
        let now = tree.translate(machine, input);
        let now = now.map(|found| (found.output.0, rights(found.attributes.permissions)));
        machine.allow(input, now.as_slice());
    }
    machine.watch();
}

/// A step of a random run: pages of a stretch, and the rights that it gets if it is not filled.
type Step = (u64, u64, Option<Permissions>);

fn step() -> impl Strategy<Value = Step> {
    let stretch = prop_oneof![
        (0_u64..4, 1_u64..4),
        Just((0, 512)),
        Just((512, 512)),
        Just((0, 1024)),
        (510_u64..513, 1_u64..4),
    ];
    let permissions = prop_oneof![
        Just(None),
        Just(Some(DATA)),
        Just(Some(CODE)),
        Just(Some(NOTHING))
    ];
    (stretch, permissions).prop_map(|((first, count), permissions)| (first, count, permissions))
}

fn run(machine: &mut Machine, steps: &[Step]) {
    let tree = tree(machine);
    for (first, count, permissions) in steps {
        match permissions {
            None => fill(machine, &tree, *first, *count),
            Some(permissions) => protect(machine, &tree, *first, *count, *permissions),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_cpu_ever_uses_what_is_not_allowed(steps in proptest::collection::vec(step(), 1..8)) {
        let mut machine = machine();
        run(&mut machine, &steps);
        prop_assert_eq!(machine.verdict, None);
    }
}

/// Steps that use every instruction: a page and several pages lose rights.
const STEPS: [Step; 4] = [
    (0, 4, None),
    (511, 2, None),
    (1, 1, Some(CODE)),
    (0, 3, Some(NOTHING)),
];

/// Runs the steps on a machine with a defect.
fn verdict_with(damage: impl FnOnce(&mut Machine)) -> Option<String> {
    let mut machine = machine();
    damage(&mut machine);
    run(&mut machine, &STEPS);
    machine.verdict
}

#[test]
fn each_instruction_that_is_left_out_is_found() {
    assert_eq!(verdict_with(|_| {}), None);
    let whole = machine();
    for index in 0..whole.write.len() {
        if whole.write[index] != "store" {
            assert!(verdict_with(|machine| drop(machine.write.remove(index))).is_some());
        }
    }
    // The ISB is for the instructions of the hypervisor, which stage 2 does not translate.
    for (index, left_out) in whole.forget.iter().enumerate().filter(|(_, text)| *text != "isb") {
        let verdict = verdict_with(|machine| drop(machine.forget.remove(index)));
        assert!(verdict.is_some(), "{left_out} of one entry");
    }
    for (index, left_out) in whole
        .forget_several
        .iter()
        .enumerate()
        .filter(|(_, text)| *text != "isb")
    {
        let verdict = verdict_with(|machine| drop(machine.forget_several.remove(index)));
        assert!(verdict.is_some(), "{left_out} of several entries");
    }
}

#[test]
fn an_invalidation_of_one_cpu_is_found() {
    for index in 0..machine().forget.len() {
        let weak = |machine: &mut Machine| {
            let instruction = &mut machine.forget[index];
            *instruction = instruction.replace("dsb ish", "dsb nsh");
            *instruction = instruction.trim_end_matches("is").to_owned();
        };
        let is_weak = !matches!(machine().forget[index].as_str(), "isb" | "dsb ishst");
        assert_eq!(verdict_with(weak).is_some(), is_weak, "instruction {index}");
    }
}

#[test]
fn a_page_that_moves_without_a_break_is_found() {
    let mut machine = machine();
    let tree = tree(&mut machine);
    fill(&mut machine, &tree, 0, 1);
    assert_eq!(machine.verdict, None);
    let (before, after) = (OUTPUT, OUTPUT + BLOCK);
    machine.allow(INPUT, &[(before, rights(DATA)), (after, rights(DATA))]);
    let attributes = Attributes {
        permissions: DATA,
        kind: MemoryKind::Ram,
    };
    // The entry of the first page is the first one of the second table that was given out.
    let place = 0x20_0000 + PAGE_SIZE;
    machine.store_bare(place, Stage2::leaf(3, HostPhys(after), attributes));
    assert!(
        machine
            .verdict
            .is_some_and(|why| why.contains("break before make"))
    );
}
