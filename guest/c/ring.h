/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of messages in memory that a hostile peer can write: the same as guest/ring/src/lib.rs in C, on the
 * same layout. Each side keeps its own index in a struct of its own, reads the index of the peer once per
 * operation, and copies each word of a message once before it looks at it. */
#ifndef BULKHEAD_RING_H
#define BULKHEAD_RING_H

#include <stddef.h>
#include <stdint.h>

#define RING_HEAD_WORDS 32u
#define RING_WRITTEN 0u
#define RING_TAKEN 16u

/* Outcomes besides the number of bytes, or 0 for a message that was sent. */
enum { RING_EMPTY = -1, RING_FULL = -1, RING_TOO_LONG = -2, RING_BROKEN = -3 };

struct ring {
    volatile uint32_t *words;
    uint32_t places; /* a power of two */
    uint32_t own;    /* the own index */
    int is_broken;
};

static inline uint32_t ring_load(const volatile uint32_t *word, int order)
{
    return __atomic_load_n(word, order);
}

static inline volatile uint32_t *ring_place(const struct ring *ring, uint32_t index)
{
    return &ring->words[RING_HEAD_WORDS + (index & (ring->places - 1u))];
}

/* Takes one side of the ring in `count` words. Returns 0, or RING_BROKEN if there are too few. */
static inline int ring_attach(struct ring *ring, volatile uint32_t *words, size_t count, int is_producer)
{
    uint32_t places = 1, written, taken;
    if (count < RING_HEAD_WORDS + 2u)
        return RING_BROKEN;
    count -= RING_HEAD_WORDS;
    while (places <= count / 2u && places < 0x80000000u)
        places *= 2u;
    written = ring_load(&words[RING_WRITTEN], __ATOMIC_ACQUIRE);
    taken = ring_load(&words[RING_TAKEN], __ATOMIC_ACQUIRE);
    ring->words = words;
    ring->places = places;
    ring->is_broken = 0;
    ring->own = is_producer ? written : taken;
    if (written - taken > places) {
        /* Impossible: go on where the peer is. */
        ring->own = is_producer ? taken : written;
        __atomic_store_n(&words[is_producer ? RING_WRITTEN : RING_TAKEN], ring->own, __ATOMIC_RELEASE);
    }
    return 0;
}

/* Sends a message. Returns 0, RING_FULL, RING_TOO_LONG or RING_BROKEN. */
static inline int ring_send(struct ring *ring, const void *message, size_t length)
{
    const unsigned char *bytes = message;
    uint32_t next = ring->own, used, needed;
    size_t at, n;
    if (ring->is_broken)
        return RING_BROKEN;
    if (length > ((size_t)ring->places - 1u) * 4u)
        return RING_TOO_LONG;
    used = next - ring_load(&ring->words[RING_TAKEN], __ATOMIC_ACQUIRE);
    if (used > ring->places) {
        ring->is_broken = 1;
        return RING_BROKEN;
    }
    needed = (uint32_t)((length + 3u) / 4u) + 1u;
    if (needed > ring->places - used)
        return RING_FULL;
    __atomic_store_n(ring_place(ring, next++), (uint32_t)length, __ATOMIC_RELAXED);
    for (at = 0; at < length; at += 4) {
        uint32_t word = 0;
        for (n = 0; n < 4 && at + n < length; n++)
            word |= (uint32_t)bytes[at + n] << (8 * n);
        __atomic_store_n(ring_place(ring, next++), word, __ATOMIC_RELAXED);
    }
    ring->own = next;
    __atomic_store_n(&ring->words[RING_WRITTEN], next, __ATOMIC_RELEASE);
    return 0;
}

/* Takes the oldest message. Returns its bytes, RING_EMPTY, RING_TOO_LONG (it stays) or RING_BROKEN. */
static inline long ring_receive(struct ring *ring, void *buffer, size_t room)
{
    unsigned char *bytes = buffer;
    uint32_t next = ring->own, waiting, length;
    size_t at, n;
    if (ring->is_broken)
        return RING_BROKEN;
    waiting = ring_load(&ring->words[RING_WRITTEN], __ATOMIC_ACQUIRE) - next;
    if (waiting == 0)
        return RING_EMPTY;
    if (waiting <= ring->places) {
        length = ring_load(ring_place(ring, next++), __ATOMIC_RELAXED);
        if ((length / 4u) + (length % 4u != 0) < waiting) {
            if (length > room)
                return RING_TOO_LONG;
            for (at = 0; at < length; at += 4) {
                uint32_t word = ring_load(ring_place(ring, next++), __ATOMIC_RELAXED);
                for (n = 0; n < 4 && at + n < length; n++)
                    bytes[at + n] = (unsigned char)(word >> (8 * n));
            }
            ring->own = next;
            __atomic_store_n(&ring->words[RING_TAKEN], next, __ATOMIC_RELEASE);
            return (long)length;
        }
    }
    ring->is_broken = 1;
    return RING_BROKEN;
}

#endif
