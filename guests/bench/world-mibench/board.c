// SPDX-License-Identifier: Apache-2.0
//
// See `board.h`.

#include "board.h"

#include "../../stock/mcu-rtos/uart.h"

// Nanoseconds of a tick of TIMER1.
#define TICK 50u

void board_init(void)
{
    uart_start(UART0, false);
    TIMER1->reload = UINT32_MAX;
    TIMER1->control = TIMER_ENABLE;
    interrupt_enable(LINE_TIMER0, 0xff);
}

uint64_t board_now(void)
{
    return (uint64_t)(UINT32_MAX - TIMER1->value) * TICK;
}

uint64_t board_hertz(void)
{
    return 1000000000u;
}

// An interrupt that no device asks for.
void TIMER0_Handler(void)
{
    on_test_interrupt();
}

void board_raise_test(void)
{
    NVIC_ISPR0 = 1u << LINE_TIMER0;
    __asm__ volatile("dsb\n isb" ::: "memory");
}

void board_power_off(void)
{
    for (;;)
        __asm__ volatile("wfi");
}

void fail(const char *what)
{
    print("FAILED: %s\n", what);
    board_power_off();
}

void print_number(uint64_t number)
{
    char digits[21];
    char *first = digits + sizeof digits - 1;
    *first = 0;
    do {
        *--first = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    print("%s", first);
}
