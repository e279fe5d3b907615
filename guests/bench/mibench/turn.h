/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a turn, as a program of a VM sees it that shares its pCPU. */
#ifndef TURN_H
#define TURN_H
#include "board.h"

/* Waits for the end of a turn, at most twice the longest frame. Returns the time of the end, or 0. */
static uint64_t end_of_turn(void)
{
    uint64_t second = board_hertz(), gap = second / 2000, last = board_now(), begin = last;
    while (last - begin < second / 10) {
        uint64_t now = board_now();
        if (now - last > gap)
            return last;
        last = now;
    }
    return 0;
}

#endif
