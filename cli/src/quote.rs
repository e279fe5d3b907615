// SPDX-License-Identifier: Apache-2.0
//! Quotes of a device, compared with the image that is to run there.

pub use bulkhead_attest::verify::{Quote, verify};

use crate::problem::Problem;
use crate::sign::{Found, Measured};

/// Compares each measurement of a quote with the image in a file.
///
/// # Errors
/// The file has no good image, or another one runs on the device.
pub fn compare(quote: &Quote, file: &[u8]) -> Result<(), Problem> {
    let expected = Found::in_file(file)?.measurements(file)?;
    for component in &quote.components {
        let name = component.name.escape_debug();
        let is_it = |known: &&Measured| known.name == component.name;
        let mut known = expected.iter().filter(is_it).peekable();
        if known.peek().is_none() {
            return Err(Problem::new(format!(
                "the quote measures `{name}`, which the image does not have"
            )));
        }
        if !known.any(|known| known.digest == component.measurement) {
            return Err(Problem::new(format!(
                "another `{name}` runs on the device than the one of the image"
            )));
        }
    }
    Ok(())
}
