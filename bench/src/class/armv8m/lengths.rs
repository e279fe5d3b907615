// SPDX-License-Identifier: Apache-2.0
//! From the lengths of many uses to figures.

use crate::runs::Results;

/// Uses of an operation before those that count for its spread.
pub(super) const WARM_UP: usize = 3;

/// Adds the median of the lengths after those that are skipped, and the very first one.
pub(super) fn note(results: &mut Results, key: &str, skipped: usize, lengths: impl Iterator<Item = u64>) {
    let all: Vec<u64> = lengths.collect();
    let mut warm = all.get(skipped..).unwrap_or_default().to_vec();
    warm.sort_unstable();
    let [_, cold] = &mut results.cold;
    cold.extend(all.first().map(|length| (key.to_owned(), *length)));
    let median = warm.get(warm.len() / 2);
    results
        .hypervised
        .extend(median.map(|length| (key.to_owned(), *length)));
}

/// Adds the worst length after the first few as well.
pub(super) fn spread(results: &mut Results, name: &str, pair: &str, lengths: impl Iterator<Item = u64>) {
    let all: Vec<u64> = lengths.collect();
    let worst = all.iter().skip(WARM_UP).max();
    results
        .hypervised
        .extend(worst.map(|length| (format!("{name}-worst-{pair}"), *length)));
    note(results, &format!("{name}-{pair}"), WARM_UP, all.into_iter());
}
