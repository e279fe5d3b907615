// SPDX-License-Identifier: Apache-2.0
//
// A VM that has a tick of SysTick each millisecond, and asks the hypervisor for the time. It prints how many
// ticks there were in a tenth of a second.

#include "board.h"
#include "uart.h"
#include "vm.h"

enum { CLOCK = 1, ROUNDS = 3, TICKS_PER_SECOND = 1000 };
#define TENTH_OF_A_SECOND 100000000u

static volatile uint32_t ticks;

void SysTick_Handler(void)
{
    ticks++;
}

static uint64_t now(void)
{
    uint64_t results[4] = {0};
    if (vm_call(BULKHEAD_TIMER_NOW, CLOCK, 0, results) != 0)
        uart_print(UART0, "clock: WRONG call\n");
    return results[0];
}

int main(void)
{
    uart_start(UART0, false);
    SYST_RVR = CPU_CLOCK_HZ / TICKS_PER_SECOND - 1;
    SYST_CVR = 0;
    SYST_CSR = SYST_ENABLE_TICK_CORE_CLOCK;
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t start = now();
        uint32_t before = ticks;
        while (now() - start < TENTH_OF_A_SECOND) {
        }
        uint32_t count = ticks - before;
        uart_print(UART0, "clock: ");
        uart_print_number(UART0, count, 10);
        uart_print(UART0, " ticks in 100 ms\n");
    }
    for (;;) {
    }
}
