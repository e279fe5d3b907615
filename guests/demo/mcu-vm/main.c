// SPDX-License-Identifier: Apache-2.0
//
// A VM in C that knows of the hypervisor: start-up code and UART are those of the bare board, and it sleeps
// by hypercalls, asks for something it may not have, and stops itself.

#include "uart.h"
#include "vm.h"

enum { CLOCK = 1, ROUNDS = 3, ROUND = 1000000, NOBODY = 15 };

// Sleeps a millisecond. Returns whether it was one.
static int sleeps(void)
{
    uint64_t now[4] = {0}, wake[5] = {0};
    if (vm_call(BULKHEAD_TIMER_NOW, CLOCK, 0, now) != 0)
        return 0;
    wake[0] = now[0] + ROUND;
    if (vm_call(BULKHEAD_TIMER_SLEEP, CLOCK, wake, 0) != 0 || vm_call(BULKHEAD_TIMER_NOW, CLOCK, 0, now) != 0)
        return 0;
    return now[0] >= wake[0];
}

int main(void)
{
    uart_start(UART0, false);
    uart_print(UART0, "vm: a program in C\n");
    uint64_t version[4] = {0};
    if (vm_call(BULKHEAD_VERSION, BULKHEAD_SELF_CAPABILITY, 0, version) != 0 || version[0] != BULKHEAD_ABI_VERSION)
        uart_print(UART0, "vm: WRONG VERSION\n");
    for (int round = 1; round <= ROUNDS; round++) {
        char digit[] = {(char)('0' + round), 0};
        uart_print(UART0, "vm: round ");
        uart_print(UART0, digit);
        uart_print(UART0, sleeps() ? ", slept long enough\n" : ", WOKEN TOO EARLY\n");
    }
    int32_t error = vm_call(BULKHEAD_TIMER_NOW, NOBODY, 0, 0);
    uart_print(UART0, error == BULKHEAD_ERROR_NO_CAPABILITY ? "vm: refused as it must be\n" : "vm: NOT REFUSED\n");
    vm_call(BULKHEAD_PARTITION_STOP, BULKHEAD_SELF_CAPABILITY, 0, 0);
    return 0;
}
