// SPDX-License-Identifier: Apache-2.0
//
// Another application on the same kernel as `world-freertos`: messages of different lengths through a message
// buffer, and amounts that three tasks of one priority move between accounts under a mutex.
//
// Each number that it prints follows from the tick alone, as in `mcu-freertos`.

#include <FreeRTOS.h>
#include <message_buffer.h>
#include <semphr.h>
#include <task.h>

#include "print.h"
#include "uart.h"

enum { MESSAGE_PERIOD = 3, LONGEST = 16, REPORT_PERIOD = 200, REPORTS = 8 };
enum { MOVER_PRIORITY = 1, REPORT_PRIORITY, RECEIVER_PRIORITY, SENDER_PRIORITY };
enum { ACCOUNTS = 8, MOVERS = 3, AMOUNT = 1000 };

static MessageBufferHandle_t messages;
static SemaphoreHandle_t vault;
static uint32_t accounts[ACCOUNTS];
static volatile uint32_t sent, received, bytes, check, moves[MOVERS], wrong;

static void expect(int condition)
{
    if (!condition)
        wrong++;
}

static void sender(void *unused)
{
    (void)unused;
    TickType_t wake = 0;
    uint8_t message[LONGEST];
    for (;;) {
        expect(xTaskDelayUntil(&wake, MESSAGE_PERIOD));
        size_t length = 1 + sent % LONGEST;
        for (size_t i = 0; i < length; i++)
            message[i] = (uint8_t)(sent + i);
        expect(xMessageBufferSend(messages, message, length, 0) == length);
        sent++;
    }
}

static void receiver(void *unused)
{
    (void)unused;
    uint8_t message[LONGEST];
    for (;;) {
        size_t length = xMessageBufferReceive(messages, message, sizeof message, portMAX_DELAY);
        expect(length == 1 + received % LONGEST);
        for (size_t i = 0; i < length; i++)
            check = check * 31 + message[i];
        bytes += length;
        received++;
    }
}

// Never sleeps, so these tasks change places at each tick, also in the middle of a move.
static void mover(void *which)
{
    uint32_t own = (uint32_t)(uintptr_t)which;
    for (uint32_t step = own;; step++) {
        uint32_t *from = &accounts[step % ACCOUNTS], *to = &accounts[(step * 3 + own) % ACCOUNTS];
        expect(xSemaphoreTake(vault, portMAX_DELAY));
        uint32_t amount = *from / 2;
        *from -= amount;
        *to += amount;
        expect(xSemaphoreGive(vault));
        moves[own]++;
    }
}

static uint32_t sum(void)
{
    uint32_t total = 0;
    expect(xSemaphoreTake(vault, portMAX_DELAY));
    for (int i = 0; i < ACCOUNTS; i++)
        total += accounts[i];
    expect(xSemaphoreGive(vault));
    return total;
}

static void report(void *unused)
{
    (void)unused;
    TickType_t wake = 0;
    for (int number = 0; number < REPORTS; number++) {
        expect(xTaskDelayUntil(&wake, REPORT_PERIOD));
        expect(moves[0] && moves[1] && moves[2]);
        print("second: tick %u: %u messages, %u bytes %x, %u in %u accounts, %s\n", (uint32_t)xTaskGetTickCount(), received,
              bytes, check, sum(), ACCOUNTS, wrong ? "WRONG" : "all right");
    }
    print("second: done\n");
    vTaskSuspend(NULL);
}

static void start(TaskFunction_t body, const char *name, uint32_t which, UBaseType_t priority)
{
    configASSERT(xTaskCreate(body, name, 256, (void *)(uintptr_t)which, priority, NULL) == pdPASS);
}

int main(void)
{
    uart_start(UART0, false);
    print("second: kernel %s, %u ticks a second\n", tskKERNEL_VERSION_NUMBER, configTICK_RATE_HZ);
    for (int i = 0; i < ACCOUNTS; i++)
        accounts[i] = AMOUNT;
    messages = xMessageBufferCreate(64);
    vault = xSemaphoreCreateMutex();
    configASSERT(messages && vault);
    start(sender, "sender", 0, SENDER_PRIORITY);
    start(receiver, "receiver", 0, RECEIVER_PRIORITY);
    for (uint32_t which = 0; which < MOVERS; which++)
        start(mover, "mover", which, MOVER_PRIORITY);
    start(report, "report", 0, REPORT_PRIORITY);
    vTaskStartScheduler();
    configASSERT(0);
}
