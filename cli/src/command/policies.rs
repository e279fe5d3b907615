// SPDX-License-Identifier: Apache-2.0
//! `bulkhead policies`: how a pCPU can be scheduled, and what the manifest says for that.

use crate::problem::{Code, Problem};
use crate::tables::table;

pub(super) fn run() -> Result<Code, Problem> {
    super::print(&report())?;
    Ok(Code::Done)
}

/// A row per policy.
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
