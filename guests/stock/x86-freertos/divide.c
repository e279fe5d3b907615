/* SPDX-License-Identifier: Apache-2.0 */
/* Division of 64 bits, which the compiler calls. The library that has it for 32-bit programs is not on every
 * machine. */
#include <stdint.h>

static uint64_t divide(uint64_t dividend, uint64_t divisor, uint64_t *rest)
{
    uint64_t quotient = 0, left = 0;
    for (int bit = 63; bit >= 0; bit--) {
        left = left << 1 | (dividend >> bit & 1);
        if (left >= divisor) {
            left -= divisor;
            quotient |= 1ull << bit;
        }
    }
    *rest = left;
    return quotient;
}

uint64_t __udivdi3(uint64_t dividend, uint64_t divisor)
{
    uint64_t rest;
    return divide(dividend, divisor, &rest);
}

uint64_t __umoddi3(uint64_t dividend, uint64_t divisor)
{
    uint64_t rest;
    divide(dividend, divisor, &rest);
    return rest;
}

uint64_t __udivmoddi4(uint64_t dividend, uint64_t divisor, uint64_t *rest)
{
    uint64_t left, quotient = divide(dividend, divisor, &left);
    if (rest)
        *rest = left;
    return quotient;
}
