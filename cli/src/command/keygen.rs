// SPDX-License-Identifier: Apache-2.0
//! `bulkhead keygen`: the two files of a new key.

use super::KeygenArgs;
use crate::problem::{Code, Problem};
use crate::sign::PrivateKey;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

pub(super) fn run(args: &KeygenArgs) -> Result<Code, Problem> {
    let file = |ending: &str| {
        let mut name = args.name.clone().into_os_string();
        name.push(ending);
        PathBuf::from(name)
    };
    let (private, public) = (file(".key"), file(".pub"));
    let files = [&private, &public];
    if let Some(there) = files.into_iter().find(|file| file.exists() && !args.force) {
        return Err(
            Problem::usage(format!("{} is there already", there.display())).remedy(
                "name another one, or replace the key with --force: images that it signed need their old key",
            ),
        );
    }
    let key = PrivateKey::generate()?;
    let (private_text, public_text) = key.texts()?;
    write_private(&private, &private_text)?;
    fs::write(&public, public_text).map_err(Problem::io(public.display()))?;
    super::print(&format!(
        "key {}\n{}  (signs; keep it secret)\n{}  (for the manifest: [signature] key)\n",
        key.public(),
        private.display(),
        public.display()
    ))?;
    Ok(Code::Done)
}

/// Writes a file that only its owner can read.
fn write_private(path: &Path, text: &str) -> Result<(), Problem> {
    if path.exists() {
        fs::remove_file(path).map_err(Problem::io(path.display()))?;
    }
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(Problem::io(path.display()))
}
