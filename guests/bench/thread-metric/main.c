/* SPDX-License-Identifier: Apache-2.0 */
/* Measures how long a thousand rounds of each test take, and prints "bench thread-metric-NAME TICKS", then
 * "bench done". A test runs for a fixed number of ticks of the kernel. */
#include "FreeRTOS.h"
#include "board.h"
#include "task.h"
#include "tests.h"
#ifdef IN_TURNS
#include "../mibench/turn.h"
#endif

/* A multiple of each frame in which two VMs have turns. */
#define WINDOW_MS 80u
#define COUNTED 1000u

/* Waits for a tick of the kernel. The time of a VM that stands still while another one has its turn counts the
 * VM's own time alone, so with one tick more or less a measurement has a turn of the other one more or less.
 * Soon after the begin of a turn there is room for that. */
static void wait_for_begin(void)
{
#ifdef IN_TURNS
    end_of_turn();
#endif
    vTaskDelay(1);
}

static void measure(void *unused)
{
    (void)unused;
    for (unsigned number = 0; number < TESTS; number++) {
        wait_for_begin();
        tests[number].start();
        rounds = 0;
        uint64_t begin = board_now();
        vTaskDelay(pdMS_TO_TICKS(WINDOW_MS));
        uint64_t took = board_now() - begin, counted = rounds;
        end_test();
        if (counted < COUNTED / 10)
            fail(tests[number].name);
        print("bench thread-metric-");
        print(tests[number].name);
        print(" ");
        print_number(took * COUNTED / counted);
        print("\n");
    }
    print("bench done\n");
    board_power_off();
    for (;;) {
    }
}

int main(void)
{
    board_init();
    xTaskCreate(measure, "measure", 1024, NULL, configMAX_PRIORITIES - 1, NULL);
    vTaskStartScheduler();
    return 0;
}
