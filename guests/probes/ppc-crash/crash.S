// SPDX-License-Identifier: Apache-2.0
//
// A VM on a PowerPC 405 that reads memory which is not its own, at once. Its payload ends at an address
// that is no multiple of 8, from where on a start clears its memory.
    .globl  _start
_start:
    lis     3, 0x4000
    lwz     4, 0(3)
1:  b       1b
