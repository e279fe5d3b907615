/* SPDX-License-Identifier: Apache-2.0 */
/* Entry in real mode, the vectors, and the loops that are measured. All handlers are as short as they can be,
 * and have registers of their own, which the loops keep for them:
 *
 * register | meaning
 * r24      | no meaning between two instructions of a loop
 * r25      | the instruction after a fetch that is refused
 * r26, r27 | the two words of the entry that a miss writes
 * r28      | the number of the entry
 *
 * A loop gets the number of its rounds in r3 and a further word in r4, and returns the ticks that it took. */
    .set    window, 0x4000                  /* high half of the page that has all rights */
    .set    refused, 0x6000                 /* high half of the page that lacks one */
    .set    of_4k, 0xc0                     /* TLBHI: 4K, valid */

    .macro  vector offset
    .org    vectors + \offset
    li      3, \offset
    b       unexpected
    .endm

    .section .vectors, "ax"
    .global vectors
vectors:
    vector  0x100
    vector  0x200
    /* Data storage: the store is left out. */
    .org    vectors + 0x300
    mfsrr0  24
    addi    24, 24, 4
    mtsrr0  24
    rfi
    /* Instruction storage: the fetch is left out. */
    .org    vectors + 0x400
    mtsrr0  25
    rfi
    /* External interrupt: the line stays, and MSR[EE] is off after it. */
    .org    vectors + 0x500
    mfsrr1  24
    rlwinm  24, 24, 0, 17, 15
    mtsrr1  24
    rfi
    vector  0x600
    vector  0x700
    vector  0xc00
    vector  0x1000
    /* Misses: the entry is written. */
    .org    vectors + 0x1100
    tlbwe   27, 28, 1
    tlbwe   26, 28, 0
    rfi
    .org    vectors + 0x1200
    tlbwe   27, 28, 1
    tlbwe   26, 28, 0
    rfi

    .section .text.start, "ax"
unexpected:
    lis     1, stack_end@ha
    addi    1, 1, stack_end@l
    mfsrr0  4
    stwu    3, -16(1)
    bl      on_unexpected
    b       .

    /* Saves what the caller keeps, and turns both translations on. */
    .macro  begin
    stwu    1, -80(1)
    stmw    20, 16(1)
    mflr    0
    stw     0, 84(1)
    mr      20, 3
    lis     26, window
    ori     26, 26, of_4k
    lis     27, page@ha
    addi    27, 27, page@l
    ori     27, 27, 0x300
    li      28, 5
    tlbwe   27, 28, 1
    tlbwe   26, 28, 0
    mr      29, 4
    li      30, 0
    li      31, 0x30
    mtmsr   31
    isync
    mftb    22
    .endm
    .macro  end
    mftb    23
    li      31, 0
    mtmsr   31
    isync
    subf    3, 22, 23
    lwz     0, 84(1)
    mtlr    0
    lmw     20, 16(1)
    addi    1, 1, 80
    blr
    .endm

    .section .text.loops, "ax"
    /* Makes entry r4 invalid in each round, and calls the page. */
    .global fetch_misses
fetch_misses:
    begin
    lis     21, window
    mtctr   21
1:  tlbwe   30, 29, 0
    isync
    bctrl
    addic.  20, 20, -1
    bne     1b
    end
    /* Makes entry r4 invalid in each round, and loads from the page. */
    .global load_misses
load_misses:
    begin
    lis     21, window
1:  tlbwe   30, 29, 0
    isync
    lwz     23, 0(21)
    addic.  20, 20, -1
    bne     1b
    end
    /* Stores to the address r4. */
    .global stores
stores:
    begin
    lis     21, nothing@ha
    lwz     23, nothing@l(21)
1:  stw     23, 4(29)
    addic.  20, 20, -1
    bne     1b
    end
    /* Calls the address r4. */
    .global fetches
fetches:
    begin
    mtctr   29
    lis     25, 2f@ha
    addi    25, 25, 2f@l
1:  bctrl
2:  addic.  20, 20, -1
    bne     1b
    end
    /* Lets interrupts through if r4 is not 0. */
    .global interrupts
interrupts:
    begin
    cmpwi   cr7, 29, 0
1:  beq     cr7, 2f
    wrteei  1
    nop
2:  addic.  20, 20, -1
    bne     1b
    end

    .section .text.page, "ax"
    .balign 4096
page:
    blr
nothing:
    .long   0
    .balign 4096
    .global page
