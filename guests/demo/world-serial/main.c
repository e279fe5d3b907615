// SPDX-License-Identifier: Apache-2.0
//
// A VM of class armv8m with two devices of the board for itself, UART 1 and timer 0. It lives in their handlers,
// which are native: the CPU enters them, and no access to a register is an exit.
//
// The handler of UART 1 sends back each byte with bit 5 turned over. Timer 0 goes off every 997 microseconds, and
// its count since then says how late the handler began. Every 50 alarms the program says how late they were.
// Each eighth handler of an alarm works until 300 microseconds after the alarm, which is longer than a turn can
// be. The program waits by a call, not by WFI, which would keep the turn.

#include "board.h"
#include "uart.h"
#include "vm.h"

enum { LINE_ALARM = 3, LINE_RECEIVE = 34, LINES = 40 };
enum { CLOCK = 1, PERIOD = 997 * 20, WORK = 300 * 20, REPORT = 50, SECOND = 1000000000 };

#define UART_OWN ((struct uart *)0x40201000)
#define ALARM ((struct timer *)0x40000000)
#define NVIC_ISER1 REGISTER(0xe000e104)

static volatile uint32_t alarms, bytes, earliest = UINT32_MAX, latest;

// The table of the start-up code has no entry for the lines of this board's second UART (VTOR: Arm DDI 0553B,
// D1.2.272).
static void (*vectors[16 + LINES])(void) __attribute__((aligned(256)));

static void alarm(void)
{
    uint32_t late = PERIOD - 1 - ALARM->value;
    ALARM->interrupt = 1;
    earliest = late < earliest ? late : earliest;
    latest = late > latest ? late : latest;
    if (++alarms % 8 == 0) {
        while (PERIOD - 1 - ALARM->value < WORK) {
        }
    }
}

static void received(void)
{
    int byte = uart_receive(UART_OWN);
    if (byte < 0)
        return;
    uart_send(UART_OWN, (uint8_t)byte ^ 0x20);
    bytes++;
}

static void take_lines(void)
{
    const uint32_t *given = (const uint32_t *)SCB_VTOR;
    for (int entry = 0; entry < 16; entry++)
        vectors[entry] = (void (*)(void))given[entry];
    vectors[16 + LINE_ALARM] = alarm;
    vectors[16 + LINE_RECEIVE] = received;
    SCB_VTOR = (uintptr_t)vectors;
    NVIC_ISER0 = 1u << LINE_ALARM;
    NVIC_ISER1 = 1u << (LINE_RECEIVE - 32);
}

int main(void)
{
    uart_start(UART0, false);
    uart_print(UART0, "serial: alarms every 997 us, UART 1 answers\n");
    take_lines();
    uart_start(UART_OWN, true);
    ALARM->reload = ALARM->value = PERIOD - 1;
    ALARM->control = TIMER_ENABLE_INTERRUPT;
    for (uint32_t due = REPORT;; due += REPORT) {
        while (alarms < due) {
            uint64_t now[4];
            vm_call(BULKHEAD_TIMER_NOW, CLOCK, 0, now);
            // An interrupt ends the wait early.
            vm_call(BULKHEAD_TIMER_SLEEP, CLOCK, (uint64_t[5]){now[0] + SECOND}, 0);
        }
        uart_print(UART0, "serial: ");
        uart_print_number(UART0, alarms, 10);
        uart_print(UART0, " alarms, ");
        uart_print_number(UART0, earliest * 50, 10);
        uart_print(UART0, " to ");
        uart_print_number(UART0, latest * 50, 10);
        uart_print(UART0, " ns late, ");
        uart_print_number(UART0, bytes, 10);
        uart_print(UART0, " bytes\n");
    }
}
