// SPDX-License-Identifier: Apache-2.0

#include "uart.h"

#include "../../../guest/c/number.h"
#include "board.h"

#define STATE_TRANSMIT_FULL 1u
#define STATE_RECEIVE_FULL 2u
#define CONTROL_TRANSMIT 1u
#define CONTROL_RECEIVE 2u
#define CONTROL_RECEIVE_INTERRUPT 8u
#define INTERRUPT_RECEIVE 2u

void uart_start(struct uart *uart, bool receive)
{
    uart->divider = CPU_CLOCK_HZ / 115200;
    uart->control = CONTROL_TRANSMIT | (receive ? CONTROL_RECEIVE | CONTROL_RECEIVE_INTERRUPT : 0);
}

void uart_send(struct uart *uart, uint8_t byte)
{
    while (uart->state & STATE_TRANSMIT_FULL) {
    }
    uart->data = byte;
}

void uart_print(struct uart *uart, const char *text)
{
    while (*text)
        uart_send(uart, (uint8_t)*text++);
}

void uart_print_number(struct uart *uart, uint32_t number, uint32_t base)
{
    struct number room;
    uart_print(uart, number_text(number, base, &room));
}

int uart_receive(struct uart *uart)
{
    int byte = -1;
    uart->interrupt = INTERRUPT_RECEIVE;
    if (uart->state & STATE_RECEIVE_FULL)
        byte = (int)(uart->data & 0xff);
    return byte;
}
