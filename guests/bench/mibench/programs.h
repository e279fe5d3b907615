/* SPDX-License-Identifier: Apache-2.0 */
/* The programs of the benchmark: their names, and one pass of each. */
#ifndef PROGRAMS_H
#define PROGRAMS_H
#include <stdint.h>

struct program {
    const char *name;
    /* Passes that are measured together. */
    unsigned passes;
    /* Does a pass over the small input. Returns 0 if its results are not right. */
    int (*pass)(void);
};

int basicmath(void);
int bitcount(void);
int sort_words(void);
int susan_smoothing(void);
int susan_edges(void);
int susan_corners(void);

/* Returns the next of a row of numbers that is the same in each run, from 0 to 32767. */
static inline uint32_t next_random(uint32_t *state)
{
    *state = *state * 1103515245u + 12345u;
    return *state >> 16 & 0x7fff;
}
#endif
