/* SPDX-License-Identifier: Apache-2.0 */
/* Drives guest/c/ring.h for tests/c_ring.rs: prints the words of a ring after some messages, and then tries it
 * with words that a hostile peer might write. */
#include "../../c/ring.h"

#include <stdio.h>
#include <string.h>

#define PLACES 16u

static uint32_t words[RING_HEAD_WORDS + PLACES];
static uint32_t seed = 1;

static uint32_t any(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 17;
    seed ^= seed << 5;
    return seed;
}

/* A number that is near a border now and then. */
static uint32_t odd(void)
{
    uint32_t number = any();
    return number % 3u == 0 ? number : number % 3u == 1 ? number % 40u : 0u - number % 40u;
}

static int hostile(int is_producer)
{
    struct ring ring;
    unsigned char buffer[80];
    unsigned round;
    memset(words, 0, sizeof words);
    ring_attach(&ring, words, sizeof words / 4u, is_producer);
    for (round = 0; round < 100000u; round++) {
        size_t room = any() % 64u, n;
        words[any() % 2u * RING_TAKEN] = odd();
        words[any() % (RING_HEAD_WORDS + PLACES)] = odd();
        memset(buffer, 0xEE, sizeof buffer);
        if (is_producer) {
            uint32_t taken = words[RING_TAKEN];
            ring_send(&ring, buffer, room);
            if (words[RING_TAKEN] != taken)
                return 1;
        } else {
            long length = ring_receive(&ring, buffer, room);
            for (n = length < 0 ? 0 : (size_t)length; n < sizeof buffer; n++)
                if (buffer[n] != 0xEE)
                    return 2;
            if (length > (long)room || length > (long)(4u * (PLACES - 1u)))
                return 3;
        }
        if (ring.is_broken)
            ring_attach(&ring, words, sizeof words / 4u, is_producer);
    }
    return 0;
}

int main(void)
{
    struct ring producer, consumer;
    char buffer[64];
    size_t n;
    long length;
    if (ring_attach(&producer, words, RING_HEAD_WORDS + 1u, 1) != RING_BROKEN)
        return 10;
    ring_attach(&producer, words, sizeof words / 4u, 1);
    ring_attach(&consumer, words, sizeof words / 4u, 0);
    if (ring_receive(&consumer, buffer, sizeof buffer) != RING_EMPTY || ring_send(&producer, buffer, 61) != RING_TOO_LONG)
        return 11;
    if (ring_send(&producer, "abcde", 5) || ring_send(&producer, "", 0) || ring_send(&producer, "0123456789", 10))
        return 12;
    length = ring_receive(&consumer, buffer, 4);
    if (length != RING_TOO_LONG)
        return 13;
    length = ring_receive(&consumer, buffer, sizeof buffer);
    if (length != 5 || memcmp(buffer, "abcde", 5) != 0)
        return 14;
    for (n = 0; n < sizeof words / 4u; n++)
        printf("%u\n", (unsigned)words[n]);
    return hostile(1) ? 15 : hostile(0) ? 16 : 0;
}
