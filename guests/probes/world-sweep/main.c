// SPDX-License-Identifier: Apache-2.0
//
// A VM that loads a word of each block of memory and of each page of devices of the board, by both names of the
// place. What is not its own must read as zero, which the manifest asks for by `memory = "log"`. Without the
// capability `all` only some of the places are looked at.

#include <stdbool.h>

#include "board.h"
#include "uart.h"
#include "vm.h"

enum { BLOCK = 1024, PAGE = 4096, SOME = 8, PRINTED = 8 };
#define SECURE 0x10000000u
#define OWN_CODE 0x001c0000u
#define OWN_RAM 0x28160000u
#define OWN_SIZE 0x4000u
#define OWN_UART 0x40200000u

// A window of the board and the distance of two loads.
static const struct window {
    uint32_t first, size, step;
} windows[] = {
    {0x00000000, 0x00400000, BLOCK},
    {0x20000000, 0x00008000, BLOCK},
    {0x28000000, 0x00400000, BLOCK},
    {0x40000000, 0x10000000, PAGE},
};

static bool is_own(uint32_t at)
{
    return at - OWN_CODE < OWN_SIZE || at - OWN_RAM < OWN_SIZE || at - OWN_UART < PAGE;
}

static void look(uint32_t at, uint32_t *places, uint32_t *wrong)
{
    if (is_own(at))
        return;
    uint32_t value = REGISTER(at);
    ++*places;
    if (value == 0 || ++*wrong > PRINTED)
        return;
    uart_print(UART0, "sweep: WRONG at 0x");
    uart_print_number(UART0, at, 16);
    uart_print(UART0, ": 0x");
    uart_print_number(UART0, value, 16);
    uart_print(UART0, "\n");
}

int main(void)
{
    const uint64_t all[5] = {'a' | 'l' << 8 | 'l' << 16};
    uint64_t results[4];
    uint32_t places = 0, wrong = 0;
    uart_start(UART0, false);
    uint32_t step = vm_call(BULKHEAD_CAPABILITY_FIND, BULKHEAD_SELF_CAPABILITY, all, results) == 0 ? 1 : SOME;
    for (unsigned number = 0; number < sizeof windows / sizeof windows[0]; number++) {
        const struct window *window = &windows[number];
        // With a distance, the first place of each window is another.
        for (uint32_t at = number % step * window->step; at < window->size; at += step * window->step) {
            look(window->first + at, &places, &wrong);
            look((window->first + at) ^ SECURE, &places, &wrong);
        }
    }
    uart_print(UART0, "sweep: ");
    uart_print_number(UART0, places, 10);
    uart_print(UART0, " places, ");
    uart_print_number(UART0, wrong, 10);
    uart_print(UART0, wrong ? " not zero, WRONG\n" : " not zero\n");
    vm_call(BULKHEAD_PARTITION_STOP, BULKHEAD_SELF_CAPABILITY, 0, 0);
    return 0;
}
