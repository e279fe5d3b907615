// SPDX-License-Identifier: Apache-2.0
//! `bulkhead sign`: the signature of an image that is built already.

use super::SignArgs;
use crate::build::output::Output;
use crate::problem::{Code, Problem};
use crate::sign::{Found, PrivateKey, message, put_signature};
use bulkhead_image::layout::SIGNATURE_LEN;
use std::fs;
use std::path::Path;

pub(super) fn run(args: &SignArgs) -> Result<Code, Problem> {
    let mut file = fs::read(&args.file).map_err(Problem::io(args.file.display()))?;
    let found = Found::in_file(&file)?;
    let signed = message(&file[found.place.clone()])?;
    if let Some(path) = &args.by.message {
        Output::claim(path, &[&args.file])?.write(signed)?;
        super::print(&format!("{}  (the message to sign)\n", path.display()))?;
        return Ok(Code::Done);
    }
    let ready = args.by.signature.as_deref().map(signature_in).transpose()?;
    let own = args.by.key.as_deref().map(PrivateKey::read).transpose()?;
    if let Some(signature) = ready.or_else(|| own.map(|key| key.signature(&signed))) {
        put_signature(&mut file[found.place], signature)?;
        fs::write(&args.file, file).map_err(Problem::io(args.file.display()))?;
        super::print(&format!("{} is signed\n", args.file.display()))?;
    }
    Ok(Code::Done)
}

/// Reads a signature that was made elsewhere.
fn signature_in(path: &Path) -> Result<[u8; SIGNATURE_LEN], Problem> {
    let bytes = fs::read(path).map_err(Problem::io(path.display()))?;
    <[u8; SIGNATURE_LEN]>::try_from(bytes).map_err(|bytes| {
        Problem::new(format!(
            "{} has {} bytes, and a signature has {SIGNATURE_LEN}",
            path.display(),
            bytes.len()
        ))
    })
}
