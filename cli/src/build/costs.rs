// SPDX-License-Identifier: Apache-2.0
//! The costs of the parts of the kernel, and of the variants: lines of trusted code, and bytes of a class
//! binary. They are in `parts.toml`, which `xtask parts` checks and measures.

use serde::Deserialize;
use std::collections::BTreeMap;

/// The file with the costs, from the root of the repository.
pub const FILE: &str = "parts.toml";
/// The costs when this program was built.
const TEXT: &str = include_str!("../../../parts.toml");

/// A number for each class, by its name.
pub type PerClass = BTreeMap<String, u64>;

/// The costs of everything that is chosen.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// The parts, by their names.
    pub part: BTreeMap<String, PartCost>,
    /// Bytes of instructions and read-only data of each variant's class binary.
    #[serde(default)]
    pub variant: BTreeMap<String, PerClass>,
    /// Lines of code in the files of which each variant's class binary has instructions.
    #[serde(default)]
    pub trusted: BTreeMap<String, PerClass>,
    /// Bytes of the deepest chain of calls of each class binary, by its name.
    #[serde(default)]
    pub stack: BTreeMap<String, u64>,
}

/// The cost of a part.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartCost {
    /// Source files that are of this part alone, from the root of the repository.
    pub files: Vec<String>,
    /// Lines of code in them, neither blank nor comment nor test.
    pub lines: u64,
    /// Bytes of instructions and read-only data by which a class binary with all parts of its class, but for
    /// those that are built on this one, is larger than without this part.
    #[serde(default)]
    pub bytes: PerClass,
}

impl Costs {
    /// Parses the text of the file.
    ///
    /// # Errors
    /// The text is no such file.
    pub fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| format!("{FILE}: {error}"))
    }

    /// Returns the costs when this program was built. A test sees to it that they can be read.
    #[must_use]
    pub fn built_in() -> Self {
        Self::parse(TEXT).unwrap_or_default()
    }

    /// Returns the lines of a part.
    #[must_use]
    pub fn lines(&self, part: &str) -> Option<u64> {
        self.part.get(part).map(|cost| cost.lines)
    }

    /// Returns the bytes of a part on a class.
    #[must_use]
    pub fn bytes(&self, part: &str, class: &str) -> Option<u64> {
        self.part.get(part)?.bytes.get(class).copied()
    }

    /// Returns the bytes of the class binary of a variant.
    #[must_use]
    pub fn variant_bytes(&self, variant: &str, class: &str) -> Option<u64> {
        self.variant.get(variant)?.get(class).copied()
    }

    /// Returns the trusted lines of the class binary of a variant.
    #[must_use]
    pub fn variant_lines(&self, variant: &str, class: &str) -> Option<u64> {
        self.trusted.get(variant)?.get(class).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::{Costs, TEXT};
    use bulkhead_manifest::parts::Part;

    #[test]
    fn each_part_has_its_costs() {
        let costs = Costs::parse(TEXT).unwrap();
        let names = Part::ALL.iter().map(|part| part.name());
        assert!(names.clone().all(|name| costs.lines(name).is_some()));
        assert_eq!(costs.part.len(), names.count());
    }
}
