// SPDX-License-Identifier: Apache-2.0
//! Calls with and without work behind them.

use crate::{measure, ticks_of};
use bulkhead_guest::abi::Operation;
use bulkhead_guest::abi::hypercall::function_id;
use bulkhead_guest::vm::psci::{self, Conduit, function};

/// Measures calls. On the bare board every call is `PSCI_VERSION` by HVC, which the emulator answers in one
/// instruction. The figure is then the cost of the call alone.
pub fn run(bare: bool) {
    let call = |conduit, function| {
        let conduit = if bare { Conduit::Hvc } else { conduit };
        let function = if bare { function::VERSION } else { function };
        ticks_of(|| {
            psci::call(conduit, function, [0; 3]);
        })
    };
    measure("null-call", || call(Conduit::Hvc, function_id(Operation::Null)));
    measure("psci-version-hvc", || call(Conduit::Hvc, function::VERSION));
    measure("psci-version-smc", || call(Conduit::Smc, function::VERSION));
}
