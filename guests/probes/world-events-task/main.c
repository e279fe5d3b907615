// SPDX-License-Identifier: Apache-2.0
//
// A task above a VM (`world-events`). Each round it rings the VM's three channels and sends the VM a message,
// before the VM runs again. The VM's answer says how often each line has come.

#include "task.h"

enum { LINES = 3, WORDS = 8, ROUNDS = 100, MILLISECOND = 1000000 };

static uint32_t message[WORDS] __attribute__((aligned(16)));

static void sleep(uint32_t clock, uint64_t nanoseconds)
{
    const uint64_t arguments[5] = {task_now(clock) + nanoseconds};
    task_call(BULKHEAD_TIMER_SLEEP, clock, arguments, 0);
}

// Returns the number of things that were not as they should be.
static uint32_t round_of(uint32_t number, uint32_t requests, uint32_t answers)
{
    static const char *const channels[LINES] = {"a", "b", "c"};
    const uint64_t place[5] = {(uintptr_t)message, sizeof message};
    uint32_t wrong = 0;
    for (unsigned line = 0; line < LINES; line++)
        wrong += task_call(BULKHEAD_CHANNEL_DOORBELL, task_find(channels[line]), 0, 0) != 0;
    message[0] = number;
    message[1 + LINES] = number;
    wrong += task_call(BULKHEAD_PORT_SEND, requests, place, 0) != 0;
    message[0] = 0;
    wrong += task_call(BULKHEAD_PORT_RECEIVE, answers, place, 0) != 0;
    wrong += message[0] != number || message[1 + LINES] != number + 1;
    for (unsigned line = 0; line < LINES; line++)
        wrong += message[1 + line] != number;
    return wrong;
}

int main(void)
{
    uint32_t clock = task_find("clock"), console = task_find("console");
    uint32_t requests = task_find("requests"), answers = task_find("answers");
    uint32_t wrong = 0;
    sleep(clock, MILLISECOND);
    for (uint32_t number = 1; number <= ROUNDS; number++) {
        wrong += round_of(number, requests, answers);
        // Another time in the VM's turns each time.
        sleep(clock, MILLISECOND / 2 + number * 7919);
    }
    task_print(console, "events: ");
    task_print_number(console, ROUNDS, 10);
    task_print(console, " rounds, ");
    task_print_number(console, wrong, 10);
    task_print(console, wrong ? " WRONG\n" : " wrong\n");
    return 0;
}
