// SPDX-License-Identifier: Apache-2.0
//
// Bare metal and punctual: answers what UART 1 receives in the interrupt's handler, and sleeps otherwise.

#include "board.h"
#include "uart.h"

void UARTRX1_Handler(void)
{
    int byte = uart_receive(UART1);
    if (byte >= 0)
        uart_send(UART1, (uint8_t)byte ^ 0x20);
}

int main(void)
{
    uart_start(UART1, true);
    interrupt_enable(LINE_UART1_RECEIVE, 0);
    for (;;)
        __asm__ volatile("wfi");
}
