// SPDX-License-Identifier: Apache-2.0
//
// The board that the programs of MiBench and the tests of Thread-Metric ask for
// (`guests/stock/freertos-arm64/include/board.h`), as far as they do, on a microcontroller.
#ifndef BENCH_BOARD_H
#define BENCH_BOARD_H

#include "../../stock/mcu-rtos/board.h"
#include "../../stock/mcu-rtos/print.h"

// All tasks may use floating point on this processor.
#define portTASK_USES_FLOATING_POINT()

void board_init(void);
// A counter in nanoseconds, and its frequency.
uint64_t board_now(void);
uint64_t board_hertz(void);
// Makes the interrupt of the tests pending, and its handler, which the program has.
void board_raise_test(void);
void on_test_interrupt(void);
// Waits for ever.
void board_power_off(void);
// Prints "FAILED: WHAT" and ends the program.
void fail(const char *what);
void print_number(uint64_t number);

#endif
