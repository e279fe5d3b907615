// SPDX-License-Identifier: Apache-2.0
//! A bare-metal program for Armv7-M that does what a broken or malicious program could do, at random, to its
//! own partition and to others: stack pointers anywhere, wrong exception returns, vector tables of garbage,
//! its own memory protection unit reprogrammed, code changed or jumped into that is not its own, registers of
//! the processor written in every size, undefined instructions of every kind, loads and stores across
//! borders, jumps by every instruction that can make one.
//!
//! Each attack ends in one of four ways. It has no effect. It is a fault, whose handler drops everything and
//! starts anew with the next attack. The processor locks up. Or it loops for ever with interrupts masked,
//! until the watchdog bites. After the last two the manifest lets the partition start again, warm. Counts are
//! in RAM that this keeps (`progress`). The changes of an attack to the processor mostly stay for the next
//! ones, until a fault. The test looks from outside: the neighbours must be as they are without this program.
#![no_std]
#![no_main]

mod attacks;
#[path = "../../../suites/mcu-suite/src/console.rs"]
mod console;
#[allow(dead_code, reason = "shared with the suite, which uses all of it")]
#[path = "../../../suites/mcu-suite/src/cpu.rs"]
mod cpu;
mod edges;
mod entry;
mod lives;
mod progress;
mod recovery;
#[path = "../../../suites/mcu-suite/src/reset.rs"]
mod reset;
mod targets;

use attacks::one as attack;
use console::print;
use progress::{below, draw};
