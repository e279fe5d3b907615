// SPDX-License-Identifier: Apache-2.0
//
// Runtime of a task partition of a microcontroller in C. Numbers and layouts are those of `bulkhead.h`, which
// is generated. This file has the rest: the first instructions, the call, and the three things that nearly
// every task does. The program defines `main`. When `main` returns, the task stops itself. Link it with
// `guest/link/mcu-task.ld` and a `memory.x` of its own.
#ifndef TASK_H
#define TASK_H

#include <stdint.h>

#include "bulkhead.h"

// No capability.
#define TASK_NONE UINT32_MAX

// The startup page.
extern const struct bulkhead_startup_header *task_page;

// Asks for an operation on the object of a capability. There are five arguments and four results. Either
// pointer may be null. Returns 0, or a negative error of `bulkhead.h`.
int32_t task_call(uint32_t function, uint32_t capability, const uint64_t arguments[5], uint64_t results[4]);

// Returns the index of the capability that the manifest gives this name, or `TASK_NONE`.
uint32_t task_find(const char *name);

// Asks the hypervisor for the same. Stores the kind (upper half) and the rights as of now at `what`, which may
// be null. A name that the manifest does not have is a health event.
uint32_t task_look_up(const char *name, uint64_t *what);

// Prints on the console that a capability names.
void task_print(uint32_t console, const char *text);

// Prints a number in base 10 or 16.
void task_print_number(uint32_t console, uint32_t number, uint32_t base);

// Returns the time in nanoseconds that the timer of a capability tells.
uint64_t task_now(uint32_t clock);

// Stops the own partition.
_Noreturn void task_exit(void);

int main(void);

#endif
