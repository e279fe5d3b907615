/* SPDX-License-Identifier: Apache-2.0 */
/* Bits of whole numbers, counted in seven ways. */
#include "programs.h"

#define ITERATIONS 75000u
#define WAYS 7u

/* Bits of each byte, and of each half of a byte. */
static uint8_t of_byte[256];
static const uint8_t of_half[16] = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};

static unsigned by_lowest(uint32_t value)
{
    unsigned count = 0;
    for (; value; value &= value - 1)
        count++;
    return count;
}

static unsigned by_sums(uint32_t value)
{
    value = (value & 0x55555555) + (value >> 1 & 0x55555555);
    value = (value & 0x33333333) + (value >> 2 & 0x33333333);
    value = (value & 0x0f0f0f0f) + (value >> 4 & 0x0f0f0f0f);
    value = (value & 0x00ff00ff) + (value >> 8 & 0x00ff00ff);
    return (value & 0xffff) + (value >> 16);
}

static unsigned by_halves_down(uint32_t value)
{
    unsigned count = of_half[value & 15];
    return value >> 4 ? count + by_halves_down(value >> 4) : count;
}

static unsigned by_halves(uint32_t value)
{
    unsigned count = 0;
    for (unsigned shift = 0; shift < 32; shift += 4)
        count += of_half[value >> shift & 15];
    return count;
}

static unsigned by_bytes(uint32_t value)
{
    return of_byte[value & 255] + of_byte[value >> 8 & 255] + of_byte[value >> 16 & 255] + of_byte[value >> 24];
}

static unsigned by_memory(uint32_t value)
{
    const uint8_t *byte = (const uint8_t *)&value;
    unsigned count = of_byte[*byte++];
    count += of_byte[*byte++];
    count += of_byte[*byte++];
    return count + of_byte[*byte];
}

static unsigned by_shifts(uint32_t value)
{
    unsigned count = 0;
    for (unsigned shift = 0; value && shift < 32; shift++, value >>= 1)
        count += value & 1;
    return count;
}

static unsigned (*const volatile ways[WAYS])(uint32_t) = {
    by_lowest, by_sums, by_halves_down, by_halves, by_bytes, by_memory, by_shifts,
};

int bitcount(void)
{
    uint64_t bits[WAYS];
    for (unsigned byte = 0; byte < 256; byte++)
        of_byte[byte] = (uint8_t)(of_half[byte & 15] + of_half[byte >> 4]);
    for (unsigned way = 0; way < WAYS; way++) {
        uint32_t value = 1;
        bits[way] = 0;
        for (unsigned number = 0; number < ITERATIONS; number++, value += 13)
            bits[way] += ways[way](value);
    }
    for (unsigned way = 1; way < WAYS; way++)
        if (bits[way] != bits[0])
            return 0;
    return bits[0] > ITERATIONS;
}
