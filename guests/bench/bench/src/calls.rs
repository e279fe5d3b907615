// SPDX-License-Identifier: Apache-2.0
//! Calls with and without work that they cause.

use crate::{measure, ticks_of};
use bulkhead_guest::abi::Operation;
use bulkhead_guest::abi::hypercall::{SELF_CAPABILITY, function_id};
use bulkhead_guest::vm::psci::{self, Conduit, function};

/// Measures calls. On the bare board every call is `PSCI_VERSION` by HVC, which the emulator answers in one
/// instruction. The figure is then the cost of the call alone.
pub fn run(bare: bool) {
    let call_with = |conduit, function, capability| {
        let conduit = if bare { Conduit::Hvc } else { conduit };
        let function = if bare { function::VERSION } else { function };
        ticks_of(|| {
            psci::call(conduit, function, [capability, 0, 0]);
        })
    };
    let call = |conduit, function| call_with(conduit, function, 0);
    measure("version-call", || {
        call(Conduit::Hvc, function_id(Operation::Version))
    });
    measure("status-call", || {
        let function = function_id(Operation::PartitionStatus);
        call_with(Conduit::Hvc, function, SELF_CAPABILITY.into())
    });
    measure("null-call", || call(Conduit::Hvc, function_id(Operation::Null)));
    measure("psci-version-hvc", || call(Conduit::Hvc, function::VERSION));
    measure("psci-version-smc", || call(Conduit::Smc, function::VERSION));
}
