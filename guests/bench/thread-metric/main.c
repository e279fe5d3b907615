/* SPDX-License-Identifier: Apache-2.0 */
/* Measures how long a thousand rounds of each test take, and prints "bench thread-metric-NAME TICKS", then
 * "bench done". A test runs for a fixed number of ticks of the kernel. */
#include "FreeRTOS.h"
#include "board.h"
#include "task.h"
#include "tests.h"

/* A multiple of each frame in which two VMs have turns. */
#define WINDOW_MS 80u
#define COUNTED 1000u

static void measure(void *unused)
{
    (void)unused;
    for (unsigned number = 0; number < TESTS; number++) {
        vTaskDelay(1);
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
