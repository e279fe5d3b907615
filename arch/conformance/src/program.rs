// SPDX-License-Identifier: Apache-2.0
//! Programs as the guests of the class binaries for the emulator read them.
//!
//! Such a guest is a few dozen instructions that interpret [`Record`]s in its own RAM, because on a
//! microcontroller code is in memory that no code writes. Some steps have no operation of their own (which
//! registers to write so that the interrupt controller delivers a line, say): the class's [`Dialect`] gives
//! their meaning.

use crate::{Bench, Outcome, PAGE, Role, Step};
use bulkhead_abi::hypercall::FUNCTION_BASE;
use bulkhead_arch_api::{GuestPhys, Spaces};

/// Where in RAM the records are.
pub const RECORDS: u64 = 0x3000;

/// Operations: the things that a record tells a guest to do.
pub mod operation {
    /// Be busy for ever.
    pub const END: u32 = 0;
    /// Load `size` bytes from `address` into the accumulator.
    pub const LOAD: u32 = 1;
    /// Store `size` bytes of `value` to `address`.
    pub const STORE: u32 = 2;
    /// Call function `value` with the accumulator, as a VM does.
    pub const CALL_OF_VM: u32 = 3;
    /// The same as a task does.
    pub const CALL_OF_TASK: u32 = 4;
    /// Wait for an interrupt.
    pub const IDLE: u32 = 5;
    /// Call function `value` of the firmware.
    pub const FIRMWARE: u32 = 6;
    /// Open the CPU's interface to the interrupt controller.
    pub const OPEN: u32 = 7;
}

/// A step as a guest reads it, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The operation, see [`operation`].
    pub operation: u32,
    /// The number of bytes.
    pub size: u32,
    /// Where.
    pub address: u64,
    /// Of or with what.
    pub value: u64,
}

impl Record {
    /// Bytes of a record.
    pub const SIZE: u64 = 24;

    /// Makes an operation on nothing but a value.
    #[must_use]
    pub const fn of(operation: u32, value: u64) -> Self {
        Self {
            operation,
            size: 0,
            address: 0,
            value,
        }
    }

    /// Makes a store.
    #[must_use]
    pub const fn store(address: u64, size: u32, value: u64) -> Self {
        Self {
            operation: operation::STORE,
            size,
            address,
            value,
        }
    }

    /// Returns the record as it is in memory.
    #[must_use]
    pub fn bytes(&self) -> [u8; Self::SIZE as usize] {
        let head = u64::from(self.operation) | u64::from(self.size) << 32;
        let mut bytes = [0; Self::SIZE as usize];
        let (places, _) = bytes.as_chunks_mut::<8>();
        for (place, value) in places.iter_mut().zip([head, self.address, self.value]) {
            *place = value.to_le_bytes();
        }
        bytes
    }
}

/// The meaning of steps on a class.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// [`Step::Accept`].
    pub accept: [Option<Record>; Self::MOST],
    /// [`Step::Reset`].
    pub reset: Record,
    /// [`Step::Off`], if a vCPU can do that.
    pub off: Option<Record>,
}

impl Dialect {
    /// The most records that a step takes.
    const MOST: usize = 6;

    /// Returns the records of a step of this class.
    fn records(&self, step: Step) -> Option<[Option<Record>; Self::MOST]> {
        let one = |record| [Some(record), None, None, None, None, None];
        match step {
            Step::Accept => Some(self.accept),
            Step::Reset => Some(one(self.reset)),
            Step::Off => Some(one(self.off?)),
            Step::Load(..) | Step::Store(..) | Step::Call(_) | Step::Idle => None,
        }
    }
}

/// Writes `steps` to the role's RAM, as records at [`RECORDS`], where the address that comes back is.
///
/// # Errors
/// They do not fit, or the role has no space.
pub fn write_program<B: Bench>(
    bench: &mut B,
    role: Role,
    steps: &[Step],
    dialect: &Dialect,
) -> Result<GuestPhys, &'static str> {
    let start = bench.address(role, crate::At::Ram(RECORDS));
    let mut next = start;
    let mut put = |bench: &mut B, record: &Record| -> Outcome {
        if next.0.wrapping_sub(start.0) > PAGE.saturating_sub(Record::SIZE) {
            return Err("the program is too long");
        }
        bench
            .machine()
            .copy_out(role.partition(), next, &record.bytes())
            .map_err(|_| "there is no room for the program")?;
        next = GuestPhys(next.0.wrapping_add(Record::SIZE));
        Ok(())
    };
    for step in steps {
        match dialect.records(*step) {
            Some(records) => {
                for record in records.iter().flatten() {
                    put(bench, record)?;
                }
            }
            None => put(bench, &plain(bench, role, *step))?,
        }
    }
    put(bench, &Record::of(operation::END, 0))?;
    Ok(start)
}

/// Makes a step that is one record on every class.
fn plain<B: Bench>(bench: &B, role: Role, step: Step) -> Record {
    match step {
        Step::Load(at, size) => Record {
            operation: operation::LOAD,
            size: size.into(),
            address: bench.address(role, at).0,
            value: 0,
        },
        Step::Store(at, size, value) => Record::store(bench.address(role, at).0, size.into(), value),
        Step::Call(number) => {
            let call = if role == Role::Task {
                operation::CALL_OF_TASK
            } else {
                operation::CALL_OF_VM
            };
            Record::of(call, u64::from(FUNCTION_BASE) | u64::from(number))
        }
        Step::Idle => Record::of(operation::IDLE, 0),
        Step::Accept | Step::Off | Step::Reset => Record::of(operation::END, 0),
    }
}
