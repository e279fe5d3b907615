// SPDX-License-Identifier: Apache-2.0
//! A database: a B-tree of numbers in a file, which is changed in transactions.
//!
//! A transaction first writes the old pages into a journal, then the new pages into the file, and waits after
//! each step until the bytes are safe. With the journal empty the transaction is done. Keys are in order in
//! their page. A full page is split on the way down, so no way goes up again.

use super::{Bytes, expect, timed};
use crate::linux::File;
use crate::linux::files::remove;

const PATH: &core::ffi::CStr = c"/tmp/database";
const JOURNAL: &core::ffi::CStr = c"/tmp/database-journal";
const TRANSACTIONS: u32 = 100;
/// New keys of a transaction.
const CHANGES: u32 = 10;
const QUERIES: u32 = 1000;
const PAGE: usize = 4096;
/// Pages that a transaction may use.
const CACHE: usize = 48;
/// Keys of a page. Two numbers of each key, and the header, fit into a page.
const KEYS: usize = 200;

/// A page of the tree. Of a leaf, `links` are the values of the keys. Else `links` are pages, each with keys
/// from its own key on. The first key of an inner page counts as the least one.
#[derive(Clone)]
struct Node {
    is_leaf: bool,
    count: usize,
    keys: [u64; KEYS],
    links: [u64; KEYS],
}

impl Node {
    const fn new(is_leaf: bool) -> Self {
        Self {
            is_leaf,
            count: 0,
            keys: [0; KEYS],
            links: [0; KEYS],
        }
    }

    fn read(page: &[u8; PAGE]) -> Self {
        let mut words = page
            .as_chunks::<8>()
            .0
            .iter()
            .map(|word| u64::from_le_bytes(*word));
        let mut next = || words.next().unwrap_or(0);
        let mut node = Self::new(next() != 0);
        node.count = next() as usize;
        node.keys = core::array::from_fn(|_| next());
        node.links = core::array::from_fn(|_| next());
        node
    }

    fn page(&self) -> [u8; PAGE] {
        let mut page = [0; PAGE];
        let head = [u64::from(self.is_leaf), self.count as u64];
        let words = head.iter().chain(&self.keys).chain(&self.links);
        for (place, word) in page.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
        page
    }

    /// Returns the number of keys that are not above this one.
    fn up_to(&self, key: u64) -> usize {
        let keys = self.keys.get(..self.count).unwrap_or(&[]);
        keys.partition_point(|other| *other <= key)
    }

    /// Returns the place of the child with this key.
    fn child(&self, key: u64) -> usize {
        self.up_to(key).saturating_sub(1)
    }

    fn insert(&mut self, place: usize, key: u64, link: u64) {
        self.keys.copy_within(place..KEYS - 1, place + 1);
        self.links.copy_within(place..KEYS - 1, place + 1);
        self.keys[place] = key;
        self.links[place] = link;
        self.count += 1;
    }

    /// Takes the upper half away, as a node.
    fn split(&mut self) -> Self {
        let mut upper = Self::new(self.is_leaf);
        let half = self.count / 2;
        upper.count = self.count - half;
        upper.keys[..upper.count].copy_from_slice(&self.keys[half..self.count]);
        upper.links[..upper.count].copy_from_slice(&self.links[half..self.count]);
        self.count = half;
        upper
    }
}

/// A page of a transaction.
struct Cached {
    number: u64,
    old: Option<[u8; PAGE]>,
    node: Node,
    is_new: bool,
}

/// The open database. The root is page 0.
struct Database {
    file: File,
    journal: File,
    pages: u64,
    cache: [Option<Cached>; CACHE],
}

impl Database {
    fn create() -> Self {
        let mut new = Self {
            file: File::create(PATH),
            journal: File::create(JOURNAL),
            pages: 1,
            cache: [const { None }; CACHE],
        };
        new.keep(Cached {
            number: 0,
            old: None,
            node: Node::new(true),
            is_new: true,
        });
        new.commit();
        new
    }

    fn keep(&mut self, cached: Cached) {
        let free = self.cache.iter_mut().find(|slot| slot.is_none());
        expect(free.is_some(), "a transaction has too many pages");
        if let Some(free) = free {
            *free = Some(cached);
        }
    }

    /// Returns a page, which is read unless the transaction has it.
    fn page(&mut self, number: u64) -> &mut Cached {
        let is_it = |slot: &Option<Cached>| slot.as_ref().is_some_and(|cached| cached.number == number);
        if !self.cache.iter().any(is_it) {
            let mut page = [0; PAGE];
            self.file.seek(number as usize * PAGE);
            expect(self.file.read_full(&mut page) == PAGE, "a page is cut");
            self.keep(Cached {
                number,
                old: Some(page),
                node: Node::read(&page),
                is_new: false,
            });
        }
        let found = self
            .cache
            .iter_mut()
            .flatten()
            .find(|cached| cached.number == number);
        found.unwrap_or_else(|| crate::linux::fail(format_args!("a page is lost")))
    }

    fn change(&mut self, number: u64, node: Node) {
        let cached = self.page(number);
        cached.node = node;
        cached.is_new = true;
    }

    fn add(&mut self, node: Node) -> u64 {
        let number = self.pages;
        self.pages += 1;
        self.keep(Cached {
            number,
            old: None,
            node,
            is_new: true,
        });
        number
    }

    /// Inserts a key with its value.
    fn insert(&mut self, key: u64, value: u64) {
        let root = self.page(0).node.clone();
        if root.count == KEYS {
            let mut lower = root;
            let upper = lower.split();
            let mut root = Node::new(false);
            root.insert(0, lower.keys[0], self.pages);
            root.insert(1, upper.keys[0], self.pages + 1);
            self.add(lower);
            self.add(upper);
            self.change(0, root);
        }
        let mut number = 0;
        loop {
            let mut node = self.page(number).node.clone();
            if node.is_leaf {
                node.insert(node.up_to(key), key, value);
                return self.change(number, node);
            }
            number = self.way_down(number, node, key);
        }
    }

    /// Returns the child with a key, which is split if it is full.
    fn way_down(&mut self, number: u64, mut node: Node, key: u64) -> u64 {
        let place = node.child(key);
        let child = node.links[place];
        let mut lower = self.page(child).node.clone();
        if lower.count < KEYS {
            return child;
        }
        let upper = lower.split();
        let first = upper.keys[0];
        let other = self.add(upper);
        node.insert(place + 1, first, other);
        self.change(child, lower);
        self.change(number, node);
        if key < first { child } else { other }
    }

    /// Returns the value of a key.
    fn find(&mut self, key: u64) -> Option<u64> {
        let mut number = 0;
        loop {
            let node = &self.page(number).node;
            if node.is_leaf {
                let place = node.up_to(key).checked_sub(1)?;
                return (node.keys[place] == key).then(|| node.links[place]);
            }
            number = node.links[node.child(key)];
        }
    }

    /// Ends a transaction.
    fn commit(&mut self) {
        let changed = || self.cache.iter().flatten().filter(|cached| cached.is_new);
        self.journal.seek(0);
        for cached in changed() {
            if let Some(old) = &cached.old {
                self.journal.write_all(&cached.number.to_le_bytes());
                self.journal.write_all(old);
            }
        }
        self.journal.sync();
        for cached in changed() {
            self.file.seek(cached.number as usize * PAGE);
            self.file.write_all(&cached.node.page());
        }
        self.file.sync();
        self.journal.truncate(0);
        self.journal.sync();
        self.forget();
    }

    /// Forgets all pages, which are in the file.
    fn forget(&mut self) {
        for slot in self.cache.iter_mut().filter(|slot| slot.is_some()) {
            *slot = None;
        }
    }
}

/// Returns a key, unlike all others: the multiplier is odd.
fn key(number: u32) -> u64 {
    u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn work(database: &mut Database) {
    for transaction in 0..TRANSACTIONS {
        for change in 0..CHANGES {
            let number = transaction * CHANGES + change;
            database.insert(key(number), u64::from(number));
        }
        database.commit();
    }
    let mut random = Bytes::new(2);
    for _ in 0..QUERIES {
        let number = random.next() % (TRANSACTIONS * CHANGES * 2);
        let expected = (number < TRANSACTIONS * CHANGES).then_some(u64::from(number));
        expect(database.find(key(number)) == expected, "a key has another value");
        database.forget();
    }
}

pub fn measure() {
    let mut database = Database::create();
    timed("database", || work(&mut database));
    expect(database.pages > 5, "the tree has not grown");
    database.file.close();
    database.journal.close();
    remove(PATH, false);
    remove(JOURNAL, false);
}
