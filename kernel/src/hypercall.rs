// SPDX-License-Identifier: Apache-2.0
//! The way from registers to a command: the one place that checks a partition's hypercalls.
//!
//! [`decode`] turns a hypercall into a [`Command`], or into the error that the caller gets. The caller may
//! name the objects of the command and holds the rights to them. The arguments are in range. No code after
//! [`decode`] has to check again. The rules are a table, so that a reader sees on one screen which right
//! allows which operation.

use crate::cap::{Spaces, rights};
use crate::channel::command::ChannelId;
use crate::command::{Command, CoreCommand, WRITE_LEN, WaitCommand};
use crate::lock::LockId;
use crate::parts::{CHANNELS, LENT, LOCKS, PORTS, SECRETS, SERVICES, UPCALLS, decoded};
use crate::{channel, lent, lock, port, secret, service, upcall};
use bulkhead_abi::hypercall::{CoreOperation, Group, UpcallOperation};
use bulkhead_abi::status::StartOptions;
use bulkhead_abi::{Error, ObjectKind, Operation, Rights};
use bulkhead_arch_api::{Hypercall, PartitionId, PcpuId};
use spin::RelaxStrategy;

/// The number of bytes that a console read can return in registers.
pub const READ_LEN: usize = 24;

/// Returns the object kind and the right that an operation needs of the capability in x1. Returns `None` if
/// the operation needs no object.
const fn rule(operation: Operation) -> Option<(ObjectKind, Rights)> {
    match operation {
        Operation::Null
        | Operation::Version
        | Operation::CapabilityDerive
        | Operation::CapabilityRevoke
        | Operation::CapabilityDelete
        | Operation::CapabilityInspect
        | Operation::CapabilityFind
        | Operation::PortResume => None,
        Operation::PartitionStatus | Operation::PartitionMeasure => {
            Some((ObjectKind::Partition, Rights::READ))
        }
        Operation::PartitionStart
        | Operation::PartitionStop
        | Operation::PartitionRestart
        | Operation::PartitionKick => Some((ObjectKind::Partition, Rights::CONTROL)),
        Operation::EventWait | Operation::EventPoll | Operation::EventUpcall => {
            Some((ObjectKind::EventGate, Rights::READ))
        }
        Operation::EventSignal => Some((ObjectKind::EventGate, Rights::WRITE)),
        Operation::TimerNow | Operation::TimerSleep => Some((ObjectKind::Timer, Rights::READ)),
        Operation::ConsoleWrite => Some((ObjectKind::Console, Rights::WRITE)),
        Operation::ConsoleRead => Some((ObjectKind::Console, Rights::READ)),
        Operation::CapabilityGrant => Some((ObjectKind::Partition, Rights::GRANT)),
        Operation::ScheduleStatus => Some((ObjectKind::Schedule, Rights::READ)),
        Operation::ScheduleChange => Some((ObjectKind::Schedule, Rights::CONTROL)),
        Operation::PortSend | Operation::PortSendReceive | Operation::PortSendReceiveDonate => {
            Some((ObjectKind::Port, Rights::WRITE))
        }
        Operation::PortReceive | Operation::PortTryReceive | Operation::PortReceiveDonate => {
            Some((ObjectKind::Port, Rights::READ))
        }
        Operation::PortReply => Some((ObjectKind::Reply, Rights::WRITE)),
        Operation::LockTake | Operation::LockTryTake | Operation::LockRelease => {
            Some((ObjectKind::Lock, Rights::WRITE))
        }
        Operation::DeviceHold | Operation::DeviceRelease => Some((ObjectKind::Device, Rights::READ)),
        Operation::InterruptBind | Operation::InterruptDone | Operation::InterruptUnbind => {
            Some((ObjectKind::Interrupt, Rights::READ))
        }
        Operation::ChannelPlace | Operation::ChannelHold | Operation::ChannelRelease => {
            Some((ObjectKind::Channel, Rights::READ))
        }
        Operation::ChannelDoorbell => Some((ObjectKind::Channel, Rights::WRITE)),
        Operation::SecretTake => Some((ObjectKind::Secret, Rights::READ)),
        Operation::ServiceTake | Operation::ServiceNews | Operation::ServiceRead | Operation::ServiceKept => {
            Some((ObjectKind::Service, Rights::READ))
        }
        Operation::ServiceAnswer
        | Operation::ServiceInterrupt
        | Operation::ServiceWrite
        | Operation::ServiceReach
        | Operation::ServiceKeep => Some((ObjectKind::Service, Rights::WRITE)),
    }
}

/// Checks a hypercall of `caller`. The work is constant.
///
/// # Errors
/// The error that the caller gets.
pub fn decode<R: RelaxStrategy>(
    call: &Hypercall,
    caller: PartitionId,
    spaces: &Spaces<R>,
) -> Result<Command, Error> {
    // A build without secrets has no code for them, not even an entry in a table of jumps.
    let is_secret = |operation| matches!(operation, Operation::SecretTake | Operation::PartitionMeasure);
    let operation = Operation::from_number(call.operation)
        .filter(|operation| SECRETS || !is_secret(*operation))
        .ok_or(Error::NotSupported)?;
    let [x1, x2, ..] = call.arguments;
    let (object, held) = match rule(operation) {
        None => (caller.0, Rights::NONE),
        Some((kind, right)) => {
            let capability = spaces.look_up(caller, x1)?;
            if capability.kind != kind {
                return Err(Error::WrongKind);
            }
            // A partition can always show that it is alive.
            let own_kick = operation == Operation::PartitionKick && capability.object == caller.0;
            if !capability.rights.contains(right) && !own_kick {
                return Err(Error::NoRight);
            }
            (capability.object, capability.rights)
        }
    };
    Ok(match operation.group() {
        Group::Core(operation) => core(operation, call, caller, object, spaces)?,
        Group::Upcall(UpcallOperation::EventUpcall) => Command::Upcall(
            PartitionId(object),
            decoded::<UPCALLS, _>(|| upcall::command::decode(call))?,
        ),
        Group::Port(operation) => Command::Port(decoded::<PORTS, _>(|| {
            port::decode::decode(operation, call, caller, object, held, spaces)
        })?),
        Group::Lock(operation) => Command::Lock(
            LockId(object),
            decoded::<LOCKS, _>(|| Ok(lock::command::decode(operation, x2)))?,
        ),
        Group::Channel(operation) => Command::Channel(
            ChannelId(object),
            decoded::<CHANNELS, _>(|| Ok(channel::command::decode(operation, x2)))?,
        ),
        Group::Lent(operation) => Command::Lent(
            ChannelId(object),
            decoded::<LENT, _>(|| lent::command::decode(operation, x1, x2, caller, spaces))?,
        ),
        Group::Service(operation) => Command::Serve(
            PartitionId(object),
            decoded::<SERVICES, _>(|| service::command::decode(operation, call))?,
        ),
        Group::Secret(operation) => Command::Secret(
            PartitionId(object),
            decoded::<SECRETS, _>(|| secret::command::decode(operation, x1, x2))?,
        ),
    })
}

/// Does [`decode`] for operations of the core.
#[inline(always)]
fn core<R: RelaxStrategy>(
    operation: CoreOperation,
    call: &Hypercall,
    caller: PartitionId,
    number: u8,
    spaces: &Spaces<R>,
) -> Result<Command, Error> {
    let [x1, x2, x3, ..] = call.arguments;
    let object = PartitionId(number);
    Ok(Command::Core(match operation {
        CoreOperation::EventWait => {
            return Ok(Command::Wait(WaitCommand::Events(
                object,
                (x2 != 0).then_some(x2),
            )));
        }
        CoreOperation::TimerSleep => return Ok(Command::Wait(WaitCommand::Sleep(x2))),
        CoreOperation::CapabilityRevoke => return Ok(Command::Wait(WaitCommand::Revoke(x1, false))),
        CoreOperation::CapabilityDelete => return Ok(Command::Wait(WaitCommand::Revoke(x1, true))),
        CoreOperation::Null => CoreCommand::Null,
        CoreOperation::Version => CoreCommand::Version,
        CoreOperation::PartitionStatus => CoreCommand::Status(object),
        CoreOperation::PartitionStart => CoreCommand::Start(object, options(x2)?),
        CoreOperation::PartitionStop => CoreCommand::Stop(object),
        CoreOperation::PartitionRestart => CoreCommand::Restart(object, options(x2)?),
        CoreOperation::PartitionKick => CoreCommand::Kick(object),
        CoreOperation::EventPoll => CoreCommand::Poll(object),
        CoreOperation::EventSignal => CoreCommand::Signal(object, x2),
        CoreOperation::TimerNow => CoreCommand::Now,
        CoreOperation::ConsoleWrite => CoreCommand::Write(object, write_length(x2)?, bytes_from(call, 2)),
        CoreOperation::ConsoleRead => CoreCommand::Read(object),
        CoreOperation::CapabilityDerive => CoreCommand::Derive(x1, rights(x2)?),
        CoreOperation::CapabilityGrant => CoreCommand::Grant(object, x2, rights(x3)?),
        CoreOperation::CapabilityInspect => CoreCommand::Inspect(spaces.look_up(caller, x1)?),
        CoreOperation::CapabilityFind => CoreCommand::Find(bytes_from(call, 1)),
        CoreOperation::ScheduleStatus => CoreCommand::ScheduleStatus(PcpuId(number)),
        CoreOperation::ScheduleChange => CoreCommand::ScheduleChange(PcpuId(number), x2),
    }))
}

/// Tells whether an error shows that the caller is wrong, not merely unlucky. A wrong caller is a health
/// event.
#[must_use]
pub const fn is_malformed(error: Error) -> bool {
    match error {
        Error::NotSupported
        | Error::NoCapability
        | Error::WrongKind
        | Error::NoRight
        | Error::InvalidArgument => true,
        Error::NoSpace
        | Error::WrongState
        | Error::TimedOut
        | Error::Interrupted
        | Error::Revoked
        | Error::DonationCycle
        | Error::OutOfReach => false,
    }
}

fn options(argument: u64) -> Result<StartOptions, Error> {
    StartOptions::decode(argument).ok_or(Error::InvalidArgument)
}

fn write_length(argument: u64) -> Result<usize, Error> {
    usize::try_from(argument)
        .ok()
        .filter(|length| *length <= WRITE_LEN)
        .ok_or(Error::InvalidArgument)
}

/// Returns the bytes of four arguments from this one on, counted from 0.
fn bytes_from(call: &Hypercall, first: usize) -> [u8; WRITE_LEN] {
    let mut bytes = [0; WRITE_LEN];
    for (to, from) in bytes.chunks_exact_mut(8).zip(call.arguments.iter().skip(first)) {
        to.copy_from_slice(&from.to_le_bytes());
    }
    bytes
}

/// Returns the results x1..x4 of a console read.
#[must_use]
pub fn read_results(length: usize, bytes: &[u8; READ_LEN]) -> [u64; 4] {
    let mut results = [length as u64, 0, 0, 0];
    for (to, from) in results.iter_mut().skip(1).zip(bytes.chunks_exact(8)) {
        let mut word = [0; 8];
        word.copy_from_slice(from);
        *to = u64::from_le_bytes(word);
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cap::Capability;
    use bulkhead_abi::hypercall::CAPABILITY_NAME;
    use spin::Spin;

    const SELF: PartitionId = PartitionId(0);
    const OTHER: PartitionId = PartitionId(1);

    fn spaces() -> Spaces<Spin> {
        let spaces = Spaces::new();
        let endow = |index, kind, PartitionId(object), rights| {
            spaces
                .endow(SELF, index, Capability { kind, object, rights })
                .unwrap();
        };
        endow(0, ObjectKind::Partition, SELF, Rights::READ);
        endow(1, ObjectKind::Partition, OTHER, Rights::READ);
        endow(2, ObjectKind::Partition, OTHER, Rights::ALL);
        endow(3, ObjectKind::Console, SELF, Rights::WRITE);
        endow(4, ObjectKind::EventGate, SELF, Rights::READ);
        spaces
    }

    fn call(operation: u16, arguments: [u64; 6]) -> Result<Command, Error> {
        decode(&Hypercall { operation, arguments }, SELF, &spaces())
    }

    #[test]
    fn every_unknown_number_is_not_supported() {
        for number in 0..=u16::MAX {
            let known = Operation::from_number(number).is_some();
            assert_eq!(
                call(number, [99; 6]) == Err(Error::NotSupported),
                !known,
                "{number:#x}"
            );
        }
    }

    #[test]
    fn kind_and_rights_are_checked_for_each_operation_that_has_an_object() {
        for operation in Operation::ALL {
            if let Some((kind, _)) = rule(*operation) {
                assert_eq!(
                    call(*operation as u16, [63, 0, 0, 0, 0, 0]),
                    Err(Error::NoCapability),
                    "{operation:?}"
                );
                let wrong = if kind == ObjectKind::Console { 2 } else { 3 };
                assert_eq!(
                    call(*operation as u16, [wrong, 0, 0, 0, 0, 0]),
                    Err(Error::WrongKind),
                    "{operation:?}"
                );
            }
        }
        for operation in [
            Operation::PartitionStart,
            Operation::PartitionStop,
            Operation::PartitionRestart,
        ] {
            assert_eq!(call(operation as u16, [1, 0, 0, 0, 0, 0]), Err(Error::NoRight));
        }
        assert_eq!(
            call(Operation::ConsoleRead as u16, [3, 0, 0, 0, 0, 0]),
            Err(Error::NoRight)
        );
        assert_eq!(
            call(Operation::EventSignal as u16, [4, 1, 0, 0, 0, 0]),
            Err(Error::NoRight)
        );
    }

    #[test]
    fn kicking_oneself_needs_no_right() {
        assert_eq!(
            call(Operation::PartitionKick as u16, [0; 6]),
            Ok(Command::Core(CoreCommand::Kick(SELF)))
        );
        assert_eq!(
            call(Operation::PartitionKick as u16, [1, 0, 0, 0, 0, 0]),
            Err(Error::NoRight)
        );
        assert_eq!(
            call(Operation::PartitionKick as u16, [2, 0, 0, 0, 0, 0]),
            Ok(Command::Core(CoreCommand::Kick(OTHER)))
        );
    }

    #[test]
    fn reading_a_schedule_is_not_changing_it() {
        let spaces = spaces();
        let endow = |index, rights| {
            let capability = Capability {
                kind: ObjectKind::Schedule,
                object: 3,
                rights,
            };
            spaces.endow(SELF, index, capability).unwrap();
        };
        endow(5, Rights::READ);
        endow(6, Rights::CONTROL);
        let call = |operation, arguments| {
            let operation = operation as u16;
            decode(&Hypercall { operation, arguments }, SELF, &spaces)
        };
        let pcpu = PcpuId(3);
        let (status, change) = (Operation::ScheduleStatus, Operation::ScheduleChange);
        assert_eq!(
            call(status, [5, 0, 0, 0, 0, 0]),
            Ok(Command::Core(CoreCommand::ScheduleStatus(pcpu)))
        );
        assert_eq!(call(change, [5, 1, 0, 0, 0, 0]), Err(Error::NoRight));
        assert_eq!(
            call(change, [6, 1, 0, 0, 0, 0]),
            Ok(Command::Core(CoreCommand::ScheduleChange(pcpu, 1)))
        );
        assert_eq!(call(status, [6, 0, 0, 0, 0, 0]), Err(Error::NoRight));
    }

    #[test]
    fn arguments_out_of_range_are_refused() {
        assert_eq!(
            call(Operation::ConsoleWrite as u16, [3, 33, 0, 0, 0, 0]),
            Err(Error::InvalidArgument)
        );
        assert_eq!(
            call(Operation::CapabilityDerive as u16, [0, 16, 0, 0, 0, 0]),
            Err(Error::InvalidArgument)
        );
        assert_eq!(
            call(Operation::CapabilityDerive as u16, [0, 257, 0, 0, 0, 0]),
            Err(Error::InvalidArgument)
        );
        assert_eq!(
            call(Operation::CapabilityInspect as u16, [1 << 32, 0, 0, 0, 0, 0]),
            Err(Error::NoCapability)
        );
    }

    #[test]
    fn a_name_is_four_words() {
        let find = Operation::CapabilityFind as u16;
        let word = u64::from_le_bytes(*b"a-longer");
        let Ok(Command::Core(CoreCommand::Find(name))) =
            call(find, [9, word, u64::from(b'x'), 0, 0, u64::MAX])
        else {
            panic!("refused");
        };
        assert_eq!(name[..10], *b"a-longerx\0");
        assert_eq!(name[10..], [0; CAPABILITY_NAME - 10]);
    }

    #[test]
    fn passing_a_capability_on_needs_the_right_on_the_receiver() {
        let grant = Operation::CapabilityGrant as u16;
        assert_eq!(
            call(grant, [2, 3, 2, 0, 0, 0]),
            Ok(Command::Core(CoreCommand::Grant(OTHER, 3, Rights::WRITE)))
        );
        assert_eq!(call(grant, [1, 3, 2, 0, 0, 0]), Err(Error::NoRight));
        assert_eq!(call(grant, [4, 3, 2, 0, 0, 0]), Err(Error::WrongKind));
    }

    #[test]
    fn console_bytes_are_little_endian_words() {
        let word = u64::from_le_bytes(*b"abcdefgh");
        let Ok(Command::Core(CoreCommand::Write(SELF, 9, bytes))) = call(
            Operation::ConsoleWrite as u16,
            [3, 9, word, u64::from(b'i'), 0, 0],
        ) else {
            panic!("refused");
        };
        assert_eq!(&bytes[..9], b"abcdefghi");
        let mut input = [0; READ_LEN];
        input[..8].copy_from_slice(b"abcdefgh");
        assert_eq!(read_results(8, &input), [8, word, 0, 0]);
    }
}
