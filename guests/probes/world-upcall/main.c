// SPDX-License-Identifier: Apache-2.0
//
// A task that keeps values in all registers and in the flags while an upcall interrupts it: at a time, or with
// an event. Its handler uses every register, and lets the task go on where it was. Then the task looks at each
// value. Instructions that depend on the flags (an IT block) show that the state of such a block is kept too.
//
// The events are rings of a channel that another task makes.

#include "task.h"

enum { FLAGS, R0, R5 = R0 + 5, R8, R9, R10, R11, R12, LR, COUNT };
enum { BY_TIME = 200, BY_EVENT = 20, SHORTEST = 20000, STEPS = 64, STEP = 3001 };
#define APSR_FLAGS 0xf8000000u
#define APSR_Z 0x40000000u

static struct {
    uint32_t gate, clock, console;
} own;
static uint64_t place[BULKHEAD_UPCALL_WORDS] __attribute__((aligned(16)));
static volatile uint32_t upcalls, wrong_places;

// Loads r0 to r5, r8 to r12, lr and the flags from the words at `given`, waits until `flag` is not zero, and
// stores what they are then at `seen`. Where Z is set r8 and r10 count, otherwise r9 and r11.
__attribute__((naked, noinline)) static void wait(const uint32_t *given, uint32_t *seen, volatile uint32_t *flag)
{
    (void)given, (void)seen, (void)flag;
    __asm__("push {r1, r4-r11, lr}\n"
            "mov r6, r2\n"
            "mov r7, r0\n"
            "ldr r0, [r7]\n"
            "msr apsr_nzcvq, r0\n"
            "ldr r0, [r7, #4]\n"
            "ldr r1, [r7, #8]\n"
            "ldr r2, [r7, #12]\n"
            "ldr r3, [r7, #16]\n"
            "ldr r4, [r7, #20]\n"
            "ldr r5, [r7, #24]\n"
            "ldr r8, [r7, #28]\n"
            "ldr r9, [r7, #32]\n"
            "ldr r10, [r7, #36]\n"
            "ldr r11, [r7, #40]\n"
            "ldr r12, [r7, #44]\n"
            "ldr lr, [r7, #48]\n"
            "2:\n"
            "ldr r7, [r6]\n"
            "itete eq\n"
            "addeq r8, r8, #1\n"
            "addne r9, r9, #1\n"
            "addeq r10, r10, #1\n"
            "addne r11, r11, #1\n"
            "cbnz r7, 1f\n"
            "b 2b\n"
            "1: ldr r7, [sp]\n"
            "str r0, [r7, #4]\n"
            "mrs r0, apsr\n"
            "str r0, [r7]\n"
            "str r1, [r7, #8]\n"
            "str r2, [r7, #12]\n"
            "str r3, [r7, #16]\n"
            "str r4, [r7, #20]\n"
            "str r5, [r7, #24]\n"
            "str r8, [r7, #28]\n"
            "str r9, [r7, #32]\n"
            "str r10, [r7, #36]\n"
            "str r11, [r7, #40]\n"
            "str r12, [r7, #44]\n"
            "str lr, [r7, #48]\n"
            "pop {r1, r4-r11, pc}\n");
}

__attribute__((used)) static void look_at_place(const uint64_t *found)
{
    if (found != place)
        wrong_places++;
    upcalls++;
}

// The upcall: r0 is the address of the place, which has r0 to r9. The handler keeps the others itself. The call
// at its end goes on from the place, and uses r0 to r9.
__attribute__((naked)) static void on_upcall(void)
{
    __asm__("push {r10-r12, lr}\n"
            "bl look_at_place\n"
            "mvn r10, #0\n"
            "adds r12, r10, #1\n"
            "pop {r10-r12, lr}\n"
            "ldr r1, =%c1\n"
            "ldr r1, [r1]\n"
            "ldr r2, =%c2\n"
            "ldr r0, =%c0\n"
            "movs r3, #0\n"
            "movs r4, #0\n"
            "movs r5, #0\n"
            "movs r6, #0\n"
            "movs r7, #0\n"
            "mov r8, r7\n"
            "mov r9, r7\n"
            "svc #0\n"
            "udf #1\n"
            ".ltorg\n" ::"i"(BULKHEAD_EVENT_UPCALL),
            "i"(&own.gate), "i"(place));
}

static uint32_t draw(void)
{
    static uint32_t state = 1;
    return state = state * 1664525u + 1013904223u;
}

// Makes one round. Returns whether an event made the upcall, and adds the differences to `wrong`.
static int is_by_event(uint64_t until, uint32_t *wrong)
{
    uint32_t given[COUNT], seen[COUNT] = {0};
    uint64_t results[4] = {0}, arguments[5] = {0, (uintptr_t)on_upcall, (uintptr_t)place, until};
    for (unsigned at = 0; at < COUNT; at++)
        given[at] = draw();
    given[FLAGS] = draw() & APSR_FLAGS;
    upcalls = 0;
    if (task_call(BULKHEAD_EVENT_UPCALL, own.gate, arguments, 0) != 0)
        (*wrong)++;
    wait(given, seen, &upcalls);
    *wrong += upcalls != 1 || (seen[FLAGS] & APSR_FLAGS) != given[FLAGS] || seen[R12] != given[R12] || seen[LR] != given[LR];
    for (unsigned at = R0; at <= R5; at++)
        *wrong += seen[at] != given[at];
    uint32_t equal = seen[R8] - given[R8], other = seen[R9] - given[R9];
    *wrong += equal != seen[R10] - given[R10] || other != seen[R11] - given[R11];
    *wrong += (given[FLAGS] & APSR_Z ? other : equal) != 0;
    task_call(BULKHEAD_EVENT_POLL, own.gate, 0, results);
    return results[0] != 0;
}

static void put_number(uint32_t number, const char *then)
{
    task_print_number(own.console, number, 10);
    task_print(own.console, then);
}

int main(void)
{
    uint32_t by_time = 0, by_event = 0, wrong = 0;
    own.gate = task_find("events");
    own.clock = task_find("clock");
    own.console = task_find("console");
    while (by_time < BY_TIME || by_event < BY_EVENT) {
        uint64_t until = by_time < BY_TIME ? task_now(own.clock) + SHORTEST + draw() % STEPS * STEP : 0;
        if (is_by_event(until, &wrong))
            by_event++;
        else
            by_time++;
    }
    task_print(own.console, "upcall: ");
    put_number(by_time, " by time, ");
    put_number(by_event, " by event, ");
    put_number(wrong + wrong_places, wrong + wrong_places ? " WRONG\n" : " wrong\n");
    return 0;
}
