// SPDX-License-Identifier: Apache-2.0
//! The short path of translations: misses and storage interrupts of a VM's programs, and `tlbwe`.
//!
//! An entry of the guest's with a page of 4K has at most one real one, and its place is known (`Buffer`). So
//! no code has to look for what becomes invalid. A miss says that the present process has no entry for the
//! address, so a new one for that page is the only one.
//!
//! The short path hands a miss over as long as `may_change` is 0, in other modes than the translated one, for
//! processes that share a real one, and if the guest's page is not of 4K, is of zone 15, or is outside the
//! partition's largest stretch. It hands `tlbwe` over if there are other real entries of the guest's entry.
//!
//! A storage interrupt is the guest's own if the guest's first entry for the address, and the zones of the
//! guest's present mode, refuse the access. The real ZPR has these zones, except for zone 15. The short path
//! hands over everything else, above all an access that the guest allows and the partition's memory does not.
//!
//! | register | meaning at a miss |
//! |---|---|
//! | r1 | `*mut Context` |
//! | r20 | the guest's CR |
//! | r21 | the guest's MSR |
//! | r24 | the address |
//! | r25 | the guest's process |
//! | r27, r28 | entries that may translate the address, and have not been looked at |
//! | r29 | the number of the first entry in r27 |
//! | r30, r31 | an entry's number, and its place relative to the first one's, from r1 on |
//! | r22, r23, r26 | free |
//!
//! At a storage interrupt r18, r26 and r30 are free later on, r19 is the right that the access needs, r22 the
//! syndrome, and r23 the vector's offset.
//!
//! The registers of `tlbwe` are the same as in [`short`](super::short); r2, r5, r6 and r10 to r12 are free.

use crate::buffer::{Buffer, DIRECT, FIRST_SHARED, NOBODY, REAL_MODE, Used};
use crate::context::{Context, HOST_STACK};
use crate::machine::Machine;
use crate::sysreg::{DEAR, ESR, PID, SPRG1, SRR0, ZPR};
use bulkhead_arch_ppc405_core::exception::vector;
use bulkhead_arch_ppc405_core::fill::OWN_ZONE;
use bulkhead_arch_ppc405_core::registers::{esr, msr};
use bulkhead_arch_ppc405_core::tlb::{EXECUTE, Entry, OTHERS, Tlb, VALID, WRITE};
use core::arch::global_asm;
use core::mem::offset_of;

/// Offsets in the context.
const TLB: usize = offset_of!(Context, cpu.tlb);
const SETS: usize = TLB + offset_of!(Tlb, sets);
const ENTRIES: usize = TLB + offset_of!(Tlb, entries);
/// Offsets in the machine.
const BUFFER: usize = offset_of!(Machine, buffer);
const USED: usize = BUFFER + offset_of!(Buffer, used);

const _: () = assert!(size_of::<Entry>() == 12 && size_of::<Used>() == 12);
const _: () = assert!(USED < 0x6000 && ENTRIES < 0x6000, "they are displacements");

global_asm!(
    r#"
    .section .text.entry, "ax", @progbits

    // Finds the guest's first entry for the address in r24, for a guest that translates and whose buffer may
    // change. r20 becomes CR, r21 MSR, r25 the process, r26 the logarithm of the page's size, r30 the entry's
    // number, r31 what is added to its place. Goes to 3 without an entry, to 8 if another way has to be
    // taken.
    .macro  find_entry scratch
    mfcr    20
    lwz     21, {msr}(1)
    lwz     26, {may_change}(1)
    lbz     25, {process}(1)
    rlwinm  27, 21, 28, 30, 31              // MSR.IR and MSR.DR
    cmplwi  26, 0
    beq     8f
    cmplwi  27, 3
    bne     8f
    cmplwi  25, {first_shared}
    bge     8f
    rlwinm  26, 24, 23, 23, 28
    add     26, 26, 1
    lwz     27, {sets}(26)
    lwz     28, {sets} + 4(26)
    lwz     29, {others}(1)
    lwz     30, {others} + 4(1)
    or      27, 27, 29
    or      28, 28, 30
    li      29, 0
1:  cntlzw  30, 27
    cmplwi  30, 32
    beq     3f
    lis     31, 0x8000
    srw     31, 31, 30
    andc    27, 27, 31
    add     30, 30, 29
    mulli   31, 30, 12
    add     31, 31, 1
    lbz     26, {entries} + {entry_process}(31)
    lwz     \scratch, {entries}(31)
    cmplwi  26, 0
    beq     2f
    cmplw   26, 25
    bne     1b
2:  rlwinm  26, \scratch, 26, 28, 30
    addi    26, 26, 10                      // logarithm of the page's size
    xor     \scratch, \scratch, 24
    srw.    \scratch, \scratch, 26
    bne     1b
    .endm

    // Enters a handler of the guest in real mode, from the PC and the MSR in r21. r22 becomes the address of
    // the guest's vectors.
    .macro  enter_handler
    mfspr   22, {srr0}
    stw     22, {saved}(1)
    stw     21, {saved} + 4(1)
    lwz     22, {kept}(1)
    and     21, 21, 22
    stw     21, {msr}(1)
    li      22, {real_mode}
    mtspr   {pid}, 22
    lis     22, 0x400
    stw     22, {serves}(1)
    lwz     22, {vectors}(1)
    .endm

    .macro  miss name, register, offset, is_data
    .global bulkhead_\name\()_miss
bulkhead_\name\()_miss:                     // r20 to r31 are stored
    mfspr   24, \register
    find_entry 22
    cmplwi  26, 12
    bne     8f
    lwz     22, {entries} + {entry_low}(31)
    rlwinm  23, 22, 28, 28, 31
    cmplwi  23, {own_zone}
    beq     8f
    rlwinm  23, 22, 0, 0, 19
    lwz     26, {first}(1)
    lwz     27, {last}(1)
    lwz     28, {distance}(1)
    subf    26, 26, 23
    cmplw   26, 27
    bgt     8f
    b       bulkhead_fill
3:  cmplwi  29, 0
    li      29, 32
    mr      27, 28
    beq     1b
    .if     \is_data
    mfspr   23, {esr}
    rlwinm  23, 23, 0, {store}, {store}
    stw     23, {syndrome}(1)
    stw     24, {data_address}(1)
    .endif
    enter_handler
    addi    22, 22, \offset
    mtspr   {srr0}, 22
    b       bulkhead_missed
8:  mtcr    20
    lmw     20, 80(1)
    stw     0, 0(1)
    li      0, \offset
    b       bulkhead_trap
    .endm

    miss    data, 981, {data_miss}, 1
    miss    instruction, 26, {instruction_miss}, 0

bulkhead_fill:                              // r22 is the entry's low word, r28 what the bus adds to addresses
    rlwinm  22, 22, 0, 22, 19
    add     22, 22, 28
    lwz     26, {host_stack}(1)
    lwz     26, 8(26)                       // the machine
    add     31, 26, 30
    lbz     29, {places}(31)
    mulli   28, 29, 12
    add     28, 28, 26
    lbz     23, {used_owner}(28)
    cmplw   23, 30
    beq     1f                              // the same entry, for another process
    lwz     29, {next_direct}(26)
    addi    23, 29, 1
    cmplwi  23, {direct}
    blt     2f
    li      23, 0
2:  stw     23, {next_direct}(26)
    stb     29, {places}(31)
    mulli   28, 29, 12
    add     28, 28, 26
1:  tlbwe   22, 29, 1
    rlwinm  24, 24, 0, 0, 19
    ori     23, 24, {valid_4k}
    tlbwe   23, 29, 0
    stw     24, {used}(28)
    ori     24, 24, 0xFFF
    stw     24, {used_last}(28)
    addi    25, 25, 1
    stb     25, {used_process}(28)
    stb     30, {used_owner}(28)
    li      23, 1
    lwz     27, {valid} + 4(26)
    lwz     28, {valid}(26)
    slw     24, 23, 29                      // 0 from 32 on
    or      27, 27, 24
    subi    29, 29, 32
    slw     24, 23, 29                      // 0 below 32
    or      28, 28, 24
    stw     27, {valid} + 4(26)
    stw     28, {valid}(26)
bulkhead_missed:
    lwz     23, {count_misses}(1)
    addi    23, 23, 1
    stw     23, {count_misses}(1)
    mtcr    20
    lmw     20, 80(1)
    mfspr   1, {own_r1}
    rfi

bulkhead_data_storage:                      // r18 to r31 are stored
    mfspr   22, {esr}
    mfspr   24, {dear}
    li      23, {data_storage}
    rlwinm  22, 22, 0, {store}, {store}
    rlwinm  19, 22, {store_to_write}, {write}, {write}
    b       1f
bulkhead_instruction_storage:
    mfspr   24, {srr0}
    li      23, {instruction_storage}
    li      22, 0
    li      19, {execute}
1:  find_entry 18
    lwz     18, {entries} + {entry_low}(31)
    rlwinm  26, 18, 29, 27, 30              // twice the zone
    cmplwi  26, 2 * {own_zone}
    beq     8f
    mfspr   30, {zpr}                       // of the present mode
    addi    26, 26, 2
    rlwnm.  30, 30, 26, 30, 31
    bne     4f
    oris    22, 22, {zone} >> 16
    b       5f
4:  cmplwi  30, 3
    beq     8f
    andc.   18, 19, 18                      // the right that lacks; a load needs none
    beq     8f
5:  stw     22, {syndrome}(1)
    cmplwi  23, {instruction_storage}
    beq     6f
    stw     24, {data_address}(1)
6:  enter_handler
    add     22, 22, 23
    mtspr   {srr0}, 22
    lwz     18, 72(1)
    lwz     19, 76(1)
    b       bulkhead_missed
3:  cmplwi  29, 0
    li      29, 32
    mr      27, 28
    beq     1b
8:  stw     0, 0(1)
    mr      0, 23
    mtcr    20
    lmw     18, 72(1)
    b       bulkhead_trap

    // The word of the set that an entry with this high word is in. r2 is the word's place in the set.
    .macro  find_set into, high
    rlwinm  \into, \high, 0, 22, 24
    cmplwi  1, \into, 0x80
    rlwinm  \into, \high, 23, 23, 28
    beq     1, 9f
    li      \into, 8 * {number_of_others}
9:  add     \into, \into, 2
    add     \into, \into, 1
    .endm

    .global short_write_entry
short_write_entry:                          // CR0 is not ours here, see `short`
    rlwinm  10, 9, 18, 25, 29
    lwzx    11, 10, 1
    rlwinm  11, 11, 0, 26, 31               // number of the entry
    rlwinm  10, 9, 21, 27, 31               // half of the entry
    cmplwi  1, 10, 1
    bgt     1, short_slow
    lwz     6, {host_stack}(1)
    lwz     6, 8(6)
    rlwinm  2, 11, 1, 25, 30
    add     2, 2, 6
    lhz     12, {made_of}(2)
    cmplwi  1, 12, 0
    bne     1, short_slow
    add     2, 6, 11
    lbz     2, {places}(2)
    mulli   5, 2, 12
    add     5, 5, 6
    lbz     12, {used_owner}(5)
    cmplw   1, 12, 11
    bne     1, 2f
    li      12, 0
    tlbwe   12, 2, 0
    li      12, {nobody}
    stb     12, {used_owner}(5)
2:  rlwinm  12, 9, 13, 25, 29
    lwzx    12, 12, 1                       // value
    mulli   5, 11, 12
    add     5, 5, 1
    cmplwi  1, 10, 1
    bne     1, 3f
    stw     12, {entries} + {entry_low}(5)
    b       short_done
3:  lis     6, 0x8000
    rlwinm  2, 11, 0, 27, 31
    srw     6, 6, 2                         // bit of the entry
    rlwinm  2, 11, 29, 29, 29               // place of its word
    lwz     11, {entries}(5)
    find_set 10, 11
    lwz     11, {sets}(10)
    andc    11, 11, 6
    stw     11, {sets}(10)
    rlwinm  12, 12, 0, 0, 27
    stw     12, {entries}(5)
    lbz     10, {process}(1)
    stb     10, {entries} + {entry_process}(5)
    rlwinm  10, 12, 0, 25, 25
    cmplwi  1, 10, 0
    beq     1, short_done
    find_set 10, 12
    lwz     12, {sets}(10)
    or      12, 12, 6
    stw     12, {sets}(10)
    b       short_done
"#,
    msr = const offset_of!(Context, cpu.msr),
    saved = const offset_of!(Context, cpu.saved),
    process = const offset_of!(Context, cpu.process),
    syndrome = const offset_of!(Context, cpu.syndrome),
    data_address = const offset_of!(Context, cpu.data_address),
    vectors = const offset_of!(Context, cpu.vectors),
    serves = const offset_of!(Context, short.words.serves),
    may_change = const offset_of!(Context, short.may_change),
    first = const offset_of!(Context, short.main.guest),
    last = const offset_of!(Context, short.main.last),
    distance = const offset_of!(Context, short.main.distance),
    count_misses = const offset_of!(Context, short.misses),
    sets = const SETS,
    others = const SETS + 8 * OTHERS,
    number_of_others = const OTHERS,
    entries = const ENTRIES,
    entry_low = const offset_of!(Entry, low),
    entry_process = const offset_of!(Entry, process),
    used = const USED + offset_of!(Used, first),
    used_last = const USED + offset_of!(Used, last),
    used_process = const USED + offset_of!(Used, process),
    used_owner = const USED + offset_of!(Used, owner),
    valid = const BUFFER + offset_of!(Buffer, valid),
    made_of = const BUFFER + offset_of!(Buffer, made_of),
    places = const BUFFER + offset_of!(Buffer, places),
    next_direct = const BUFFER + offset_of!(Buffer, next_direct),
    host_stack = const HOST_STACK,
    direct = const DIRECT,
    nobody = const NOBODY,
    own_zone = const OWN_ZONE,
    valid_4k = const VALID | 0x80,
    store = const esr::DST.leading_zeros(),
    store_to_write = const WRITE.trailing_zeros() + 32 - esr::DST.trailing_zeros(),
    write = const WRITE.leading_zeros(),
    execute = const EXECUTE,
    zone = const esr::DIZ,
    kept = const offset_of!(Context, short.words.kept),
    real_mode = const REAL_MODE,
    first_shared = const FIRST_SHARED,
    own_r1 = const SPRG1,
    srr0 = const SRR0,
    esr = const ESR,
    dear = const DEAR,
    pid = const PID,
    zpr = const ZPR,
    data_storage = const vector::DATA_STORAGE,
    instruction_storage = const vector::INSTRUCTION_STORAGE,
    data_miss = const vector::DATA_MISS,
    instruction_miss = const vector::INSTRUCTION_MISS,
);
const _: () = assert!(msr::IR | msr::DR == 0x30);
