// SPDX-License-Identifier: Apache-2.0
//
// A driver as a task: it owns UART 1 of the board, and others send it lines of text through a port. Each byte
// that the UART receives is sent back. All interrupts of the UART are one event at the gate of the task. Their
// lines open again when the task waits, so the driver serves the UART first.
//
// Each 20 lines the driver prints how many lines and bytes there were.

#include "task.h"
#include "uart.h"

enum { MESSAGE = 64, ROOM = 512, REPORT = 20 };
enum { TRANSMIT_FULL = 1, TRANSMIT_INTERRUPT = 4, TRANSMITTED = 1 };

#define UART_OWN ((struct uart *)0x40201000)

// Bytes for the UART. A byte for which there is no room is lost, and counted.
static struct {
    uint8_t bytes[ROOM];
    uint32_t first, next, lost;
} output;

static void put(uint8_t byte)
{
    if (output.next - output.first == ROOM)
        output.lost++;
    else
        output.bytes[output.next++ % ROOM] = byte;
}

// Gives the UART as many bytes as it takes. It interrupts when it takes more.
static void pump(void)
{
    UART_OWN->interrupt = TRANSMITTED;
    while (output.first != output.next && !(UART_OWN->state & TRANSMIT_FULL))
        UART_OWN->data = output.bytes[output.first++ % ROOM];
}

static void report(uint32_t console, uint32_t lines, uint32_t received)
{
    task_print(console, "driver: ");
    task_print_number(console, lines, 10);
    task_print(console, " lines sent, ");
    task_print_number(console, output.lost, 10);
    task_print(console, " bytes lost, ");
    task_print_number(console, received, 10);
    task_print(console, " received\n");
}

// Takes the lines that wait in the port. Returns their number.
static uint32_t take_lines(uint32_t port)
{
    static uint8_t message[MESSAGE] __attribute__((aligned(8)));
    const uint64_t buffer[5] = {(uintptr_t)message, MESSAGE};
    uint64_t taken[4];
    uint32_t lines = 0;
    for (; task_call(BULKHEAD_PORT_TRY_RECEIVE, port, buffer, taken) == 0; lines++) {
        for (uint32_t at = 0; at < taken[0]; at++)
            put(message[at]);
        put('\r');
        put('\n');
    }
    return lines;
}

static uint32_t take_bytes(void)
{
    uint32_t bytes = 0;
    for (int byte; (byte = uart_receive(UART_OWN)) >= 0; bytes++)
        put((uint8_t)byte);
    return bytes;
}

int main(void)
{
    uint32_t console = task_find("console"), port = task_find("lines"), events = task_find("events");
    uint32_t lines = 0, received = 0, due = REPORT;
    uart_start(UART_OWN, true);
    UART_OWN->control |= TRANSMIT_INTERRUPT;
    task_print(console, "driver: UART 1 of the board\n");
    do {
        received += take_bytes();
        lines += take_lines(port);
        pump();
        if (lines >= due) {
            report(console, lines, received);
            due += REPORT;
        }
    } while (task_call(BULKHEAD_EVENT_WAIT, events, (uint64_t[5]){0}, 0) == 0);
    return 0;
}
