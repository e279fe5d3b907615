/* SPDX-License-Identifier: Apache-2.0 */
/* What the application asks of the board, and the board of the application. */
#ifndef BOARD_H
#define BOARD_H
#include <stdint.h>

/* The name of the kind of machine. */
extern const char board_name[];

void board_init(void);
/* Makes the interrupt of the tests pending for this CPU. A board that has none has no costs. */
void board_raise_test(void);
/* A counter, and its frequency. */
uint64_t board_now(void);
uint64_t board_hertz(void);
/* Switches the machine off, or waits for ever. */
void board_power_off(void);
/* Waits for an interrupt. */
void board_wait(void);
void board_put(char byte);
/* Called in the handler of the tests' interrupt. */
void on_test_interrupt(void);

/* Prints "FAILED: WHAT" and ends the program. */
void fail(const char *what);
void on_unexpected(uint64_t syndrome, uint64_t address, uint64_t fault);

void print(const char *text);
void print_number(uint64_t number);
/* Prints "ok: NAME" or "FAILED: NAME". */
void check(const char *name, int is_good);
/* Prints all lines "cost NAME N": instructions, if the counter counts them. Called by the task of main.c. */
void measure_costs(void);
#endif
