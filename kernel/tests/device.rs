// SPDX-License-Identifier: Apache-2.0
//! Devices and lines as capabilities: registers that are held, interrupts that are messages, and their end.

use crate::support::{
    At, Bench, Part, RAM, add_channel, call, error_mark, load, marking, port, sleep, store, tables, task,
};
use bulkhead_abi::hypercall::LINE_SENDER;
use bulkhead_abi::{Error, HealthClass, ObjectKind, Operation, PartitionState, Rights};
use bulkhead_arch_api::{Line, PartitionId};
use bulkhead_arch_sim::{Action, External};
use bulkhead_image::layout::{HealthAction, MEMORY_DEVICE, NONE, SIDE_DEVICE, SIDE_HELD};
use bulkhead_image::{Fault, ImageBuilder, ImageError, Table};

const DEVICE: u64 = 1;
const CLOCK: u64 = 2;
const OTHER: u64 = 3;
const LINE: u64 = 4;
const PORT: u64 = 5;
/// Indices of what the owner grants.
const DEVICE_GRANTED: u64 = 1;
const LINE_GRANTED: u64 = 4;
const HERE: u64 = 0x1000_0000;
const HOST: u64 = 0x0900_0000;
const SIZE: u64 = 0x1000;
/// The physical line.
const PHYSICAL: u32 = 50;
const TO: u64 = RAM + 0x200;
const READ_WRITE: Rights = Rights(3);
const DRIVER: u8 = 1;
/// By then every partition is loaded, and keeps what it is granted.
const LOADED: u64 = 40_000;

/// Makes an owner with all capabilities, a driver on `pcpu` with a port, and a client that can send to
/// the port.
fn parts(pcpu: u32) -> [Part; 3] {
    let owner = task("owner", 0, 20)
        .cap(DEVICE as u32, ObjectKind::Device, 0, Rights::ALL)
        .cap(CLOCK as u32, ObjectKind::Timer, 0, Rights::READ)
        .cap(OTHER as u32, ObjectKind::Partition, 1, Rights::ALL)
        .cap(LINE as u32, ObjectKind::Interrupt, 0, Rights::ALL)
        .cap(PORT as u32, ObjectKind::Port, 0, Rights::READ);
    let driver = task("driver", pcpu, 10)
        .cap(CLOCK as u32, ObjectKind::Timer, 0, Rights::READ)
        .cap(OTHER as u32, ObjectKind::Port, 0, Rights::READ)
        .action(HealthClass::Memory, HealthAction::Stop);
    let client = task("client", 0, 5)
        .cap(CLOCK as u32, ObjectKind::Timer, 0, Rights::READ)
        .cap(PORT as u32, ObjectKind::Port, 0, Rights::WRITE);
    [owner, driver, client].map(|part| part.with(|part| part.memory = 0x4000))
}

/// Returns the tables of a system with a device of which the first two partitions have a window.
fn image(pcpu: u32, depth: u32) -> ImageBuilder {
    let mut image = tables(2, &parts(pcpu));
    let side = |partition| At {
        partition,
        guest: HERE,
        writes: true,
        held: true,
        line: NONE,
        event: NONE,
    };
    add_channel(&mut image, "timer", SIZE, &[side(0), side(1)]);
    image.channels[0].host = HOST.into();
    for side in &mut image.sides {
        side.flags = (side.flags.get() | SIDE_DEVICE).into();
        side.line = (PHYSICAL + 1).into();
    }
    for mapping in image
        .memory
        .iter_mut()
        .filter(|mapping| mapping.guest.get() == HERE)
    {
        mapping.flags = (mapping.flags.get() | MEMORY_DEVICE).into();
        mapping.host = HOST.into();
    }
    image.ports.push(port(8, depth));
    image
}

fn bench(pcpu: u32, depth: u32) -> Bench {
    Bench::with_image(2, image(pcpu, depth).build().unwrap())
}

fn interrupt(bench: &mut Bench, times: &[u64]) {
    for time in times {
        bench.world().schedule(*time, External::Line(Line(PHYSICAL)));
    }
}

fn grant(index: u64) -> Action {
    call(
        Operation::CapabilityGrant,
        &[OTHER, index, u64::from(READ_WRITE.0)],
    )
}

fn revoke(index: u64) -> Action {
    call(Operation::CapabilityRevoke, &[index])
}

fn hold() -> Action {
    call(Operation::DeviceHold, &[DEVICE_GRANTED])
}

fn bind() -> Action {
    call(Operation::InterruptBind, &[LINE_GRANTED, OTHER])
}

fn done() -> Action {
    call(Operation::InterruptDone, &[LINE_GRANTED])
}

fn receive() -> Action {
    call(Operation::PortReceive, &[OTHER, TO, 8, 0])
}

fn try_receive() -> Action {
    call(Operation::PortTryReceive, &[OTHER, TO, 8])
}

fn send() -> Action {
    call(Operation::PortSend, &[PORT, TO, 8, 0])
}

/// The results of a call that says nothing.
const DONE: [u64; 4] = [0; 4];
/// The results of the receipt of an interrupt, and of the receipt of a client's message.
const INTERRUPT: [u64; 4] = [8, LINE_SENDER, 0, 0];
const MESSAGE: [u64; 4] = [8, 0, 0, 0];

fn held(side: u64) -> [u64; 4] {
    [HERE, SIZE, side | 2 << 8 | 1 << 16, 0]
}

fn state(bench: &Bench, partition: u8) -> PartitionState {
    bench.shared().partition(PartitionId(partition)).state()
}

#[test]
fn a_device_moves_from_one_partition_to_another_and_back() {
    for pcpu in [0, 1] {
        let mut bench = bench(pcpu, 2);
        bench.program(0, |_| {
            marking(vec![
                call(Operation::DeviceHold, &[DEVICE]),
                store(HERE + 8, 0x11),
                call(Operation::DeviceRelease, &[DEVICE]),
                sleep(CLOCK, LOADED),
                grant(DEVICE),
                sleep(CLOCK, 200_000),
                revoke(DEVICE),
                call(Operation::DeviceHold, &[DEVICE]),
                load(HERE + 8),
            ])
        });
        bench.program(1, |_| {
            marking(vec![
                sleep(CLOCK, 50_000),
                hold(),
                load(HERE + 8),
                store(HERE + 8, 0x22),
                sleep(CLOCK, 300_000),
                hold(),
                hold(),
                load(HERE + 8),
            ])
        });
        bench.run(1_000_000);
        let granted = [DEVICE_GRANTED, 0, 0, 0];
        let released = [HERE, SIZE, 2 << 8, 0];
        let owner = [
            &held(0)[..],
            &released,
            &DONE,
            &granted,
            &DONE,
            &DONE,
            &held(0),
            &[0x22],
        ];
        assert_eq!(bench.marks(0), owner.concat(), "pCPU {pcpu}");
        let errors = [Error::Revoked, Error::NoCapability].map(error_mark);
        let driver = [&DONE[..], &held(1), &[0x11], &DONE, &errors].concat();
        assert_eq!(bench.marks(1), driver, "pCPU {pcpu}");
        assert_eq!(
            state(&bench, DRIVER),
            PartitionState::Failed,
            "the last load faults"
        );
    }
}

#[test]
fn an_interrupt_is_a_message_and_the_line_is_masked_until_it_is_done() {
    for pcpu in [0, 1] {
        let mut bench = bench(pcpu, 2);
        bench.program(0, |_| {
            marking(vec![
                sleep(CLOCK, LOADED),
                grant(DEVICE),
                call(Operation::CapabilityGrant, &[OTHER, LINE, 1]),
            ])
        });
        bench.program(1, |_| {
            marking(vec![
                sleep(CLOCK, 50_000),
                bind(),
                bind(),
                done(),
                // One comes while the driver waits, three while the driver is busy.
                receive(),
                load(TO),
                sleep(CLOCK, 200_000),
                try_receive(),
                done(),
                sleep(CLOCK, 210_000),
                done(),
                try_receive(),
                try_receive(),
                done(),
                done(),
            ])
        });
        interrupt(&mut bench, &[100_000, 150_000, 160_000, 170_000]);
        bench.run(1_000_000);
        let index = bench.marks(0)[8];
        assert_eq!(index, LINE_GRANTED, "the slots are what the test thinks");
        let (wrong, empty) = (error_mark(Error::WrongState), error_mark(Error::TimedOut));
        let driver = [
            &DONE[..],
            &DONE,
            &[wrong, wrong],
            &INTERRUPT,
            &[LINE_GRANTED],
            &DONE,
            &[empty],
            &DONE,
            &DONE,
            // Nothing was received since.
            &[wrong],
            &INTERRUPT,
            &[empty],
            &DONE,
        ];
        let marks = bench.marks(1);
        assert_eq!(marks[..driver.concat().len()], driver.concat(), "pCPU {pcpu}");
    }
}

#[test]
fn messages_keep_their_order_and_partitions_do_not_get_the_room_of_a_line() {
    let mut bench = bench(1, 3);
    bench.program(0, |_| {
        marking(vec![
            sleep(CLOCK, LOADED),
            grant(DEVICE),
            call(Operation::CapabilityGrant, &[OTHER, LINE, 1]),
        ])
    });
    bench.program(1, |_| {
        let mut actions = vec![sleep(CLOCK, 50_000), bind(), sleep(CLOCK, 200_000)];
        actions.extend([try_receive(), try_receive(), try_receive(), try_receive(), done()]);
        marking(actions)
    });
    bench.program(2, |_| {
        marking(vec![
            sleep(CLOCK, 80_000),
            send(),
            sleep(CLOCK, 120_000),
            send(),
            send(),
            sleep(CLOCK, 300_000),
            send(),
            send(),
            send(),
        ])
    });
    interrupt(&mut bench, &[100_000]);
    bench.run(1_000_000);
    let full = error_mark(Error::NoSpace);
    let client = [
        &DONE[..],
        &DONE,
        &DONE,
        &DONE,
        &[full],
        &DONE,
        &DONE,
        &DONE,
        &[full],
    ];
    assert_eq!(bench.marks(2), client.concat());
    let empty = error_mark(Error::TimedOut);
    let driver = [
        &DONE[..],
        &DONE,
        &DONE,
        &MESSAGE,
        &INTERRUPT,
        &MESSAGE,
        &[empty],
        &DONE,
    ];
    assert_eq!(bench.marks(1), driver.concat());
}

#[test]
fn a_revocation_takes_the_line_back_wherever_the_holder_runs_and_its_message_is_gone() {
    for pcpu in [0, 1] {
        let mut bench = bench(pcpu, 1);
        bench.program(0, |_| {
            marking(vec![
                sleep(CLOCK, LOADED),
                grant(DEVICE),
                call(Operation::CapabilityGrant, &[OTHER, LINE, 1]),
                sleep(CLOCK, 120_000),
                revoke(LINE),
                // The line is free: the owner binds it itself.
                call(Operation::InterruptBind, &[LINE, PORT]),
            ])
        });
        bench.program(1, |_| {
            marking(vec![
                sleep(CLOCK, 50_000),
                bind(),
                sleep(CLOCK, 150_000),
                try_receive(),
                done(),
                done(),
                sleep(CLOCK, 250_000),
                try_receive(),
            ])
        });
        interrupt(&mut bench, &[100_000, 200_000]);
        bench.run(1_000_000);
        // The message that no vCPU wants takes the only room until a vCPU looks.
        let full = error_mark(Error::NoSpace);
        let granted = [[DEVICE_GRANTED, 0, 0, 0], [LINE_GRANTED, 0, 0, 0]].concat();
        let owner = [&DONE[..], &granted, &DONE, &DONE, &[full]].concat();
        assert_eq!(bench.marks(0), owner, "pCPU {pcpu}");
        let errors = [Error::TimedOut, Error::Revoked, Error::NoCapability].map(error_mark);
        let none = [error_mark(Error::TimedOut)];
        let driver = [&DONE[..], &DONE, &DONE, &errors, &DONE, &none].concat();
        assert_eq!(
            bench.marks(1),
            driver,
            "pCPU {pcpu}: the second interrupt reaches nobody"
        );
    }
}

#[test]
fn a_line_is_bound_no_more_when_its_holder_may_not_receive_its_messages() {
    for pcpu in [0, 1] {
        let mut bench = bench(pcpu, 1);
        bench.program(0, |_| {
            marking(vec![
                sleep(CLOCK, LOADED),
                call(Operation::CapabilityGrant, &[OTHER, LINE, 1]),
                sleep(CLOCK, 150_000),
                call(Operation::InterruptBind, &[LINE, PORT]),
            ])
        });
        bench.program(1, |_| {
            marking(vec![
                sleep(CLOCK, 50_000),
                call(Operation::InterruptBind, &[1, OTHER]),
                sleep(CLOCK, 100_000),
                call(Operation::CapabilityDelete, &[OTHER]),
                call(Operation::InterruptDone, &[1]),
            ])
        });
        bench.run(1_000_000);
        let owner = [&DONE[..], &[1, 0, 0, 0], &DONE, &DONE].concat();
        assert_eq!(bench.marks(0), owner, "pCPU {pcpu}");
        let driver = [&DONE[..], &DONE, &DONE, &DONE, &[error_mark(Error::WrongState)]].concat();
        assert_eq!(bench.marks(1), driver, "pCPU {pcpu}");
    }
}

#[test]
fn a_new_life_of_the_holder_has_no_line() {
    let mut parts = parts(1);
    parts[1] = task("driver", 1, 10)
        .cap(CLOCK as u32, ObjectKind::Timer, 0, Rights::READ)
        .cap(OTHER as u32, ObjectKind::Port, 0, Rights::READ)
        .cap(LINE as u32, ObjectKind::Interrupt, 0, Rights::READ);
    let mut image = image(1, 2);
    image.capabilities.clear();
    let fresh = tables(2, &parts.map(|part| part.with(|part| part.memory = 0x4000)));
    image.capabilities = fresh.capabilities;
    let mut bench = Bench::with_image(2, image.build().unwrap());
    let lives = std::rc::Rc::new(std::cell::Cell::new(0));
    let count = std::rc::Rc::clone(&lives);
    bench.program(1, move |_| {
        count.set(count.get() + 1);
        marking(match count.get() {
            1 => vec![bind(), call(Operation::PartitionRestart, &[0])],
            _ => vec![done(), sleep(CLOCK, 500_000), try_receive(), bind()],
        })
    });
    interrupt(&mut bench, &[300_000]);
    bench.run(1_000_000);
    assert_eq!(lives.get(), 2);
    let (wrong, empty) = (error_mark(Error::WrongState), error_mark(Error::TimedOut));
    assert_eq!(
        bench.marks(1),
        [&DONE[..], &[wrong], &DONE, &[empty], &DONE].concat()
    );
}

#[test]
fn the_image_refuses_devices_that_are_not_alike_at_all_sides_or_have_a_line_of_somebody_else() {
    let refusal = |change: fn(&mut ImageBuilder)| {
        let mut image = image(0, 1);
        change(&mut image);
        image.build().err()
    };
    assert_eq!(refusal(|_| ()), None);
    let fault = |table, index, fault| Some(ImageError::Record { table, index, fault });
    assert_eq!(
        refusal(|image| image.sides[0].line = 0.into()),
        fault(Table::Sides, 0, Fault::BadFlags)
    );
    assert_eq!(
        refusal(|image| image.sides[1].flags = (image.sides[1].flags.get() & !SIDE_HELD).into()),
        fault(Table::Memory, 4, Fault::NoSuch(Table::Sides))
    );
    assert_eq!(
        refusal(|image| image.sides[1].event = 3.into()),
        fault(Table::Sides, 1, Fault::OutOfRange)
    );
    assert_eq!(
        refusal(|image| {
            for side in &mut image.sides {
                side.line = 5000.into();
            }
        }),
        fault(Table::Sides, 0, Fault::OutOfRange)
    );
    // A capability for a channel would ring, and one for a device is for registers.
    assert_eq!(
        refusal(|image| image.capabilities[0].kind = (ObjectKind::Channel as u32).into()),
        fault(Table::Capabilities, 0, Fault::UnknownKind)
    );
}
