// SPDX-License-Identifier: Apache-2.0
//
// A VM that plays ball with a copy of itself: a number in the memory of a channel, and a doorbell. The first
// side of the channel throws. Each side waits natively (WFI), and counts the interrupts of its doorbell: one
// for each throw, none lost and none too many.

#include "board.h"
#include "uart.h"
#include "vm.h"

enum { CHANNEL = 1, LINE = LINE_ETHERNET, ROUNDS = 200 };

static volatile uint32_t rings;

void ETHERNET_Handler(void)
{
    rings++;
}

// Waits until the other side has written a number. An interrupt that comes after the look ends WFI at once,
// although it is masked.
static void await(const volatile uint32_t *word, uint32_t number)
{
    for (;;) {
        __asm__ volatile("cpsid i" ::: "memory");
        if (*word == number)
            break;
        __asm__ volatile("wfi\n cpsie i\n isb" ::: "memory");
    }
    __asm__ volatile("cpsie i\n isb" ::: "memory");
}

static void throw(volatile uint32_t *word, uint32_t number)
{
    *word = number;
    __asm__ volatile("dmb" ::: "memory");
    if (vm_call(BULKHEAD_CHANNEL_DOORBELL, CHANNEL, 0, 0) != 0)
        uart_print(UART0, "bell: WRONG doorbell\n");
}

int main(void)
{
    uart_start(UART0, false);
    uint64_t place[4] = {0};
    if (vm_call(BULKHEAD_CHANNEL_PLACE, CHANNEL, 0, place) != 0)
        uart_print(UART0, "bell: WRONG place\n");
    volatile uint32_t *words = (volatile uint32_t *)(uintptr_t)place[0];
    unsigned side = place[2] & 1;
    NVIC_ISER0 = 1u << LINE;
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        if (side == 0)
            throw(&words[0], round);
        await(&words[1 - side], round);
        if (side == 1)
            throw(&words[1], round);
    }
    uart_print(UART0, "bell: ");
    uart_print_number(UART0, ROUNDS, 10);
    uart_print(UART0, " rounds, ");
    uart_print_number(UART0, rings, 10);
    uart_print(UART0, " rings\n");
    for (;;)
        __asm__ volatile("wfi");
}
