// SPDX-License-Identifier: Apache-2.0
//! Every interleaving of a few vCPUs, for each policy. No vCPU loses a guaranteed budget. No vCPU waits for a
//! less important one beyond inheritance. No wake-up is lost. No donation goes in a circle. Policies with a
//! fault (`mutants`) show that the search would find errors.
//!
//! The horizons are such that this takes seconds. `BULKHEAD_MODEL_TICKS=4` searches four ticks further. The
//! long tests (`bulkhead test --long`) search two ticks further.

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
