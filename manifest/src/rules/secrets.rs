// SPDX-License-Identifier: Apache-2.0
//! Secrets of partitions: each has one, and no other partition gets at it.

use crate::diagnostic::{Code, Diagnostic, Report};
use crate::model::{Manifest, PartitionSpec};

/// Checks that a partition has one secret at most, and that only images of an owner are run: a stranger who
/// can run an image can take the secret of any partition in it.
pub(super) fn check(partition: &PartitionSpec, manifest: &Manifest, report: &mut Report) {
    let mut secrets = partition.capabilities.iter();
    let mut secrets = secrets
        .by_ref()
        .filter_map(|own| Some((own, own.secret.as_ref()?)));
    let Some((first, bound)) = secrets.next() else {
        return;
    };
    for (other, _) in secrets {
        let message = format!("partition `{}` has two secrets", partition.name.value);
        report.push(
            Diagnostic::at(Code::BadSecret, other.name.place, message)
                .also(first.name.place, "the first")
                .help("derive further keys from one secret in the program"),
        );
    }
    if manifest.signature.is_none() {
        let message = format!(
            "partition `{}` has a secret, and the system has no table `signature`",
            partition.name.value
        );
        report.push(
            Diagnostic::at(Code::BadSecret, bound.place, message)
                .label("any image could take it")
                .help("add `[signature]` with `key = \"NAME.pub\"`; `bulkhead keygen NAME` makes the key"),
        );
    }
}
