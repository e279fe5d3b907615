// SPDX-License-Identifier: Apache-2.0
//
// A timer and a UART of the board that both ask for an interrupt at the end of a life, and what the next life
// finds of that.
#ifndef LEFTOVER_H
#define LEFTOVER_H

#include "board.h"
#include "uart.h"

// A board with its second UART elsewhere says so to the compiler.
#ifndef UART1_BASE
#define UART1_BASE 0x40005000
#endif
#define UART_OWN ((struct uart *)UART1_BASE)

// An address that is nothing of the partition's.
#define NOWHERE 0x80000000u

enum { EXPIRED = 1, TRANSMITTED = 1, TRANSMIT_WITH_INTERRUPT = 5, AHEAD = 500 };

// Returns what the devices ask for: the timer in bit 0, the UART from bit 8 on.
static inline uint32_t asked(void)
{
    return TIMER1->interrupt | UART_OWN->interrupt << 8;
}

// Lets the timer interrupt once.
static inline void start_timer(void)
{
    TIMER1->control = 0;
    TIMER1->reload = 0;
    TIMER1->value = AHEAD;
    TIMER1->control = TIMER_ENABLE_INTERRUPT;
}

// Lets both ask for an interrupt, and ends this life by a fault.
static inline void leave(void)
{
    start_timer();
    UART_OWN->divider = 16;
    UART_OWN->control = TRANSMIT_WITH_INTERRUPT;
    UART_OWN->data = '.';
    while (!(TIMER1->interrupt & EXPIRED) || !(UART_OWN->interrupt & TRANSMITTED)) {
    }
    (void)*(volatile uint32_t *)NOWHERE;
}

#endif
