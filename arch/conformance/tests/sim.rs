// SPDX-License-Identifier: Apache-2.0
//! The mock keeps the contract it stands for.
#![forbid(unsafe_code)]

use bulkhead_arch_api::{Console, EntryState, GuestPhys, PcpuId, Reply, ResetKind, VcpuReset, VirtualLine};
use bulkhead_arch_conformance::{
    At, Bench, Need, PAGE, RAM_SIZE, Record, Role, Space, Step, Tally, Verdict, checks, ram_region, run_all,
};
use bulkhead_arch_sim::{Action, Outcome, SimMachine, World};
use std::cell::RefCell;
use std::rc::Rc;

const RAM: GuestPhys = GuestPhys(0x4000_0000);
/// Bus addresses between the memories of two partitions.
const APART: u64 = 0x10_0000;

struct SimBench {
    world: Rc<RefCell<World>>,
    machine: SimMachine,
}

impl SimBench {
    fn new() -> Self {
        let world = Rc::new(RefCell::new(World::new(1)));
        let machine = SimMachine::new(Rc::clone(&world), PcpuId(0));
        Self { world, machine }
    }

    fn action(&self, role: Role, step: Step, accumulator: u64) -> Action {
        let address = |at| self.address(role, at).0;
        match step {
            Step::Load(at, size) => Action::Read {
                address: address(at),
                size,
            },
            Step::Store(at, size, value) => Action::Write {
                address: address(at),
                size,
                value,
            },
            Step::Call(operation) => Action::Hypercall(operation, [accumulator, 0, 0, 0, 0, 0]),
            // The mock's interrupt controller delivers every line.
            Step::Accept => Action::Compute(1),
            Step::Idle => Action::Idle,
            Step::Off => Action::CpuOff,
            Step::Reset => Action::Reset(ResetKind::Cold),
        }
    }
}

impl Bench for SimBench {
    type Machine = SimMachine;

    fn machine(&mut self) -> &mut SimMachine {
        &mut self.machine
    }

    fn console(&mut self) -> &mut impl Console {
        &mut self.machine
    }

    fn space(&self, role: Role) -> Space {
        let host = 0x8000_0000 + APART * role as u64;
        Space {
            ram: ram_region(RAM.0, host, RAM_SIZE, true, true),
            constant: ram_region(0x5000_0000, host + RAM_SIZE, PAGE, false, false),
            program: None,
        }
    }

    fn nowhere(&self) -> GuestPhys {
        GuestPhys(0x6000_0000)
    }

    fn line(&self) -> VirtualLine {
        VirtualLine(40)
    }

    fn register_bits(&self) -> u32 {
        64
    }

    fn load(&mut self, role: Role, steps: &'static [Step]) -> VcpuReset {
        let (resolve, world) = (Self::new(), &self.world);
        world.borrow_mut().program(role.vcpu(), move |_| {
            let resolve = Self {
                world: Rc::clone(&resolve.world),
                machine: resolve.machine.clone(),
            };
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
                rest.next().map_or(Action::Compute(u64::MAX), |step| {
                    resolve.action(role, *step, accumulator)
                })
            }
        });
        VcpuReset {
            state: EntryState::USUAL,
            entry: RAM,
            argument: 0,
            stack: RAM.0 + RAM_SIZE,
        }
    }
}

#[test]
fn the_mock_conforms() {
    let mut failures = Vec::new();
    let mut tally = Tally::default();
    run_all(&mut SimBench::new(), |_, name, verdict| {
        tally.add(verdict);
        if let Verdict::Failed(reason) = verdict {
            failures.push(format!("{name}: {reason}"));
        }
    });
    assert!(failures.is_empty(), "{failures:#?}");
    let all = checks::<SimBench>().len() as u32;
    assert_eq!((tally.passed, tally.failed, tally.left_out), (all, 0, 0));
}

/// A mock whose memory for VMs is the other one's.
struct Shared(SimBench);

impl Bench for Shared {
    type Machine = SimMachine;

    fn machine(&mut self) -> &mut SimMachine {
        self.0.machine()
    }

    fn console(&mut self) -> &mut impl Console {
        self.0.console()
    }

    fn space(&self, role: Role) -> Space {
        self.0.space(role)
    }

    fn nowhere(&self) -> GuestPhys {
        // Something is there.
        GuestPhys(RAM.0 + PAGE)
    }

    fn line(&self) -> VirtualLine {
        self.0.line()
    }

    fn register_bits(&self) -> u32 {
        self.0.register_bits()
    }

    fn lacks(&self, need: Need) -> Option<&'static str> {
        (need == Need::Signals).then_some("not looked at here")
    }

    fn load(&mut self, role: Role, steps: &'static [Step]) -> VcpuReset {
        self.0.load(role, steps)
    }

    fn address(&self, role: Role, at: At) -> GuestPhys {
        match at {
            At::Nowhere(offset) => GuestPhys(self.nowhere().0 + offset),
            _ => self.0.address(role, at),
        }
    }
}

#[test]
fn a_bad_backend_is_found_and_what_a_class_lacks_is_said() {
    let mut failed = Vec::new();
    let mut left_out = Vec::new();
    run_all(&mut Shared(SimBench::new()), |_, name, verdict| match verdict {
        Verdict::Passed => {}
        Verdict::Failed(_) => failed.push(name),
        Verdict::NotOfThisClass(why) => left_out.push((name, why)),
    });
    assert!(
        failed.contains(&"a partition may access its regions and nothing else"),
        "{failed:?}"
    );
    assert!(failed.contains(&"a copy stops at the first byte that is not the partition's"));
    assert_eq!(
        left_out,
        [("a signal to oneself arrives once", "not looked at here")]
    );
}

#[test]
fn a_record_is_words_and_doublewords() {
    let record = Record {
        operation: 0x0102_0304,
        size: 8,
        address: 0x1112_1314_1516_1718,
        value: 0x21,
    };
    let bytes = record.bytes();
    assert_eq!(bytes[..8], [4, 3, 2, 1, 8, 0, 0, 0]);
    assert_eq!(bytes[8..16], 0x1112_1314_1516_1718_u64.to_le_bytes());
    assert_eq!(bytes[16..], 0x21_u64.to_le_bytes());
}
