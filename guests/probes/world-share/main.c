// SPDX-License-Identifier: Apache-2.0
//
// One side of a channel, as a VM or as a task. Each side fills its half of the memory with a pattern of its
// number and of the round. It compares the other half with the other side's pattern, and only then begins the
// next round. Neither side rings. A line tells
// of each tenth round, up to the hundredth.

#include "number.h"
#ifdef TASK
#include "task.h"
#define CALL task_call
#else
#include "board.h"
#include "uart.h"
#include "vm.h"
#define CALL vm_call
#endif

enum { CHANNEL = 1, CONSOLE = 2, HALF = 128, REPORT = 10, LAST_REPORT = 100 };

static void put(const char *text)
{
#ifdef TASK
    task_print(CONSOLE, text);
#else
    uart_print(UART0, text);
#endif
}

static uint32_t pattern(unsigned side, uint32_t round, unsigned at)
{
    return (round * 0x9e3779b9u + at) * 2654435761u ^ side;
}

// The first word of a half is the round, and is written last.
static void fill(volatile uint32_t *words, unsigned side, uint32_t round)
{
    for (unsigned at = 1; at < HALF; at++)
        words[at] = pattern(side, round, at);
    __asm__ volatile("dmb" ::: "memory");
    words[0] = round;
}

static uint32_t differences(const volatile uint32_t *words, unsigned side, uint32_t round)
{
    uint32_t wrong = 0;
    while (words[0] != round) {
    }
    __asm__ volatile("dmb" ::: "memory");
    for (unsigned at = 1; at < HALF; at++)
        wrong += words[at] != pattern(side, round, at);
    return wrong;
}

static void report(uint32_t round, uint32_t wrong)
{
    struct number room;
    put("share: round ");
    put(number_text(round, 10, &room));
    put(wrong ? ", WRONG words: " : ", wrong words: ");
    put(number_text(wrong, 10, &room));
    put("\n");
}

int main(void)
{
    uint64_t place[4] = {0};
    uint32_t wrong = 0;
#ifndef TASK
    uart_start(UART0, false);
#endif
    if (CALL(BULKHEAD_CHANNEL_PLACE, CHANNEL, 0, place) != 0)
        put("share: WRONG place\n");
    volatile uint32_t *words = (volatile uint32_t *)(uintptr_t)place[0];
    unsigned side = place[2] & 1, other = 1 - side;
    for (uint32_t round = 1;; round++) {
        // Each half is compared while its owner waits for the other one.
        if (side == 0)
            fill(words, side, round);
        wrong += differences(words + other * HALF, other, round);
        if (side == 1)
            fill(words + HALF, side, round);
        if (round % REPORT == 0 && round <= LAST_REPORT)
            report(round, wrong);
    }
}
