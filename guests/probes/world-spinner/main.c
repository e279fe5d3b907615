// SPDX-License-Identifier: Apache-2.0
//
// A program that goes into a handler, masks everything that it can mask, and stays there.

#include "board.h"
#include "uart.h"

void PendSV_Handler(void)
{
    uart_print(UART0, "spinner: in a handler, for ever\n");
    __asm__ volatile("cpsid i\n cpsid f");
    for (;;) {
    }
}

int main(void)
{
    uart_start(UART0, false);
    SCB_ICSR = SCB_ICSR_PENDSVSET;
    __asm__ volatile("dsb\n isb");
    uart_print(UART0, "spinner: WRONG, back in the thread\n");
    for (;;) {
    }
}
