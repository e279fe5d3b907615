// SPDX-License-Identifier: Apache-2.0
//! Runs the PE file of a case under UEFI Secure Boot. The firmware is from Debian, and trusts only the key
//! that Debian publishes for tests.

use bulkhead::build::host::cache_folder;
use bulkhead::build::payload::{Payload, Source};
use bulkhead::build::payloads::{Payloads, Request};
use bulkhead::emulator::launch::TemporaryFile;
use bulkhead::ui::progress::Progress;
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The signature of the PE file.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum SecureBoot {
    /// By the key that the firmware trusts.
    Trusted,
    /// By the same key, and then a byte of the system image is changed.
    Changed,
    /// By another key.
    Foreign,
    /// None.
    Unsigned,
}

const fn file(name: &'static str, path: &'static str) -> Payload {
    Payload {
        name,
        description: "for UEFI Secure Boot in a test",
        architecture: "arm64",
        source: Source::File("qemu-efi-aarch64", path),
    }
}

static CODE: Payload = file("secure-boot-code", "usr/share/AAVMF/AAVMF_CODE.snakeoil.fd");
static VARIABLES: Payload = file("secure-boot-variables", "usr/share/AAVMF/AAVMF_VARS.snakeoil.fd");
static KEY: Payload = file(
    "secure-boot-key",
    "usr/share/qemu-efi-aarch64/PkKek-1-snakeoil.key",
);
static CERTIFICATE: Payload = file(
    "secure-boot-certificate",
    "usr/share/qemu-efi-aarch64/PkKek-1-snakeoil.pem",
);
/// The pass phrase of [`KEY`], which Debian publishes with it.
const PASS_PHRASE: &str = "pass:snakeoil";

impl SecureBoot {
    /// Signs the file as the case says, and gives the emulator the firmware that looks at signatures.
    pub(crate) fn prepare(
        self,
        arguments: &mut Vec<String>,
        program: &mut Vec<u8>,
        progress: &Progress,
    ) -> Result<(), String> {
        let payloads = Payloads::new(cache_folder());
        let provide = |payload: &'static Payload| {
            let path = payloads.provide(Request::Whole(payload), progress);
            path.map_err(|problem| problem.to_string())
        };
        let firmware = arguments
            .iter()
            .position(|argument| argument == "-bios")
            .ok_or("the board does not start its firmware by -bios")?;
        let flash = |path: PathBuf, how: &str| format!("if=pflash,format=raw,{how},file={}", path.display());
        let drives = [
            "-drive".to_owned(),
            flash(provide(&CODE)?, "readonly=on"),
            "-drive".to_owned(),
            flash(provide(&VARIABLES)?, "snapshot=on"),
        ];
        arguments.splice(firmware..firmware + 2, drives);
        match self {
            Self::Unsigned => {}
            Self::Trusted => sign_by(&provide(&KEY)?, &provide(&CERTIFICATE)?, program)?,
            Self::Changed => {
                sign_by(&provide(&KEY)?, &provide(&CERTIFICATE)?, program)?;
                change(program)?;
            }
            Self::Foreign => {
                let (key, certificate) = (empty("key")?, empty("pem")?);
                let [key, certificate] = [&key, &certificate].map(TemporaryFile::path);
                let mut openssl = Command::new("openssl");
                openssl.args([
                    "req",
                    "-x509",
                    "-newkey",
                    "rsa:2048",
                    "-nodes",
                    "-subj",
                    "/CN=stranger",
                ]);
                run(openssl.arg("-keyout").arg(key).arg("-out").arg(certificate))?;
                sign_by(key, certificate, program)?;
            }
        }
        Ok(())
    }
}

/// Changes a byte of the last section, which is the plan with the system image.
fn change(program: &mut [u8]) -> Result<(), String> {
    let text = b"hello from a VM";
    let place = program.windows(text.len()).position(|window| window == text);
    let byte = place.and_then(|place| program.get_mut(place));
    *byte.ok_or("the guest's text is not in the file")? ^= 0x20;
    Ok(())
}

/// Signs a PE file.
fn sign_by(key: &Path, certificate: &Path, program: &mut Vec<u8>) -> Result<(), String> {
    let (plain, signed, open) = (TemporaryFile::write("efi", program), empty("efi")?, empty("key")?);
    let plain = plain.map_err(|problem| problem.to_string())?;
    let mut openssl = Command::new("openssl");
    openssl.args(["rsa", "-passin", PASS_PHRASE, "-in"]);
    run(openssl.arg(key).arg("-out").arg(open.path()))?;
    let mut sbsign = Command::new("sbsign");
    sbsign
        .arg("--key")
        .arg(open.path())
        .arg("--cert")
        .arg(certificate);
    run(sbsign.arg("--output").arg(signed.path()).arg(plain.path()))?;
    *program = fs::read(signed.path()).map_err(|error| error.to_string())?;
    Ok(())
}

fn empty(extension: &str) -> Result<TemporaryFile, String> {
    TemporaryFile::write(extension, &[]).map_err(|problem| problem.to_string())
}

fn run(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().display().to_string();
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr)))
}
