// SPDX-License-Identifier: Apache-2.0
//! Quotes of a device, compared with the image that is to run there.

pub use bulkhead_attest::verify::{Quote, verify};

use crate::problem::Problem;
use crate::sign::{Found, Measured};
use bulkhead_attest::{COMPONENT_CLASS_BINARY, COMPONENT_SYSTEM};

/// Compares each measurement of a quote with the image in a file.
///
/// # Errors
/// The file has no good image, another one runs on the device, or the quote does not say which one.
pub fn compare(quote: &Quote, file: &[u8]) -> Result<(), Problem> {
    agrees(quote, &Found::in_file(file)?.measurements(file)?)
}

/// Compares each measurement of a quote with what an image has.
fn agrees(quote: &Quote, expected: &[Measured]) -> Result<(), Problem> {
    let other = |name: &str| {
        Problem::new(format!(
            "another `{}` runs on the device than the one of the image",
            name.escape_debug()
        ))
    };
    for component in &quote.components {
        let is_it = |known: &&Measured| known.name == component.name;
        let mut known = expected.iter().filter(is_it).peekable();
        if known.peek().is_none() {
            return Err(Problem::new(format!(
                "the quote measures `{}`, which the image does not have",
                component.name.escape_debug()
            )));
        }
        if !known.any(|known| known.digest == component.measurement) {
            return Err(other(&component.name));
        }
    }
    // A quote that leaves them out would agree with every image.
    for name in [COMPONENT_CLASS_BINARY, COMPONENT_SYSTEM] {
        if !quote.components.iter().any(|component| component.name == name) {
            return Err(Problem::new(format!("the quote does not measure the {name}")));
        }
    }
    let class_binary = expected.iter().find(|known| known.name == COMPONENT_CLASS_BINARY);
    if class_binary.is_none_or(|known| known.digest != quote.implementation) {
        return Err(other(COMPONENT_CLASS_BINARY));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_attest::verify::Measured as Component;

    const ALL: [(&str, u8); 3] = [(COMPONENT_CLASS_BINARY, 1), (COMPONENT_SYSTEM, 2), ("self", 3)];

    /// Compares a quote of these components with an image of [`ALL`].
    fn judged(implementation: u8, components: &[(&str, u8)]) -> Result<(), String> {
        let component = |&(name, byte): &(&str, u8)| Component {
            name: name.to_owned(),
            measurement: [byte; 32],
            signer: [1; 32],
        };
        let quote = Quote {
            client: -1,
            lifecycle: 0,
            implementation: [implementation; 32],
            components: components.iter().map(component).collect(),
        };
        let expected = ALL.map(|(name, byte)| Measured {
            name: name.to_owned(),
            digest: [byte; 32],
        });
        agrees(&quote, &expected).map_err(|problem| problem.to_string())
    }

    #[test]
    fn a_quote_of_the_image_says_what_runs() {
        assert_eq!(judged(1, &ALL), Ok(()));
        for (implementation, components, why) in [
            (1, &ALL[1..], "does not measure the class binary"),
            (1, &[ALL[0], ALL[2]], "does not measure the system image"),
            (1, &[], "does not measure the class binary"),
            (7, &ALL, "another `class binary` runs"),
            (1, &[ALL[0], (COMPONENT_SYSTEM, 7)], "another `system image` runs"),
            (1, &[ALL[0], ALL[1], ("guest", 3)], "measures `guest`, which"),
        ] {
            let problem = judged(implementation, components).unwrap_err();
            assert!(problem.contains(why), "{problem}");
        }
    }
}
