// SPDX-License-Identifier: Apache-2.0
//! A task of a microcontroller that does what a broken or malicious program without privileges could do, at
//! random:
//!
//! - hypercalls of every number with any arguments;
//! - loads and stores anywhere (others' memory, borders, the private peripheral bus);
//! - a stack pointer anywhere, and then a call, an undefined instruction, floating-point registers to be
//!   stacked, or an interrupt;
//! - a stack without end;
//! - jumps into others' code, into data, to EXC_RETURN values and to random instructions with random
//!   registers.
//!
//! Most attacks end in a fault, and so in a restart. The manifest must make this restart warm: memory is then
//! as it was, but for the changes of the start-up. Still nothing is remembered in memory. The hypervisor
//! tells the task the number of its starts, which is the seed of a life. A life that survives its attacks
//! restarts itself. The watchdog ends a life that sleeps or loops too long.
//!
//! The task needs the capabilities `console` and `clock`. It abuses any other capability that it is given.
#![no_std]
#![no_main]

mod attacks;
mod lives;
mod targets;

use attacks::one as attack;

bulkhead_guest::task_main!(lives::main);
