// SPDX-License-Identifier: Apache-2.0
//! Runtime library of our guests: bare-metal programs in a VM partition (EL1) and programs in a task
//! partition (EL0, or unprivileged on a microcontroller).
//!
//! Model: a guest is one program that owns its partition. [`vm`] or [`task`] gives it a first
//! instruction, a stack, exception vectors and a `main`; the rest of the library is the same for both
//! where the two agree ([`println!`], [`hypercall`], [`report::Report`]). The two kinds are told apart
//! by the linker script alone ([`vm`]: `link/vm.ld`, entry `_vm_start`; [`task`]: `link/task.ld`, entry
//! `_task_start`), not by a Cargo feature, so that one build of this library serves every guest.
//!
//! A VM guest uses only devices of QEMU's `virt` board, so the same file runs there without the hypervisor. A
//! comparison of the two runs shows whether a test or the hypervisor is wrong, and what the hypervisor costs.
//! A VM of class `x86_64` is a PC ([`pc`]: `link/pc.ld`).
//! On a microcontroller (`link/mcu-task.ld`) it is a library of tasks alone: VMs there have the runtime
//! libraries that everybody uses.
//!
//! All unsafe code of our guests is in here; a guest itself forbids it. Invariants: statics shared with an
//! interrupt handler or another CPU are atomics, used with loads and stores only (a read-modify-write needs
//! cacheable memory, and the MMU is off until a guest asks for it); every waiting loop contains `wfe`,
//! `wfi` or `yield`.
#![cfg_attr(target_os = "none", no_std)]

pub mod arguments;
#[cfg(target_os = "none")]
pub mod channel;
// The folder of the CPU that the library is built for. No other code asks which CPU this is, but for the
// machines of VMs below.
#[cfg(all(target_os = "none", target_arch = "aarch64"))]
#[path = "aarch64/mod.rs"]
mod cpu;
#[cfg(all(target_os = "none", target_arch = "arm"))]
#[path = "armv7m/mod.rs"]
mod cpu;
#[cfg(all(target_os = "none", target_arch = "powerpc"))]
#[path = "ppc405/mod.rs"]
mod cpu;
#[cfg(all(target_os = "none", target_arch = "x86_64"))]
#[path = "x86_64/mod.rs"]
mod cpu;
#[cfg(target_os = "none")]
pub mod device;
pub mod device_tree;
#[cfg(target_os = "none")]
pub mod environment;
#[cfg(target_os = "none")]
pub mod hypercall;
#[cfg(target_os = "none")]
mod kind;
#[cfg(target_os = "none")]
pub mod lock;
#[cfg(all(target_os = "none", target_arch = "x86_64"))]
pub mod pc;
#[cfg(target_os = "none")]
pub mod port;
#[cfg(all(target_os = "none", target_arch = "powerpc"))]
pub mod powerpc;
pub mod random;
#[cfg(target_os = "none")]
pub mod report;
#[cfg(target_os = "none")]
pub mod secret;
#[cfg(target_os = "none")]
pub mod service;
pub mod startup_page;
#[cfg(target_os = "none")]
pub mod task;
#[cfg(target_os = "none")]
pub mod values;
#[cfg(all(target_os = "none", target_arch = "aarch64"))]
pub mod vm;

pub use bulkhead_abi as abi;
pub use bulkhead_ring as ring;
