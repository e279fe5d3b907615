// SPDX-License-Identifier: Apache-2.0
//
// A flood of interrupts, as a network card makes one: every 50 microseconds the dual timer (Arm DDI 0479D, section 4.2) asks for an
// interrupt, and a task gets a message from its handler and has some work with it.

#include "board.h"
#include "kernel.h"
#include "main.h"

struct dual_timer {
    volatile uint32_t load, value, control, clear;
};
#define DUAL_TIMER ((struct dual_timer *)0x40002000)
#define PERIODIC_32_BITS_WITH_INTERRUPT 0xe2u
#define PERIOD_US 50u

QUEUE(packets, 16);

static volatile uint32_t sum, dropped;

void DUALTIMER_Handler(void)
{
    DUAL_TIMER->clear = 1;
    if (!queue_send_from_handler(&packets, sum))
        dropped++;
}

static void network(void)
{
    for (;;) {
        uint32_t packet;
        queue_receive(&packets, &packet, FOREVER);
        for (uint32_t word = 0; word < 32; word++)
            sum += packet ^ word;
    }
}

void flood_start(void)
{
    START(network, NETWORK);
    interrupt_enable(LINE_DUAL_TIMER, KERNEL_PRIORITY + 0x10);
    DUAL_TIMER->load = CPU_CLOCK_HZ / 1000000u * PERIOD_US - 1;
    DUAL_TIMER->control = PERIODIC_32_BITS_WITH_INTERRUPT;
}
