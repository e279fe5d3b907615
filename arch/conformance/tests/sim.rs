// SPDX-License-Identifier: Apache-2.0
//! The mock keeps the contract it stands for.
#![forbid(unsafe_code)]

use bulkhead_arch_api::{HostPhys, PartitionId, PcpuId, Reply, VcpuReset, VirtualLine};
use bulkhead_arch_conformance::{Bench, MEMORY, Place, RAM, RAM_SIZE, Step, run_all};
use bulkhead_arch_sim::{Action, Outcome, SimMachine, World};
use std::cell::RefCell;
use std::rc::Rc;

struct SimBench {
    world: Rc<RefCell<World>>,
    machine: SimMachine,
}

impl Bench for SimBench {
    type Machine = SimMachine;

    fn machine(&mut self) -> &mut SimMachine {
        &mut self.machine
    }

    fn memory(&self, partition: PartitionId) -> HostPhys {
        HostPhys(0x8000_0000 + u64::from(partition.0) * MEMORY)
    }

    fn load(&mut self, place: Place, steps: &'static [Step]) -> VcpuReset {
        self.world.borrow_mut().program(place.vcpu, move |_| {
            let mut rest = steps.iter();
            let mut accumulator = 0;
            move |last: Outcome, _: u64| {
                match last {
                    Outcome::Value(value)
                    | Outcome::Replied(Reply::Read(value) | Reply::Hypercall(Ok([value, ..]))) => {
                        accumulator = value
                    }
                    _ => {}
                }
                match rest.next() {
                    Some(Step::Load(address, size)) => Action::Read {
                        address: *address,
                        size: *size,
                    },
                    Some(Step::Store(address, size, value)) => Action::Write {
                        address: *address,
                        size: *size,
                        value: *value,
                    },
                    Some(Step::Call(operation)) => {
                        Action::Hypercall(*operation, [accumulator, 0, 0, 0, 0, 0])
                    }
                    Some(Step::Idle) => Action::Idle,
                    Some(Step::Off) => Action::CpuOff,
                    None => Action::Compute(u64::MAX),
                }
            }
        });
        VcpuReset {
            entry: RAM,
            argument: 0,
            stack: RAM.0 + RAM_SIZE,
        }
    }

    fn accept(&mut self, _: Place, _: VirtualLine) {
        // The mock's interrupt controller delivers every line.
    }
}

#[test]
fn the_mock_conforms() {
    let world = Rc::new(RefCell::new(World::new(1)));
    let machine = SimMachine::new(Rc::clone(&world), PcpuId(0));
    let mut failures = Vec::new();
    let mut count = 0;
    run_all(&mut SimBench { world, machine }, |_, name, outcome| {
        count += 1;
        if let Err(reason) = outcome {
            failures.push(format!("{name}: {reason}"));
        }
    });
    assert!(failures.is_empty(), "{failures:#?}");
    assert_eq!(count, bulkhead_arch_conformance::checks::<SimBench>().len());
}
