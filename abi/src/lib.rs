// SPDX-License-Identifier: Apache-2.0
//! Every number and layout a guest or the host tool can see.
//!
//! One definition, many readers: the kernel decodes with it, the guest library calls with it, the
//! host tool prints with it, and `bulkhead-abi`'s own test keeps the generated C header equal to it.
//! Nothing in here has behaviour beyond encoding and decoding; nothing depends on a CPU.
//!
//! Calling convention (class `aarch64`): SMC Calling Convention (Arm DEN 0028F), 64-bit fast calls of
//! the vendor-specific hypervisor service range. A VM uses `HVC #0`, a task `SVC #0`:
//!
//! | register | in | out |
//! |---|---|---|
//! | x0 | function identifier, [`function_id`] | 0, or a negative [`Error`] |
//! | x1 | capability index in the caller's own space | first result |
//! | x2..x6 | arguments | x2..x4: further results |
//!
//! Registers not named keep their value.
//!
//! Class `armv7m`: the same with 32-bit registers. A VM uses `UDF #0xB1`
//! ([`hypercall::HYPERCALL_INSTRUCTION`]), a task `SVC #0`:
//!
//! | register | in | out |
//! |---|---|---|
//! | r0 | function identifier | 0, or a negative [`Error`] |
//! | r1 | capability index | |
//! | r2:r3, r4:r5, r6:r7, r8:r9, r10:r11 | arguments of 64 bits, the low word first | r2:r3 to r8:r9: as many results as the operation has ([`Operation::results`]) |
//!
//! Registers that are no result of the operation keep their value, as all but r0 do on an error.
//!
//! Class `ppc405`: `sc`, from a task and from the supervisor state of a VM. `sc` with another number in r0 is
//! a system call of the VM's own:
//!
//! | register | in | out |
//! |---|---|---|
//! | r0 | function identifier | |
//! | r3 | capability index | 0, or a negative [`Error`] |
//! | r4:r5, r6:r7, r8:r9, r10:r11, r12:r13 | arguments of 64 bits, the high word first | r4:r5 to r10:r11: as many results as the operation has ([`Operation::results`]) |
//!
//! Layouts in memory have the byte order of the other classes: startup page, messages and the bytes of a
//! console are little-endian everywhere.
//!
//! Class `x86_64`: `VMMCALL` from a VM and from a task, with the numbers of the 64-bit calls:
//!
//! | register | in | out |
//! |---|---|---|
//! | rax | function identifier | 0, or a negative [`Error`] |
//! | rdi | capability index | first result |
//! | rsi, rdx, rcx, r8, r9 | arguments | rsi, rdx, rcx: further results |
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

#[macro_use]
mod numbered;

pub mod atomic;
pub mod framing;
pub mod hypercall;
pub mod log;
pub mod measurement;
pub mod own_policy;
pub mod parts;
pub mod size;
pub mod startup;
pub mod status;
pub mod trace;

pub use hypercall::{Error, ObjectKind, Operation, Rights, function_id};
pub use startup::{STARTUP_MAGIC, StartupCapability, StartupHeader};
pub use status::{HealthAction, HealthClass, PartitionState, StartCause, StartMode};
