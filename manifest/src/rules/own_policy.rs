// SPDX-License-Identifier: Apache-2.0
//! Policies of the user's own: a system has one at most, and its crate is one that can be built in.
//!
//! The crate becomes a part of the hypervisor. So it must forbid unsafe code and do without an operating
//! system. The compiler judges the rest when the crate is built.

use std::path::Path;

use toml::Table;

use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::model::{Manifest, OwnPolicy};

/// An example of such a crate.
const EXAMPLE: &str = "examples/aarch64-own-policy/weighted-turns";

/// Something wrong with a crate, and the remedy.
type Finding = (String, String);

/// Checks the policies of the user's own. Their folders are relative to `base`.
pub(crate) fn own_policies(manifest: &Manifest, base: &Path, report: &mut Report) {
    let mut first: Option<(OwnPolicy, Place)> = None;
    for pcpu in &manifest.pcpus {
        let (Some(own), Some(place)) = (pcpu.own_policy(), pcpu.policy.place) else {
            continue;
        };
        let mut refuse = |(message, help): Finding| {
            report.push(Diagnostic::at(Code::BadOwnPolicy, place, message).help(help));
        };
        match (own, &first) {
            (Err(folder), _) => refuse((
                format!("`{folder}` does not end with the name of a crate"),
                "give the folder of the crate, which has the crate's name: policy = \"crate:my-policy\""
                    .to_owned(),
            )),
            (Ok(own), Some((other, at))) if *other != own => {
                let message = format!(
                    "the system has two policies of your own, `{}` and `{}`",
                    other.name, own.name
                );
                report.push(
                    Diagnostic::at(Code::BadOwnPolicy, place, message)
                        .also(*at, "the first")
                        .help(
                            "a hypervisor has one: give one of the pCPUs a policy that comes with Bulkhead",
                        ),
                );
            }
            (Ok(_), Some(_)) => {}
            (Ok(own), None) => {
                match can_be_built_in(&own, &base.join(&own.folder)) {
                    Err(found) => refuse(found),
                    Ok(()) => report.push(not_analysed(&own, place)),
                }
                first = Some((own, place));
            }
        }
    }
}

/// Returns the warning that nothing is proved of a policy.
fn not_analysed(own: &OwnPolicy, place: Place) -> Diagnostic {
    let message = format!("own policy `{}`: not analysed, deadlines not proved", own.name);
    Diagnostic::at(Code::NotAnalysed, place, message)
        .label("no model of this crate is known")
        .help("look at it with `bulkhead simulate`, or choose a policy that comes with Bulkhead")
}

/// Checks that the folder has a crate of the name that a class binary can have in it.
fn can_be_built_in(own: &OwnPolicy, folder: &Path) -> Result<(), Finding> {
    let name = &own.name;
    let file = folder.join("Cargo.toml");
    let shown = format!("{}/Cargo.toml", own.folder.trim_end_matches('/'));
    let text = read(&file).map_err(|error| {
        (
            format!(
                "the crate of the policy `{name}` cannot be read: {shown}: {}",
                crate::payload::reason(&error)
            ),
            format!("put the crate there, or correct the folder; {EXAMPLE} is an example"),
        )
    })?;
    let manifest: Table = toml::from_str(&text).map_err(|error| {
        let message = error.message();
        (
            format!("{shown} is not valid: {message}"),
            "mend the file".to_owned(),
        )
    })?;
    let found = manifest
        .get("package")
        .and_then(|package| package.get("name")?.as_str());
    if found != Some(name.as_str()) {
        let message = match found {
            Some(found) => format!("the folder `{}` has the crate `{found}`", own.folder),
            None => format!("{shown} has no `package.name`"),
        };
        return Err((
            message,
            format!("the crate and its folder have one name: write name = \"{name}\""),
        ));
    }
    if manifest
        .get("dependencies")
        .and_then(|all| all.get("bulkhead-sched"))
        .is_none()
    {
        return Err((
            format!("the crate `{name}` does not depend on `bulkhead-sched`"),
            "its traits are there: add bulkhead-sched = { path = \"PATH/sched\" } to its dependencies"
                .to_owned(),
        ));
    }
    forbids(own, folder)
}

/// Checks that the crate needs no operating system and forbids unsafe code.
fn forbids(own: &OwnPolicy, folder: &Path) -> Result<(), Finding> {
    let (name, file) = (&own.name, folder.join("src/lib.rs"));
    let shown = format!("{}/src/lib.rs", own.folder.trim_end_matches('/'));
    let text = read(&file).map_err(|error| {
        (
            format!(
                "the crate `{name}` cannot be read: {}: {}",
                shown,
                crate::payload::reason(&error)
            ),
            format!("a policy is a library; {EXAMPLE} is an example"),
        )
    })?;
    for (attribute, why) in [
        ("#![no_std]", "a hypervisor has no operating system below it"),
        (
            "#![forbid(unsafe_code)]",
            "a policy has no need of unsafe code, and could reach everything by it",
        ),
    ] {
        if !text.lines().any(|line| line.trim() == attribute) {
            return Err((
                format!("the crate `{name}` lacks `{attribute}`: {why}"),
                format!("write {attribute} on a line of its own in {}", shown),
            ));
        }
    }
    Ok(())
}

/// Reads a text, up to a length that no file of such a crate has.
fn read(file: &Path) -> std::io::Result<String> {
    let bytes = crate::payload::read_file(file, 1 << 20)?;
    String::from_utf8(bytes).map_err(|_| std::io::ErrorKind::InvalidData.into())
}
