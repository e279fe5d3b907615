/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of what the kernel promises, then the costs. Each line but those of costs is the same everywhere. */
#include "FreeRTOS.h"
#include "board.h"
#include "event_groups.h"
#include "queue.h"
#include "semphr.h"
#include "task.h"
#include "timers.h"

#define MESSAGES 1000u
#define PRIORITY_MAIN 3u

static QueueHandle_t queue;
static SemaphoreHandle_t mutex, low_has_it;
static EventGroupHandle_t events;
static volatile uint64_t middle_ran, fired, low_priority;

static void produce(void *unused)
{
    (void)unused;
    for (uint64_t number = 0; number < MESSAGES; number++)
        xQueueSend(queue, &number, portMAX_DELAY);
    vTaskDelete(NULL);
}

static void check_queue(void)
{
    uint64_t number, sum = 0, in_order = 1;
    xTaskCreate(produce, "produce", configMINIMAL_STACK_SIZE, NULL, PRIORITY_MAIN - 1, NULL);
    for (uint64_t next = 0; next < MESSAGES; next++) {
        if (!xQueueReceive(queue, &number, pdMS_TO_TICKS(100)))
            break;
        in_order &= number == next;
        sum += number;
    }
    check("1000 messages through a queue, in order", in_order && sum == MESSAGES * (MESSAGES - 1) / 2);
}

/* Holds the mutex for 20 ms of its own time, which the task of middle priority must not take from it. */
static void low(void *unused)
{
    (void)unused;
    xSemaphoreTake(mutex, portMAX_DELAY);
    xSemaphoreGive(low_has_it);
    TickType_t end = xTaskGetTickCount() + pdMS_TO_TICKS(20);
    while (xTaskGetTickCount() < end) {
    }
    low_priority = uxTaskPriorityGet(NULL);
    xSemaphoreGive(mutex);
    vTaskDelete(NULL);
}

static void middle(void *unused)
{
    (void)unused;
    middle_ran = 1;
    vTaskDelete(NULL);
}

static void check_inheritance(void)
{
    mutex = xSemaphoreCreateMutex();
    low_has_it = xSemaphoreCreateBinary();
    xTaskCreate(low, "low", configMINIMAL_STACK_SIZE, NULL, 1, NULL);
    xSemaphoreTake(low_has_it, portMAX_DELAY);
    xTaskCreate(middle, "middle", configMINIMAL_STACK_SIZE, NULL, 2, NULL);
    xSemaphoreTake(mutex, portMAX_DELAY);
    check("a mutex hands its waiter's priority to its holder", low_priority == PRIORITY_MAIN && !middle_ran);
    vTaskDelay(1);
    check("the task of middle priority ran afterwards", middle_ran == 1);
}

static void on_timer(TimerHandle_t timer)
{
    (void)timer;
    fired++;
    xEventGroupSetBits(events, 1u << fired);
}

static void check_time(void)
{
    TickType_t before = xTaskGetTickCount();
    uint64_t begin = board_now();
    vTaskDelay(pdMS_TO_TICKS(50));
    uint64_t took = (board_now() - begin) * 1000 / board_hertz();
    check("a delay of 50 ticks takes 50 ticks", xTaskGetTickCount() - before == 50);
    check("and 49 to 50 ms of the counter", took == 49 || took == 50);
    events = xEventGroupCreate();
    TimerHandle_t timer = xTimerCreate("timer", pdMS_TO_TICKS(5), pdTRUE, NULL, on_timer);
    xTimerStart(timer, portMAX_DELAY);
    EventBits_t bits = xEventGroupWaitBits(events, 0xe, pdTRUE, pdTRUE, pdMS_TO_TICKS(100));
    xTimerStop(timer, portMAX_DELAY);
    check("a timer fires three times and sets events", bits == 0xe && fired == 3);
    check("18 or 19 ticks more at most", xTaskGetTickCount() - before <= 50 + 19);
}

static void application(void *unused)
{
    (void)unused;
    print("FreeRTOS " tskKERNEL_VERSION_NUMBER " for ");
    print(board_name);
    print("\n");
    check_queue();
    check_inheritance();
    check_time();
    measure_costs();
    print("done\n");
    board_power_off();
    for (;;) {
    }
}

int main(void)
{
    board_init();
    queue = xQueueCreate(10, sizeof(uint64_t));
    xTaskCreate(application, "main", 1024, NULL, PRIORITY_MAIN, NULL);
    vTaskStartScheduler();
    return 0;
}
