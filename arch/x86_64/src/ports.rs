// SPDX-License-Identifier: Apache-2.0
//! Accesses to I/O ports. A port without a device reads as all ones and ignores stores, as on the bus of a
//! PC: systems look for their devices so, and it is no fault.

use crate::context::{Context, Pending, RAX};
use crate::emulate::woken;
use crate::guest::{self, PROTECTION};
use crate::machine::Machine;
use crate::platform::{self, PortAnswer};
use crate::svm;
use bulkhead_arch_api::{AccessKind, Exit, RegisterAccess, ShortCalls};

/// EXITINFO1 (APM volume 2, 15.10.2): IN; a string; the sizes 1, 2 and 4.
const IN: u64 = 1;
const STRING: u64 = 1 << 2;
const BYTE: u64 = 1 << 4;
const WORD: u64 = 1 << 5;

/// Handles an access to a port.
pub(crate) fn access(machine: &mut Machine, context: &mut Context) -> Option<Exit> {
    let cause = context.vmcb.get(svm::EXIT_INFO_1);
    let next = context.vmcb.get(svm::EXIT_INFO_2);
    if cause & STRING != 0 || context.is_task() {
        return guest::refused(context, svm::exception(PROTECTION, Some(0)), Some(next));
    }
    let port = cause >> 16 & 0xFFFF;
    let size = match cause & (BYTE | WORD) {
        BYTE => 1,
        WORD => 2,
        _ => 4,
    };
    let is_in = cause & IN != 0;
    context.pending = Pending::Port {
        size: if is_in { size } else { 0 },
        next,
    };
    let value = context.general(RAX) & (u64::MAX >> (64 - u32::from(size) * 8));
    let partition = context.plan.partition;
    let console = platform::console(partition);
    if console.has(port) {
        return Some(Exit::Register(RegisterAccess {
            address: console.place_of(port),
            size,
            kind: if is_in {
                AccessKind::Read
            } else {
                AccessKind::Write(value)
            },
        }));
    }
    let store = (!is_in).then_some(value);
    match platform::access_port(partition, port, store, context.now(), machine.pcpu) {
        PortAnswer::Done(value, wake) => {
            finish(context, value);
            woken(wake)
        }
        PortAnswer::Nobody => {
            finish(context, u64::MAX);
            None
        }
        PortAnswer::Reset(kind) => {
            finish(context, 0);
            Some(Exit::Reset(kind))
        }
    }
}

/// Answers an access to a port of the console by asking the kernel. Returns false if nothing was done.
#[inline(always)]
pub(crate) fn ask(context: &mut Context, access: &RegisterAccess, calls: &impl ShortCalls<Machine>) -> bool {
    let partition = context.plan.partition;
    let stored = match access.kind {
        AccessKind::Read => None,
        AccessKind::Write(value) => Some(value),
    };
    let answer = calls.register(partition, access.offset(), access.size, stored);
    if let Some(value) = answer {
        finish(context, value);
    }
    answer.is_some()
}

/// Completes an access to a port with what an IN has read.
pub(crate) fn finish(context: &mut Context, value: u64) {
    let Pending::Port { size, next } = context.pending else {
        return;
    };
    context.pending = Pending::Nothing;
    let old = context.general(RAX);
    let new = match size {
        1 => old & !0xFF | value & 0xFF,
        2 => old & !0xFFFF | value & 0xFFFF,
        4 => value & 0xFFFF_FFFF,
        _ => old,
    };
    context.set_general(RAX, new);
    context.go_to(next);
}
