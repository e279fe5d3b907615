// SPDX-License-Identifier: Apache-2.0
//! The keys of the owner, and the versions that the hypervisor runs.

use std::path::Path;

use crate::diagnostic::{Code, Diagnostic, Report};
use crate::model::{Manifest, Placed};
use crate::trust::PublicKey;

/// The remedy for a file without a key.
const REMEDY: &str =
    "`bulkhead keygen NAME` makes two files: NAME.pub is for the manifest, and NAME.key signs images";

/// Checks that the files have two different public keys, and that the version may run. The files are relative
/// to `base`.
pub(crate) fn keys_are_keys(manifest: &Manifest, base: &Path, report: &mut Report) {
    let Some(signature) = &manifest.signature else {
        return;
    };
    let mut read = |file: &Option<Placed<String>>| {
        let file = file.as_ref()?;
        let key = PublicKey::read(&base.join(&file.value));
        key.map_err(|why| {
            let message = format!("`{}` is no public key: {why}", file.value);
            report.push(Diagnostic::at(Code::BadKey, file.place, message).help(REMEDY));
        })
        .ok()
        .map(|key| (key, file.place))
    };
    let (first, next) = (read(&signature.key), read(&signature.next_key));
    if let (Some((first, place)), Some((next, at))) = (first, next)
        && first == next
    {
        let message = "`key` and `next-key` are the same key".to_owned();
        report.push(
            Diagnostic::at(Code::BadKey, at, message)
                .also(place, "the first")
                .help("leave out `next-key` while there is no successor"),
        );
    }
    if let Some(least) = &signature.least_version
        && least.value.get() > signature.version.get()
    {
        let message = format!(
            "the hypervisor runs version {} or later, and the image has version {}",
            least.value.get(),
            signature.version.get()
        );
        report.push(
            Diagnostic::at(Code::BadKey, least.place, message)
                .help("give a `version` that is not less, or leave out `least-version`"),
        );
    }
}
