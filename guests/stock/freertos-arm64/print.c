/* SPDX-License-Identifier: Apache-2.0 */
/* Output, and the few functions of a C library that a compiler expects. */
#include "board.h"
#include <string.h>

void print(const char *text)
{
    for (; *text; text++)
        board_put(*text);
}

void print_number(uint64_t number)
{
    char digits[21];
    char *at = digits + sizeof digits;
    *--at = 0;
    do {
        *--at = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    print(at);
}

void check(const char *name, int is_good)
{
    print(is_good ? "ok: " : "FAILED: ");
    print(name);
    print("\n");
}

void *memset(void *to, int byte, size_t count)
{
    unsigned char *at = to;
    while (count--)
        *at++ = (unsigned char)byte;
    return to;
}

void *memcpy(void *to, const void *from, size_t count)
{
    unsigned char *at = to;
    const unsigned char *source = from;
    while (count--)
        *at++ = *source++;
    return to;
}

size_t strlen(const char *text)
{
    const char *end = text;
    while (*end)
        end++;
    return (size_t)(end - text);
}
