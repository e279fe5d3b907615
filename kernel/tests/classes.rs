// SPDX-License-Identifier: Apache-2.0
//! The kernel with the facts of each class: behaviour that is the same everywhere, and behaviour of some
//! classes only.
#![forbid(unsafe_code)]

use crate::support::{Bench, NOWHERE, Part, RAM, UART, call, marking, sleep, tables_of, task, vm};
use bulkhead_abi::hypercall::DEVICE_EVENT;
use bulkhead_abi::{ObjectKind, Operation, Rights};
use bulkhead_arch_api::{
    AccessKind, AddressSpace, EntryState, GuestPhys, Line, PartitionId, Reply, ResetKind, Spaces, VcpuReset,
    VirtualLine,
};
use bulkhead_arch_sim::{
    Action, CONSTANT, CONSTANT_REGISTER, External, LikeAarch64, LikeArmv7m, LikeArmv8m, LikePpc, LikeX86,
    OWN_REGISTER, Outcome, Sim, SimClass, What, script,
};
use bulkhead_image::layout::{
    INTERRUPT_CRITICAL, InterruptRecord, TRIGGER_EDGE, TRIGGER_LEVEL, VIRTUAL_EVENT_GATE, VirtualDeviceRecord,
};
use bulkhead_image::{Fault, ImageBuilder, ImageError};
use bulkhead_kernel::AnyPolicy;
use std::sync::atomic::Ordering;

type On<C> = Bench<AnyPolicy, C>;

fn on<C: SimClass>(image: &ImageBuilder) -> On<C> {
    On::<C>::with_policies(1, image.build().unwrap())
}

/// Returns the address space of the console of a VM.
fn console<C: SimClass>() -> AddressSpace {
    let (device, _) = C::FACTS.console().unwrap();
    let [window, _] = device.windows;
    window.space
}

/// Returns a load from, or a store to, an address space of a class.
fn reach(space: AddressSpace, number: u64, size: u8, kind: AccessKind) -> Action {
    match (space, kind) {
        (AddressSpace::Memory, AccessKind::Read) => Action::Read {
            address: number,
            size,
        },
        (AddressSpace::Memory, AccessKind::Write(value)) => Action::Write {
            address: number,
            size,
            value,
        },
        _ => Action::Reach {
            space,
            number,
            size,
            kind,
        },
    }
}

fn interrupt(partition: u32, line: u32, flags: u32) -> InterruptRecord {
    InterruptRecord {
        partition: partition.into(),
        line: line.into(),
        virtual_line: line.into(),
        trigger: TRIGGER_EDGE.into(),
        flags: flags.into(),
        latency: 0.into(),
    }
}

/// Returns a guest that idles, and marks the lines of its interrupts.
fn by_interrupt() -> impl FnMut(Outcome, u64) -> Action {
    |last: Outcome, _: u64| match last {
        Outcome::Interrupt(Some(line)) => Action::Mark(line.into()),
        Outcome::Done => Action::Acknowledge,
        _ => Action::Idle,
    }
}

/// Tests that the first vCPU prints a word by its UART, and then ends.
fn prints_and_ends<C: SimClass>() {
    let mut bench = on::<C>(&tables_of::<C>(1, &[vm("part", &[(0, 5)])]));
    let store = |register, value| reach(console::<C>(), UART + register, 4, AccessKind::Write(value));
    // The transmitter of a CMSDK UART is off after a reset. A PL011 has no register there.
    let mut actions = vec![store(8, 1)];
    actions.extend(b"hello\n".iter().map(|byte| store(0, (*byte).into())));
    actions.push(Action::Reset(ResetKind::Off));
    bench.program(0, move |_| script(actions.clone()));
    bench.run(10_000_000);
    assert_eq!(bench.console("part").trim_end(), "hello");
    assert!(bench.logged("all partitions stopped"), "{:?}", bench.log());
}

/// Tests that an access to nothing is a fault of its partition, in every address space.
fn nothing_is_there<C: SimClass>() {
    let mut bench = on::<C>(&tables_of::<C>(1, &[vm("part", &[(0, 5)])]));
    bench.program(0, |_| {
        script([
            reach(console::<C>(), NOWHERE, 4, AccessKind::Read),
            Action::Mark(1),
        ])
    });
    bench.run(1_000_000);
    assert_eq!(bench.marks(0), [], "it does not go on");
    assert!(bench.logged("part"), "{:?}", bench.log());
}

/// Tests that a device wakes its partition, no matter which vCPU runs. A device of less urgency does not
/// interrupt the vCPU that runs where lines are masked.
fn devices_wake_who_may_run<C: SimClass>() {
    let parts = [vm("high", &[(0, 9)]), vm("low", &[(0, 1)])];
    let mut image = tables_of::<C>(1, &parts);
    image
        .interrupts
        .extend([interrupt(0, 40, 0), interrupt(1, 41, 0)]);
    let mut bench = on::<C>(&image);
    bench.program(0, |_| {
        let mut step = 0;
        move |last: Outcome, _: u64| {
            step += 1;
            match (step, last) {
                (1, _) => Action::Idle,
                (2, _) => Action::Acknowledge,
                (3, Outcome::Interrupt(Some(line))) => Action::Mark(line.into()),
                (4, _) => Action::Compute(50_000),
                (5, _) => Action::Mark(99),
                _ => Action::Idle,
            }
        }
    });
    bench.program(1, |_| by_interrupt());
    bench.world().schedule(100_000, External::Line(Line(40)));
    // The interrupt comes while the first VM computes.
    bench.world().schedule(110_000, External::Line(Line(41)));
    bench.run(1_000_000);
    assert_eq!(bench.marks(0), [40, 99]);
    assert_eq!(bench.marks(1), [41], "it waits, and is not lost");
    let interrupts = bench.look().log_area.vcpus[0]
        .exits
        .interrupts
        .load(Ordering::Relaxed);
    let expected = u32::from(!C::FACTS.masks_lines);
    assert_eq!(interrupts, expected, "whether the other line interrupts");
}

/// Tests that a critical line comes through, no matter which vCPU runs.
fn critical_lines_are_open<C: SimClass>() {
    let parts = [vm("high", &[(0, 9)]), vm("low", &[(0, 1)])];
    let mut image = tables_of::<C>(1, &parts);
    image.interrupts.push(interrupt(1, 41, INTERRUPT_CRITICAL));
    let mut bench = on::<C>(&image);
    bench.program(0, |_| |_: Outcome, _: u64| Action::Compute(1000));
    bench.program(1, |_| by_interrupt());
    bench.world().schedule(100_000, External::Line(Line(41)));
    bench.run(200_000);
    // The policy decides that the VM waits. The kernel has heard of the interrupt at once.
    let interrupts = bench.look().log_area.vcpus[0]
        .exits
        .interrupts
        .load(Ordering::Relaxed);
    assert_eq!(interrupts, 1);
}

/// Tests that events interrupt a VM by its gate: by a line, or by a vector in the classes that have vectors.
fn gate_interrupts<C: SimClass>(gate: VirtualLine) {
    let parts: [Part; 2] = [
        vm("vm", &[(0, 5)]).cap(1, ObjectKind::EventGate, 0, Rights::ALL),
        task("task", 0, 1).cap(1, ObjectKind::EventGate, 0, Rights::ALL),
    ];
    let mut image = tables_of::<C>(1, &parts);
    image.virtual_devices.push(VirtualDeviceRecord {
        partition: 0.into(),
        kind: VIRTUAL_EVENT_GATE.into(),
        base: [0.into(), 0.into()],
        size: [0.into(), 0.into()],
        virtual_line: gate.0.into(),
        reserved: 0.into(),
    });
    let mut bench = on::<C>(&image);
    bench.program(0, move |_| {
        move |last: Outcome, _: u64| match last {
            Outcome::Interrupt(Some(line)) if line == gate.0 => call(Operation::EventPoll, &[1]),
            Outcome::Replied(Reply::Hypercall(Ok([events, ..]))) => Action::Mark(events),
            Outcome::Interrupt(_) => Action::Idle,
            _ => Action::Acknowledge,
        }
    });
    bench.program(1, |_| {
        script([
            call(Operation::EventSignal, &[1, 1]),
            Action::Compute(10_000),
            call(Operation::EventSignal, &[1, 4]),
        ])
    });
    bench.run(1_000_000);
    let taken: Vec<u64> = bench.marks(0).into_iter().filter(|events| *events != 0).collect();
    assert_eq!(taken, [1, 4]);
    assert!(
        !bench
            .records(|what| matches!(what, What::Inject(_, line) if *line == gate))
            .is_empty()
    );
}

macro_rules! on_each_class {
    ($($module:ident = $class:ty),* $(,)?) => {
        $(mod $module {
            use super::*;

            #[test]
            fn a_vm_prints_by_its_uart_and_ends() {
                prints_and_ends::<$class>();
            }

            #[test]
            fn what_is_nowhere_is_a_fault() {
                nothing_is_there::<$class>();
            }

            #[test]
            fn a_device_wakes_who_may_run() {
                devices_wake_who_may_run::<$class>();
            }

            #[test]
            fn a_critical_line_is_open() {
                critical_lines_are_open::<$class>();
            }

            #[test]
            fn a_gate_interrupts_by_a_line() {
                gate_interrupts::<$class>(VirtualLine(50));
            }
        })*
    };
}

on_each_class! {
    sim = Sim,
    aarch64 = LikeAarch64,
    armv7m = LikeArmv7m,
    armv8m = LikeArmv8m,
    x86 = LikeX86,
    ppc = LikePpc,
}

#[test]
fn a_vector_comes_past_the_lines_of_a_controller() {
    gate_interrupts::<LikeX86>(VirtualLine::vector(0x41));
}

#[test]
fn only_a_class_with_vectors_has_them_and_none_of_the_processors_own() {
    let gate = |line: VirtualLine| VirtualDeviceRecord {
        partition: 0.into(),
        kind: VIRTUAL_EVENT_GATE.into(),
        base: [0.into(), 0.into()],
        size: [0.into(), 0.into()],
        virtual_line: line.0.into(),
        reserved: 0.into(),
    };
    let refused = |mut image: ImageBuilder, line| {
        image.virtual_devices.push(gate(line));
        matches!(
            image.build(),
            Err(ImageError::Record {
                fault: Fault::OutOfRange,
                ..
            })
        )
    };
    let parts = [vm("vm", &[(0, 5)])];
    assert!(refused(
        tables_of::<LikePpc>(1, &parts),
        VirtualLine::vector(0x41)
    ));
    assert!(refused(tables_of::<LikeX86>(1, &parts), VirtualLine::vector(14)));
    assert!(!refused(tables_of::<LikeX86>(1, &parts), VirtualLine::vector(32)));
}

/// Returns the outcomes of a VM's actions, each as a mark of its own.
fn values<C: SimClass>(actions: Vec<Action>) -> (On<C>, Vec<u64>) {
    let mut bench = on::<C>(&tables_of::<C>(1, &[vm("part", &[(0, 5)])]));
    bench.program(0, move |_| {
        let mut rest = actions.clone().into_iter();
        move |last: Outcome, _: u64| match last {
            Outcome::Value(value) | Outcome::Replied(Reply::Read(value)) => Action::Mark(value),
            _ => rest.next().unwrap_or(Action::Idle),
        }
    });
    bench.run(1_000_000);
    let marks = bench.marks(0);
    (bench, marks)
}

/// The flag register of a PL011. The next constant says that the transmitter is empty, as is the receiver.
const FLAGS: u64 = 0x18;
const EMPTY: u64 = 1 << 7 | 1 << 4;

#[test]
fn a_port_is_a_virtual_device_or_nothing_and_never_memory() {
    let port = |number| reach(AddressSpace::Ports, number, 4, AccessKind::Read);
    let (_, answered) = values::<LikeX86>(vec![port(UART + FLAGS)]);
    assert_eq!(answered, [EMPTY]);
    // The same number in another space is another address.
    let memory = reach(AddressSpace::Memory, UART + FLAGS, 4, AccessKind::Read);
    let (bench, refused) = values::<LikeX86>(vec![memory, Action::Mark(1)]);
    assert_eq!(refused, []);
    assert!(bench.logged("part"), "{:?}", bench.log());
    let (_, refused) = values::<LikeX86>(vec![port(RAM), Action::Mark(1)]);
    assert_eq!(refused, [], "RAM is no port");
}

#[test]
fn numbered_registers_are_filtered() {
    let register = |number: u32, kind| reach(AddressSpace::Registers, number.into(), 8, kind);
    let own = [
        register(OWN_REGISTER, AccessKind::Write(0x1234)),
        register(OWN_REGISTER, AccessKind::Read),
        register(CONSTANT_REGISTER, AccessKind::Read),
    ];
    let (bench, marks) = values::<LikeX86>(own.to_vec());
    assert_eq!(marks, [0x1234, CONSTANT]);
    assert!(!bench.logged("register"), "{:?}", bench.log());
    let refused = register(CONSTANT_REGISTER, AccessKind::Write(1));
    let (_, marks) = values::<LikeX86>(vec![refused, Action::Mark(1)]);
    assert_eq!(marks, [], "a store that the filter refuses is a fault");
    let device = reach(AddressSpace::Registers, UART + FLAGS, 4, AccessKind::Read);
    let (_, marks) = values::<LikePpc>(vec![device]);
    assert_eq!(
        marks,
        [EMPTY],
        "a virtual device answers what the filter does not know"
    );
}

#[test]
fn a_vcpu_starts_in_the_entry_state_of_its_partition() {
    let mut image = tables_of::<LikeX86>(1, &[vm("part", &[(0, 5)])]);
    image.partitions[0].entry_state = 2.into();
    let mut bench = on::<LikeX86>(&image);
    bench.program(0, |reset: &VcpuReset| {
        assert_eq!(reset.state, EntryState(2));
        script([Action::Mark(reset.state.0.into())])
    });
    bench.run(1_000_000);
    assert_eq!(bench.marks(0), [2]);
    image.partitions[0].entry_state = 3.into();
    assert!(image.build().is_err(), "the class has three");
    let mut other = tables_of::<LikePpc>(1, &[vm("part", &[(0, 5)])]);
    other.partitions[0].entry_state = 2.into();
    assert!(other.build().is_err(), "the class has two");
}

#[test]
fn a_big_endian_guest_hands_over_bytes_in_their_order() {
    // "hi there" as two words of a big-endian guest.
    let word = |offset, value| Action::Write {
        address: RAM + 0x100 + offset,
        size: 4,
        value,
    };
    let half = Action::Read {
        address: RAM + 0x102,
        size: 2,
    };
    let (bench, marks) = values::<LikePpc>(vec![word(0, 0x6869_2074), word(4, 0x6865_7265), half]);
    assert_eq!(marks, [0x2074]);
    let mut bytes = [0; 8];
    let from = GuestPhys(RAM + 0x100);
    let copied = bench.machine(0).copy_in(PartitionId(0), from, &mut bytes);
    assert_eq!((copied, &bytes), (Ok(()), b"hi there"));
    let (bench, _) = values::<LikeX86>(vec![word(0, 0x6869_2074)]);
    let copied = bench.machine(0).copy_in(PartitionId(0), from, &mut bytes);
    assert_eq!((copied, &bytes[..4]), (Ok(()), &b"t ih"[..]));
}

#[test]
fn a_translation_that_is_not_loaded_is_a_miss_and_no_exit() {
    let load = |page: u64| Action::Read {
        address: RAM + page * 0x1000,
        size: 4,
    };
    let (bench, marks) = values::<LikePpc>(vec![load(0), load(1), load(0), load(1)]);
    assert_eq!(marks.len(), 4, "all are answered");
    assert_eq!(bench.look().misses, 2, "a miss for each page");
    let (bench, marks) = values::<LikePpc>(vec![load(0), load(1), load(2), load(3)]);
    assert_eq!((marks.len(), bench.look().misses), (4, 4));
    let (bench, marks) = values::<LikePpc>(vec![load(0), load(4), Action::Mark(1)]);
    assert_eq!(
        marks.len(),
        1,
        "there is no translation to load: {:?}",
        bench.log()
    );
    let (bench, _) = values::<LikeX86>(vec![load(0)]);
    assert_eq!(bench.look().misses, 0, "hardware walks the tables");
}

#[test]
fn the_line_of_a_task_is_open_from_its_wait_to_its_event() {
    const GATE: u64 = 1;
    const CLOCK: u64 = 2;
    let driver = task("driver", 0, 5)
        .cap(GATE as u32, ObjectKind::EventGate, 0, Rights::ALL)
        .cap(CLOCK as u32, ObjectKind::Timer, 0, Rights::READ);
    let mut image = tables_of::<LikeArmv8m>(1, &[driver]);
    image.interrupts.push(InterruptRecord {
        virtual_line: DEVICE_EVENT.into(),
        trigger: TRIGGER_LEVEL.into(),
        ..interrupt(0, 40, 0)
    });
    let mut bench = on::<LikeArmv8m>(&image);
    let poll = || call(Operation::EventPoll, &[GATE]);
    let wait = || call(Operation::EventWait, &[GATE, 0]);
    bench.program(0, move |_| {
        marking(vec![
            // The line is masked before the first wait, and again from the event on.
            sleep(CLOCK, 60_000),
            poll(),
            wait(),
            sleep(CLOCK, 150_000),
            poll(),
            wait(),
        ])
    });
    for time in [50_000, 110_000] {
        bench.world().schedule(time, External::Line(Line(40)));
    }
    bench.run(1_000_000);
    let nothing = [0; 4];
    let event = [1 << DEVICE_EVENT, 0, 0, 0];
    let expected = [nothing, nothing, event, nothing, nothing, event].concat();
    assert_eq!(bench.marks(0), expected);
}
