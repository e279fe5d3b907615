// SPDX-License-Identifier: Apache-2.0
//
// The cost of FreeRTOS's everyday work. The same image runs on the bare board and in a partition.
//
// Each operation is done a thousand times and the empty loop is taken off, as `mcu-bench` does with the
// kernel of mcu-rtos, so the rows of the two can be compared. The tick stands still meanwhile. `bench NAME
// INSTRUCTIONS` is one figure; `bench done` is the end.

#include <FreeRTOS.h>
#include <queue.h>
#include <semphr.h>
#include <task.h>

#include "board.h"
#include "print.h"
#include "uart.h"

// With FIRST each operation is done once, and an instruction takes 32 ns: five instructions take four ticks.
// Another board says by FROM_TICKS how many instructions so many ticks are.
#ifdef FIRST
#define ROUNDS 1u
#define FROM_TICKS(ticks) ((ticks) * 5u / 4u)
#else
#define ROUNDS 1000u
#ifndef FROM_TICKS
#define FROM_TICKS(ticks) ((ticks) * 40u)
#endif
#endif
// An interrupt that no device asks for, and its handler. Another board has another one.
#ifndef SPARE
#define SPARE LINE_UART2_TRANSMIT
#define SPARE_Handler UARTTX2_Handler
#endif
enum { WAITER_PRIORITY = 3, MEASURE_PRIORITY = 2 };

static uint32_t empty_loop;
static SemaphoreHandle_t wake, go, mutex;
static QueueHandle_t messages;
static volatile uint32_t turns, taken, received;

#define TICKS(operation)                                                                                                       \
    ({                                                                                                                         \
        uint32_t start = TIMER1->value;                                                                                        \
        for (uint32_t round = 0; round < ROUNDS; round++) {                                                                    \
            operation;                                                                                                         \
            __asm__ volatile("" ::: "memory");                                                                                 \
        }                                                                                                                      \
        start - TIMER1->value;                                                                                                 \
    })

static void say(const char *name, uint32_t ticks, uint32_t parts)
{
    uint32_t rounds = ROUNDS * parts;
    print("bench %s %u\n", name, (FROM_TICKS(ticks - empty_loop) + rounds / 2) / rounds);
}

#define MEASURE(name, parts, operation) say(name, TICKS(operation), parts)

// Turns with `measure`, which has the same priority.
static void partner(void *unused)
{
    (void)unused;
    for (;;) {
        xSemaphoreTake(go, portMAX_DELAY);
        for (uint32_t round = 0; round < ROUNDS; round++) {
            turns++;
            taskYIELD();
        }
    }
}

static void waiter(void *unused)
{
    (void)unused;
    for (;;) {
        xSemaphoreTake(wake, portMAX_DELAY);
        taken++;
    }
}

static void reader(void *unused)
{
    (void)unused;
    for (uint32_t item, expected = 0;;) {
        xQueueReceive(messages, &item, portMAX_DELAY);
        received++;
        if (item != expected++)
            print("bench WRONG message %u\n", item);
    }
}

void SPARE_Handler(void)
{
    BaseType_t woken = pdFALSE;
    xSemaphoreGiveFromISR(wake, &woken);
    portYIELD_FROM_ISR(woken);
}

static void measure(void *unused)
{
    (void)unused;
    SYST_CSR = 0;
    empty_loop = TICKS((void)0);
    MEASURE("freertos-critical-section", 1, taskENTER_CRITICAL(); taskEXIT_CRITICAL());
    MEASURE("freertos-mutex", 1, xSemaphoreTake(mutex, portMAX_DELAY); xSemaphoreGive(mutex));
    xSemaphoreGive(go);
    uint32_t ticks = TICKS(taskYIELD());
    uint32_t seen = turns;
    say("freertos-switch", ticks, 2);
    MEASURE("freertos-semaphore", 1, xSemaphoreGive(wake));
    MEASURE("freertos-message", 1, xQueueSend(messages, &round, portMAX_DELAY));
    MEASURE("freertos-interrupt", 1, NVIC_ISPR0 = 1u << SPARE; __asm__ volatile("dsb\n isb" ::: "memory"));
    if (seen + 1 < ROUNDS || taken != 2 * ROUNDS || received != ROUNDS)
        print("bench WRONG %u turns, %u semaphores, %u messages\n", seen, taken, received);
    print("bench done\n");
    vTaskSuspend(NULL);
}

static void start(TaskFunction_t body, UBaseType_t priority)
{
    configASSERT(xTaskCreate(body, "bench", 256, NULL, priority, NULL) == pdPASS);
}

int main(void)
{
    uart_start(UART0, false);
    TIMER1->reload = UINT32_MAX;
    TIMER1->control = TIMER_ENABLE;
    wake = xSemaphoreCreateBinary();
    go = xSemaphoreCreateBinary();
    mutex = xSemaphoreCreateMutex();
    messages = xQueueCreate(4, sizeof(uint32_t));
    start(waiter, WAITER_PRIORITY);
    start(reader, WAITER_PRIORITY);
    start(measure, MEASURE_PRIORITY);
    start(partner, MEASURE_PRIORITY);
    interrupt_enable(SPARE, configMAX_SYSCALL_INTERRUPT_PRIORITY);
    vTaskStartScheduler();
    configASSERT(0);
}
