/* SPDX-License-Identifier: Apache-2.0 */
/* Drives guest/c/link.h for tests/prop_link.rs: the steps of `the_link_in_c_is_the_same_link`, and then prints
 * the words of the memory. */
#include "../../c/link.h"

#include <stdio.h>

#define HALF (RING_HEAD_WORDS + 64u)

static uint32_t words[2u * HALF];

int main(void)
{
    struct link first, second;
    unsigned char bytes[300];
    size_t n;
    memset(bytes, 'x', sizeof bytes);
    if (link_attach(&first, words, RING_HEAD_WORDS, 0) != RING_BROKEN)
        return 10;
    if (link_attach(&first, words, 2u * HALF, 0) != 0 || link_attach(&second, words, 2u * HALF, 1) != 0)
        return 11;
    if (link_write(&first, bytes, sizeof bytes) != 192)
        return 12;
    if (link_write(&second, (const unsigned char *)"0123456789", 10) != 10)
        return 13;
    if (link_read(&second, bytes, 70) != 64 || bytes[63] != 'x')
        return 14;
    if (link_read(&first, bytes, 4) != 4 || memcmp(bytes, "0123", 4) != 0)
        return 15;
    for (n = 0; n < 2u * HALF; n++)
        printf("%u\n", (unsigned)words[n]);
    /* A piece that is too long. */
    if (ring_send(&second.sender, bytes, LINK_PIECE + 1u) != 0 || link_read(&first, bytes, 100) != 6)
        return 16;
    return link_read(&first, bytes, 100) == RING_BROKEN && link_read(&first, bytes, 100) == RING_BROKEN ? 0 : 17;
}
