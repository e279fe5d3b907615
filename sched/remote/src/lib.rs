// SPDX-License-Identifier: Apache-2.0
//! A policy of a user's own in a program of its own, for simulations.
//!
//! The host tool is built before anybody writes a policy. So a small program has the user's crate in it:
//! [`serve`] answers for its policy on the standard input and output. The host tool starts the program, and
//! [`Remote`] asks it as if the policy were here. The program can hold many policies: a copy of a `Remote`
//! is a copy over there.
//!
//! **Lines.** A request is a line: a word, then numbers. Only requests that want a decision or a result
//! have an answer, which is a line too. So the notes about what happens cost no round trip.
#![forbid(unsafe_code)]

mod remote;
mod server;

pub use remote::{Remote, Server};
pub use server::{answer, serve};

use bulkhead_sched::PolicyError;

/// The errors of a policy, each with its word.
const ERRORS: [(PolicyError, &str); 4] = [
    (PolicyError::TooManyVcpus, "too-many-vcpus"),
    (PolicyError::BadParameter, "bad-parameter"),
    (PolicyError::NotSupported, "not-supported"),
    (PolicyError::DonationCycle, "donation-cycle"),
];
