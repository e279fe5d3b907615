/* SPDX-License-Identifier: Apache-2.0 */
/* QEMU's board `virt`, which is also the default machine of a VM. */
#ifndef BOARD_H
#define BOARD_H
#include <stdint.h>

/* Interrupts: the EL1 virtual timer (Arm BSA, PPI 11), and a software generated interrupt of the tests. */
#define LINE_TIMER 27u
#define LINE_TEST 1u

void board_init(void);
/* Makes LINE_TEST pending for this CPU. */
void board_raise_test(void);
/* The counter of the generic timer, and its frequency. */
uint64_t board_now(void);
uint64_t board_hertz(void);
/* Switches the machine off, by PSCI. */
void board_power_off(void);
void board_put(char byte);
/* Called in the handler of LINE_TEST. */
void on_test_interrupt(void);

void print(const char *text);
void print_number(uint64_t number);
/* Prints "ok: NAME" or "FAILED: NAME". */
void check(const char *name, int is_good);
/* Prints all lines "cost NAME N": instructions, if the counter counts them. Called by the task of main.c. */
void measure_costs(void);
#endif
