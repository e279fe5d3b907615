// SPDX-License-Identifier: Apache-2.0
//
// A VM with a UART, a serial bus and a timer of the board, which has each of them ask for every interrupt that
// it can. It takes none of them, so all stay as they are. A UART of this board has two lines more than one for
// each direction: one for both, and one that all UARTs have for what they lose.

#include "board.h"
#include "uart.h"

// CMSDK UART (Arm DDI 0479D, section 4.3): all but sending, so the second byte is lost. PL022 (Arm DDI 0194H,
// section 3.3): loopback, enable.
#define UART_DATA REGISTER(0x40201000)
#define UART_CONTROL REGISTER(0x40201008)
#define UART_INTERRUPTS REGISTER(0x4020100c)
#define BUS_CONTROL REGISTER(0x40205004)
#define BUS_MASK REGISTER(0x40205014)
#define BUS_ASKS REGISTER(0x4020501c)
#define ALARM ((struct timer *)0x40000000)

enum { UART_ALL = 0x3e, UART_LOST = 4, BUS_ON = 3, BUS_ALL = 0xf, SOON = 100 };

int main(void)
{
    uart_start(UART0, false);
    UART_CONTROL = UART_ALL;
    UART_DATA = 'a';
    UART_DATA = 'b';
    BUS_CONTROL = BUS_ON;
    BUS_MASK = BUS_ALL;
    ALARM->reload = SOON;
    ALARM->value = SOON;
    ALARM->control = TIMER_ENABLE_INTERRUPT;
    while (ALARM->interrupt == 0) {
    }
    uart_print(UART0, UART_INTERRUPTS & UART_LOST && BUS_ASKS ? "overrun: all ask\n" : "overrun: WRONG\n");
    for (;;)
        __asm__ volatile("wfi");
}
