// SPDX-License-Identifier: Apache-2.0
//
// CMSDK APB UART (Arm DDI 0479D, section 4.3).
#ifndef UART_H
#define UART_H

#include <stdbool.h>
#include <stdint.h>

struct uart {
    volatile uint32_t data, state, control, interrupt, divider;
};

// A board with its first UART elsewhere says so to the compiler.
#ifndef UART0_BASE
#define UART0_BASE 0x40004000
#endif
#define UART0 ((struct uart *)UART0_BASE)
#define UART1 ((struct uart *)0x40005000)

// Switches it on, with an interrupt for each byte received if `receive`.
void uart_start(struct uart *uart, bool receive);
// Waits until there is room.
void uart_send(struct uart *uart, uint8_t byte);
void uart_print(struct uart *uart, const char *text);
// Prints a number in base 10 or 16.
void uart_print_number(struct uart *uart, uint32_t number, uint32_t base);
// The byte received, and the end of its interrupt; negative if there is none.
int uart_receive(struct uart *uart);

#endif
