// SPDX-License-Identifier: Apache-2.0
//! Comparison of a paper's figure with ours.
//!
//! A time of a paper becomes cycles of its processor at its clock, and is held against our instructions. A
//! cycle is no instruction: the page says so. All other units are the same on both sides.

use super::paper::Unit;

/// The outcome of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Reached,
    NotReached,
    NotMeasured,
    /// The paper has no number that ours can be held against.
    NotCompared,
}

impl Verdict {
    /// Holds our figure against the limit of a paper.
    pub(super) fn of(ours: Option<f64>, limit: Option<f64>, more_is_better: bool) -> Self {
        match (ours, limit) {
            (None, _) => Self::NotMeasured,
            (Some(_), None) => Self::NotCompared,
            (Some(ours), Some(limit)) if ours == limit || (ours > limit) == more_is_better => Self::Reached,
            _ => Self::NotReached,
        }
    }

    /// Returns the words of the verdict.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Reached => "reached",
            Self::NotReached => "not reached",
            Self::NotMeasured => "not measured",
            Self::NotCompared => "not compared",
        }
    }
}

impl Unit {
    /// Tells whether figures of this unit are held against our instructions.
    pub(super) const fn is_time(self) -> bool {
        matches!(self, Self::Cycles | Self::Us | Self::Ms | Self::S)
    }

    /// Returns a figure in the unit of ours: cycles at the clock, bytes, or as it is.
    pub(super) fn convert(self, figure: f64, clock_mhz: f64) -> f64 {
        match self {
            Self::Us => figure * clock_mhz,
            Self::Ms => figure * clock_mhz * 1e3,
            Self::S => figure * clock_mhz * 1e6,
            Self::Kilobytes => figure * 1024.0,
            _ => figure,
        }
    }

    /// Returns the unit as the paper has it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::Us => "us",
            Self::Ms => "ms",
            Self::S => "s",
            Self::Lines => "lines",
            Self::Bytes => "bytes",
            Self::Kilobytes => "KB",
            Self::Calls => "calls",
            Self::Bit => "bit",
            Self::Percent => "%",
            Self::Times => "times",
        }
    }

    /// Returns the unit of our figure.
    pub(super) const fn of_ours(self) -> &'static str {
        match self {
            Self::Cycles | Self::Us | Self::Ms | Self::S => "instructions",
            Self::Kilobytes => "bytes",
            _ => self.name(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_become_cycles_at_the_clock_of_the_paper() {
        assert_eq!(Unit::Us.convert(10.0, 650.0), 6500.0);
        assert_eq!(Unit::Ms.convert(55.0, 1500.0), 82_500_000.0);
        assert_eq!(Unit::S.convert(2.0, 300.0), 600_000_000.0);
        assert_eq!(Unit::Cycles.convert(511.0, 300.0), 511.0);
        assert_eq!(Unit::Kilobytes.convert(58.0, 650.0), 59_392.0);
        assert_eq!(Unit::Lines.convert(6230.0, 912.0), 6230.0);
    }

    #[test]
    fn an_equal_figure_reaches_and_a_missing_one_is_never_reached() {
        let less = |ours, limit| Verdict::of(ours, limit, false);
        assert_eq!(less(Some(5.0), Some(5.0)), Verdict::Reached);
        assert_eq!(less(Some(4.0), Some(5.0)), Verdict::Reached);
        assert_eq!(less(Some(6.0), Some(5.0)), Verdict::NotReached);
        assert_eq!(less(None, Some(5.0)), Verdict::NotMeasured);
        assert_eq!(less(None, None), Verdict::NotMeasured);
        assert_eq!(less(Some(1.0), None), Verdict::NotCompared);
        assert_eq!(Verdict::of(Some(90.0), Some(80.0), true), Verdict::Reached);
        assert_eq!(Verdict::of(Some(70.0), Some(80.0), true), Verdict::NotReached);
        assert_eq!(Verdict::of(Some(80.0), Some(80.0), true), Verdict::Reached);
    }
}
