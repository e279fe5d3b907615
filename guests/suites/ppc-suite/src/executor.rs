// SPDX-License-Identifier: Apache-2.0
//! Runs one instruction, or a row of them, with registers of choice, and catches all that comes of it.
//!
//! The state before and after is in the lowest 8K of RAM, where the code reaches it without a register. One
//! instruction is at [`CODE`]. After it is a branch out (supervisor state), or a system call.
//!
//! | entry | register | in | out |
//! |---|---|---|---|
//! | `suite_run` | r3 | address of the instruction | |
//! | | r4 | MSR to run with | |
//! | | r5 | 0: go there by a branch, with the MSR as it is | |
//! | | r6 | address at which the instruction is with that MSR | |
//! | vectors | | all registers the instruction's | as at the call |

use core::arch::global_asm;
use core::ptr::{with_exposed_provenance, with_exposed_provenance_mut};

/// Place of the instruction.
pub const CODE: u32 = 0x2000;
/// The word that `suite_run` gets into supervisor state again with.
const SYSTEM_CALL: u32 = 0x4400_0002;
/// Words of a state: general registers, CR, XER, CTR and LR, the vector, SRR0 to SRR3, ESR, DEAR and MSR.
const WORDS: usize = 44;
const BEFORE: usize = 0x1000;
const AFTER: usize = 0x1100;

global_asm!(
    r#"
    .pushsection .text.suite, "ax", @progbits
    .balign 0x10000
suite_vectors:
    .macro  catch offset
    .org    suite_vectors + \offset
    stmw    0, 0x1100(0)
    li      0, \offset
    b       suite_caught
    .endm
    .irp    offset, 0x100, 0x200, 0x300, 0x400, 0x500, 0x600, 0x700, 0x800, 0xC00
    catch   \offset
    .endr
    .irp    offset, 0x1000, 0x1010, 0x1020, 0x1100, 0x1200, 0x2000
    catch   \offset
    .endr
suite_after:
    stmw    0, 0x1100(0)
    li      0, 0
suite_caught:
    stw     0, 0x1190(0)
    mfcr    3
    mfxer   4
    mfctr   5
    mflr    6
    stw     3, 0x1180(0)
    stw     4, 0x1184(0)
    stw     5, 0x1188(0)
    stw     6, 0x118C(0)
    mfspr   3, 26
    mfspr   4, 27
    mfspr   5, 990
    mfspr   6, 991
    mfspr   7, 980
    mfspr   8, 981
    mfmsr   9
    stw     3, 0x1194(0)
    stw     4, 0x1198(0)
    stw     5, 0x119C(0)
    stw     6, 0x11A0(0)
    stw     7, 0x11A4(0)
    stw     8, 0x11A8(0)
    stw     9, 0x11AC(0)
    li      3, 0
    mtmsr   3
    isync
    lwz     0, 0x1280(0)
    mtlr    0
    lwz     0, 0x1284(0)
    mtcr    0
    lmw     1, 0x1204(0)
    lwz     0, 0x1200(0)
    blr

    .global suite_run
suite_run:
    stmw    0, 0x1200(0)
    mflr    0
    stw     0, 0x1280(0)
    mfcr    0
    stw     0, 0x1284(0)
    li      7, 32
    li      8, 64
    dcbst   0, 3
    dcbst   7, 3
    dcbst   8, 3
    sync
    icbi    0, 3
    icbi    7, 3
    icbi    8, 3
    sync
    isync
    mtlr    3
    cmpwi   5, 0
    beq     1f
    mtspr   26, 6
    mtspr   27, 4
1:  lwz     0, 0x1084(0)
    mtxer   0
    lwz     0, 0x1088(0)
    mtctr   0
    cmpwi   5, 0
    lwz     0, 0x1080(0)
    beq     3f
    mtcr    0
    lmw     1, 0x1004(0)
    lwz     0, 0x1000(0)
    rfi
3:  mtcr    0
    lmw     1, 0x1004(0)
    lwz     0, 0x1000(0)
    blr
    .popsection
"#
);

unsafe extern "C" {
    fn suite_run(code: u32, state: u32, returns: u32, pc: u32);
    fn suite_after();
    fn suite_vectors();
}

/// The registers after an instruction, and the way in which it ended.
#[derive(Clone, Copy, Debug)]
pub struct State(pub [u32; WORDS]);

impl State {
    /// Returns the vector; 0 if the instruction ended without an interrupt.
    pub fn vector(&self) -> u32 {
        self.0[36]
    }
}

/// The registers before an instruction: general ones, CR, XER and CTR.
pub type Input = [u32; 35];

/// Returns the address of the vectors, for EVPR.
pub fn vectors() -> u32 {
    suite_vectors as *const () as usize as u32
}

/// The place of a row, and the way there.
pub struct Place {
    /// Its address in RAM, the start of a word.
    pub code: u32,
    /// Its address with the MSR that it runs with.
    pub pc: u32,
    /// MSR to run with, by `rfi`. `None`: as it is, in supervisor state.
    pub state: Option<u32>,
}

impl Place {
    /// Returns an address without translation, in supervisor state.
    pub const fn real(code: u32) -> Self {
        Self {
            code,
            pc: code,
            state: None,
        }
    }
}

/// Runs an instruction in supervisor state, with the MSR as it is, or by `rfi` with another one.
pub fn run(instruction: u32, input: &Input, state: Option<u32>) -> State {
    let place = Place {
        state,
        ..Place::real(CODE)
    };
    run_row(&[instruction], input, &place)
}

/// Runs a row of at most sixteen instructions.
pub fn run_row(row: &[u32], input: &Input, place: &Place) -> State {
    let after = suite_after as *const () as usize as u32;
    let end = place.code + 4 * row.len() as u32;
    let way_out = match place.state {
        None => 0x4800_0000 | (after.wrapping_sub(end) & 0x03FF_FFFC),
        Some(_) => SYSTEM_CALL,
    };
    for (number, word) in row.iter().enumerate() {
        store(place.code as usize + 4 * number, *word);
    }
    store(end as usize, way_out);
    for (number, word) in input.iter().enumerate() {
        store(BEFORE + 4 * number, *word);
    }
    // SAFETY: the code puts all registers of a call back after any instruction: its operands keep it
    // from changing memory that the program uses.
    unsafe {
        suite_run(
            place.code,
            place.state.unwrap_or(0),
            place.state.is_some().into(),
            place.pc,
        )
    }
    let mut after = State([0; WORDS]);
    for (number, word) in after.0.iter_mut().enumerate() {
        *word = load(AFTER + 4 * number);
    }
    after
}

fn store(address: usize, word: u32) {
    // SAFETY: RAM below the program, which no other code uses.
    unsafe { with_exposed_provenance_mut::<u32>(address).write_volatile(word) }
}

fn load(address: usize) -> u32 {
    // SAFETY: as above.
    unsafe { with_exposed_provenance::<u32>(address).read_volatile() }
}
