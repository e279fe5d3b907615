// SPDX-License-Identifier: Apache-2.0
//
// A task that has a pattern in its registers of floating point, in rounds, beside others that do the same. Each
// of its lives ends by a fault, and begins with registers as after a reset.

#include "floats.h"
#include "task.h"

int main(void)
{
    uint32_t console = task_find("console"), right = 0;
    task_print(console, floats_are_new() ? "" : "FAIL registers of another\n");
    for (uint32_t round = 0; round < ROUNDS; round++)
        right += floats_stay(SEED + round);
    task_print(console, right == ROUNDS ? "right\n" : "FAIL another value\n");
    (void)*(volatile uint32_t *)0x80000000u;
    return 0;
}
