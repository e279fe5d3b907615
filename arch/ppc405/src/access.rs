// SPDX-License-Identifier: Apache-2.0
//! Accesses that the translation buffer refuses: filled in, reflected, or handed to the kernel.

use crate::context::{Context, Pending};
use crate::guest::{self, Answer};
use crate::machine::Machine;
use crate::regions::Space;
use bulkhead_abi::HealthClass;
use bulkhead_arch_api::{Access, AccessKind, AddressSpace, Exit, FaultReport, GuestPhys, VcpuId};
use bulkhead_arch_ppc405_core::mmu::Kind;
use bulkhead_arch_ppc405_core::transfer::{self, Direction, Transfer};
use bulkhead_arch_support::physical;

/// Returns the syndrome of a fault: the vector, and ESR in the low word.
pub(crate) const fn syndrome(vector: u32, of_cpu: u32) -> u64 {
    (vector as u64) << 32 | of_cpu as u64
}

impl Machine {
    /// Handles an access that the buffer refuses. `vector` is the vector of the interrupt.
    pub(crate) fn refused(&mut self, vcpu: VcpuId, vector: u32, address: u32, kind: Kind) -> Option<Exit> {
        let (context, space, buffer) = self.guest(vcpu)?;
        let answer = if context.is_task() {
            guest::fill_task(space, buffer, address, kind)
        } else {
            guest::fill_vm(context, space, buffer, address, kind)
        };
        let physical = match answer {
            Answer::Done => return None,
            Answer::Small(physical) | Answer::Foreign(physical) => physical,
        };
        let report = FaultReport {
            class: HealthClass::Memory,
            syndrome: syndrome(vector, context.registers.trap.syndrome),
            pc: context.registers.frame.pc.into(),
            address: Some(GuestPhys(physical.into())),
            virtual_address: (physical != address).then_some(address.into()),
        };
        let transfer =
            transfer_at(context, space, address).filter(|_| kind != Kind::Fetch && !context.is_task());
        match (answer, transfer) {
            (Answer::Small(_), Some(transfer)) => {
                carry_out(context, space, physical, &transfer);
                None
            }
            (Answer::Foreign(_), Some(transfer)) => {
                context.pending = Pending::Access(transfer);
                Some(Exit::Access(Access {
                    space: AddressSpace::Memory,
                    address: GuestPhys(physical.into()),
                    size: transfer.size,
                    kind: match transfer.direction {
                        Direction::Load(_) => AccessKind::Read,
                        Direction::Store(value) => AccessKind::Write(value.into()),
                    },
                    report,
                }))
            }
            _ => {
                context.pending = Pending::Fault;
                Some(Exit::Fault(report))
            }
        }
    }
}

/// Returns the load or store at the guest's PC, if it is one of a single value at this address.
fn transfer_at(context: &Context, space: &Space, address: u32) -> Option<Transfer> {
    let word = guest::instruction(context, space)?;
    let transfer = transfer::decode(word, &context.registers.frame)?;
    (transfer.address == address).then_some(transfer)
}

/// Carries out a load or store of the partition's own memory, byte by byte. A value that reaches into another
/// page is cut off at its end: such pages are of 1K, and a guest that has them aligns its values.
fn carry_out(context: &mut Context, space: &Space, physical: u32, transfer: &Transfer) {
    let Some(stretch) = space.at(physical) else { return };
    let host = stretch.host(physical) as usize;
    let left = (stretch.last - (physical - stretch.guest)) as usize + 1;
    let size = usize::from(transfer.size);
    let mut bytes = [0; 4];
    let (_, part) = bytes.split_at_mut(4 - size.min(4));
    let part_length = part.len().min(left);
    if let Direction::Store(value) = transfer.direction {
        let value = value.to_be_bytes();
        let stored = value
            .get(4 - size.min(4)..)
            .and_then(|stored| stored.get(..part_length));
        // SAFETY: memory of the partition, to which no Rust reference exists.
        unsafe { physical::write(host, stored.unwrap_or(&[])) }
        transfer.complete(&mut context.registers.frame, 0);
        return;
    }
    // SAFETY: as above.
    unsafe { physical::read(host, part.get_mut(..part_length).unwrap_or(&mut [])) }
    transfer.complete(&mut context.registers.frame, u32::from_be_bytes(bytes));
}
