// SPDX-License-Identifier: Apache-2.0
//
// A task that answers what UART 1 receives: the handler only wakes it, as an RTOS's driver does.

#include "board.h"
#include "kernel.h"
#include "main.h"
#include "uart.h"

static struct semaphore arrived;
static volatile int byte;

// The code of a user begins here.
__attribute__((noinline)) void serial_user(void)
{
    uart_send(UART1, (uint8_t)byte ^ 0x20);
}

void UARTRX1_Handler(void)
{
    byte = uart_receive(UART1);
    semaphore_give(&arrived);
}

static void serial(void)
{
    for (;;) {
        semaphore_take(&arrived, FOREVER);
        serial_user();
    }
}

void serial_start(void)
{
    uart_start(UART1, true);
    START(serial, SERIAL);
    interrupt_enable(LINE_UART1_RECEIVE, KERNEL_PRIORITY);
}
