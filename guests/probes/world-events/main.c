// SPDX-License-Identifier: Apache-2.0
//
// A VM with interrupts of three channels and of its event gate. A task (`world-events-task`) raises all of them
// while this VM does not run. The lines of the channels come first, and each is counted. Then the handler of the
// gate takes the task's message, and answers with the counts.

#include "board.h"
#include "uart.h"
#include "vm.h"

enum { GATE = 1, REQUESTS = 2, ANSWERS = 3 };
enum { LINES = 3, FIRST_LINE = 20, GATE_LINE = 23, VECTORS = 64, GATE_PRIORITY = 0x80 };
enum { WORDS = 8 };

static void (*vectors[VECTORS])(void) __attribute__((aligned(256)));
static volatile uint32_t counts[LINES];

static void line_0(void)
{
    counts[0]++;
}

static void line_1(void)
{
    counts[1]++;
}

static void line_2(void)
{
    counts[2]++;
}

// The level of the gate falls when its events are taken.
static void gate(void)
{
    static uint32_t message[WORDS] __attribute__((aligned(16)));
    const uint64_t place[5] = {(uintptr_t)message, sizeof message};
    uint64_t results[4] = {0};
    if (vm_call(BULKHEAD_EVENT_POLL, GATE, 0, results) != 0)
        uart_print(UART0, "events: WRONG poll\n");
    if (results[0] == 0)
        return;
    if (vm_call(BULKHEAD_PORT_TRY_RECEIVE, REQUESTS, place, results) != 0)
        uart_print(UART0, "events: WRONG receive\n");
    for (unsigned line = 0; line < LINES; line++)
        message[1 + line] = counts[line];
    message[1 + LINES]++;
    if (vm_call(BULKHEAD_PORT_SEND, ANSWERS, place, 0) != 0)
        uart_print(UART0, "events: WRONG send\n");
}

int main(void)
{
    static void (*const handlers[])(void) = {line_0, line_1, line_2, gate};
    uart_start(UART0, false);
    for (unsigned at = 0; at < FIRST_LINE + 16; at++)
        vectors[at] = ((void (**)(void))SCB_VTOR)[at];
    for (unsigned line = FIRST_LINE; line <= GATE_LINE; line++)
        vectors[16 + line] = handlers[line - FIRST_LINE];
    SCB_VTOR = (uintptr_t)vectors;
    NVIC_IPR(GATE_LINE) = GATE_PRIORITY;
    NVIC_ISER0 = 0xfu << FIRST_LINE;
    uart_print(UART0, "events: ready\n");
    for (;;)
        __asm__ volatile("wfi");
}
