// SPDX-License-Identifier: Apache-2.0
//! The virtual interrupt controller on its simulated board. No sequence of accesses, interrupts and switches
//! makes it panic or storm, or breaks the assertions of the board. After a new start everything works. The
//! input says whether it is a GICv3 or a GICv2. With `BULKHEAD_FUZZ_SHOW` in the environment the target
//! prints what an input means.
#![no_main]

#[path = "../../arch/vgic/tests/sim/mod.rs"]
mod sim;

use bulkhead_arch_vgic::{RegisterAccess, Frame};
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use sim::steps::{Step, run, run_version2};

/// Bases of the register arrays, and of what stands alone.
const REGISTERS: [u32; 14] = [
    0, 0x80, 0x100, 0x180, 0x200, 0x280, 0x300, 0x380, 0x400, 0x800, 0xC00, 0xF00, 0x6000, 0xFFE8,
];

fn access(input: &mut Unstructured<'_>, version2: bool) -> Result<RegisterAccess> {
    let (frame, base) = match (version2, input.arbitrary()?) {
        (true, true) if input.ratio(1, 4)? => (Frame::Deactivate, 0),
        (true, _) => (Frame::Version2, 0),
        (false, true) => (Frame::Redistributor(input.int_in_range(0..=3)?), 0x1_0000),
        (false, false) => (Frame::Distributor, 0),
    };
    let offset = match input.int_in_range(0..=7)? {
        0 => input.arbitrary()?,
        _ => base + input.choose(&REGISTERS)? + u32::from(input.arbitrary::<u8>()?),
    };
    let size = match input.int_in_range(0..=5)? {
        0 => input.arbitrary()?,
        1 => 1,
        2 => 8,
        _ => 4,
    };
    Ok(RegisterAccess {
        frame,
        offset: if size == 1 { offset } else { offset & !3 },
        size,
    })
}

fn value(input: &mut Unstructured<'_>) -> Result<u64> {
    Ok(match input.int_in_range(0..=3)? {
        0 => u64::MAX,
        1 => 1 << input.int_in_range(0..=63)?,
        _ => input.arbitrary()?,
    })
}

fn step(input: &mut Unstructured<'_>, version2: bool) -> Result<Step> {
    let cpu = input.int_in_range(0..=2)?;
    let line = |input: &mut Unstructured<'_>| -> Result<u32> {
        Ok(if input.ratio(1, 16)? {
            input.arbitrary()?
        } else {
            input.int_in_range(0..=299)?
        })
    };
    Ok(match input.int_in_range(0..=12)? {
        0 => Step::Read(cpu, access(input, version2)?),
        1..=4 => Step::Write(cpu, access(input, version2)?, value(input)?),
        5 => Step::Send(cpu, input.arbitrary()?, value(input)?),
        6 => Step::Acknowledge(cpu),
        7 => Step::End(cpu, line(input)?),
        8 => Step::Deactivate(cpu, line(input)?),
        9 => Step::Control(cpu, value(input)?),
        10 => Step::Switch(cpu),
        11 => Step::Raise(line(input)?),
        _ => match input.int_in_range(0..=3)? {
            0 => Step::Lower(line(input)?),
            3 => Step::Pulse(line(input)?),
            1 => Step::Input(input.arbitrary()?, input.arbitrary()?),
            _ => Step::Reset(cpu),
        },
    })
}

fuzz_target!(|data: &[u8]| {
    let mut input = Unstructured::new(data);
    let (Ok(slots), Ok(version2)) = (input.int_in_range(1..=4), input.arbitrary()) else {
        return;
    };
    let mut steps = Vec::new();
    while !input.is_empty() && steps.len() < 300 {
        match step(&mut input, version2) {
            Ok(step) => steps.push(step),
            Err(_) => break,
        }
    }
    if std::env::var_os("BULKHEAD_FUZZ_SHOW").is_some() {
        eprintln!("GICv{}, {slots} slots, {steps:#x?}", if version2 { 2 } else { 3 });
    }
    if version2 {
        run_version2(slots, &steps);
    } else {
        run(slots, &steps);
    }
});
