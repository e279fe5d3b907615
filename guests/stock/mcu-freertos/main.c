// SPDX-License-Identifier: Apache-2.0
//
// An application on FreeRTOS that uses what applications use: periods, queues, a mutex with priority
// inheritance, a counting semaphore given by an interrupt, software timers, an event group, a stream buffer,
// notifications, floating point in several tasks.
//
// Each number that it prints follows from the tick alone, so the bare board and a partition print the same,
// to the last letter. A lost tick, a lost wake-up and a register that does not survive a switch all show.

#include <FreeRTOS.h>
#include <event_groups.h>
#include <queue.h>
#include <semphr.h>
#include <stream_buffer.h>
#include <task.h>
#include <timers.h>

#include "board.h"
#include "print.h"
#include "uart.h"

enum { SAMPLE_PERIOD = 5, ALARM_PERIOD = 10, REPORT_PERIOD = 250, REPORTS = 8, BATCH = 10 };
enum { CALCULATE_PRIORITY = 1, REPORT_PRIORITY, FILTER_PRIORITY, SENSOR_PRIORITY, URGENT_PRIORITY = 6 };
#define BATCH_DONE 1u
// An interrupt that no device asks for, and its handler. Another board has another one.
#ifndef SPARE
#define SPARE LINE_UART2_TRANSMIT
#define SPARE_Handler UARTTX2_Handler
#endif

static QueueHandle_t samples;
static SemaphoreHandle_t shared_lock, alarms;
static EventGroupHandle_t batches;
static StreamBufferHandle_t bytes;
static TaskHandle_t reporter;

static volatile uint32_t releases, filtered, batches_seen, alarms_seen, bytes_seen, told, digest, rounds[2], wrong;
static volatile uint32_t shared, shared_copy;
static volatile float level;

static void expect(int condition)
{
    if (!condition)
        wrong++;
}

// A triangle between 0 and 100.
static void sensor(void *unused)
{
    (void)unused;
    TickType_t wake = 0;
    for (;;) {
        expect(xTaskDelayUntil(&wake, SAMPLE_PERIOD));
        uint32_t phase = releases % 200, sample = phase < 100 ? phase : 200 - phase;
        releases++;
        expect(xQueueSend(samples, &sample, 0));
        if (releases % BATCH == 0)
            xEventGroupSetBits(batches, BATCH_DONE);
    }
}

static void filter(void *unused)
{
    (void)unused;
    float mean = 50.0f;
    uint32_t sample;
    for (;;) {
        expect(xQueueReceive(samples, &sample, portMAX_DELAY));
        mean += ((float)sample - mean) * 0.0625f;
        level = mean;
        filtered++;
        uint8_t byte = (uint8_t)sample;
        expect(xStreamBufferSend(bytes, &byte, 1, 0) == 1);
    }
}

static void reader(void *unused)
{
    (void)unused;
    uint8_t block[BATCH];
    for (;;) {
        size_t count = xStreamBufferReceive(bytes, block, sizeof block, portMAX_DELAY);
        for (size_t i = 0; i < count; i++)
            digest = digest * 31 + block[i];
        bytes_seen += count;
    }
}

static void batcher(void *unused)
{
    (void)unused;
    for (;;) {
        expect(xEventGroupWaitBits(batches, BATCH_DONE, pdTRUE, pdTRUE, portMAX_DELAY) & BATCH_DONE);
        batches_seen++;
    }
}

// The software timer makes the interrupt pending, the interrupt gives the semaphore, the most urgent task
// takes it and tells the report.
static void on_timer(TimerHandle_t timer)
{
    (void)timer;
    NVIC_ISPR0 = 1u << SPARE;
}

void SPARE_Handler(void)
{
    BaseType_t woken = pdFALSE;
    expect(xSemaphoreGiveFromISR(alarms, &woken));
    portYIELD_FROM_ISR(woken);
}

static void urgent(void *unused)
{
    (void)unused;
    for (;;) {
        expect(xSemaphoreTake(alarms, portMAX_DELAY));
        alarms_seen++;
        xTaskNotifyGive(reporter);
    }
}

// A logistic map in floating point that is compared with the same in fixed steps: a register that gets lost
// shows at once.
static void calculate(void *which)
{
    uint32_t own = (uint32_t)(uintptr_t)which;
    for (;;) {
        float first = 0.25f + 0.125f * (float)own, second = first;
        for (int step = 0; step < 200; step++) {
            first = 3.7f * first * (1.0f - first);
            __asm__ volatile("" : "+t"(first));
            second = 3.7f * second * (1.0f - second);
            __asm__ volatile("" : "+t"(second));
        }
        expect(xSemaphoreTake(shared_lock, portMAX_DELAY));
        expect(first == second && shared == shared_copy);
        shared++;
        shared_copy = shared;
        xSemaphoreGive(shared_lock);
        rounds[own]++;
        if (rounds[own] % 8 == 0)
            vTaskDelay(2);
    }
}

static void report(void *unused)
{
    (void)unused;
    TickType_t wake = 0;
    for (int number = 0; number < REPORTS; number++) {
        expect(xTaskDelayUntil(&wake, REPORT_PERIOD));
        told += ulTaskNotifyTake(pdTRUE, 0);
        expect(rounds[0] && rounds[1] && told == alarms_seen);
        print("freertos: tick %u: %u samples, %u filtered, level %u, %u batches, %u alarms, %u bytes %x, %s\n",
              (uint32_t)xTaskGetTickCount(), releases, filtered, (uint32_t)level, batches_seen, alarms_seen, bytes_seen,
              digest, wrong ? "WRONG" : "all right");
    }
    print("freertos: %u bytes of heap left, %u tasks, done\n", (uint32_t)xPortGetFreeHeapSize(),
          (uint32_t)uxTaskGetNumberOfTasks());
    vTaskSuspend(NULL);
}

static TaskHandle_t start(TaskFunction_t body, const char *name, void *argument, UBaseType_t priority)
{
    TaskHandle_t task = NULL;
    configASSERT(xTaskCreate(body, name, 256, argument, priority, &task) == pdPASS);
    return task;
}

int main(void)
{
    uart_start(UART0, false);
    print("freertos: kernel %s, %u ticks a second\n", tskKERNEL_VERSION_NUMBER, configTICK_RATE_HZ);
    samples = xQueueCreate(8, sizeof(uint32_t));
    shared_lock = xSemaphoreCreateMutex();
    alarms = xSemaphoreCreateCounting(4, 0);
    batches = xEventGroupCreate();
    bytes = xStreamBufferCreate(64, BATCH);
    start(sensor, "sensor", NULL, SENSOR_PRIORITY);
    start(filter, "filter", NULL, FILTER_PRIORITY);
    start(reader, "reader", NULL, FILTER_PRIORITY);
    start(batcher, "batcher", NULL, FILTER_PRIORITY);
    start(urgent, "urgent", NULL, URGENT_PRIORITY);
    start(calculate, "first", (void *)0, CALCULATE_PRIORITY);
    start(calculate, "second", (void *)1, CALCULATE_PRIORITY);
    reporter = start(report, "report", NULL, REPORT_PRIORITY);
    TimerHandle_t timer = xTimerCreate("alarm", ALARM_PERIOD, pdTRUE, NULL, on_timer);
    configASSERT(timer && xTimerStart(timer, 0));
    interrupt_enable(SPARE, configMAX_SYSCALL_INTERRUPT_PRIORITY);
    vTaskStartScheduler();
    configASSERT(0);
}
