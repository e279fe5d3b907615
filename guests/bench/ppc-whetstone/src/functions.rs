// SPDX-License-Identifier: Apache-2.0
//! The standard functions that the modules call, to ten digits.

use core::f64::consts::{FRAC_PI_2, LN_2};

/// Returns the sine.
pub fn sine(angle: f64) -> f64 {
    let quarter = (angle / FRAC_PI_2 + if angle < 0.0 { -0.5 } else { 0.5 }) as i32;
    let rest = angle - f64::from(quarter) * FRAC_PI_2;
    let is_odd = quarter & 1 == 1;
    let mut sum = 1.0;
    let mut at = if is_odd { 16 } else { 17 };
    while at > 1 {
        sum = 1.0 - rest * rest / f64::from(at * (at - 1)) * sum;
        at -= 2;
    }
    let sum = if is_odd { sum } else { sum * rest };
    if quarter & 2 == 2 { -sum } else { sum }
}

/// Returns the cosine.
pub fn cosine(angle: f64) -> f64 {
    sine(angle + FRAC_PI_2)
}

/// Returns the square root of a number that is not negative, by Newton's way.
pub fn square_root(value: f64) -> f64 {
    let mut root = if value > 1.0 { value } else { 1.0 };
    for _ in 0..8 {
        root = (root + value / root) * 0.5;
    }
    root
}

/// Returns the arc tangent: the angle is halved until the series is short.
pub fn arc_tangent(value: f64) -> f64 {
    let half = |value: f64| value / (1.0 + square_root(1.0 + value * value));
    let quarter = half(half(value));
    4.0 * quarter * series(-quarter * quarter)
}

/// Returns e to the power of a number.
pub fn exponential(power: f64) -> f64 {
    let part = power / 256.0;
    let mut sum = 1.0;
    for at in (1..8).rev() {
        sum = 1.0 + part / f64::from(at) * sum;
    }
    for _ in 0..8 {
        sum *= sum;
    }
    sum
}

/// Returns the natural logarithm of a positive number.
pub fn logarithm(value: f64) -> f64 {
    let (mut rest, mut added) = (value, 0.0);
    while rest < 0.7 {
        rest *= 2.0;
        added -= LN_2;
    }
    while rest > 1.4 {
        rest *= 0.5;
        added += LN_2;
    }
    let part = (rest - 1.0) / (rest + 1.0);
    added + 2.0 * part * series(part * part)
}

/// Returns 1 + x / 3 + x x / 5 and so on.
fn series(x: f64) -> f64 {
    let mut sum = 0.0;
    for at in (0..9).rev() {
        sum = 1.0 / f64::from(2 * at + 1) + x * sum;
    }
    sum
}
