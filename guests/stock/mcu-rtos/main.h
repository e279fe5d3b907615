// SPDX-License-Identifier: Apache-2.0
//
// The application's tasks: the most urgent first.
#ifndef MAIN_H
#define MAIN_H

#include <stdint.h>

enum { SERIAL = 0, SENSOR = 1, NETWORK = 2, FILTER = 3, SHELL = 4, REPORT = 5, CALCULATE = 6 };
enum { STACK_WORDS = 256 };

#define START(body, priority)                                                                                                  \
    do {                                                                                                                       \
        static struct task task;                                                                                               \
        static uint32_t stack[STACK_WORDS] __attribute__((aligned(8)));                                                        \
        task_create(&task, #body, priority, body, stack, STACK_WORDS);                                                         \
    } while (0)

// Parts that some images have besides.
void network_start(void);
void serial_start(void);
void wild_start(void);

#endif
