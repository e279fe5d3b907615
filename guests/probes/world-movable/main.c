// SPDX-License-Identifier: Apache-2.0
//
// A program that says where it is, and whether all its pointers have moved with it: constants in flash,
// variables with initial values, variables without, the handler of a tick.

#include <stdbool.h>

#include "board.h"
#include "uart.h"

static unsigned ticks;
static unsigned level = 7;
static unsigned *const constant = &ticks;
static unsigned *variable = &level;

static unsigned twice(unsigned value)
{
    return 2 * value;
}

static unsigned square(unsigned value)
{
    return value * value;
}

static unsigned (*const operations[])(unsigned) = {twice, square};
static const char *const names[] = {"twice", "square"};

void SysTick_Handler(void)
{
    (*constant)++;
}

static void put_hex(uint32_t value)
{
    for (int shift = 28; shift >= 0; shift -= 4)
        uart_send(UART0, (uint8_t) "0123456789abcdef"[value >> shift & 15]);
}

// A store to memory that no partition has, for a report with the name of this function.
__attribute__((noinline)) static void trespass(void)
{
    REGISTER(0x20000000) = 1;
}

int main(void)
{
    uart_start(UART0, false);
    uart_print(UART0, "movable: code in block ");
    put_hex(SCB_VTOR);
    uart_print(UART0, ", variables in block ");
    put_hex((uintptr_t)&level & ~0x3fffu);
    uart_print(UART0, "\r\n");
    SYST_RVR = CPU_CLOCK_HZ / 1000 - 1;
    SYST_CSR = SYST_ENABLE_TICK_CORE_CLOCK;
    for (unsigned round = 1; round <= 3; round++) {
        while (*(volatile unsigned *)constant < 20 * round) {
        }
        bool right = variable == &level && operations[round & 1](*variable) == (round & 1 ? 49 : 14);
        uart_print(UART0, "movable: ");
        uart_print(UART0, names[round & 1]);
        uart_print(UART0, right ? " of 7 is right\r\n" : " of 7 is WRONG\r\n");
    }
    uart_print(UART0, "movable: done\r\n");
    trespass();
    return 0;
}
