// SPDX-License-Identifier: Apache-2.0
//
// A VM without a device that enables every line of its interrupt controller, and counts what comes. No
// interrupt is for it, whatever devices of its neighbours do. It says which lines it could enable.

#include "board.h"
#include "uart.h"

enum { ENTRIES = 16 + 128, WORDS = 4, SYSTICK = 15, TICKS = 100, MILLISECOND = CPU_CLOCK_HZ / 1000 };

static volatile uint32_t ticks, foreign;
// VTOR: Arm DDI 0553B, D1.2.272.
static void (*vectors[ENTRIES])(void) __attribute__((aligned(1024)));

static void tick(void)
{
    ticks++;
}

static void other(void)
{
    foreign++;
}

static void print_number(uint32_t number, unsigned base)
{
    uart_print(UART0, " ");
    uart_print_number(UART0, number, base);
}

int main(void)
{
    uart_start(UART0, false);
    const uint32_t *given = (const uint32_t *)SCB_VTOR;
    for (unsigned entry = 0; entry < ENTRIES; entry++)
        vectors[entry] = entry < 16 ? (void (*)(void))given[entry] : other;
    vectors[SYSTICK] = tick;
    SCB_VTOR = (uintptr_t)vectors;
    uart_print(UART0, "bystander: lines");
    for (unsigned word = 0; word < WORDS; word++) {
        (&NVIC_ISER0)[word] = UINT32_MAX;
        print_number((&NVIC_ISER0)[word], 16);
    }
    uart_print(UART0, "\n");
    SYST_RVR = MILLISECOND - 1;
    SYST_CSR = SYST_ENABLE_TICK_CORE_CLOCK;
    while (ticks < TICKS)
        __asm__ volatile("wfi");
    uart_print(UART0, "bystander:");
    print_number(ticks, 10);
    uart_print(UART0, " ticks,");
    print_number(foreign, 10);
    uart_print(UART0, " interrupts of others\n");
    for (;;)
        __asm__ volatile("wfi");
}
