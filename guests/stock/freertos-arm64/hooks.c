/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the kernel and the board call: each ends the program, but for the idle hook. */
#include "FreeRTOS.h"
#include "board.h"
#include "task.h"

void fail(const char *what)
{
    print("FAILED: ");
    print(what);
    print("\n");
    board_power_off();
    for (;;) {
    }
}

void on_assertion(const char *file, int line)
{
    print("FAILED: assertion in ");
    print(file);
    print(":");
    print_number((uint64_t)line);
    fail("");
}

void on_unexpected(uint64_t syndrome, uint64_t address, uint64_t fault)
{
    print("exception ");
    print_number(syndrome);
    print(" at ");
    print_number(address);
    print(" of ");
    print_number(fault);
    fail("");
}

void vApplicationMallocFailedHook(void) { fail("memory"); }

void vApplicationStackOverflowHook(TaskHandle_t task, char *name)
{
    (void)task;
    fail(name);
}

void vApplicationIdleHook(void) { board_wait(); }
