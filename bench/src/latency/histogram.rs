// SPDX-License-Identifier: Apache-2.0
//! A distribution of latencies: its figures, its entropy, its pictures.
//!
//! The entropy in bits says how much is unknown about the next latency (binary logarithm, over bins of a
//! microsecond). The entropy is 0 if the latency is always the same.

use std::collections::BTreeMap;
use std::fmt::Write;

/// Latencies in nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct Distribution {
    sorted: Vec<u64>,
}

/// Width of a bin, in nanoseconds.
const BIN: u64 = 1000;

impl Distribution {
    /// Returns the distribution of these samples.
    #[must_use]
    pub fn new(mut samples: Vec<u64>) -> Self {
        samples.sort_unstable();
        Self { sorted: samples }
    }

    /// Returns the number of samples.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.sorted.len()
    }

    /// Returns the latency that `percent` of the samples do not exceed.
    #[must_use]
    pub fn percentile(&self, percent: usize) -> u64 {
        let rank = (self.sorted.len() * percent).div_ceil(100).max(1);
        self.sorted.get(rank - 1).copied().unwrap_or(0)
    }

    /// Returns the shortest latency.
    #[must_use]
    pub fn least(&self) -> u64 {
        self.sorted.first().copied().unwrap_or(0)
    }

    /// Returns the longest latency.
    #[must_use]
    pub fn most(&self) -> u64 {
        self.sorted.last().copied().unwrap_or(0)
    }

    /// Returns the number of samples by microsecond.
    #[must_use]
    pub fn bins(&self) -> BTreeMap<u64, usize> {
        let mut bins = BTreeMap::new();
        for sample in &self.sorted {
            *bins.entry(sample / BIN).or_default() += 1;
        }
        bins
    }

    /// Returns the entropy of the distribution, in bits.
    #[must_use]
    pub fn entropy(&self) -> f64 {
        let all = self.sorted.len() as f64;
        let share = |count: usize| count as f64 / all;
        let bits = self
            .bins()
            .into_values()
            .map(|count| -share(count) * share(count).log2());
        // A sum of -0 alone is -0, and would be printed as such.
        bits.sum::<f64>() + 0.0
    }
}

const WIDTH: f64 = 880.0;
const PLOT: f64 = 84.0;
const ROW: f64 = 132.0;
const LEFT: f64 = 40.0;

/// Draws the distributions below each other, on one scale of time.
#[must_use]
pub fn svg(rows: &[(String, &Distribution)]) -> String {
    let end = rows
        .iter()
        .map(|(_, row)| row.most() / BIN + 1)
        .max()
        .unwrap_or(1)
        .max(1) as f64;
    let scale = (WIDTH - LEFT - 20.0) / end;
    let height = ROW * rows.len() as f64 + 30.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for (number, (title, row)) in rows.iter().enumerate() {
        let base = ROW * number as f64 + 28.0 + PLOT;
        let most = row.bins().into_values().max().unwrap_or(1).max(1) as f64;
        let colour = if number % 2 == 0 { "#4477aa" } else { "#ee6677" };
        let _ = writeln!(
            out,
            "<text x=\"{LEFT}\" y=\"{}\">{title}: {:.2} bit, {:.1} to {:.1} us</text>\n\
             <path d=\"M{LEFT} {base}H{}\" stroke=\"#999\"/>",
            base - PLOT - 8.0,
            row.entropy(),
            row.least() as f64 / 1000.0,
            row.most() as f64 / 1000.0,
            WIDTH - 20.0
        );
        for (bin, count) in row.bins() {
            let tall = (PLOT * count as f64 / most).max(1.0);
            let _ = writeln!(
                out,
                "<rect x=\"{:.2}\" y=\"{:.2}\" width=\"{:.2}\" height=\"{tall:.2}\" fill=\"{colour}\"/>",
                LEFT + scale * bin as f64,
                base - tall,
                (scale * 0.9).max(1.0)
            );
        }
        for part in 0..=4 {
            let at = end * f64::from(part) / 4.0;
            let _ = writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"#555\" text-anchor=\"middle\">{at:.0} us</text>",
                LEFT + scale * at,
                base + 14.0
            );
        }
    }
    out.push_str("</svg>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropy_is_what_is_not_known() {
        assert_eq!(Distribution::new(vec![1500; 8]).entropy(), 0.0);
        assert_eq!(Distribution::new(vec![500, 1500]).entropy(), 1.0);
        assert_eq!(Distribution::new(vec![0, 1000, 2000, 3000]).entropy(), 2.0);
        assert_eq!(Distribution::new(Vec::new()).entropy(), 0.0);
    }

    #[test]
    fn percentiles_are_samples() {
        let row = Distribution::new((1..=200).rev().collect());
        assert_eq!(
            [row.least(), row.percentile(50), row.percentile(99), row.most()],
            [1, 100, 198, 200]
        );
        assert_eq!(Distribution::default().percentile(99), 0);
    }

    #[test]
    fn a_picture_has_a_bar_for_each_bin() {
        let row = Distribution::new(vec![500, 700, 2500]);
        let picture = svg(&[("quiet".to_owned(), &row)]);
        assert_eq!(picture.matches("fill=\"#4477aa\"").count(), 2);
        assert!(picture.contains("quiet: 0.92 bit"), "{picture}");
    }
}
