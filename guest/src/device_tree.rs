// SPDX-License-Identifier: Apache-2.0
//! The part of a flattened device tree (Devicetree Specification v0.4, chapter 5) that a small guest needs:
//! one property of one node, by path.
//!
//! This is not a general parser. It walks the structure block once and never allocates. It treats anything
//! odd as "not found", so that a guest without a device tree behaves like one with an empty command line.

/// First word of a device tree, big-endian.
pub const MAGIC: u32 = 0xD00D_FEED;

const BEGIN_NODE: u32 = 1;
const END_NODE: u32 = 2;
const PROPERTY: u32 = 3;
const NOP: u32 = 4;

/// Deepest node the walk follows.
const MAX_DEPTH: usize = 8;

/// A device tree in memory.
#[derive(Clone, Copy, Debug)]
pub struct DeviceTree<'a> {
    bytes: &'a [u8],
}

impl<'a> DeviceTree<'a> {
    /// Returns the device tree at the start of `bytes`, if there is one.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let total = word(bytes, 4)? as usize;
        (word(bytes, 0)? == MAGIC).then_some(())?;
        Some(Self {
            bytes: bytes.get(..total)?,
        })
    }

    /// Returns the bytes of property `name` of the node at `path` (names from the root down, without
    /// addresses).
    #[must_use]
    pub fn property(&self, path: &[&str], name: &str) -> Option<&'a [u8]> {
        let structure = self.bytes.get(word(self.bytes, 8)? as usize..)?;
        let strings = self.bytes.get(word(self.bytes, 12)? as usize..)?;
        let mut offset = 0;
        let mut depth = 0;
        // The number of nodes around the current place that are a prefix of `path`.
        let mut matched = 0;
        loop {
            let token = word(structure, offset)?;
            offset += 4;
            match token {
                BEGIN_NODE => {
                    let node = text(structure, offset)?;
                    offset = align(offset + node.len() + 1);
                    // The root has an empty name and is depth 0.
                    if depth > 0 && matched == depth - 1 && path.get(depth - 1) == Some(&base_name(node)) {
                        matched = depth;
                    }
                    depth += 1;
                    (depth <= MAX_DEPTH).then_some(())?;
                }
                END_NODE => {
                    depth = depth.checked_sub(1)?;
                    matched = matched.min(depth.saturating_sub(1));
                }
                PROPERTY => {
                    let length = word(structure, offset)? as usize;
                    let key = text(strings, word(structure, offset + 4)? as usize)?;
                    let value = structure.get(offset + 8..)?.get(..length)?;
                    if matched == path.len() && depth == path.len() + 1 && key == name {
                        return Some(value);
                    }
                    offset = align(offset + 8 + length);
                }
                NOP => {}
                _ => return None,
            }
        }
    }

    /// Returns cell `index` of property `name` of the node at `path`.
    #[must_use]
    pub fn cell(&self, path: &[&str], name: &str, index: usize) -> Option<u32> {
        word(self.property(path, name)?, index.checked_mul(4)?)
    }

    /// Returns the kernel command line: `/chosen/bootargs`, empty if there is none.
    #[must_use]
    pub fn bootargs(&self) -> &'a str {
        self.property(&["chosen"], "bootargs")
            .and_then(|bytes| text(bytes, 0))
            .unwrap_or("")
    }
}

/// Returns the part of a node's name before its address.
fn base_name(node: &str) -> &str {
    node.split_once('@').map_or(node, |(name, _)| name)
}

const fn align(offset: usize) -> usize {
    (offset + 3) & !3
}

fn word(bytes: &[u8], offset: usize) -> Option<u32> {
    let field = bytes.get(offset..)?.first_chunk()?;
    Some(u32::from_be_bytes(*field))
}

/// Returns the NUL-terminated text at `offset`.
fn text(bytes: &[u8], offset: usize) -> Option<&str> {
    let rest = bytes.get(offset..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    core::str::from_utf8(rest.get(..end)?).ok()
}

#[cfg(test)]
mod tests {
    use super::{BEGIN_NODE, DeviceTree, END_NODE, MAGIC, PROPERTY};

    const END: u32 = 9;

    /// Returns a tree with a property `bootargs` in `/chosen`, another of that name in `/other/chosen` before
    /// it.
    fn sample() -> Vec<u8> {
        let mut structure = Vec::new();
        let mut token = |token: u32, rest: &[u8]| {
            structure.extend(token.to_be_bytes());
            structure.extend(rest);
            while structure.len() % 4 != 0 {
                structure.push(0);
            }
        };
        let property = |value: &[u8]| {
            let mut bytes = Vec::from((value.len() as u32).to_be_bytes());
            bytes.extend(0_u32.to_be_bytes());
            bytes.extend(value);
            bytes
        };
        token(BEGIN_NODE, b"\0");
        token(BEGIN_NODE, b"other\0");
        token(BEGIN_NODE, b"chosen\0");
        token(PROPERTY, &property(b"wrong\0"));
        token(END_NODE, b"");
        token(END_NODE, b"");
        token(BEGIN_NODE, b"chosen@0\0");
        token(PROPERTY, &property(b"fault=none\0"));
        token(END_NODE, b"");
        token(END_NODE, b"");
        token(END, b"");
        let strings = b"bootargs\0";
        let mut tree = Vec::new();
        for field in [
            MAGIC,
            (40 + structure.len() + strings.len()) as u32,
            40,
            (40 + structure.len()) as u32,
        ] {
            tree.extend(field.to_be_bytes());
        }
        tree.resize(40, 0);
        tree.extend(structure);
        tree.extend(strings);
        tree
    }

    #[test]
    fn finds_the_command_line_of_the_right_node() {
        let bytes = sample();
        let tree = DeviceTree::new(&bytes).expect("a device tree");
        assert_eq!(tree.bootargs(), "fault=none");
        assert_eq!(
            tree.property(&["other", "chosen"], "bootargs"),
            Some(&b"wrong\0"[..])
        );
        assert_eq!(tree.property(&["other"], "bootargs"), None);
        assert_eq!(tree.property(&["chosen"], "absent"), None);
    }

    #[test]
    fn damage_is_not_found_and_never_a_panic() {
        let bytes = sample();
        for length in 0..bytes.len() {
            assert!(DeviceTree::new(&bytes[..length]).is_none());
        }
        for position in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[position] ^= 1 << bit;
                if let Some(tree) = DeviceTree::new(&damaged) {
                    let _ = tree.bootargs();
                }
            }
        }
    }
}
