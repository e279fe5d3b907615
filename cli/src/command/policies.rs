// SPDX-License-Identifier: Apache-2.0
//! `bulkhead policies`: the policies of a pCPU, and their keys in the manifest.

use crate::build::tables::table;
use crate::problem::{Code, Problem};

pub(super) fn run() -> Result<Code, Problem> {
    super::print(&report())?;
    Ok(Code::Done)
}

/// Returns a table with a row per policy.
fn report() -> String {
    let mut rows = table(&["policy", "keys of the pCPU", "keys of a vCPU", "what it does"]);
    for policy in bulkhead_manifest::policies() {
        let keys = |keys: &[&str]| match keys {
            [] => "-".to_owned(),
            some => some.join(", "),
        };
        rows.add_row([
            policy.name.to_owned(),
            keys(policy.pcpu_keys),
            keys(policy.vcpu_keys),
            policy.description.to_owned(),
        ]);
    }
    format!("{rows}\n")
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_policy_is_listed_with_its_keys() {
        let text = super::report();
        for word in [
            "pinned",
            "fixed-priority",
            "edf",
            "arinc653",
            "domains",
            "schedule",
            "deadline",
        ] {
            assert!(text.contains(word), "{word} is missing in\n{text}");
        }
    }
}
