// SPDX-License-Identifier: Apache-2.0
//! Overlays: a user's additions to the generated device tree.
//!
//! A compiled overlay is untrusted input of a format with nesting and offsets. Its nesting is bounded before
//! the device tree library, which is recursive, sees the overlay.

use std::process::{Command, Stdio};

use dtoolkit::fdt::Fdt;
use dtoolkit::model::DeviceTree;
use dtoolkit::model::overlay::OverlayApplier;

use crate::diagnostic::{Code, Diagnostic, Report};
use crate::model::Placed;
use crate::payload::Loader;

/// Largest size of an overlay. Larger overlays are refused.
const SIZE_MAX: usize = 1 << 20;
/// Largest nesting. Deeper nesting is refused; real trees have less than ten levels.
const DEPTH_MAX: usize = 64;
/// Tokens of the structure block (Devicetree Specification 0.4, section 5.4.1).
const BEGIN_NODE: u32 = 1;
const END_NODE: u32 = 2;
const PROPERTY: u32 = 3;
const NOP: u32 = 4;
const END: u32 = 9;

fn bad(name: &Placed<String>, why: impl std::fmt::Display, help: &str) -> Diagnostic {
    let message = format!("the overlay `{}` cannot be used: {why}", name.value);
    Diagnostic::at(Code::BadOverlay, name.place, message).help(help)
}

/// Reads an overlay, and compiles the overlay if it is source text.
pub(crate) fn load(name: &Placed<String>, loader: &mut Loader<'_>, report: &mut Report) -> Option<Vec<u8>> {
    if name.value.ends_with(".dtbo") {
        return loader.load(name, report).map(|bytes| bytes.to_vec());
    }
    if !name.value.ends_with(".dtso") {
        report.push(bad(
            name,
            "it ends neither in .dtso nor in .dtbo",
            "name source text .dtso and a compiled overlay .dtbo",
        ));
        return None;
    }
    loader.load(name, report)?;
    let path = loader.path(name, report)?;
    let output = Command::new("dtc")
        .args(["-q", "-@", "-I", "dts", "-O", "dtb", "-o", "-"])
        .arg(&path)
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) if output.status.success() => Some(output.stdout),
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            let shown = path.display().to_string();
            let first = errors
                .lines()
                .next()
                .unwrap_or("dtc failed")
                .replace(&shown, &name.value);
            report.push(bad(
                name,
                first,
                "correct the source text; `dtc -@ -I dts -O dtb` shows all messages",
            ));
            None
        }
        Err(_) => {
            report.push(bad(
                name,
                "the compiler `dtc` does not start",
                "install device-tree-compiler, or give a compiled .dtbo",
            ));
            None
        }
    }
}

/// Applies a compiled overlay.
pub(crate) fn apply(
    tree: &mut DeviceTree,
    name: &Placed<String>,
    overlay: &[u8],
    report: &mut Report,
) -> Option<()> {
    if let Err(why) = apply_checked(tree, overlay) {
        report.push(bad(
            name,
            why,
            "an overlay changes nodes by `&LABEL { ... };` or `&{/path} { ... };`; labels are gic, uart0, apb_pclk and device names",
        ));
        return None;
    }
    Some(())
}

fn apply_checked(tree: &mut DeviceTree, overlay: &[u8]) -> Result<(), String> {
    if overlay.len() > SIZE_MAX {
        return Err(format!("it has more than {SIZE_MAX} bytes"));
    }
    check_nesting(overlay)?;
    let overlay = Fdt::new(overlay).map_err(|error| error.to_string())?;
    if !dtoolkit::Node::children(&overlay.root())
        .any(|node| dtoolkit::Node::child(&node, "__overlay__").is_some())
    {
        return Err("it has no fragment with `__overlay__`".to_owned());
    }
    OverlayApplier::new(tree)
        .apply_overlay(&overlay)
        .map_err(|error| error.to_string())
}

/// Checks the nesting of a blob, without recursion.
fn check_nesting(blob: &[u8]) -> Result<(), String> {
    let word = |at: usize| -> Result<u32, String> {
        let bytes = blob
            .get(at..at.saturating_add(4))
            .and_then(|bytes| bytes.try_into().ok());
        bytes
            .map(u32::from_be_bytes)
            .ok_or_else(|| "it is truncated".to_owned())
    };
    if word(0)? != 0xd00d_feed {
        return Err("it is no flattened device tree".to_owned());
    }
    let mut at = word(8)? as usize;
    let mut depth = 0_usize;
    loop {
        let token = word(at)?;
        at += 4;
        match token {
            BEGIN_NODE => {
                depth += 1;
                if depth > DEPTH_MAX {
                    return Err(format!("its nodes are nested more than {DEPTH_MAX} deep"));
                }
                let name = blob.get(at..).unwrap_or_default();
                let length = name
                    .iter()
                    .position(|byte| *byte == 0)
                    .ok_or("a node name does not end")?;
                at = (at + length + 1).next_multiple_of(4);
            }
            END_NODE => depth = depth.checked_sub(1).ok_or("a node ends that did not begin")?,
            PROPERTY => {
                let length = word(at)? as usize;
                at = at
                    .saturating_add(8)
                    .saturating_add(length)
                    .checked_next_multiple_of(4)
                    .ok_or("it is truncated")?;
            }
            NOP => {}
            END => return Ok(()),
            other => return Err(format!("it has an unknown token {other:#x}")),
        }
    }
}
