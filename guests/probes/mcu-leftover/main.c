// SPDX-License-Identifier: Apache-2.0
//
// A VM with a timer and a UART of the board. Each life ends by a fault, while both devices ask for an
// interrupt. The next life prints `clean` if it finds nothing of that, neither in the devices nor in its
// interrupt controller.

#include "leftover.h"

// The lines of both devices. A board with others says so to the compiler.
#ifndef OWN_LINES
#define OWN_LINES (1u << LINE_TIMER1 | 1u << LINE_UART1_RECEIVE | 1u << LINE_UART1_TRANSMIT)
#endif

int main(void)
{
    uint32_t devices = asked();
    uint64_t pending = ((uint64_t)(&NVIC_ISPR0)[1] << 32 | NVIC_ISPR0) & OWN_LINES;
    uart_start(UART0, false);
    uart_print(UART0, devices & 0xff ? "FAIL the timer asks\n" : "");
    uart_print(UART0, devices >> 8 ? "FAIL the UART asks\n" : "");
    uart_print(UART0, pending ? "FAIL a line is pending\n" : "");
    uart_print(UART0, "clean\n");
    leave();
    return 0;
}
