// SPDX-License-Identifier: Apache-2.0
//! A machine with two CPUs that is as hostile as Arm DDI 0487 permits (chapters B2 and D8).
//!
//! - A walker may see a store at once, or not before the next barrier, and before or after another one.
//! - A walker may keep every valid entry that was ever to be seen, of each level, until it is invalidated. It
//!   may also keep results of both stages.
//! - An invalidation may be done at any time before its barrier. One that is ordered before a store is seen
//!   may be done before it, and the old entry comes back.
//! - A new table has what was in its memory before, until its zeros are seen.
//!
//! So the machine does not choose: it has the *set* of translations that a CPU could use, and judges all.

use bulkhead_arch_api::{HostPhys, MemoryKind, Permissions};
use bulkhead_arch_paging::vmsa::Stage2;
use bulkhead_arch_paging::{Attributes, Entry, Format, Geometry, PAGE_SIZE, TableMemory};
use std::collections::{BTreeMap, BTreeSet};

/// The root. Its tables are side by side.
pub const ROOT: HostPhys = HostPhys(0x10_0000);
/// The first table that is given out.
const POOL: u64 = 0x20_0000;
const CPUS: usize = 2;

/// A translation that a CPU could use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Use {
    /// The output address of the page.
    pub output: u64,
    /// The level of the leaf: two leaves of different sizes are a conflict in the TLB.
    level: u8,
    is_ram: bool,
    /// Rights to read, write and execute.
    pub rights: [bool; 3],
}

/// Returns rights as they are compared.
pub fn rights(permissions: Permissions) -> [bool; 3] {
    [permissions.read, permissions.write, permissions.execute]
}

/// A store, or the zeros of a table, that walkers may see or not.
#[derive(Clone, Copy, Debug)]
enum Waiting {
    Entry(u64, u64),
    Zeros(u64),
}

/// An invalidation that has been ordered.
#[derive(Clone, Copy, Debug)]
struct Going {
    scope: Scope,
    is_shared: bool,
    /// Stores were not done when it was ordered.
    is_early: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// Entries of stage 2 for this address.
    Address(u64),
    /// Results of both stages.
    Results,
    /// Everything of the space.
    All,
}

/// The entries that one CPU may still have.
#[derive(Clone, Debug, Default)]
struct Kept {
    /// Entries of stage 2, by their places.
    entries: BTreeMap<u64, BTreeSet<u64>>,
    /// Results of both stages, by pages.
    results: BTreeMap<u64, BTreeSet<Use>>,
}

/// The machine, and the instructions with which its backend stores an entry and forgets.
pub struct Machine {
    memory: BTreeMap<u64, u64>,
    /// Tables whose zeros walkers have not seen yet.
    dirty: BTreeSet<u64>,
    waiting: Vec<Waiting>,
    going: Vec<Going>,
    kept: [Kept; CPUS],
    tables: u64,
    geometry: Geometry,
    /// The pages that are looked at, with the translations that are allowed.
    pub pages: BTreeMap<u64, Vec<Use>>,
    /// The instructions of a store to an entry, of an invalidation of one entry, and of several.
    pub write: Vec<String>,
    pub forget: Vec<String>,
    pub forget_several: Vec<String>,
    /// The first thing that went wrong.
    pub verdict: Option<String>,
}

impl Machine {
    pub fn new(geometry: Geometry, [write, forget, forget_several]: [Vec<String>; 3]) -> Self {
        Self {
            memory: BTreeMap::new(),
            dirty: BTreeSet::new(),
            waiting: Vec::new(),
            going: Vec::new(),
            kept: Default::default(),
            tables: 0,
            geometry,
            pages: BTreeMap::new(),
            write,
            forget,
            forget_several,
            verdict: None,
        }
    }

    /// Carries out instructions, of which one is the store `entry` and the others act on `input`.
    fn execute(&mut self, instructions: &[String], entry: Option<(u64, u64)>, input: u64) {
        for instruction in instructions {
            match instruction.as_str() {
                "store" => {
                    if let Some((place, value)) = entry {
                        self.waiting.push(Waiting::Entry(place, value));
                        self.watch();
                    }
                }
                "isb" => {}
                barrier if barrier.starts_with("dsb") => self.barrier(&barrier[4..]),
                other => self.invalidate(other, input),
            }
        }
    }

    fn barrier(&mut self, domain: &str) {
        for store in std::mem::take(&mut self.waiting) {
            match store {
                Waiting::Zeros(table) => {
                    self.dirty.remove(&table);
                }
                Waiting::Entry(place, value) => {
                    self.memory.insert(place, value);
                }
            }
        }
        if domain.ends_with("st") {
            return;
        }
        for going in std::mem::take(&mut self.going) {
            // A barrier of this CPU alone does not wait for others.
            let reach = if going.is_shared && !domain.starts_with("nsh") {
                CPUS
            } else {
                1
            };
            for cpu in 0..reach {
                self.drop_from(cpu, going);
            }
        }
    }

    fn invalidate(&mut self, operation: &str, input: u64) {
        let name = operation
            .strip_prefix("tlbi ")
            .expect("an instruction that the model knows");
        let is_shared = name.ends_with("is");
        let scope = match name.trim_end_matches("is") {
            "ipas2e1" => Scope::Address(input),
            "vmalle1" => Scope::Results,
            "vmalls12e1" => Scope::All,
            other => panic!("the model does not know {other}"),
        };
        let is_early = !self.waiting.is_empty();
        // Results may be made anew of entries whose invalidation is not done.
        let is_early = is_early || scope == Scope::Results && !self.going.is_empty();
        self.going.push(Going {
            scope,
            is_shared,
            is_early,
        });
    }

    fn drop_from(&mut self, cpu: usize, going: Going) {
        if going.is_early {
            return;
        }
        match going.scope {
            Scope::Address(input) => {
                let places = self.places(cpu, input);
                self.kept[cpu].entries.retain(|place, _| !places.contains(place));
            }
            Scope::Results => self.kept[cpu].results.clear(),
            Scope::All => self.kept[cpu] = Kept::default(),
        }
    }

    /// Returns all values that a walker could find in an entry.
    fn values(&self, cpu: usize, place: u64) -> BTreeSet<u64> {
        let table = place & !(PAGE_SIZE - 1);
        let before = self.memory.get(&place).copied().unwrap_or(0);
        let mut values = BTreeSet::from([before]);
        if self.dirty.contains(&table) {
            values.insert(garbage());
        }
        for store in &self.waiting {
            if let Waiting::Entry(other, value) = store
                && *other == place
            {
                values.insert(*value);
            }
        }
        values.extend(self.kept[cpu].entries.get(&place).into_iter().flatten());
        values
    }

    /// Walks in all ways. Calls `found` with each place, its level and its value.
    fn walk(&self, cpu: usize, input: u64, found: &mut impl FnMut(u64, u8, u64)) {
        let mut waiting = vec![(ROOT.0, self.geometry.start_level())];
        while let Some((table, level)) = waiting.pop() {
            let index = input >> (12 + 9 * u32::from(3 - level));
            // The tables of the root are side by side.
            let index = if table == ROOT.0 { index } else { index % 512 };
            let place = table + 8 * index;
            for value in self.values(cpu, place) {
                found(place, level, value);
                if let Entry::Table(next) = Stage2::decode(level, value) {
                    waiting.push((next.0, level + 1));
                }
            }
        }
    }

    /// Returns the places of all entries by which an input could be translated.
    fn places(&self, cpu: usize, input: u64) -> BTreeSet<u64> {
        let mut places = BTreeSet::new();
        self.walk(cpu, input, &mut |place, _, _| {
            places.insert(place);
        });
        places
    }

    /// Returns the translations of a page that a CPU could use.
    fn uses(&self, cpu: usize, input: u64) -> BTreeSet<Use> {
        let mut uses = self.kept[cpu].results.get(&input).cloned().unwrap_or_default();
        self.walk(cpu, input, &mut |_, level, value| {
            if let Entry::Leaf(output, Attributes { permissions, kind }) = Stage2::decode(level, value) {
                let span = PAGE_SIZE << (9 * u32::from(3 - level));
                uses.insert(Use {
                    output: output.0 + (input & (span - 1)),
                    level,
                    is_ram: kind == MemoryKind::Ram,
                    rights: rights(permissions),
                });
            }
        });
        uses
    }

    /// Lets both CPUs keep all that is to be seen, and judges it.
    pub fn watch(&mut self) {
        for page in self.pages.keys().copied().collect::<Vec<_>>() {
            for cpu in 0..CPUS {
                let uses = self.uses(cpu, page);
                self.judge(cpu, page, &uses);
                self.kept[cpu].results.entry(page).or_default().extend(uses);
                let mut seen = Vec::new();
                self.walk(cpu, page, &mut |place, _, value| seen.push((place, value)));
                for (place, value) in seen.into_iter().filter(|(_, value)| *value != 0) {
                    self.kept[cpu].entries.entry(place).or_default().insert(value);
                }
            }
        }
    }

    fn judge(&mut self, cpu: usize, page: u64, uses: &BTreeSet<Use>) {
        let shapes: BTreeSet<_> = uses
            .iter()
            .map(|found| (found.output, found.level, found.is_ram))
            .collect();
        let allowed = &self.pages[&page];
        let is_allowed = |found: &Use| {
            allowed
                .iter()
                .any(|other| (other.output, other.rights) == (found.output, found.rights))
        };
        let wrong = if shapes.len() > 1 {
            "has a conflict: break before make"
        } else if !uses.iter().all(is_allowed) {
            "has a translation that is not allowed"
        } else {
            return;
        };
        self.verdict
            .get_or_insert(format!("CPU {cpu} {wrong} at {page:#x}: {uses:x?}"));
    }

    /// Allows these translations of a page, at any level.
    pub fn allow(&mut self, page: u64, list: &[(u64, [bool; 3])]) {
        let of = |(output, rights): &(u64, [bool; 3])| Use {
            output: *output,
            level: 3,
            is_ram: true,
            rights: *rights,
        };
        self.pages.insert(page, list.iter().map(of).collect());
    }

    /// Stores an entry without any instruction before it.
    pub fn store_bare(&mut self, place: u64, value: u64) {
        self.execute(&["store".to_owned()], Some((place, value)), 0);
    }
}

/// Returns an entry that a new table has from before: a leaf of foreign memory.
fn garbage() -> u64 {
    let all = Permissions {
        read: true,
        write: true,
        execute: true,
    };
    let attributes = Attributes {
        permissions: all,
        kind: MemoryKind::Ram,
    };
    Stage2::leaf(3, HostPhys(0xBAD0_0000), attributes)
}

impl TableMemory for Machine {
    fn read(&self, table: HostPhys, index: usize) -> u64 {
        // The CPU that stores sees its own stores.
        let place = table.0 + 8 * index as u64;
        let own = self.waiting.iter().rev().find_map(|store| match store {
            Waiting::Entry(other, value) if *other == place => Some(*value),
            _ => None,
        });
        own.or(self.memory.get(&place).copied()).unwrap_or(0)
    }

    fn write(&mut self, table: HostPhys, index: usize, entry: u64) {
        let instructions = self.write.clone();
        self.execute(&instructions, Some((table.0 + 8 * index as u64, entry)), 0);
    }

    fn allocate(&mut self) -> Option<HostPhys> {
        let table = POOL + PAGE_SIZE * self.tables;
        self.tables += 1;
        self.dirty.insert(table);
        self.waiting.push(Waiting::Zeros(table));
        Some(HostPhys(table))
    }

    fn forget(&mut self, input: u64, _size: u64) {
        let instructions = self.forget.clone();
        self.execute(&instructions, None, input);
    }

    fn forget_several(&mut self, input: u64, _size: u64) {
        let instructions = self.forget_several.clone();
        self.execute(&instructions, None, input);
    }
}
