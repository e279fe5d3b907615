// SPDX-License-Identifier: Apache-2.0
//! A change of rights reaches whole pages of a stretch and nothing else, and each CPU forgets what changed.

use bulkhead_arch_api::{HostPhys, MemoryKind, Permissions};
use bulkhead_arch_paging::vmsa::Stage2;
use bulkhead_arch_paging::{Attributes, Geometry, Mapping, PAGE_SIZE, TableMemory, Tree};
use std::collections::BTreeMap;

const ROOT: HostPhys = HostPhys(0x1_0000);
const ENTRIES: usize = 512;

/// Tables, with all that was forgotten: one entry, or several.
#[derive(Default)]
struct Tables {
    entries: BTreeMap<u64, u64>,
    tables: u64,
    single: Vec<u64>,
    several: Vec<(u64, u64)>,
}

impl TableMemory for Tables {
    fn read(&self, table: HostPhys, index: usize) -> u64 {
        let at = table.0 + index as u64 * 8;
        self.entries.get(&at).copied().unwrap_or(0)
    }

    fn write(&mut self, table: HostPhys, index: usize, entry: u64) {
        self.entries.insert(table.0 + index as u64 * 8, entry);
    }

    fn allocate(&mut self) -> Option<HostPhys> {
        self.tables += 1;
        Some(HostPhys(ROOT.0 + (self.tables + 2) * (ENTRIES as u64 * 8)))
    }

    fn forget(&mut self, input: u64, _size: u64) {
        self.single.push(input);
    }

    fn forget_several(&mut self, input: u64, size: u64) {
        self.several.push((input, size));
    }
}

const NOTHING: Permissions = Permissions {
    read: false,
    write: false,
    execute: false,
};
const DATA: Permissions = Permissions {
    read: true,
    write: true,
    execute: false,
};
const BASE: u64 = 0x1000_0000;

/// Returns a tree with pages 0, 1, 2 and 4 from [`BASE`] on.
fn tree(tables: &mut Tables) -> Tree<Stage2> {
    let tree = Tree::new(ROOT, Geometry::concatenated_root(40).expect("a geometry"));
    for (page, count) in [(0, 3), (4, 1)] {
        let mapping = Mapping {
            input: BASE + page * PAGE_SIZE,
            output: HostPhys(0x4000_0000 + page * PAGE_SIZE),
            size: count * PAGE_SIZE,
            attributes: Attributes {
                permissions: DATA,
                kind: MemoryKind::Ram,
            },
        };
        tree.map(tables, &mapping).expect("room");
    }
    tables.single.clear();
    tree
}

fn rights(tree: &Tree<Stage2>, tables: &Tables, page: u64) -> Option<(Permissions, HostPhys)> {
    let found = tree.translate(tables, BASE + page * PAGE_SIZE)?;
    Some((found.attributes.permissions, found.output))
}

#[test]
fn rights_go_and_come_back_and_the_rest_stays() {
    let mut tables = Tables::default();
    let tree = tree(&mut tables);
    let place = |page: u64| HostPhys(0x4000_0000 + page * PAGE_SIZE);
    tree.protect(&mut tables, BASE + PAGE_SIZE, 2 * PAGE_SIZE, NOTHING)
        .expect("in range");
    assert_eq!(rights(&tree, &tables, 0), Some((DATA, place(0))));
    for page in [1, 2] {
        assert_eq!(rights(&tree, &tables, page), Some((NOTHING, place(page))));
    }
    assert_eq!(rights(&tree, &tables, 3), None);
    assert_eq!(rights(&tree, &tables, 4), Some((DATA, place(4))));
    assert_eq!(tables.several, [(BASE + PAGE_SIZE, 2 * PAGE_SIZE)]);
    tree.protect(&mut tables, BASE, 3 * PAGE_SIZE, DATA)
        .expect("in range");
    for page in [0, 1, 2, 4] {
        assert_eq!(rights(&tree, &tables, page), Some((DATA, place(page))));
    }
    assert!(tables.single.is_empty());
}

#[test]
fn one_page_is_forgotten_at_its_own_address() {
    let mut tables = Tables::default();
    let tree = tree(&mut tables);
    // Page 3 is not mapped, so the stretch begins elsewhere than the page that changes.
    tree.protect(&mut tables, BASE + 3 * PAGE_SIZE, 2 * PAGE_SIZE, NOTHING)
        .expect("in range");
    assert_eq!(tables.single, [BASE + 4 * PAGE_SIZE]);
    assert!(tables.several.is_empty());
    // Nothing is there, so nothing is forgotten.
    tree.protect(&mut tables, BASE + 5 * PAGE_SIZE, PAGE_SIZE, NOTHING)
        .expect("in range");
    assert_eq!((tables.single.len(), tables.several.len()), (1, 0));
}

#[test]
fn a_cpu_that_forgets_entry_by_entry_forgets_each_page_of_several() {
    struct Plain(Vec<(u64, u64)>);
    impl TableMemory for Plain {
        fn read(&self, _table: HostPhys, _index: usize) -> u64 {
            0
        }
        fn write(&mut self, _table: HostPhys, _index: usize, _entry: u64) {}
        fn allocate(&mut self) -> Option<HostPhys> {
            None
        }
        fn forget(&mut self, input: u64, size: u64) {
            self.0.push((input, size));
        }
    }
    let mut plain = Plain(Vec::new());
    plain.forget_several(BASE, 2 * PAGE_SIZE);
    assert_eq!(plain.0, [(BASE, PAGE_SIZE), (BASE + PAGE_SIZE, PAGE_SIZE)]);
}
