// SPDX-License-Identifier: Apache-2.0
//! The short path: frequent privileged instructions and system calls of a VM, without the hypervisor's stack
//! and without Rust.
//!
//! The registers are where the long path wants them, the guest's processor is what the long path sees
//! ([`Context`]), and nothing is changed before it is certain that the short path can do all of an
//! instruction. So at any point the short path can hand the instruction over: it jumps to the long path,
//! which finds the guest in front of the instruction.
//!
//! One load brings eight instructions from the guest's PC on. It goes by the guest's own translation, which
//! the fetch has just used: the entry is in the buffer, and the guest may read the page. Near the end of a
//! page the load brings the aligned line of eight that the PC is in. Instructions after the first one are
//! carried out too, until one that is unknown or the end of the eight. So at most eight are carried out at a
//! trap.
//!
//! Instructions with small extended opcodes are nearly always alone, so they look at no other one
//! (`short_alone`). CTR and r1 are then where the guest has them.
//!
//! | register | meaning on the short path |
//! |---|---|
//! | r1 | `*mut Context` |
//! | r2 | the next PC of a jump |
//! | r3, r4 | the guest's CR and CTR |
//! | r7 | the guest's PC |
//! | r8 | the instruction's place in the copy of the eight |
//! | r9 | the instruction |
//! | r5, r6, r10 to r12 | free |

use crate::buffer::{FIRST_SHARED, REAL_MODE};
use crate::context::Context;
use crate::sysreg::{ESR, PID, SPRG0, SPRG1, SRR0, SRR1, ZPR};
use bulkhead_abi::hypercall::FUNCTION_BASE;
use bulkhead_arch_ppc405_core::exception::vector;
use bulkhead_arch_ppc405_core::registers::msr;
use core::arch::global_asm;
use core::mem::offset_of;

/// The way of an instruction. Its address is all that counts: only the assembly jumps there.
type Way = unsafe extern "C" fn();

unsafe extern "C" {
    fn short_unknown();
    fn short_done();
    fn short_read_state();
    fn short_write_state();
    fn short_write_enable();
    fn short_write_enable_immediate();
    fn short_write_entry();
    fn short_read_register();
    fn short_read_saved0();
    fn short_read_saved1();
    fn short_read_scratch0();
    fn short_read_scratch1();
    fn short_read_scratch2();
    fn short_read_scratch3();
    fn short_read_scratch4();
    fn short_read_scratch5();
    fn short_read_scratch6();
    fn short_read_scratch7();
    fn short_read_process();
    fn short_read_syndrome();
    fn short_read_address();
    fn short_write_saved0();
    fn short_write_saved1();
    fn short_write_scratch0();
    fn short_write_scratch1();
    fn short_write_scratch2();
    fn short_write_scratch3();
    fn short_write_scratch4();
    fn short_write_scratch5();
    fn short_write_scratch6();
    fn short_write_scratch7();
    fn short_write_process();
    fn short_write_syndrome();
    fn short_write_address();
}

/// Values of a field of ten bits.
const FIELD: usize = 1024;

/// Ways by the extended opcode of primary opcode 31, except for `mtspr`, which is found without a table.
#[unsafe(no_mangle)]
static SHORT_INSTRUCTIONS: [Way; FIELD] = {
    let mut ways = [short_unknown as Way; FIELD];
    ways[83] = short_read_state;
    ways[146] = short_write_state;
    ways[131] = short_write_enable;
    ways[163] = short_write_enable_immediate;
    ways[339] = short_read_register;
    ways[978] = short_write_entry;
    // `tlbsync`, which orders what is never out of order here.
    ways[566] = short_done;
    ways
};

/// Returns the field of a special purpose register, whose halves are exchanged in an instruction.
const fn spr(number: usize) -> usize {
    number >> 5 | (number & 31) << 5
}

/// Ways of `mfspr` by the field of the register.
#[unsafe(no_mangle)]
static SHORT_READS: [Way; FIELD] = {
    let mut ways = [short_unknown as Way; FIELD];
    ways[spr(26)] = short_read_saved0;
    ways[spr(27)] = short_read_saved1;
    ways[spr(272)] = short_read_scratch0;
    ways[spr(273)] = short_read_scratch1;
    ways[spr(274)] = short_read_scratch2;
    ways[spr(275)] = short_read_scratch3;
    ways[spr(276)] = short_read_scratch4;
    ways[spr(277)] = short_read_scratch5;
    ways[spr(278)] = short_read_scratch6;
    ways[spr(279)] = short_read_scratch7;
    ways[spr(945)] = short_read_process;
    ways[spr(980)] = short_read_syndrome;
    ways[spr(981)] = short_read_address;
    ways
};

/// Ways of `mtspr` by the field of the register.
#[unsafe(no_mangle)]
static SHORT_WRITES: [Way; FIELD] = {
    let mut ways = [short_unknown as Way; FIELD];
    ways[spr(26)] = short_write_saved0;
    ways[spr(27)] = short_write_saved1;
    ways[spr(272)] = short_write_scratch0;
    ways[spr(273)] = short_write_scratch1;
    ways[spr(274)] = short_write_scratch2;
    ways[spr(275)] = short_write_scratch3;
    ways[spr(276)] = short_write_scratch4;
    ways[spr(277)] = short_write_scratch5;
    ways[spr(278)] = short_write_scratch6;
    ways[spr(279)] = short_write_scratch7;
    ways[spr(945)] = short_write_process;
    ways[spr(980)] = short_write_syndrome;
    ways[spr(981)] = short_write_address;
    ways
};

/// Bits of MSR that the guest's way of translation depends on.
const MODE: u32 = msr::PR | msr::IR | msr::DR;

global_asm!(
    r#"
    .section .text.entry, "ax", @progbits

    // The register that bits 6 to 10 of the instruction name, as an offset.
    .macro  target into
    rlwinm  \into, 9, 13, 25, 29
    .endm

    // Goes on after an instruction: with the next one, or in the guest. Falls through if the next one may be
    // an `rfi`.
    .macro  finish
    addi    7, 7, 4
    lwzu    9, 4(8)
    rlwinm  10, 9, 6, 26, 31
    cmplwi  10, 31
    beq     .Lnext
    cmplwi  10, 19
    bne     short_resume
    .endm

    // Bits of MSR that a 405 has.
    .macro  mask_state register, with
    lis     \with, {all_high}
    ori     \with, \with, {all_low}
    and     \register, \register, \with
    .endm

.Lnext:
    rlwinm  10, 9, 1, 20, 29
    cmplwi  1, 10, 4 * 467                  // CR0 tells the first instruction from those after it
    beq     1, short_write_register
    addis   10, 10, SHORT_INSTRUCTIONS@ha
    lwz     10, SHORT_INSTRUCTIONS@l(10)
    mtctr   10
    bctr

    .global short_read_register
short_read_register:
    rlwinm  10, 9, 23, 20, 29
    addis   10, 10, SHORT_READS@ha
    lwz     10, SHORT_READS@l(10)
    mtctr   10
    bctr

    .global short_write_register
short_write_register:
    rlwinm  10, 9, 23, 20, 29
    addis   10, 10, SHORT_WRITES@ha
    lwz     10, SHORT_WRITES@l(10)
    mtctr   10
    bctr

short_read_saved0:
    lwz     12, {saved}(1)
    b       short_read
short_read_saved1:
    lwz     12, {saved} + 4(1)
    b       short_read
    .irp    number, 0, 1, 2, 3, 4, 5, 6, 7
short_read_scratch\number:
    lwz     12, {scratch} + 4 * \number(1)
    b       short_read
    .endr
short_read_process:
    lbz     12, {process}(1)
    b       short_read
short_read_syndrome:
    lwz     12, {syndrome}(1)
    b       short_read
short_read_address:
    lwz     12, {data_address}(1)
    b       short_read
short_read_state:
    lwz     12, {msr}(1)
short_read:
    target  10
    stwx    12, 10, 1
    lwz     0, 0(1)                         // it may be the register
    .global short_done
short_done:
    finish
short_maybe_return:
    xoris   10, 9, 0x4C00                   // rfi
    cmplwi  10, 0x64
    bne     short_resume

short_return:
    lwz     2, {saved}(1)
    lwz     11, {saved} + 4(1)
    lwz     6, {msr}(1)
    mask_state 11, 10
    b       short_jump

short_write_state:
    target  10
    lwzx    11, 10, 1
    lwz     6, {msr}(1)
    lwz     5, {careful}(1)
    xor     10, 11, 6
    and.    10, 10, 5
    bne     2f
short_allow:                                // only interrupts change: r11 is the new MSR
    lwz     5, {stops}(1)
    and.    5, 5, 11
    bne     short_slow
    stw     11, {msr}(1)
    b       short_done
2:  mask_state 11, 10
    addi    2, 7, 4
    b       short_jump

short_write_enable:
    target  10
    lwzx    10, 10, 1
    b       2f
short_write_enable_immediate:
    mr      10, 9
2:  lwz     11, {msr}(1)
    rlwimi  11, 10, 0, 16, 16
    b       short_allow

    // Goes to another PC and MSR: r2 and r11, while r6 is the old MSR. r5, r10 and r12 are free.
    .macro  jump    stops, slow
    and.    5, \stops, 11
    bne     \slow
    xor     10, 11, 6
    andi.   10, 10, {mode}
    beq     4f
    lwz     12, {may_change}(1)
    cmplwi  12, 0
    beq     \slow
    andi.   10, 11, {translations}
    cmplwi  10, {translations}
    lbz     12, {process}(1)
    bne     2f
    cmplwi  12, {first_shared}
    bge     \slow
    rlwinm  10, 11, 20, 29, 29              // 4 in problem state
    add     10, 10, 1
    lwz     10, {zones}(10)
    mfspr   5, {zpr}
    addi    12, 12, 1
    cmplw   5, 10
    beq     3f
    mtspr   {zpr}, 10
    xori    5, 12, 1                        // QEMU 7.2 keeps the old rights until PID changes
    mtspr   {pid}, 5
    b       3f
2:  cmplwi  10, 0
    bne     \slow
    li      12, {real_mode}
3:  mtspr   {pid}, 12
    rlwinm  10, 11, 13, 4, 4                // problem state adds ESR.PIL: see `NEVER`
    xoris   10, 10, 0x400
    stw     10, {serves}(1)
4:  stw     11, {msr}(1)
    .endm

short_jump:
    lwz     5, {stops}(1)
    jump    5, short_slow
    mr      7, 2

short_resume:                               // what is handed over is counted by the long path
    lwz     5, {instructions}(1)
    addi    5, 5, 1
    stw     5, {instructions}(1)
    mtcr    3
    mtctr   4
    mtspr   {srr0}, 7
    lmw     2, 8(1)
    lwz     1, 4(1)
    rfi

    // The first instruction is one of those that are seldom in rows: the next ones are not looked at. All
    // registers but r1 are stored, r27 to r31 are the words of the context, and r4 is not CTR.
    .global short_alone
short_alone:                                // r6 is 0
    mtmsr   6
    isync
    cmplwi  10, 4 * 146
    beq     2f
    cmplwi  10, 4 * 163
    beq     4f
    cmplwi  10, 4 * 83
    beq     6f
    cmplwi  10, 4 * 50
    beq     7f
    cmplwi  10, 4 * 131
    bne     short_hand_over
    target  10                              // `wrtee`
    cmplwi  10, 4
    beq     short_hand_over
    lwzx    10, 10, 1
    rlwimi  9, 10, 0, 16, 16
    b       4f
2:  target  10                              // `mtmsr`
    cmplwi  10, 4
    beq     short_hand_over
    lwzx    11, 10, 1
    lwz     6, {msr}(1)
    xor     10, 11, 6
    and.    10, 10, 28
    beq     5f
    addi    2, 7, 4
    b       8f
4:  lwz     11, {msr}(1)                    // `wrteei`
    rlwimi  11, 9, 0, 16, 16
5:  and.    5, 29, 11
    bne     short_hand_over
    stw     11, {msr}(1)
short_alone_done:
    lwz     5, {instructions}(1)
    addi    7, 7, 4
    addi    5, 5, 1
    stw     5, {instructions}(1)
    mtcr    3
    mtspr   {srr0}, 7
    lmw     2, 8(1)
    mfspr   1, {own_r1}
    rfi
6:  target  10                              // `mfmsr`
    cmplwi  10, 4
    beq     short_hand_over
    lwz     12, {msr}(1)
    stwx    12, 10, 1
    lwz     0, 0(1)                         // it may be the register
    b       short_alone_done
7:  lwz     2, {saved}(1)                   // `rfi`
    lwz     11, {saved} + 4(1)
    lwz     6, {msr}(1)
8:  and     11, 11, 27
    jump    29, short_hand_over
    lwz     5, {instructions}(1)
    mtspr   {srr0}, 2
    addi    5, 5, 1
    stw     5, {instructions}(1)
    mtcr    3
    lmw     2, 8(1)
    mfspr   1, {own_r1}
    rfi

    .global short_hand_over
short_hand_over:
    mfspr   2, {own_r1}
    stw     2, 4(1)
    mfctr   4
    b       short_slow

    .macro  plain label, place
short_write_\label:
    target  10
    lwzx    12, 10, 1
    stw     12, \place(1)
    finish
    b       short_maybe_return
    .endm
    plain   saved0, {saved}
    plain   saved1, {saved}+4
    plain   syndrome, {syndrome}
    plain   address, {data_address}
    plain   scratch1, {scratch}+4
    plain   scratch2, {scratch}+8
    plain   scratch3, {scratch}+12

    // A program in problem state can read these, so the CPU has the values too.
    .irp    number, 0, 4, 5, 6, 7
short_write_scratch\number:
    target  10
    lwzx    12, 10, 1
    stw     12, {scratch} + 4 * \number(1)
    mtspr   {sprg0} + \number, 12
    finish
    b       short_maybe_return
    .endr

short_write_process:
    target  10
    lwzx    12, 10, 1
    lwz     6, {msr}(1)
    andi.   10, 6, {translations}
    bne     2f
    stb     12, {process}(1)
    b       short_done
2:  lwz     5, {may_change}(1)
    cmplwi  5, 0
    rlwinm  12, 12, 0, 24, 31
    beq     short_slow
    cmplwi  12, {first_shared}
    bge     short_slow
    cmplwi  10, {translations}
    bne     short_slow
    stb     12, {process}(1)
    addi    12, 12, 1
    mtspr   {pid}, 12
    b       short_done

    .global short_unknown
short_unknown:                              // the first instruction has trapped, so the long path knows it
    beq     short_resume
    .global short_slow
short_slow:
    mr      5, 4
    mflr    4
    mfxer   6
    mfspr   8, {srr1}
    mfspr   9, {esr}
    li      0, {program}                    // it has no address: r10 is anything
    b       bulkhead_stored

    .global bulkhead_system_call
bulkhead_system_call:                       // r27 to r31 are stored
    mfcr    27
    lwz     31, {msr}(1)
    lwz     29, {may_change}(1)
    cmplwi  29, 0
    beq     5f
    andi.   28, 31, 0x4000
    bne     6f
    rlwinm  28, 0, 16, 16, 31               // in supervisor state it may be a hypercall
    cmplwi  28, {hypercall}
    beq     5f
6:  mfspr   30, {srr0}
    lwz     29, {kept}(1)
    stmw    30, {saved}(1)
    and     31, 31, 29
    stw     31, {msr}(1)
    li      29, {real_mode}
    mtspr   {pid}, 29
    lis     29, 0x400
    stw     29, {serves}(1)
    lwz     28, {vectors}(1)
    addi    28, 28, {system_call}
    mtspr   {srr0}, 28
    lwz     30, {count_calls}(1)
    addi    30, 30, 1
    stw     30, {count_calls}(1)
    mtcr    27
    lmw     27, 108(1)
    mfspr   1, {own_r1}
    rfi
5:  mtcr    27
    lmw     27, 108(1)
    stw     0, 0(1)
    li      0, {system_call}
    b       bulkhead_trap
"#,
    msr = const offset_of!(Context, cpu.msr),
    saved = const offset_of!(Context, cpu.saved),
    scratch = const offset_of!(Context, cpu.scratch),
    process = const offset_of!(Context, cpu.process),
    syndrome = const offset_of!(Context, cpu.syndrome),
    data_address = const offset_of!(Context, cpu.data_address),
    vectors = const offset_of!(Context, cpu.vectors),
    careful = const offset_of!(Context, short.words.careful),
    serves = const offset_of!(Context, short.words.serves),
    stops = const offset_of!(Context, short.words.stops),
    may_change = const offset_of!(Context, short.may_change),
    zones = const offset_of!(Context, short.zones),
    instructions = const offset_of!(Context, short.instructions),
    count_calls = const offset_of!(Context, short.calls),
    all_high = const msr::ALL >> 16,
    all_low = const msr::ALL & 0xFFFF,
    kept = const offset_of!(Context, short.words.kept),
    mode = const MODE,
    translations = const msr::IR | msr::DR,
    real_mode = const REAL_MODE,
    first_shared = const FIRST_SHARED,
    own_r1 = const SPRG1,
    srr0 = const SRR0,
    srr1 = const SRR1,
    esr = const ESR,
    pid = const PID,
    zpr = const ZPR,
    sprg0 = const SPRG0,
    program = const vector::PROGRAM,
    hypercall = const FUNCTION_BASE >> 16,
    system_call = const vector::SYSTEM_CALL,
);
