// SPDX-License-Identifier: Apache-2.0
//
// A task with a timer and a UART of the board. Each life ends by a fault, while both devices ask for an
// interrupt. The next life prints `clean` if it finds nothing of that, neither in the devices nor at its
// gate. Before that it counts the events of twenty interrupts of the timer: each is one event with a cause.

#include "leftover.h"
#include "task.h"

enum { ROUNDS = 20, SOON = 200000 };

static uint32_t console, events, clock;

// Waits for an event of the devices for a while. Tells whether there was one.
static bool waits(void)
{
    const uint64_t until[5] = {task_now(clock) + SOON};
    return task_call(BULKHEAD_EVENT_WAIT, events, until, 0) == 0;
}

int main(void)
{
    console = task_find("console"), events = task_find("events"), clock = task_find("clock");
    uint32_t devices = asked();
    task_print(console, devices & 0xff ? "FAIL the timer asks\n" : "");
    task_print(console, devices >> 8 ? "FAIL the UART asks\n" : "");
    task_print(console, waits() ? "FAIL an event is pending\n" : "");
    uint32_t right = 0;
    for (int round = 0; round < ROUNDS; round++) {
        start_timer();
        right += waits() && asked() == EXPIRED;
        TIMER1->interrupt = EXPIRED;
        right += !waits();
    }
    task_print(console, right == 2 * ROUNDS ? "clean\n" : "FAIL events without a cause, or lost ones\n");
    leave();
    return 0;
}
