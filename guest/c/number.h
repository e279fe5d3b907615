// SPDX-License-Identifier: Apache-2.0
//
// Numbers as text, for a program without a C library.
#ifndef NUMBER_H
#define NUMBER_H

#include <stdint.h>

// Room for a number of 32 bits in base 10 or 16.
struct number {
    char digits[11];
};

// Returns the text of a number. It is in `room`.
static inline const char *number_text(uint32_t number, uint32_t base, struct number *room)
{
    unsigned at = sizeof room->digits - 1;
    room->digits[at] = 0;
    do
        room->digits[--at] = "0123456789abcdef"[number % base];
    while ((number /= base) != 0);
    return room->digits + at;
}

#endif
