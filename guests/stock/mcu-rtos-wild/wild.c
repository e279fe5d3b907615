// SPDX-License-Identifier: Apache-2.0
//
// A task with a defect: some time after the start it writes through a pointer that leads out of the program's
// memory.

#include "kernel.h"
#include "main.h"
#include "print.h"

enum { GOOD_TICKS = 300 };

static void wild(void)
{
    task_sleep(GOOD_TICKS);
    print("rtos: a pointer goes wild\n");
    *(volatile uint32_t *)0x20000100 = 0;
    print("rtos: nobody stopped it\n");
    for (;;)
        task_sleep(GOOD_TICKS);
}

void wild_start(void)
{
    START(wild, NETWORK);
}
