// SPDX-License-Identifier: Apache-2.0
//! Judges the quote that a partition has printed, as `bulkhead verify-quote --image` does.

use crate::bare::Heard;
use crate::case::Case;
use bulkhead::hex;
use bulkhead::quote::{compare, verify};
use std::collections::BTreeMap;

/// Returns what is wrong with the quote of a case, if the case has one. The key that the partition has
/// printed has to have signed it, and it has to measure the image that was run.
pub(crate) fn finding(case: &Case, flash: &[u8], heard: &BTreeMap<String, Heard>) -> Option<String> {
    let console = case.quote.as_ref()?;
    let heard = heard.get(console)?;
    let bytes = |word: &str| hex::bytes(&heard.lines_of(word).collect::<String>()).map(|bytes| bytes.0);
    let nonce: Vec<u8> = (0..32).collect();
    let judge = || {
        let key = bytes("key")?
            .try_into()
            .map_err(|_| "no key was printed".to_owned())?;
        let quote = bytes("quote")?;
        let quote = verify(&quote, &key, &nonce).map_err(|why| why.to_string())?;
        compare(&quote, flash).map_err(|why| why.to_string())
    };
    judge()
        .err()
        .map(|why: String| format!("the quote on {console}: {why}"))
}
