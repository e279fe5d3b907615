/* SPDX-License-Identifier: Apache-2.0 */
/* The tests: their names, and what starts each. */
#ifndef TESTS_H
#define TESTS_H
#include <stdint.h>

#define TESTS 8u

struct test {
    const char *name;
    /* Makes what the test needs, and its tasks. They count in `rounds` until they are deleted. */
    void (*start)(void);
};

extern const struct test tests[TESTS];
extern volatile uint64_t rounds;

/* Deletes the tasks and objects of the test that runs. */
void end_test(void);
#endif
