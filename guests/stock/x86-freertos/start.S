/* SPDX-License-Identifier: Apache-2.0 */
/* Entry of PVH in flat protected mode (Xen docs/misc/pvh.pandoc): the segments are flat, and where their
 * descriptors are is unknown, so they are loaded anew.
 *
 * register | at the entry      | afterwards
 * ebx      | start information | not used
 * esp      | unknown           | end of the stack of main(), until tasks run */
    .section .note.pvh, "a", @note
    .balign 4
    .long   4, 4, 18                        /* XEN_ELFNOTE_PHYS32_ENTRY */
    .ascii  "Xen\0"
    .long   start

    .section .text.start, "ax"
    .code32
    .global start
start:
    cli
    cld
    lgdt    pointer
    ljmp    $0x08, $1f
1:  movl    $0x10, %eax
    movl    %eax, %ds
    movl    %eax, %es
    movl    %eax, %ss
    movl    $stack_end, %esp
    movl    $bss_start, %edi
    movl    $bss_end, %ecx
    subl    %edi, %ecx
    xorl    %eax, %eax
    rep stosb
    call    main
2:  hlt
    jmp     2b

    .section .rodata
    .balign 8
descriptors:
    .quad   0
    .quad   0x00cf9b000000ffff              /* 0x08: code */
    .quad   0x00cf93000000ffff              /* 0x10: data */
pointer:
    .word   23
    .long   descriptors
