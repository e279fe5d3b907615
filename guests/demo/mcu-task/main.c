// SPDX-License-Identifier: Apache-2.0
//
// A task in C: it looks itself up, sleeps three times a millisecond, asks for something it may not have, and
// ends.

#include "task.h"

enum { ROUNDS = 3, ROUND = 1000000, NOBODY = 63 };

static uint32_t console;
// An initial value that the start-up copies.
static char digit[] = "0";

static void number(uint32_t value)
{
    digit[0] = (char)('0' + value % 10);
    task_print(console, digit);
}

static int rounds(uint32_t clock)
{
    uint64_t now[4], wake[5] = {0};
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        if (task_call(BULKHEAD_TIMER_NOW, clock, 0, now) != 0)
            return 0;
        wake[0] = now[0] + ROUND;
        if (task_call(BULKHEAD_TIMER_SLEEP, clock, wake, 0) != 0 || task_call(BULKHEAD_TIMER_NOW, clock, 0, now) != 0)
            return 0;
        task_print(console, "task: round ");
        number(round);
        task_print(console, now[0] >= wake[0] ? ", slept long enough\n" : ", WOKEN TOO EARLY\n");
    }
    return 1;
}

int main(void)
{
    console = task_find("console");
    task_print(console, "task: a program in C\n");
    uint64_t version[4] = {0};
    if (task_call(BULKHEAD_VERSION, 0, 0, version) != 0 || version[0] != BULKHEAD_ABI_VERSION)
        task_print(console, "task: WRONG VERSION\n");
    uint64_t what = 0;
    if (task_look_up("clock", &what) != task_find("clock") || what >> 32 != BULKHEAD_KIND_TIMER)
        task_print(console, "task: WRONG LOOK-UP\n");
    if (!rounds(task_find("clock")))
        task_print(console, "task: NO CLOCK\n");
    int32_t error = task_call(BULKHEAD_TIMER_NOW, NOBODY, 0, 0);
    task_print(console, error == BULKHEAD_ERROR_NO_CAPABILITY ? "task: refused as it must be\n" : "task: NOT REFUSED\n");
    return 0;
}
