// SPDX-License-Identifier: Apache-2.0
//
// A hypercall of a microcontroller's partition: five arguments and four results of 64 bits in twelve
// registers, low word first (`bulkhead.h`). A task and a VM differ in the trap alone.
#ifndef CALL_H
#define CALL_H

#include <stdint.h>

// Does the call with r0 to r11 from these twelve words, and stores r0 to r11 there afterwards.
typedef void (*call_trap)(uint32_t *registers);

// A function of this kind around a trapping instruction.
#define CALL_TRAP(name, instruction)                                                                                           \
    __attribute__((naked)) static void name(uint32_t *registers)                                                               \
    {                                                                                                                          \
        (void)registers;                                                                                                       \
        __asm__("push {r4-r11, lr}\n"                                                                                          \
                "mov r12, r0\n"                                                                                                \
                "ldmia r12, {r0-r11}\n" instruction "\n"                                                                       \
                "stmia r12, {r0-r11}\n"                                                                                        \
                "pop {r4-r11, pc}");                                                                                           \
    }

// Asks for an operation on the object of a capability. Either pointer may be null. Returns 0, or a negative
// error of `bulkhead.h`.
static inline int32_t call_by(call_trap trap, uint32_t function, uint32_t capability, const uint64_t arguments[5],
                              uint64_t results[4])
{
    uint32_t registers[12] = {function, capability};
    for (int i = 0; arguments && i < 5; i++) {
        registers[2 + 2 * i] = (uint32_t)arguments[i];
        registers[3 + 2 * i] = (uint32_t)(arguments[i] >> 32);
    }
    trap(registers);
    for (int i = 0; results && i < 4; i++)
        results[i] = registers[2 + 2 * i] | (uint64_t)registers[3 + 2 * i] << 32;
    return (int32_t)registers[0];
}

#endif
