/* SPDX-License-Identifier: Apache-2.0 */
/* Entry in real mode, and the vectors. A handler of the kernel finds the frame on the stack that its portasm.S
 * describes, can exchange the stack with the frame for another task's, and returns. No task uses USPRG0, so it is
 * not in the frame.
 *
 * register | at the entry | afterwards
 * r1       | unknown      | end of the stack of main(), until tasks run
 * r3       | device tree  | not used */
    .set    frame, 160
    .set    at_state, 8
    .set    at_pc, 12
    .set    at_link, 16
    .set    at_count, 20
    .set    at_xer, 24
    .set    at_condition, 28
    .set    at_r0, 36
    .set    at_r2, 40
    .set    at_r3, 44

    .macro  vector offset
    .org    vectors + \offset
    stwu    1, -frame(1)
    stw     0, at_r0(1)
    li      0, \offset
    b       interrupted
    .endm

    .section .vectors, "ax"
    .global vectors
vectors:
    vector  0x100
    vector  0x200
    vector  0x300
    vector  0x400
    vector  0x500
    vector  0x600
    vector  0x700
    vector  0xc00
    vector  0x1000
    vector  0x1100
    vector  0x1200

    .section .text.start, "ax"
interrupted:
    stw     2, at_r2(1)
    stmw    3, at_r3(1)
    mfsrr0  3
    mfsrr1  4
    /* A task that waited goes on: MSR[WE] is off. */
    rlwinm  4, 4, 0, 14, 12
    mflr    5
    mfctr   6
    mfxer   7
    mfcr    8
    stw     3, at_pc(1)
    stw     4, at_state(1)
    stw     5, at_link(1)
    stw     6, at_count(1)
    stw     7, at_xer(1)
    stw     8, at_condition(1)
    /* A handler and its argument are 8 bytes. */
    rlwinm  4, 0, 27, 0, 28
    addis   4, 4, handlers@ha
    addi    4, 4, handlers@l
    lwz     5, 0(4)
    lwz     3, 4(4)
    cmpwi   5, 0
    beq     1f
    mtlr    5
    blrl
    lwz     3, at_pc(1)
    lwz     4, at_state(1)
    lwz     5, at_link(1)
    lwz     6, at_count(1)
    lwz     7, at_xer(1)
    lwz     8, at_condition(1)
    mtsrr0  3
    mtsrr1  4
    mtlr    5
    mtctr   6
    mtxer   7
    mtcr    8
    lmw     3, at_r3(1)
    lwz     2, at_r2(1)
    lwz     0, at_r0(1)
    addi    1, 1, frame
    rfi
1:  mr      3, 0
    lwz     4, at_pc(1)
    mfdear  5
    bl      on_exception
    b       .

    /* QEMU 7.2 has no USPRG0, which the port writes when it starts the first task, behind SRR0 and SRR1. A
     * processor and a VM have USPRG0. The frame of the task is behind this one, so it is loaded here. */
    .global on_program
on_program:
    lwz     5, at_pc(1)
    lwz     5, 0(5)
    xoris   5, 5, 0x7c00
    cmplwi  5, 0x43a6                       /* mtspr 0x100, r0 */
    li      0, 0x700
    bne     1b
    addi    1, 1, frame
    blr
