// SPDX-License-Identifier: Apache-2.0
//! Families that are machine code in the sandbox. Where the registers that the code may change are known,
//! everything else is compared.

use bulkhead_guest::abi::Operation;
use bulkhead_guest::random::Random;
use bulkhead_guest::vm::sandbox::{DEVICES, MAX_WORDS, Outcome, PROBED, STACK, Start, without_program};
use bulkhead_guest::vm::{gic, pl011, timer};

use crate::words::{self, pick};
use crate::{Attack, Change};

/// Time of one run.
const BUDGET_MICROSECONDS: u64 = 20;
/// Capability slots of a partition, and some more.
const SLOTS: u64 = 70;
/// x1, x2, x3 and x0: what the forms of [`words::ACCESSES`] may change.
const DATA: u32 = 0b1111;
/// x0..x4: what hypercalls answer in.
const RESULTS: u32 = 0b1_1111;
/// x0..x17: what SMCCC lets a firmware call change (Arm DEN 0028 section 2.6).
const SCRATCH: u32 = 0x3_FFFF;

/// Windows of its virtual devices and holes between them: base and size.
const WINDOWS: &[(u64, u64)] = &[
    (gic::DISTRIBUTOR, 0x1_0000),
    (gic::REDISTRIBUTORS, 0x4_0000),
    (pl011::BASE, 0x1000),
    (gic::DISTRIBUTOR + 0x1_0000, 0x1_0000),
    (pl011::BASE + 0x1000, 0x1000),
    (0, 0x1000),
    (0x0A00_0000, 0x4000),
    (0x3FFF_F000, 0x1000),
];

/// Operations on its own partition that would only end it, or wait for ever.
const SPARED: &[Operation] = &[
    Operation::PartitionStop,
    Operation::PartitionRestart,
    Operation::EventWait,
    Operation::TimerSleep,
];

/// Runs `code` with `general`. Registers outside `may_change` that changed are damage, if the code came to
/// its end or was refused. After an interrupt it is not known how far the code got.
fn run(attack: &mut Attack, code: &[u32], start: Start, may_change: u32) -> Outcome {
    let outcome = attack.sandbox.run(code, &start);
    attack.count(&outcome);
    if !outcome.interrupted() {
        let before = start.general.map(without_program);
        for (i, (before, after)) in before.iter().zip(&outcome.general).enumerate() {
            if may_change >> i & 1 == 0 && before != after {
                attack.damage(
                    code,
                    &outcome,
                    Change {
                        register: i,
                        before: *before,
                        after: *after,
                    },
                );
            }
        }
    }
    outcome
}

/// Random registers, at EL1 or sometimes EL0.
fn start(random: &mut Random) -> Start {
    let mut general = [0; 31];
    for register in &mut general {
        *register = value(random);
    }
    Start {
        general,
        program: random.below(4) == 0,
        debug: false,
        step: false,
        budget: timer::ticks(BUDGET_MICROSECONDS),
    }
}

/// Draws a value: often small, often an address with a meaning.
fn value(random: &mut Random) -> u64 {
    match random.below(8) {
        0 => random.below(SLOTS),
        1 => u64::MAX - random.below(16),
        2 => 1 << random.below(64),
        3 => device_address(random),
        4 => STACK + random.below(4096),
        5 => random.below(1 << 40),
        _ => random.draw(),
    }
}

/// Draws an address in a window, often at its edges, mostly aligned.
fn device_address(random: &mut Random) -> u64 {
    let (base, size) = pick(random, WINDOWS);
    let offset = match random.below(8) {
        0 => random.below(32),
        1 => size - random.below(32),
        _ => random.below(size),
    };
    let aligned = match random.below(8) {
        0 => offset,
        1 => offset & !1,
        2..5 => offset & !7,
        _ => offset & !3,
    };
    DEVICES + base + aligned
}

/// Makes any hypercall or firmware call with any arguments.
pub fn hypercall(attack: &mut Attack) {
    let random = &mut attack.random;
    let number = if random.below(4) == 0 {
        random.below(0x1_0000) as u16
    } else {
        pick(random, Operation::ALL) as u16
    };
    let mut start = start(random);
    start.program = random.below(8) == 0;
    let function = match random.below(8) {
        0 => random.draw(),
        // Above all functions of PSCI that exist (Arm DEN 0022 section 5).
        1 => u64::from(random.draw() as u32 | 0x8400_0040),
        _ => 0xC600_0000 | u64::from(number),
    };
    // Calls that end a power state or the partition have their own family.
    let function = if function as u32 & 0xBF00_FFC0 == 0x8400_0000 {
        0
    } else {
        function
    };
    let [x0, x1, x2, ..] = &mut start.general;
    *x0 = function;
    if random.below(2) == 0 {
        *x1 = random.below(SLOTS);
    }
    if Operation::from_number(number).is_some_and(|operation| SPARED.contains(&operation)) {
        // No capability is in that slot, and no vCPU waits without a capability. No address of this program
        // looks like the slot. The sandbox would take such a value for an address and make it 0.
        *x1 = 1 << 31 | random.below(1 << 31);
        *x2 = 1;
    }
    let call = if random.below(4) == 0 {
        words::SMC
    } else {
        words::HVC
    };
    let immediate = if random.below(16) == 0 {
        (random.draw() as u32 & 0xFFFF) << 5
    } else {
        0
    };
    let vendor = function >> 16 == 0xC600;
    let changes = if vendor { RESULTS } else { SCRATCH };
    run(attack, &[call | immediate], start, changes);
}

/// Makes any form of access to any register of a virtual device.
pub fn device(attack: &mut Attack) {
    let word = pick(&mut attack.random, words::ACCESSES);
    let mut start = start(&mut attack.random);
    start.general[1] = device_address(&mut attack.random);
    start.general[3] = 0;
    run(attack, &[word], start, DATA);
}

/// Makes any access to a system register, or any system instruction.
pub fn register(attack: &mut Attack) {
    let word = words::system(&mut attack.random);
    let start = start(&mut attack.random);
    run(attack, &[word], start, 1 << 2);
}

/// Runs a few random words.
pub fn instructions(attack: &mut Attack) {
    let mut code = [0; 6];
    for word in &mut code {
        *word = words::any(&mut attack.random);
    }
    let length = 1 + attack.random.below(code.len() as u64) as usize;
    let start = start(&mut attack.random);
    run(attack, &code[..length], start, u32::MAX);
}

/// Makes any form of access to any guest-physical address but its own RAM, and fetches from there.
pub fn probe(attack: &mut Attack) {
    let random = &mut attack.random;
    let address = match random.below(4) {
        0 => random.below(1 << 32),
        1 => 0x4000_0000 + random.below(1 << 32),
        2 => 1 << (12 + random.below(28)),
        _ => random.below(1 << 40),
    };
    // Its own RAM is at the beginning of this gigabyte.
    if address >> 30 == 1 && address & 0x3FFF_FFFF < 0x100_0000 {
        return;
    }
    let word = if random.below(8) == 0 {
        words::BRANCH
    } else {
        pick(random, words::ACCESSES)
    };
    let mut start = start(random);
    let aligned = if random.below(8) == 0 { 0 } else { 7 };
    start.general[1] = PROBED + (address & 0x3FFF_FFFF & !aligned);
    start.general[3] = 0;
    attack.sandbox.look_at(address);
    run(attack, &[word], start, DATA);
}

/// Sets up translation by random tables with random controls, maintains TLBs and caches by set and way, and
/// makes an access.
pub fn translation(attack: &mut Attack) {
    /// `MSR TTBR0_EL1, x2`, ISB, `TLBI VMALLE1`, `DC CISW, x2`, `DC CSW, x2`, `DC ISW, x2`, `AT S1E1R, x1`.
    const STEPS: &[u32] = &[
        0xD518_2002,
        0xD503_3FDF,
        0xD508_871F,
        0xD508_7E42,
        0xD508_7A42,
        0xD508_7642,
        0xD508_7801,
    ];
    let random = &mut attack.random;
    let mut code = [0; MAX_WORDS];
    let length = 2 + random.below(6) as usize;
    for word in &mut code[..length] {
        *word = match random.below(8) {
            // TLBI of any kind: SYS with CRn 8.
            0 => 0xD508_8002 | random.draw() as u32 & 0x0000_0FE0,
            1 => pick(random, words::ACCESSES),
            _ => pick(random, STEPS),
        };
    }
    let mut start = start(random);
    start.program = false;
    start.general[1] = match random.below(3) {
        0 => random.below(1 << 39),
        1 => PROBED + random.below(1 << 30),
        _ => device_address(random),
    };
    start.general[2] = match random.below(4) {
        // A table where a device, nothing, or RAM is.
        0 => device_address(random) - DEVICES,
        1 => random.below(1 << 40),
        2 => random.draw(),
        _ => 0x4000_0000 + (random.below(1 << 20) & !0xFFF),
    };
    run(attack, &code[..length], start, u32::MAX);
}

/// Random debug registers, and stepping over or breaking at instructions that trap.
pub fn debug(attack: &mut Attack) {
    /// `MSR OSLAR_EL1, XZR`; `MSR DBGBVR0_EL1, x5`; `MSR DBGBCR0_EL1, x6`; `MSR DBGWVR0_EL1, x7`;
    /// `MSR DBGWCR0_EL1, x8`; `MSR MDSCR_EL1, x4`; `ISB`.
    const ARM: &[u32] = &[
        0xD510_109F,
        0xD510_0085,
        0xD510_00A6,
        0xD510_00C7,
        0xD510_00E8,
        MDSCR,
        0xD503_3FDF,
    ];
    const MDSCR: u32 = 0xD510_0244;
    let random = &mut attack.random;
    let mut code = [0; MAX_WORDS];
    for (word, from) in code.iter_mut().zip(ARM) {
        *word = *from;
    }
    let length = ARM.len() + 4;
    for word in &mut code[ARM.len()..length] {
        *word = match random.below(6) {
            0 => words::debug_register(random),
            1 => words::system(random),
            2 => words::HVC,
            3 => words::WFI,
            _ => pick(random, words::ACCESSES),
        };
    }
    let mut start = start(random);
    start.program = false;
    start.debug = true;
    start.step = random.below(2) == 0;
    start.general[0] = 0xC600_0000;
    start.general[1] = device_address(random);
    start.general[3] = 0;
    // KDE, MDE, SS, as it comes. A breakpoint at one of the last words, a watchpoint where they point.
    start.general[4] = random.draw() & 0xA001;
    start.general[5] = (STACK & !0xFFFF) + 4 * (7 + random.below(8));
    start.general[6] = 0x1E7;
    start.general[7] = start.general[1] & !7;
    start.general[8] = 0x1FFF;
    run(attack, &code[..length], start, u32::MAX);
    // No debug exception may fire outside the sandbox. They are masked there, but each write of a comparator
    // costs time.
    let mut quiet = start;
    quiet.debug = false;
    quiet.step = false;
    quiet.general[4] = 0;
    run(attack, &[MDSCR], quiet, 0);
}

/// FP and SIMD with any control, and with the registers switched off and on.
pub fn floating_point(attack: &mut Attack) {
    /// `MSR FPCR, x2`, `MSR FPSR, x2`, `MRS x2, FPCR`, `MSR CPACR_EL1, x2`, `FADD`, `FSQRT`.
    const STEPS: &[u32] = &[
        0xD51B_4402,
        0xD51B_4422,
        0xD53B_4402,
        0xD518_1042,
        0x4E22_D420,
        0x1E61_C020,
    ];
    let random = &mut attack.random;
    /// `MSR CPACR_EL1, x9`, ISB.
    const ON: &[u32] = &[0xD518_1049, 0xD503_3FDF];
    let mut code = [0; 6];
    for (i, word) in code.iter_mut().enumerate() {
        *word = match (ON.get(i), random.below(8)) {
            (Some(on), _) => *on,
            (None, 0) => 0x0E00_0000 | random.draw() as u32 & 0xF1FF_FFFF,
            (None, _) => pick(random, STEPS),
        };
    }
    let mut start = start(random);
    start.general[9] = 3 << 20;
    run(attack, &code, start, u32::MAX);
}
