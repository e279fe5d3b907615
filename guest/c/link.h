/* SPDX-License-Identifier: Apache-2.0 */
/* A virtual serial link: two streams of bytes in the memory of one channel, one for each direction. The same as
 * guest/ring/src/link.rs in C, on the same layout. Side 0 sends through the first half of the memory. */
#ifndef BULKHEAD_LINK_H
#define BULKHEAD_LINK_H

#include "ring.h"

#include <string.h>

/* Bytes that a message carries at most. */
#define LINK_PIECE 64u

struct link {
    struct ring sender, receiver;
    unsigned char rest[LINK_PIECE]; /* received, and not read yet: from `from` up to `end` */
    size_t from, end;
};

/* Takes one side (0 or 1) of the link in `count` words. Returns 0, or RING_BROKEN if there are too few. */
static inline int link_attach(struct link *link, volatile uint32_t *words, size_t count, int side)
{
    size_t half = count / 2u;
    volatile uint32_t *own = side == 0 ? words : words + half, *others = side == 0 ? words + half : words;
    link->from = link->end = 0;
    if (ring_attach(&link->sender, own, half, 1) != 0)
        return RING_BROKEN;
    return ring_attach(&link->receiver, others, half, 0);
}

/* Sends as many of these bytes as there is room for. Returns their number, or RING_BROKEN. */
static inline long link_write(struct link *link, const unsigned char *bytes, size_t length)
{
    size_t sent = 0;
    while (sent < length) {
        size_t piece = length - sent < LINK_PIECE ? length - sent : LINK_PIECE;
        int outcome = ring_send(&link->sender, bytes + sent, piece);
        if (outcome == RING_BROKEN)
            return RING_BROKEN;
        if (outcome != 0)
            break;
        sent += piece;
    }
    return (long)sent;
}

/* Reads up to `room` bytes. Returns their number, 0 if there are none, or RING_BROKEN. */
static inline long link_read(struct link *link, unsigned char *bytes, size_t room)
{
    size_t length;
    if (link->from == link->end) {
        long received = ring_receive(&link->receiver, link->rest, sizeof link->rest);
        if (received == RING_EMPTY)
            return 0;
        if (received < 0) {
            /* A peer that keeps to the rules sends no longer pieces. */
            link->receiver.is_broken = 1;
            return RING_BROKEN;
        }
        link->from = 0;
        link->end = (size_t)received;
    }
    length = link->end - link->from < room ? link->end - link->from : room;
    memcpy(bytes, link->rest + link->from, length);
    link->from += length;
    return (long)length;
}

#endif
