/* SPDX-License-Identifier: Apache-2.0 */
/* The eight tests of Thread-Metric, written anew from their published description: threads of an RTOS that do
 * one thing over and over, counted. Each task has a priority below the one that measures. */
#include "tests.h"
#include "FreeRTOS.h"
#include "board.h"
#include "queue.h"
#include "semphr.h"
#include "task.h"

#define LOWEST 1u
#define MEMBERS 5u
#define WORDS 64u
#define BLOCK 128u

struct message {
    uint32_t word[4];
};

volatile uint64_t rounds;

static TaskHandle_t member[MEMBERS];
static unsigned members;
static SemaphoreHandle_t semaphore;
static QueueHandle_t queue;
static uint32_t words[WORDS];

static void add(TaskFunction_t body, UBaseType_t priority)
{
    xTaskCreate(body, "member", configMINIMAL_STACK_SIZE, NULL, priority, &member[members++]);
}

void end_test(void)
{
    while (members > 0)
        vTaskDelete(member[--members]);
    if (semaphore)
        vSemaphoreDelete(semaphore);
    if (queue)
        vQueueDelete(queue);
    semaphore = queue = NULL;
}

/* Basic processing: a task that calls nothing. */
static void process(void *unused)
{
    (void)unused;
    for (uint32_t round = 0;; round++) {
        for (unsigned at = 0; at < WORDS; at++)
            words[at] = (words[at] + round) ^ words[at];
        rounds++;
    }
}

static void start_basic(void) { add(process, LOWEST); }

/* Cooperative scheduling: five tasks of one priority hand the CPU on. */
static void hand_on(void *unused)
{
    (void)unused;
    for (;;) {
        rounds++;
        taskYIELD();
    }
}

static void start_cooperative(void)
{
    for (unsigned number = 0; number < MEMBERS; number++)
        add(hand_on, LOWEST);
}

/* Preemptive scheduling: each task resumes the next one, which has a higher priority; then each suspends
 * itself. */
static void resume_next(void *number)
{
    uintptr_t own = (uintptr_t)number;
    for (;;) {
        rounds++;
        if (own + 1 < MEMBERS)
            vTaskResume(member[own + 1]);
        if (own > 0)
            vTaskSuspend(NULL);
    }
}

static void start_preemptive(void)
{
    for (; members < MEMBERS; members++)
        xTaskCreate(resume_next, "member", configMINIMAL_STACK_SIZE, (void *)(uintptr_t)members, LOWEST + members,
                    &member[members]);
    for (unsigned number = 1; number < MEMBERS; number++)
        vTaskSuspend(member[number]);
}

/* What the handler of the interrupt does: 0 gives a semaphore, 1 resumes a task. */
static unsigned handler_resumes;

void on_test_interrupt(void)
{
    BaseType_t wakes = pdFALSE;
    if (handler_resumes)
        wakes = xTaskResumeFromISR(member[1]);
    else
        xSemaphoreGiveFromISR(semaphore, &wakes);
    portYIELD_FROM_ISR(wakes);
}

/* Interrupt processing: a task raises an interrupt, and takes the semaphore that the handler has given. */
static void raise_and_take(void *unused)
{
    (void)unused;
    for (;;) {
        board_raise_test();
        xSemaphoreTake(semaphore, portMAX_DELAY);
        rounds++;
    }
}

static void start_interrupt(void)
{
    handler_resumes = 0;
    semaphore = xSemaphoreCreateBinary();
    add(raise_and_take, LOWEST);
}

/* Interrupt processing with preemption: the handler resumes a task of a higher priority. */
static void raise_always(void *unused)
{
    (void)unused;
    for (;;) {
        board_raise_test();
        rounds++;
    }
}

static void suspend_always(void *unused)
{
    (void)unused;
    for (;;) {
        vTaskSuspend(NULL);
        rounds++;
    }
}

static void start_interrupt_preemption(void)
{
    handler_resumes = 1;
    add(raise_always, LOWEST);
    add(suspend_always, LOWEST + 1);
}

/* Message processing: a task sends itself a message of four words. */
static void send_and_receive(void *unused)
{
    (void)unused;
    struct message sent = {{1, 2, 3, 4}}, received;
    for (;;) {
        xQueueSend(queue, &sent, portMAX_DELAY);
        xQueueReceive(queue, &received, portMAX_DELAY);
        sent.word[3] = received.word[3] + 1;
        rounds++;
    }
}

static void start_message(void)
{
    queue = xQueueCreate(10, sizeof(struct message));
    add(send_and_receive, LOWEST);
}

/* Synchronization processing: a task takes a semaphore and gives it back. */
static void take_and_give(void *unused)
{
    (void)unused;
    for (;;) {
        xSemaphoreTake(semaphore, portMAX_DELAY);
        xSemaphoreGive(semaphore);
        rounds++;
    }
}

static void start_synchronization(void)
{
    semaphore = xSemaphoreCreateBinary();
    xSemaphoreGive(semaphore);
    add(take_and_give, LOWEST);
}

/* Memory allocation: a task takes a block of 128 bytes and gives it back. */
static void allocate(void *unused)
{
    (void)unused;
    for (;;) {
        vPortFree(pvPortMalloc(BLOCK));
        rounds++;
    }
}

static void start_memory(void) { add(allocate, LOWEST); }

const struct test tests[TESTS] = {
    {"basic", start_basic},
    {"cooperative", start_cooperative},
    {"preemptive", start_preemptive},
    {"interrupt", start_interrupt},
    {"interrupt-preemption", start_interrupt_preemption},
    {"message", start_message},
    {"synchronization", start_synchronization},
    {"memory", start_memory},
};
