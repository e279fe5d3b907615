// SPDX-License-Identifier: Apache-2.0
//! The first root file system of Linux, made of the members of archives one after the other (Linux,
//! init/initramfs.c).
//!
//! Linux goes on without a word after a member that it cannot make. So the order of members counts: a file
//! before its folder is lost.

use std::collections::BTreeMap;

/// The most symbolic links on the way to a file, as in Linux.
const MOST_LINKS: u32 = 40;

const TYPE: u32 = 0o170_000;
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const DEVICE: u32 = 0o020_000;
const LINK: u32 = 0o120_000;
/// The permissions to execute of owner, group and others.
const EXECUTE: u32 = 0o111;
/// The members that are there before an archive is read (Linux, usr/default_cpio_list).
const FIRST: [(&str, u32); 4] = [
    ("", DIRECTORY | 0o755),
    ("dev", DIRECTORY | 0o755),
    ("dev/console", DEVICE | 0o600),
    ("root", DIRECTORY | 0o700),
];

/// A file, folder, link or device.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    mode: u32,
    /// The contents of a file, the target of a link.
    pub data: Vec<u8>,
}

impl Member {
    /// Tells whether it is a plain file.
    pub const fn is_file(&self) -> bool {
        self.mode & TYPE == REGULAR
    }

    /// Tells whether anybody may execute it.
    pub const fn is_executable(&self) -> bool {
        self.mode & EXECUTE != 0
    }
}

/// The name by which members of one archive say that they are one file with several paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    pub device: [u32; 2],
    pub number: u32,
}

/// The files of a RAM disk.
#[derive(Debug)]
pub(crate) struct Disk {
    members: Vec<Member>,
    /// The member at each path, which is without links and without a slash at the beginning. Several paths
    /// may have one member.
    paths: BTreeMap<String, usize>,
    /// The first path of each member with several, and its type.
    identities: BTreeMap<(Identity, u32), String>,
}

impl Default for Disk {
    fn default() -> Self {
        let mut disk = Self {
            members: Vec::new(),
            paths: BTreeMap::new(),
            identities: BTreeMap::new(),
        };
        for (path, mode) in FIRST {
            disk.make(path.to_owned(), mode, &[]);
        }
        disk
    }
}

impl Disk {
    /// Adds a member as Linux does, or leaves the disk as it is if Linux cannot make the member. `shared` is
    /// the name by which other members of the archive may be the same file.
    pub fn put(&mut self, path: &str, mode: u32, shared: Option<Identity>, contents: &[u8]) {
        let kind = mode & TYPE;
        let place = self.place(path);
        // Linux remembers the path of a member also if there is no folder for the member.
        let named = place.clone().unwrap_or_else(|| plain(path));
        let shared = shared.filter(|_| kind != DIRECTORY && kind != LINK);
        let first = shared.and_then(|identity| self.first_of(identity, kind, named));
        let Some(place) = place else { return };
        if kind == LINK || self.at(&place).is_some_and(|old| old.mode & TYPE != kind) {
            self.remove(&place);
        }
        match first {
            Some(first) => self.link(place, &first, mode, contents),
            None => self.write(place, mode, contents),
        }
    }

    /// Makes a path one more of the file at another path, whose contents are with any of its members.
    fn link(&mut self, place: String, first: &str, mode: u32, contents: &[u8]) {
        self.remove(&place);
        let Some(&index) = self.paths.get(first).filter(|_| !self.paths.contains_key(&place)) else {
            return;
        };
        self.paths.insert(place, index);
        if let Some(member) = self.members.get_mut(index).filter(|_| mode & TYPE == REGULAR) {
            member.mode = mode;
            if !contents.is_empty() {
                member.data = contents.to_vec();
            }
        }
    }

    /// Makes a member, or writes the one that is there. A member that could not be removed stays.
    fn write(&mut self, place: String, mode: u32, contents: &[u8]) {
        let Some(&index) = self.paths.get(&place) else {
            return self.make(place, mode, contents);
        };
        let is_same = |old: &&mut Member| old.mode & TYPE == mode & TYPE;
        if let Some(member) = self.members.get_mut(index).filter(is_same) {
            member.mode = mode;
            if member.is_file() {
                member.data = contents.to_vec();
            }
        }
    }

    /// Lets members of a later archive be other files than the members of this one.
    pub fn forget_identities(&mut self) {
        self.identities.clear();
    }

    /// Adds a program at a path without folders, in place of what is there.
    pub fn put_program(&mut self, path: &str, contents: &[u8]) {
        self.put(path, REGULAR | EXECUTE, None, contents);
    }

    /// Returns what is at a path, after all symbolic links are followed. A path that begins without a slash
    /// begins in the first folder, as a path of Linux's first program does.
    pub fn find(&self, path: &str) -> Option<&Member> {
        self.at(&self.follow(path)?)
    }

    fn at(&self, place: &str) -> Option<&Member> {
        self.members.get(*self.paths.get(place)?)
    }

    fn make(&mut self, place: String, mode: u32, contents: &[u8]) {
        self.paths.insert(place, self.members.len());
        self.members.push(Member {
            mode,
            data: contents.to_vec(),
        });
    }

    /// Removes what is at a place, unless it is a folder with something in it.
    fn remove(&mut self, place: &str) {
        let within = format!("{place}/");
        let next = self.paths.range(within.clone()..).next();
        if !place.is_empty() && !next.is_some_and(|(path, _)| path.starts_with(&within)) {
            self.paths.remove(place);
        }
    }

    /// Returns the path of the first member with an identity and a type, if there is one before this one.
    fn first_of(&mut self, identity: Identity, kind: u32, place: String) -> Option<String> {
        let name = (identity, kind);
        let known = self.identities.get(&name).cloned();
        if known.is_none() {
            self.identities.insert(name, place);
        }
        known
    }

    /// Returns the path without links at which a new member of a path comes to be, if its folder exists.
    fn place(&self, path: &str) -> Option<String> {
        let own: Vec<&str> = parts(path).collect();
        let Some((name, folders)) = own.split_last() else {
            return Some(String::new());
        };
        if *name == ".." {
            return None;
        }
        let folder = self.follow(&folders.join("/"))?;
        if self.at(&folder)?.mode & TYPE != DIRECTORY {
            return None;
        }
        Some(if folder.is_empty() {
            (*name).to_owned()
        } else {
            format!("{folder}/{name}")
        })
    }

    /// Returns the path without links of what is at a path.
    fn follow(&self, path: &str) -> Option<String> {
        let mut left: Vec<String> = parts(path).rev().map(str::to_owned).collect();
        let mut here: Vec<String> = Vec::new();
        let mut links = 0;
        let mut is_folder = names_folder(path);
        while let Some(part) = left.pop() {
            if part == ".." {
                here.pop();
                continue;
            }
            here.push(part);
            let member = self.at(&here.join("/"))?;
            match member.mode & TYPE {
                LINK => {
                    links += 1;
                    if links > MOST_LINKS {
                        return None;
                    }
                    let target = std::str::from_utf8(&member.data).ok()?;
                    here.pop();
                    if target.starts_with('/') {
                        here.clear();
                    }
                    is_folder |= left.is_empty() && names_folder(target);
                    left.extend(parts(target).rev().map(str::to_owned));
                }
                DIRECTORY => {}
                _ if left.is_empty() && !is_folder => {}
                _ => return None,
            }
        }
        Some(here.join("/"))
    }
}

/// Tells whether a path can only be a folder's.
fn names_folder(path: &str) -> bool {
    path.ends_with('/') || path.ends_with("/.")
}

/// Returns the parts of a path that lead somewhere.
fn parts(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".")
}

fn plain(path: &str) -> String {
    parts(path).collect::<Vec<_>>().join("/")
}
