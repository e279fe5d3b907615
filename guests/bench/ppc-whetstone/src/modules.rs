// SPDX-License-Identifier: Apache-2.0
//! The modules: arrays, an array as a parameter, jumps, whole numbers, trigonometry, calls, references and
//! standard functions. Each tells whether its results are right.

use crate::functions::{arc_tangent, cosine, exponential, logarithm, sine, square_root};
use core::hint::black_box;

/// Rounds of the modules: the published weights of a hundred thousand Whetstone instructions.
const ARRAY: u32 = 12;
const PARAMETER: u32 = 14;
const JUMPS: u32 = 345;
const WHOLE: u32 = 210;
const TRIGONOMETRY: u32 = 32;
const CALLS: u32 = 899;
const REFERENCES: u32 = 616;
const FUNCTIONS: u32 = 93;

/// The published constants.
const T: f64 = 0.499_975;
const T1: f64 = 0.500_25;
const T2: f64 = 2.0;

/// Does all modules, and tells whether all results are right.
pub fn all() -> bool {
    let modules = [
        array,
        parameter,
        jumps,
        whole_numbers,
        trigonometry,
        calls,
        references,
        standard,
    ];
    modules.iter().fold(true, |good, module| module() & good)
}

/// Does a step of both modules with arrays. The last number is a half, by a product or by a quotient.
fn step(e: &mut [f64; 4], last: fn(f64) -> f64) {
    e[0] = (e[0] + e[1] + e[2] - e[3]) * T;
    e[1] = (e[0] + e[1] - e[2] + e[3]) * T;
    e[2] = (e[0] - e[1] + e[2] + e[3]) * T;
    e[3] = last(-e[0] + e[1] + e[2] + e[3]);
}

fn array() -> bool {
    let mut e = black_box([1.0, -1.0, -1.0, -1.0]);
    for _ in 0..ARRAY {
        step(&mut e, |sum| sum * T);
    }
    is_as_published(&e)
}

fn parameter() -> bool {
    let mut e = black_box([1.0, -1.0, -1.0, -1.0]);
    for _ in 0..PARAMETER {
        change(&mut e);
    }
    is_as_published(&e)
}

#[inline(never)]
fn change(e: &mut [f64; 4]) {
    for _ in 0..6 {
        step(e, |sum| sum / T2);
    }
}

/// Tells whether the last number is near the published one, -1.1 for any number of steps.
fn is_as_published(e: &[f64; 4]) -> bool {
    (-1.2..-1.0).contains(&e[3])
}

fn jumps() -> bool {
    let mut j = 1;
    for _ in 0..JUMPS {
        j = black_box(if j == 1 { 2 } else { 3 });
        j = black_box(if j > 2 { 0 } else { 1 });
        j = black_box(if j < 1 { 1 } else { 0 });
    }
    j == 1 - JUMPS % 2
}

fn whole_numbers() -> bool {
    let (mut j, mut k, mut l) = (1_i32, 2_i32, 3_i32);
    let mut e = [0.0; 4];
    for _ in 0..WHOLE {
        j = black_box(j * (k - j) * (l - k));
        k = black_box(l * k - (l - j) * k);
        l = black_box((l - k) * (k + j));
        e[(l - 2) as usize & 3] = f64::from(j + k + l);
        e[(k - 2) as usize & 3] = f64::from(j * k * l);
    }
    (j, k, l) == (1, 2, 3) && e[0] == 6.0 && e[1] == 6.0
}

fn trigonometry() -> bool {
    let (mut x, mut y) = (black_box(0.5), black_box(0.5));
    for _ in 0..TRIGONOMETRY {
        let under = |x: f64, y: f64| cosine(x + y) + cosine(x - y) - 1.0;
        x = T * arc_tangent(T2 * sine(x) * cosine(x) / under(x, y));
        y = T * arc_tangent(T2 * sine(y) * cosine(y) / under(x, y));
    }
    let is_near = |value: f64| (0.49..0.51).contains(&value);
    is_near(x) && is_near(y)
}

#[inline(never)]
fn call(x: f64, y: f64) -> f64 {
    let x = T * (x + y);
    let y = T * (x + y);
    (x + y) / T2
}

fn calls() -> bool {
    let mut z = 0.0;
    for _ in 0..CALLS {
        z = call(black_box(1.0), black_box(1.0));
    }
    (0.999..1.0).contains(&z)
}

#[inline(never)]
fn exchange(e: &mut [f64; 4], places: [usize; 3]) {
    let [j, k, l] = places;
    e[j] = e[k];
    e[k] = e[l];
    e[l] = e[j];
}

fn references() -> bool {
    let mut e = black_box([1.0, 2.0, 3.0, 4.0]);
    for _ in 0..REFERENCES {
        exchange(&mut e, black_box([0, 1, 2]));
    }
    // After two exchanges and any even number of further ones.
    e == [3.0, 2.0, 3.0, 4.0]
}

fn standard() -> bool {
    let (mut x, mut power) = (black_box(0.75), 1.0);
    for _ in 0..FUNCTIONS {
        x = square_root(exponential(logarithm(x) / T1));
        power /= 2.0 * T1;
    }
    let difference = logarithm(x) - logarithm(0.75) * power;
    (-1e-9..1e-9).contains(&difference)
}
