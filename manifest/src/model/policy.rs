// SPDX-License-Identifier: Apache-2.0
//! The scheduling policy that a manifest chooses for a pCPU: one of ours, or a crate of the user's own.

use crate::schema::declare::words;
use crate::schema::form::{Form, word};
use crate::schema::{ValueKind, Word};
use crate::value::Value;
use std::ops::Deref;

/// Scheduling policy of a pCPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// `fixed-priority`.
    #[default]
    FixedPriority,
    /// `pinned`.
    Pinned,
    /// `edf`.
    Edf,
    /// `arinc653`.
    Arinc653,
    /// `domains`.
    Domains,
    /// A crate of the user's own.
    Own,
}

words! {
    Policy {
        /// preemptive, round robin among vCPUs of the same priority; a vCPU can have a budget
        "fixed-priority" => Self::FixedPriority,
        /// exactly one vCPU, which owns the pCPU; no scheduling timer
        "pinned" => Self::Pinned,
        /// earliest deadline first among constant-bandwidth servers; vCPUs without budget get what is left
        "edf" => Self::Edf,
        /// a frame of windows, each for one partition, repeated for ever; several schedules
        "arinc653" => Self::Arinc653,
        /// time domains in round robin, each with a budget; the first one is driven by priority and preempts
        /// the others
        "domains" => Self::Domains,
    }
}

impl Policy {
    /// Returns the word for the policy in a manifest, or for all policies of users' own.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            ours => word(ours),
        }
    }
}

/// The start of the value of `policy` for a policy of the user's own.
const CRATE: &str = "crate:";
/// The form of a policy of the user's own, and its meaning.
pub(super) const OWN: Word = (
    "crate:FOLDER",
    "a policy of your own, the crate in this folder, from the folder of the manifest; `build` and `run` then \
     compile a hypervisor for the system alone",
);

/// A policy as a manifest chooses it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PolicyChoice {
    policy: Policy,
    /// The folder of the crate of a policy of the user's own.
    pub folder: Option<String>,
}

impl Deref for PolicyChoice {
    type Target = Policy;

    fn deref(&self) -> &Policy {
        &self.policy
    }
}

impl Form for PolicyChoice {
    const KIND: ValueKind = ValueKind::ChoiceOr {
        choice: &Policy::KIND,
        start: CRATE,
        other: OWN,
    };

    fn read(value: &Value) -> Option<Self> {
        let folder = value.text()?.strip_prefix(CRATE).map(str::to_owned);
        let policy = match folder {
            Some(_) => Policy::Own,
            None => Policy::read(value)?,
        };
        Some(Self { policy, folder })
    }
}

/// The crate of a policy of the user's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnPolicy {
    /// The name of the crate, which is the last part of the folder too.
    pub name: String,
    /// The folder, from the folder of the manifest.
    pub folder: String,
}

impl OwnPolicy {
    /// Returns the crate in a folder; `None` if no crate can have the name of the folder.
    pub(super) fn of(folder: &str) -> Option<Self> {
        let name = folder.trim_end_matches('/').rsplit('/').next()?;
        let is_word = |word: &str| {
            let mut bytes = word.bytes();
            !word.is_empty() && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        let is_name =
            name.starts_with(|first: char| first.is_ascii_lowercase()) && name.split(['-', '_']).all(is_word);
        is_name.then(|| Self {
            name: name.to_owned(),
            folder: folder.to_owned(),
        })
    }

    /// Returns the name of the crate in Rust.
    #[must_use]
    pub fn crate_name(&self) -> String {
        self.name.replace('-', "_")
    }

    /// Returns the name of the type that is the policy: `WeightedTurns` for `weighted-turns`.
    #[must_use]
    pub fn type_name(&self) -> String {
        let words = self.name.split(['-', '_']);
        words.map(|word| word[..1].to_uppercase() + &word[1..]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::OwnPolicy;

    #[test]
    fn a_folder_names_its_crate() {
        let own = OwnPolicy::of("../policies/my-edf2/").unwrap();
        assert_eq!(
            (
                own.name.as_str(),
                own.crate_name().as_str(),
                own.type_name().as_str()
            ),
            ("my-edf2", "my_edf2", "MyEdf2")
        );
        for bad in [
            "", ".", "..", "/", "a/..", "My", "a--b", "-a", "a-", "2a", "a b", "\u{e9}", "a\"b",
        ] {
            assert_eq!(OwnPolicy::of(bad), None, "{bad:?}");
        }
    }
}
