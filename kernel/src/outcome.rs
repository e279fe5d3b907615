// SPDX-License-Identifier: Apache-2.0
//! The outcome of a hypercall.

use bulkhead_abi::Error;

/// The results of a hypercall, or its error.
pub type Outcome = Result<[u64; 4], Error>;
