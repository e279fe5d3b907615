// SPDX-License-Identifier: Apache-2.0
//! Hypercalls that the kernel answers without an exit: the handler asks what the kernel has lent for this
//! run ([`ShortCalls`]), and the guest goes on.

use crate::machine::{Lent, Machine};
use bulkhead_abi::Operation;
use bulkhead_arch_api::{CallRegisters, Exit, ShortCalls, VcpuId, VcpuSet, Vcpus};
use bulkhead_arch_ppc405_core::hypercall;
use core::ptr::NonNull;

const NULL: u16 = Operation::Null as u16;
const DOORBELL: u16 = Operation::ChannelDoorbell as u16;
const CALL: u16 = Operation::PortSendReceiveDonate as u16;
const REPLY_RECEIVE: u16 = Operation::PortReceiveDonate as u16;

/// Lends `calls`. The loan is over before `calls` is.
pub(crate) fn lend<C: ShortCalls<Machine>>(calls: &C) -> Lent {
    Lent {
        calls: NonNull::from(calls).as_ptr().cast_const().cast(),
        call: ask::<C>,
    }
}

impl Machine {
    /// Answers the hypercall in the registers of the vCPU, which runs. Returns whether the vCPU leaves.
    pub(crate) fn hypercall(&mut self, vcpu: VcpuId) -> bool {
        let Some(context) = self.contexts.get(vcpu) else {
            return false;
        };
        let frame = &mut context.registers.frame;
        let woken = match frame.register(0) as u16 {
            // This call asks nothing of the kernel.
            NULL => {
                frame.set_register(3, 0);
                return false;
            }
            // These lead to another vCPU, or wait.
            CALL | REPLY_RECEIVE => None,
            _ => self.ask_lent(vcpu),
        };
        match woken {
            Some(woken) if woken.is_empty() => return false,
            Some(woken) => self.exit = Exit::Wake(woken),
            None => {
                let Some(context) = self.contexts.get(vcpu) else {
                    return false;
                };
                self.exit = Exit::Hypercall(hypercall::read(&context.registers.frame));
            }
        }
        true
    }

    /// Asks for the call what is lent. `None`: nothing was done.
    fn ask_lent(&mut self, vcpu: VcpuId) -> Option<VcpuSet> {
        let lent = self.lent?;
        let mut registers = hypercall::registers(&self.contexts.get(vcpu)?.registers.frame);
        // SAFETY: `run_answering` has lent both together, and the guest runs within that call.
        let woken = unsafe { (lent.call)(self, vcpu, &mut registers, lent.calls) }?;
        let [_, results @ .., _, _] = registers;
        hypercall::answer(&mut self.contexts.get(vcpu)?.registers.frame, Ok(results));
        Some(woken)
    }
}

/// Asks.
///
/// # Safety
/// `calls` is a `C` that lives, and is not part of the machine.
unsafe fn ask<C: ShortCalls<Machine>>(
    machine: &mut Machine,
    vcpu: VcpuId,
    registers: &mut CallRegisters,
    calls: *const (),
) -> Option<VcpuSet> {
    // SAFETY: the caller's promise.
    let calls = unsafe { &*calls.cast::<C>() };
    let [operation, ..] = *registers;
    if operation as u16 != DOORBELL {
        return calls.answer(machine, vcpu, registers);
    }
    let caller = machine.contexts.get(vcpu)?.partition;
    let (partition, line) = calls.bell(caller, registers)?;
    Some(machine.pulse(partition, line))
}
