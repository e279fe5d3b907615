/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of each primitive: the mean of ROUNDS rounds right behind a tick, so none has a tick in it. */
#include "FreeRTOS.h"
#include "board.h"
#include "queue.h"
#include "semphr.h"
#include "task.h"

#define ROUNDS 100u
#define TICKS 20u

static SemaphoreHandle_t there, back, from_handler;
static QueueHandle_t queue;
static TaskHandle_t partner;

void on_test_interrupt(void)
{
    BaseType_t wakes = pdFALSE;
    xSemaphoreGiveFromISR(from_handler, &wakes);
    portYIELD_FROM_ISR(wakes);
}

static void answer(void *unused)
{
    (void)unused;
    for (;;) {
        xSemaphoreTake(there, portMAX_DELAY);
        xSemaphoreGive(back);
    }
}

static void yield(void *unused)
{
    (void)unused;
    for (;;)
        taskYIELD();
}

static void report(const char *name, uint64_t ticks, uint64_t rounds)
{
    print("cost ");
    print(name);
    print(" ");
    print_number(ticks * (1000000000u / board_hertz()) / rounds);
    print("\n");
}

static uint64_t begin(void)
{
    vTaskDelay(1);
    return board_now();
}

/* The longest time that a tick takes from a task which does nothing but look at the counter. */
static void measure_tick(void)
{
    uint64_t longest = 0, before = begin();
    uint64_t end = before + TICKS * (board_hertz() / configTICK_RATE_HZ);
    for (uint64_t now = before; now < end; before = now) {
        now = board_now();
        if (now - before > longest)
            longest = now - before;
    }
    report("tick", longest, 1);
}

void measure_costs(void)
{
    there = xSemaphoreCreateBinary();
    back = xSemaphoreCreateBinary();
    from_handler = xSemaphoreCreateBinary();
    SemaphoreHandle_t mutex = xSemaphoreCreateMutex();
    queue = xQueueCreate(4, sizeof(uint64_t));
    uint64_t item = 0;

    uint64_t start = begin();
    for (unsigned round = 0; round < ROUNDS; round++) {
        xSemaphoreTake(mutex, portMAX_DELAY);
        xSemaphoreGive(mutex);
    }
    report("mutex", board_now() - start, ROUNDS);

    start = begin();
    for (unsigned round = 0; round < ROUNDS; round++) {
        xQueueSend(queue, &item, portMAX_DELAY);
        xQueueReceive(queue, &item, portMAX_DELAY);
    }
    report("queue", board_now() - start, ROUNDS);

    UBaseType_t own = uxTaskPriorityGet(NULL);
    xTaskCreate(answer, "answer", configMINIMAL_STACK_SIZE, NULL, own + 1, &partner);
    start = begin();
    for (unsigned round = 0; round < ROUNDS; round++) {
        xSemaphoreGive(there);
        xSemaphoreTake(back, portMAX_DELAY);
    }
    report("semaphore-round-trip", board_now() - start, ROUNDS);
    vTaskDelete(partner);

    xTaskCreate(yield, "yield", configMINIMAL_STACK_SIZE, NULL, own, &partner);
    start = begin();
    for (unsigned round = 0; round < ROUNDS; round++)
        taskYIELD();
    report("yield-round-trip", board_now() - start, ROUNDS);
    vTaskDelete(partner);

    start = begin();
    for (unsigned round = 0; round < ROUNDS; round++) {
        board_raise_test();
        xSemaphoreTake(from_handler, portMAX_DELAY);
    }
    report("interrupt-to-task", board_now() - start, ROUNDS);

    measure_tick();
}
