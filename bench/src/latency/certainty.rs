// SPDX-License-Identifier: Apache-2.0
//! Compares how certain the latency of a partition is with how certain the latency of the RTOS alone is, from
//! the arrival of the byte on.

use super::{Distribution, Measured};

/// A partition's latency beside the RTOS alone under the same load.
#[derive(Debug, Clone, PartialEq)]
pub struct Certainty {
    /// The name of the setting.
    pub title: &'static str,
    /// Median, in nanoseconds: of the RTOS alone, and of the setting.
    pub median: (u64, u64),
    /// The longest latency, in nanoseconds, likewise.
    pub most: (u64, u64),
    /// Entropy in bits, likewise.
    pub entropy: (f64, f64),
    /// True if the manifest asks for a constant latency: then the entropy must not be above the entropy of
    /// the RTOS alone.
    pub is_constant: bool,
}

impl Certainty {
    /// Returns the comparison as one line of text.
    #[must_use]
    pub fn text(&self) -> String {
        let times = |(alone, own): (u64, u64)| own as f64 / alone.max(1) as f64;
        format!(
            "{}: median {:.1} times, most {:.1} times the RTOS alone, entropy {:.2} bit for {:.2} bit{}",
            self.title,
            times(self.median),
            times(self.most),
            self.entropy.1,
            self.entropy.0,
            if self.is_enough() { "" } else { ": TOO UNCERTAIN" }
        )
    }

    /// Tells whether the latency is as certain as the manifest asks for.
    #[must_use]
    pub fn is_enough(&self) -> bool {
        !self.is_constant || self.entropy.1 <= self.entropy.0
    }
}

/// Compares each setting of a partition with the RTOS alone. Settings come in pairs: quiet, and flooded. The
/// first pair is the RTOS alone, and the last one has the constant latency.
#[must_use]
pub fn certainties(measured: &[Measured]) -> Vec<Certainty> {
    let Some((alone, others)) = measured.split_at_checked(2) else {
        return Vec::new();
    };
    let pairs = others.len() / 2;
    let compare = |(number, own): (usize, &Measured)| {
        let both = |value: fn(&Distribution) -> u64| {
            (value(&alone[number % 2].from_arrival), value(&own.from_arrival))
        };
        Certainty {
            title: own.title,
            median: both(|values| values.percentile(50)),
            most: both(Distribution::most),
            entropy: (
                alone[number % 2].from_arrival.entropy(),
                own.from_arrival.entropy(),
            ),
            is_constant: number / 2 + 1 == pairs,
        }
    };
    others.iter().enumerate().map(compare).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(title: &'static str, latencies: &[u64]) -> Measured {
        Measured {
            title,
            is_charged: false,
            pings: 0,
            from_isr: Distribution::new(Vec::new()),
            from_arrival: Distribution::new(latencies.to_vec()),
        }
    }

    #[test]
    fn a_constant_latency_is_as_certain_as_the_rtos_alone_or_it_is_a_finding() {
        let settings = |last: &[u64]| {
            [
                measured("alone", &[4000, 4000]),
                measured("alone, flooded", &[4000, 9000]),
                measured("partition", &[60_000, 60_000]),
                measured("partition, flooded", &[60_000, 70_000, 80_000, 90_000]),
                measured("constant", &[400_000, 400_000]),
                measured("constant, flooded", last),
            ]
        };
        let enough = |last: &[u64]| -> Vec<bool> {
            let found = certainties(&settings(last));
            found.iter().map(Certainty::is_enough).collect()
        };
        assert_eq!(enough(&[400_000, 400_100]), [true; 4]);
        assert_eq!(
            enough(&[400_000, 402_000, 404_000, 406_000]),
            [true, true, true, false]
        );
        let text = certainties(&settings(&[400_000]))[1].text();
        assert_eq!(
            text,
            "partition, flooded: median 17.5 times, most 10.0 times the RTOS alone, entropy 2.00 bit for 1.00 bit"
        );
        assert!(certainties(&settings(&[1])[..1]).is_empty());
    }
}
