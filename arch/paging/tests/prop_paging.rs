// SPDX-License-Identifier: Apache-2.0
//! A tree does to random stretches what a plain list of mappings does.
//!
//! The model is a map from page to (output page, attributes); addresses are drawn from a few neighbourhoods,
//! so that stretches meet, share tables and are aligned in all possible ways. The table memory checks that
//! mapping writes each entry once.

use bulkhead_arch_api::{HostPhys, MemoryKind, Permissions};
use bulkhead_arch_paging::vmsa::{HypervisorStage1, Stage2};
use bulkhead_arch_paging::{
    Attributes, ENTRIES, Entry, Format, Geometry, LAST_LEVEL, MapError, Mapping, PAGE_SIZE, TableMemory,
    Tree, span_of, tables_needed,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use std::collections::{BTreeMap, BTreeSet};

const ROOT: HostPhys = HostPhys(0x10_0000);

/// Table memory on the host, which checks the protocol.
struct Tables {
    entries: Vec<[u64; ENTRIES]>,
    limit: usize,
}

impl Tables {
    fn new(geometry: Geometry, limit: usize) -> Self {
        let roots = usize::try_from(geometry.root_tables()).unwrap();
        Self {
            entries: vec![[0; ENTRIES]; roots],
            limit,
        }
    }

    fn place(table: HostPhys, index: usize) -> (usize, usize) {
        let number = usize::try_from((table.0 - ROOT.0) / PAGE_SIZE).unwrap();
        (number + index / ENTRIES, index % ENTRIES)
    }
}

impl TableMemory for Tables {
    fn read(&self, table: HostPhys, index: usize) -> u64 {
        let (table, index) = Self::place(table, index);
        self.entries[table][index]
    }

    fn write(&mut self, table: HostPhys, index: usize, entry: u64) {
        let (table, index) = Self::place(table, index);
        let old = std::mem::replace(&mut self.entries[table][index], entry);
        assert_eq!(old, 0, "a valid entry is changed into another valid entry");
    }

    fn allocate(&mut self) -> Option<HostPhys> {
        if self.entries.len() >= self.limit {
            return None;
        }
        self.entries.push([0; ENTRIES]);
        Some(HostPhys(ROOT.0 + (self.entries.len() as u64 - 1) * PAGE_SIZE))
    }
}

type Model = BTreeMap<u64, (u64, Attributes)>;

fn covers(attributes: Attributes) -> (bool, bool, bool, bool) {
    let Permissions { read, write, execute } = attributes.permissions;
    (read, write, execute, attributes.kind == MemoryKind::Ram)
}

/// Returns all leaves of a tree: input, level, output, attributes.
fn leaves<F: Format>(tables: &Tables, geometry: Geometry) -> Vec<(u64, u8, u64, Attributes)> {
    let mut found = Vec::new();
    let mut todo = vec![(
        ROOT,
        geometry.start_level(),
        0_u64,
        ENTRIES * geometry.root_tables() as usize,
    )];
    let mut seen = BTreeSet::new();
    while let Some((table, level, base, count)) = todo.pop() {
        assert!(seen.insert(table.0), "a table is used twice");
        for index in 0..count {
            let input = base + index as u64 * span_of(level);
            match F::decode(level, tables.read(table, index)) {
                Entry::Invalid => {}
                Entry::Table(next) => {
                    assert!(level < LAST_LEVEL);
                    todo.push((next, level + 1, input, ENTRIES));
                }
                Entry::Leaf(output, attributes) => {
                    assert_eq!(output.0 % span_of(level), 0, "a block is aligned to its size");
                    found.push((input, level, output.0, attributes));
                }
            }
        }
    }
    found.sort_by_key(|leaf| leaf.0);
    found
}

fn expand(leaves: &[(u64, u8, u64, Attributes)]) -> Model {
    let mut model = Model::new();
    for (input, level, output, attributes) in leaves {
        for offset in (0..span_of(*level)).step_by(PAGE_SIZE as usize) {
            assert!(
                model
                    .insert(input + offset, (output + offset, *attributes))
                    .is_none(),
                "mapped twice"
            );
        }
    }
    model
}

fn attributes() -> impl Strategy<Value = Attributes> {
    (1_u8..8, any::<bool>()).prop_map(|(bits, ram)| Attributes {
        permissions: Permissions {
            read: true,
            write: bits & 2 != 0,
            execute: bits & 4 != 0,
        },
        kind: if ram { MemoryKind::Ram } else { MemoryKind::Device },
    })
}

/// Neighbourhoods around block borders, and sizes around block sizes; in pages.
fn stretch() -> impl Strategy<Value = (u64, u64, u64)> {
    let block = 512_u64;
    let near = prop_oneof![
        Just(0_u64),
        0..4_u64,
        (0..4_u64).prop_map(move |n| block - n),
        Just(block),
        0..4 * block
    ];
    let base = prop_oneof![
        Just(0_u64),
        Just(512 * 512 - 1024),
        Just(512 * 512),
        Just(512 * 512 * 3 - 512)
    ];
    let size = prop_oneof![1..4_u64, Just(block), Just(2 * block), 1..3 * block];
    (base.clone(), near.clone(), base, near, size, any::<bool>()).prop_map(
        move |(ib, i, ob, o, size, same)| {
            let input = ib + i;
            // Half of the time input and output are aligned to each other, as real memory plans are.
            let output = if same { input + ob / block * block } else { ob + o };
            (input * PAGE_SIZE, output * PAGE_SIZE, size * PAGE_SIZE)
        },
    )
}

fn mapping() -> impl Strategy<Value = Mapping> {
    (stretch(), attributes()).prop_map(|((input, output, size), attributes)| Mapping {
        input,
        output: HostPhys(output),
        size,
        attributes,
    })
}

#[derive(Clone, Debug)]
enum Step {
    Map(Mapping),
    Fill(Mapping),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => mapping().prop_map(Step::Map),
        1 => mapping().prop_map(Step::Fill),
    ]
}

fn pages(input: u64, size: u64) -> impl Iterator<Item = u64> {
    (input..input + size).step_by(PAGE_SIZE as usize)
}

fn apply<F: Format>(tree: &Tree<F>, tables: &mut Tables, model: &mut Model, step: &Step) {
    match step {
        Step::Map(mapping) => {
            let taken = pages(mapping.input, mapping.size).find(|page| model.contains_key(page));
            let result = tree.map(tables, mapping);
            assert_eq!(result.err(), taken.map(MapError::Overlap));
            let until = taken.unwrap_or(mapping.input + mapping.size);
            for page in pages(mapping.input, until - mapping.input) {
                model.insert(
                    page,
                    (mapping.output.0 + (page - mapping.input), mapping.attributes),
                );
            }
        }
        Step::Fill(mapping) => {
            assert_eq!(tree.fill(tables, mapping), Ok(()));
            for page in pages(mapping.input, mapping.size) {
                let fresh = (mapping.output.0 + (page - mapping.input), mapping.attributes);
                model.entry(page).or_insert(fresh);
            }
        }
    }
}

fn behaves_like_the_model<F: Format>(geometry: Geometry, steps: &[Step]) {
    let tree = Tree::<F>::new(ROOT, geometry);
    let mut tables = Tables::new(geometry, usize::MAX);
    let mut model = Model::new();
    for step in steps {
        apply(&tree, &mut tables, &mut model, step);
    }
    assert_eq!(expand(&leaves::<F>(&tables, geometry)), model);
    for (page, (output, attributes)) in &model {
        let found = tree.translate(&tables, page + 0x123).unwrap();
        assert_eq!(
            (found.output.0, covers(found.attributes)),
            (output + 0x123, covers(*attributes))
        );
        let last = page + 0x123 + found.contiguous - 1;
        assert_eq!(
            tree.translate(&tables, last).unwrap().output.0,
            found.output.0 + found.contiguous - 1
        );
    }
    for page in model
        .keys()
        .map(|page| page + PAGE_SIZE)
        .filter(|page| !model.contains_key(page))
    {
        assert_eq!(tree.translate(&tables, page), None);
    }
}

/// Levels of the largest blocks for a single stretch, computed page by page.
fn largest_levels(mapping: &Mapping) -> Vec<(u64, u8)> {
    let mut levels = Vec::new();
    let (mut at, end) = (mapping.input, mapping.input + mapping.size);
    while at < end {
        let output = mapping.output.0 + (at - mapping.input);
        let fits = |level: &u8| (at | output) & (span_of(*level) - 1) == 0 && end - at >= span_of(*level);
        let level = (1..=3).find(fits).unwrap();
        levels.push((at, level));
        at += span_of(level);
    }
    levels
}

/// Makes wide stretches, for blocks of 1 GiB; in 2 MiB, with an odd number of pages now and then.
fn wide() -> impl Strategy<Value = Mapping> {
    (
        0..2048_u64,
        0..2048_u64,
        1..2048_u64,
        0..3_u64,
        any::<bool>(),
        attributes(),
    )
        .prop_map(|(input, output, size, odd, same, attributes)| {
            let (input, size) = ((input << 21) + odd * PAGE_SIZE, (size << 21) - odd * PAGE_SIZE);
            let output = if same { input + (1 << 30) } else { output << 21 };
            Mapping {
                input,
                output: HostPhys(output),
                size,
                attributes,
            }
        })
}

fn config(cases: u32) -> Config {
    Config {
        cases,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(0x7061_6769_6E67),
        ..Config::default()
    }
}

fn geometry(bits: u8) -> Geometry {
    Geometry::concatenated_root(bits).unwrap()
}

proptest! {
    #![proptest_config(config(128))]

    #[test]
    fn stage_2_is_the_map(bits in prop_oneof![Just(32_u8), Just(39), Just(40), Just(48)], steps in prop::collection::vec(step(), 1..12)) {
        behaves_like_the_model::<Stage2>(geometry(bits), &steps);
    }

    #[test]
    fn hypervisor_stage_1_is_the_map(steps in prop::collection::vec(step(), 1..12)) {
        behaves_like_the_model::<HypervisorStage1>(Geometry::single_root(48).unwrap(), &steps);
    }

    #[test]
    fn blocks_are_as_large_as_they_can_be(mapping in prop_oneof![mapping(), wide()], bits in prop_oneof![Just(40_u8), Just(48)]) {
        let geometry = geometry(bits);
        let mut tables = Tables::new(geometry, usize::MAX);
        Tree::<Stage2>::new(ROOT, geometry).map(&mut tables, &mapping).unwrap();
        let found: Vec<_> = leaves::<Stage2>(&tables, geometry).iter().map(|leaf| (leaf.0, leaf.1)).collect();
        prop_assert_eq!(found, largest_levels(&mapping));
        prop_assert_eq!(tables_needed::<Stage2>(geometry, [&mapping]), tables.entries.len() as u64, "the estimate is exact for one mapping");
    }

    #[test]
    fn a_run_is_what_its_pages_say(mappings in prop::collection::vec(mapping(), 1..6), length in 1_u64..64 * PAGE_SIZE) {
        let geometry = geometry(40);
        let mut tables = Tables::new(geometry, usize::MAX);
        let tree = Tree::<Stage2>::new(ROOT, geometry);
        for mapping in &mappings {
            tree.fill(&mut tables, mapping).unwrap();
        }
        for input in mappings.iter().map(|mapping| mapping.input) {
            let one = tree.translate(&tables, input).unwrap();
            let run = tree.translate_run(&tables, input, length).unwrap();
            prop_assert_eq!((run.output, run.attributes), (one.output, one.attributes));
            prop_assert!(run.contiguous >= one.contiguous);
            prop_assert!(run.contiguous == one.contiguous || run.contiguous < (length + PAGE_SIZE) << 9);
            for at in (0..run.contiguous).step_by(PAGE_SIZE as usize).take(600) {
                let page = tree.translate(&tables, input + at).unwrap();
                prop_assert_eq!((page.output.0, page.attributes), (run.output.0 + at, run.attributes));
            }
        }
    }

    #[test]
    fn the_estimate_is_never_too_low(mappings in prop::collection::vec(prop_oneof![mapping(), wide()], 1..6)) {
        let geometry = geometry(40);
        let mut tables = Tables::new(geometry, usize::MAX);
        let tree = Tree::<Stage2>::new(ROOT, geometry);
        let placed: Vec<_> = mappings.iter().filter(|mapping| {
            let free = tables_are_free(&tree, &tables, mapping);
            if free { tree.map(&mut tables, mapping).unwrap(); }
            free
        }).collect();
        let needed = tables_needed::<Stage2>(geometry, placed);
        prop_assert!(tables.entries.len() as u64 <= needed);
        prop_assert_eq!(tables.entries.len() as u64, needed, "a table is counted once");
    }

    #[test]
    fn running_out_of_tables_is_an_error_and_nothing_else(steps in prop::collection::vec(step(), 1..12), limit in 2_usize..8) {
        let geometry = geometry(40);
        let tree = Tree::<Stage2>::new(ROOT, geometry);
        let mut tables = Tables::new(geometry, limit);
        for step in &steps {
            let result = match step {
                Step::Map(mapping) => tree.map(&mut tables, mapping),
                Step::Fill(mapping) => tree.fill(&mut tables, mapping),
            };
            prop_assert!(!matches!(result, Err(MapError::BadRange)));
            leaves::<Stage2>(&tables, geometry);
        }
    }

    #[test]
    fn ranges_that_cannot_be_change_nothing(input in any::<u64>(), output in any::<u64>(), size in any::<u64>(), bits in 22_u8..=48) {
        let geometry = geometry(bits);
        let tree = Tree::<Stage2>::new(ROOT, geometry);
        let mut tables = Tables::new(geometry, usize::MAX);
        let permissions = Permissions { read: true, write: true, execute: true };
        let attributes = Attributes { permissions, kind: MemoryKind::Ram };
        let mapping = Mapping { input: input | 1, output: HostPhys(output), size, attributes };
        prop_assert_eq!(tree.map(&mut tables, &mapping), Err(MapError::BadRange));
        let mapping = Mapping { input: geometry.input_limit() - PAGE_SIZE, output: HostPhys(0), size: 2 * PAGE_SIZE, attributes };
        prop_assert_eq!(tree.map(&mut tables, &mapping), Err(MapError::BadRange));
        prop_assert_eq!(tree.protect(&mut tables, input & !4095, !4095, permissions), Err(MapError::BadRange));
        prop_assert_eq!(tree.protect(&mut tables, 0, 0, permissions), Err(MapError::BadRange));
        prop_assert_eq!(tree.translate(&tables, input | 1 << 63), None);
        prop_assert!(leaves::<Stage2>(&tables, geometry).is_empty());
    }
}

fn tables_are_free(tree: &Tree<Stage2>, tables: &Tables, mapping: &Mapping) -> bool {
    pages(mapping.input, mapping.size).all(|page| tree.translate(tables, page).is_none())
}

#[test]
fn the_top_of_the_input_range_can_be_mapped() {
    for bits in 22..=48 {
        let geometry = geometry(bits);
        let tree = Tree::<Stage2>::new(ROOT, geometry);
        let mut tables = Tables::new(geometry, usize::MAX);
        let permissions = Permissions {
            read: true,
            write: false,
            execute: false,
        };
        let attributes = Attributes {
            permissions,
            kind: MemoryKind::Ram,
        };
        let input = geometry.input_limit() - PAGE_SIZE;
        let mapping = Mapping {
            input,
            output: HostPhys(PAGE_SIZE),
            size: PAGE_SIZE,
            attributes,
        };
        tree.map(&mut tables, &mapping).unwrap();
        assert_eq!(
            tree.translate(&tables, input).unwrap().output,
            HostPhys(PAGE_SIZE)
        );
    }
}
