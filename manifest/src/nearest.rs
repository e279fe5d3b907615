// SPDX-License-Identifier: Apache-2.0
//! The name that was probably meant.

/// Returns the name among `known` that `word` was probably meant to be. The two differ in at most a third of
/// the letters of `word`, or `word` is the beginning of the name.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let tolerance = (word.chars().count() / 3).max(1);
    let distances = known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(word, name), name));
    let prefix = |name: &str| word.len() >= 3 && name.starts_with(word);
    distances
        .filter(|(distance, name)| *distance <= tolerance || prefix(name))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}
