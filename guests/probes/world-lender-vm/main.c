// SPDX-License-Identifier: Apache-2.0
//
// The guest `lender` as a VM: it lends memory to a task, and takes the memory back, again and again. From then
// on no other partition changes the memory. Its capabilities are, in this order, the channel, the port for the
// loans, and the timer.

#include "board.h"
#include "uart.h"
#include "vm.h"

enum { MEMORY = 1, LOANS = 2, CLOCK = 3, ROUNDS = 25, MANNERS = 5, ANSWER = 1 };

static volatile uint32_t *words;
static uint32_t count;

static uint32_t failures;

static void check(const char *what, uint32_t found, uint32_t expected)
{
    if (found == expected)
        return;
    failures++;
    uart_print(UART0, "FAIL ");
    uart_print(UART0, what);
    uart_print(UART0, "\n");
}

static void pause(uint64_t nanoseconds)
{
    uint64_t now[4] = {0};
    vm_call(BULKHEAD_TIMER_NOW, CLOCK, 0, now);
    const uint64_t until[5] = {now[0] + nanoseconds};
    vm_call(BULKHEAD_TIMER_SLEEP, CLOCK, until, 0);
}

// The sum of all that the borrower may have written.
static uint64_t sum(void)
{
    uint64_t all = 0;
    for (uint32_t at = ANSWER; at < count; at++)
        all += words[at];
    return all;
}

int main(void)
{
    uart_start(UART0, false);
    uint64_t place[4] = {0};
    vm_call(BULKHEAD_CHANNEL_PLACE, MEMORY, 0, place);
    words = (volatile uint32_t *)(uintptr_t)place[0];
    count = (uint32_t)place[1] / 4;
    uint32_t silent = 0, written = 0, answered = 0, revoked = 0;
    static uint8_t message[8] __attribute__((aligned(8)));
    for (uint32_t loan = 0; loan < ROUNDS; loan++) {
        for (uint32_t at = 0; at < count; at++)
            words[at] = 0;
        message[0] = loan % MANNERS;
        bool loads = message[0] == 1 || message[0] == 2;
        uint64_t rights = loads ? BULKHEAD_RIGHT_READ : BULKHEAD_RIGHT_READ | BULKHEAD_RIGHT_WRITE;
        const uint64_t loaned[5] = {(uintptr_t)message, 1, MEMORY | rights << 16};
        if (vm_call(BULKHEAD_PORT_SEND, LOANS, loaned, 0) != 0)
            continue;
        // Not always the same time, so that the borrower is at different places.
        pause(1000000 + loan * 37000);
        revoked += vm_call(BULKHEAD_CAPABILITY_REVOKE, MEMORY, 0, 0) == 0;
        uint64_t before = sum();
        uint32_t answer = words[ANSWER];
        pause(1000000);
        silent += sum() == before;
        written += before > answer;
        answered += answer == 1;
    }
    check("every loan is taken back", revoked, ROUNDS);
    check("nothing is written after the end of a loan", silent, ROUNDS);
    check("the borrower writes while it may, and only then", written, 2 * ROUNDS / MANNERS);
    check("where it may, it answers", answered, 2 * ROUNDS / MANNERS);
    if (failures == 0)
        uart_print(UART0, "4 passed, 0 failed\n");
    for (;;)
        __asm__ volatile("wfi");
}
