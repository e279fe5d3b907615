// SPDX-License-Identifier: Apache-2.0
//
// What a program finds in the registers at its first instruction, as a VM or as a task. It prints each register
// that is not zero. Then it leaves a pattern in all of them, and makes a fault, which starts it anew. A task has
// no floating point.

#include <stdint.h>

#include "number.h"
#ifdef TASK
#include "task.h"
#else
#include "board.h"
#include "uart.h"
#endif

#ifdef TASK
enum { FLOATING = 0 };
#define PUSH_FLOATING ""
#define LOAD_FLOATING ""
#else
enum { FLOATING = 32 };
// CPACR gives the program its floating-point registers, and changes none.
#define PUSH_FLOATING                                                                                                          \
    "ldr r0, =0xe000ed88\n"                                                                                                    \
    "mov r1, #0x00f00000\n"                                                                                                    \
    "str r1, [r0]\n"                                                                                                           \
    "dsb\n"                                                                                                                    \
    "isb\n"                                                                                                                    \
    "vpush {s0-s31}\n"
#define LOAD_FLOATING "vldm %0, {s0-s31}\n"
#endif

enum { CORE = 13, CONSOLE = 1, WORDS = 32 };
#define NOWHERE 0x80000000u
#define PATTERN 0x5a5a0000u

// The registers in the order of the two pushes below.
struct found {
    uint32_t floating[FLOATING], core[CORE], link;
};

static void put(const char *text)
{
#ifdef TASK
    task_print(CONSOLE, text);
#else
    uart_print(UART0, text);
#endif
}

static uint32_t put_others(const char *name, const uint32_t *registers, unsigned first, unsigned count)
{
    struct number room;
    uint32_t others = 0;
    for (unsigned at = first; at < count; at++) {
        if (registers[at] == 0)
            continue;
        others++;
        put("first: WRONG ");
        put(name);
        put(number_text(at, 10, &room));
        put(" is 0x");
        put(number_text(registers[at], 16, &room));
        put("\n");
    }
    return others;
}

// Leaves a pattern in every register.
__attribute__((noreturn)) static void leave(void)
{
    uint32_t words[WORDS];
    for (unsigned at = 0; at < WORDS; at++)
        words[at] = PATTERN + at;
    __asm__ volatile(LOAD_FLOATING "mov r12, %1\n"
                     "ldm %0, {r0-r11}\n"
                     "str r12, [r12]\n"
                     "1: b 1b" ::"r"(words),
                     "r"(NOWHERE)
                     : "memory", "r12");
    __builtin_unreachable();
}

// The first register of a task is the address of its startup page.
__attribute__((used, noreturn)) static void look(const struct found *found)
{
    struct number room;
#ifdef TASK
    unsigned first = 1;
    task_page = (const struct bulkhead_startup_header *)(uintptr_t)found->core[0];
#else
    unsigned first = 0;
    uart_start(UART0, false);
#endif
    uint32_t others = put_others("r", found->core, first, CORE) + put_others("s", found->floating, 0, FLOATING);
    put("first: ");
    put(number_text(others, 10, &room));
    put(" registers are not zero\n");
    leave();
}

// Keeps all registers, and goes on with their address.
#define FIRST "push {r0-r12, lr}\n" PUSH_FLOATING "mov r0, sp\nb look\n.ltorg\n"

#ifdef TASK
__attribute__((naked, noreturn, section(".text.start.first"))) void _first(void)
{
    __asm__(FIRST);
}
#else
extern uint32_t __stack_top[];

__attribute__((naked, noreturn)) void Reset_Handler(void)
{
    __asm__(FIRST);
}

__attribute__((section(".vectors"), used)) static void (*const vectors[])(void) = {(void (*)(void))__stack_top, Reset_Handler};
#endif
