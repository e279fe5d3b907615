// SPDX-License-Identifier: Apache-2.0
//
// A program that goes into a handler, masks everything that it can mask, and stays there.

#include "board.h"
#include "uart.h"

static void say(const char *text)
{
    for (; *text; text++)
        uart_send(UART0, (uint8_t)*text);
}

void PendSV_Handler(void)
{
    say("spinner: in a handler, for ever\n");
    __asm__ volatile("cpsid i\n cpsid f");
    for (;;) {
    }
}

int main(void)
{
    uart_start(UART0, false);
    SCB_ICSR = SCB_ICSR_PENDSVSET;
    __asm__ volatile("dsb\n isb");
    say("spinner: WRONG, back in the thread\n");
    for (;;) {
    }
}
