// SPDX-License-Identifier: Apache-2.0
//
// A small preemptive kernel: tasks with fixed priorities, a tick, semaphores, mutexes with priority
// inheritance, queues.
//
// The task with the highest priority runs; tasks of one priority take turns at each tick. A task waits in
// exactly one list, the ready list of its priority or the waiting list of an object, and for a time if it
// asked for one. Critical sections raise BASEPRI, so interrupts more urgent than KERNEL_PRIORITY are never
// delayed and must not call the kernel.
#ifndef KERNEL_H
#define KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#define TICK_HZ 1000u
#define PRIORITIES 8
#define FOREVER UINT32_MAX
// The least urgent interrupts: those that may call the kernel have this priority or a larger number.
#define KERNEL_PRIORITY 0x80
#define LOWEST_PRIORITY 0xff

struct task {
    uint32_t *stack;
    struct task *next;
    // Every task, for the tick.
    struct task *all;
    struct task **list;
    const char *name;
    uint32_t wake;
    // `base` is its own; `priority` is that of the most urgent task that waits for a mutex it holds.
    uint8_t base, priority;
    bool timed, timed_out;
};

struct semaphore {
    struct task *waiting;
    uint32_t count;
};

struct mutex {
    struct task *owner;
    struct task *waiting;
};

struct queue {
    uint32_t *items;
    uint32_t capacity, first, count;
    struct task *readers, *writers;
};

#define QUEUE(name, size)                                                                                                      \
    static uint32_t name##_items[size];                                                                                        \
    static struct queue name = {.items = name##_items, .capacity = size}

// Makes a task ready. `stack` is its memory, `words` long.
void task_create(struct task *task, const char *name, uint8_t priority, void (*body)(void), uint32_t *stack, uint32_t words);
// Starts the first task; never returns.
__attribute__((noreturn)) void kernel_start(void);
// Ticks since the start.
uint32_t kernel_ticks(void);
// Context switches since the start.
uint32_t kernel_switches(void);

// Waits for `ticks`.
void task_sleep(uint32_t ticks);
// Waits until the tick `*wake + period`, which it writes back: a period without drift.
void task_sleep_until(uint32_t *wake, uint32_t period);
// Lets others of the same priority run.
void task_yield(void);

// May be called in interrupt handlers.
void semaphore_give(struct semaphore *semaphore);
bool semaphore_take(struct semaphore *semaphore, uint32_t ticks);

void mutex_lock(struct mutex *mutex);
void mutex_unlock(struct mutex *mutex);

bool queue_send(struct queue *queue, uint32_t item, uint32_t ticks);
bool queue_receive(struct queue *queue, uint32_t *item, uint32_t ticks);
// For interrupt handlers: false if the queue is full.
bool queue_send_from_handler(struct queue *queue, uint32_t item);

// Building blocks of the objects.
uint32_t critical_enter(void);
void critical_leave(uint32_t before);
struct task *kernel_running(void);
// Waits in a list for at most `ticks`, as the last of its priority; in a critical section, which is left in
// between. False if the time was up.
bool kernel_wait(struct task **list, uint32_t ticks, uint32_t *section);
// Wakes the most urgent task of a list, if there is one; in a critical section.
struct task *kernel_wake(struct task **list);
// Gives a task another priority, in whatever list it is.
void kernel_set_priority(struct task *task, uint8_t priority);

#endif
