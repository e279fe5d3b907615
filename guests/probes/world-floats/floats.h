// SPDX-License-Identifier: Apache-2.0
//
// Rounds with a pattern in all registers of floating point. The compiler uses none of them here, so each change
// of one is the hypervisor's doing, or another partition's.
#ifndef FLOATS_H
#define FLOATS_H

#include <stdbool.h>
#include <stdint.h>

// s0 to s31 and FPSCR.
enum { FLOATS = 33, ROUNDS = 40, SPINS = 6000 };

__attribute__((naked)) static void floats_load(const uint32_t words[FLOATS])
{
    (void)words;
    __asm__(".fpu fpv5-sp-d16\n"
            "vldmia r0!, {s0-s31}\n"
            "ldr r1, [r0]\n"
            "vmsr fpscr, r1\n"
            "bx lr");
}

__attribute__((naked)) static void floats_store(uint32_t words[FLOATS])
{
    (void)words;
    __asm__(".fpu fpv5-sp-d16\n"
            "vstmia r0!, {s0-s31}\n"
            "vmrs r1, fpscr\n"
            "str r1, [r0]\n"
            "bx lr");
}

// Tells whether all registers are as after a reset.
static bool floats_are_new(void)
{
    static uint32_t words[FLOATS];
    uint32_t all = 0;
    floats_store(words);
    for (int i = 0; i < FLOATS; i++)
        all |= words[i];
    return all == 0;
}

// Leaves a pattern in the registers for a while. Tells whether it is there afterwards.
static bool floats_stay(uint32_t seed)
{
    static uint32_t before[FLOATS], after[FLOATS];
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < FLOATS; i++)
        before[i] = seed * 2654435761u + i * 40503u + 1;
    // Flags and the direction of rounding.
    before[FLOATS - 1] = (seed & 0xf) << 28 | (seed & 3) << 22;
    floats_load(before);
    for (volatile uint32_t spin = 0; spin < SPINS; spin++) {
    }
    floats_store(after);
    for (int i = 0; i < FLOATS; i++)
        wrong |= before[i] ^ after[i];
    return wrong == 0;
}

#endif
