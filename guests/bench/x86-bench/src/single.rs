// SPDX-License-Identifier: Apache-2.0
//! Measurements that need one CPU only.

use crate::arrival::{self, MEASURED};
use crate::{measure, ticks_of};
use bulkhead_guest::hypercall;
use bulkhead_guest::pc::{apic, cpu, uart};

/// From arming to the deadline: more than it takes to be ready.
const AHEAD: u64 = 5000;
/// Model-specific register 0x802: the id of an x2APIC; 0x808: its task priority. The emulator's bare CPU has
/// no x2APIC, and reads 0 there.
const X2APIC_ID: u32 = 0x802;
const X2APIC_TASK_PRIORITY: u32 = 0x808;
const EFER: u32 = 0xC000_0080;
/// The mask of the first 8259, and the PM timer.
const PIC_MASK: u16 = 0x21;
const PM_TIMER: u16 = 0x608;
/// A port that no PC has.
const NOBODY: u16 = 0x80;
/// The line control of the UART.
const LINE_CONTROL: u16 = uart::BASE + 3;

/// Measures.
pub fn run(is_bare: bool) {
    measure("cpuid", || {
        ticks_of(|| {
            let _ = cpu::cpuid(1, 0);
        })
    });
    if !is_bare {
        measure("null-call", || {
            ticks_of(|| {
                let _ = hypercall::null();
            })
        });
        measure("version-call", || {
            ticks_of(|| {
                let _ = hypercall::version();
            })
        });
    }
    ports();
    registers();
    measure("timer-busy", || timer(false));
    measure("timer-idle", || timer(true));
    measure("ipi-self", ipi_to_self);
    if !is_bare {
        apic::enable_in_memory();
    }
    measure("apic-read", || ticks_of(|| _ = read_id()));
    measure("apic-write", || ticks_of(write_task_priority));
}

/// Reads a register of the APIC in memory as drivers do, by the same instruction wherever it is called.
#[inline(never)]
fn read_id() -> u32 {
    cpu::load(apic::ADDRESS + u64::from(apic::ID) * 16)
}

#[inline(never)]
fn write_task_priority() {
    cpu::store(apic::ADDRESS + u64::from(apic::TASK_PRIORITY) * 16, 0);
}

fn ports() {
    measure("port-write", || ticks_of(|| cpu::write_port8(PIC_MASK, 0xFF)));
    for (name, port) in [
        ("port-read", PIC_MASK),
        ("port-nobody", NOBODY),
        ("uart-read", LINE_CONTROL),
    ] {
        measure(name, || {
            ticks_of(|| {
                let _ = cpu::read_port8(port);
            })
        });
    }
    measure("pm-timer-read", || {
        ticks_of(|| {
            let _ = cpu::read_port32(PM_TIMER);
        })
    });
}

fn registers() {
    for (name, number) in [("x2apic-read", X2APIC_ID), ("efer-read", EFER)] {
        measure(name, || {
            ticks_of(|| {
                let _ = cpu::read_msr(number);
            })
        });
    }
    measure("x2apic-write", || {
        ticks_of(|| cpu::write_msr(X2APIC_TASK_PRIORITY, 0))
    });
}

fn timer(is_idle: bool) -> u64 {
    arrival::forget();
    let deadline = cpu::counter() + AHEAD;
    apic::set_deadline(MEASURED, deadline);
    arrival::wait(is_idle) - deadline
}

fn ipi_to_self() -> u64 {
    arrival::forget();
    cpu::unmask();
    let start = cpu::counter();
    apic::command_self(MEASURED);
    arrival::wait(false) - start
}
