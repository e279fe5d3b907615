// SPDX-License-Identifier: Apache-2.0
//! Every interleaving of a few vCPUs, for each policy: nobody loses a guaranteed budget, nobody waits for a less important
//! one beyond inheritance, no wake-up is lost, no donation goes in a circle. That the search would find what is wrong is
//! shown by policies with a fault (`mutants`).
//!
//! The horizons are such that this takes seconds; `BULKHEAD_MODEL_TICKS=4` searches four ticks further,
//! the long tests (`bulkhead test --long`) two.

mod model;

#[path = "model/arinc653.rs"]
mod arinc653;
#[path = "model/domains.rs"]
mod domains;
#[path = "model/edf.rs"]
mod edf;
#[path = "model/fixed_priority.rs"]
mod fixed_priority;
#[path = "model/mutants.rs"]
mod mutants;
