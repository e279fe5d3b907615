// SPDX-License-Identifier: Apache-2.0
//! `bulkhead verify-quote`: whether a device has signed a quote, and what it says.

use super::VerifyQuoteArgs;
use crate::hex::{self, Bytes};
use crate::problem::{Code, Problem};
use crate::quote::compare;
use crate::sign::public_key;
use bulkhead_attest::verify::{Quote, verify};
use bulkhead_attest::{LIFECYCLE_UNKNOWN, NONCE_LENGTHS};
use std::fmt::Write;
use std::fs;
use std::path::Path;

pub(super) fn run(args: &VerifyQuoteArgs) -> Result<Code, Problem> {
    let Bytes(nonce) = &args.nonce;
    if !NONCE_LENGTHS.contains(&nonce.len()) {
        return Err(Problem::usage(format!(
            "the nonce has {} bytes, and a nonce has 32, 48 or 64",
            nonce.len()
        )));
    }
    let token = read_token(&args.quote)?;
    let quote = verify(&token, &device_key(&args.key)?, nonce).map_err(|why| {
        Problem::new(format!(
            "{}: this quote is not accepted: {why}",
            args.quote.display()
        ))
    })?;
    if let Some(image) = &args.image {
        let file = fs::read(image).map_err(Problem::io(image.display()))?;
        compare(&quote, &file)?;
    }
    super::print(&describe(&quote))?;
    Ok(Code::Done)
}

/// Reads a quote: its bytes, or these as hexadecimal digits.
fn read_token(path: &Path) -> Result<Vec<u8>, Problem> {
    let bytes = fs::read(path).map_err(Problem::io(path.display()))?;
    let text = str::from_utf8(&bytes).ok();
    let Bytes(token) = text
        .and_then(|text| hex::bytes(text).ok())
        .unwrap_or(Bytes(bytes));
    Ok(token)
}

/// Returns the public key of a device, from digits or from a file.
fn device_key(text: &str) -> Result<[u8; 32], Problem> {
    if let Ok(Bytes(bytes)) = hex::bytes(text)
        && let Ok(key) = bytes.try_into()
    {
        return Ok(key);
    }
    public_key(Path::new(text)).map(|key| key.0)
}

/// Returns what a quote says.
fn describe(quote: &Quote) -> String {
    let asked = match quote.client {
        own @ ..0 => format!("partition number {}", -1 - i64::from(own)),
        other => format!("client {other}"),
    };
    let lifecycle = match i64::from(quote.lifecycle) {
        LIFECYCLE_UNKNOWN => "not known".to_owned(),
        other => format!("{other:#06x}"),
    };
    let mut text = format!("good: asked for by {asked}, lifecycle {lifecycle}\n");
    for component in &quote.components {
        let digest = Bytes(component.measurement.to_vec());
        // Writing to a string succeeds.
        let _ = writeln!(text, "{digest} {}", component.name.escape_debug());
    }
    text
}
