// SPDX-License-Identifier: Apache-2.0
//
// Semaphores, mutexes and queues.

#include "kernel.h"

void semaphore_give(struct semaphore *semaphore)
{
    uint32_t section = critical_enter();
    // A waiting task gets it directly, so nobody who comes later overtakes.
    if (!kernel_wake(&semaphore->waiting))
        semaphore->count++;
    critical_leave(section);
}

bool semaphore_take(struct semaphore *semaphore, uint32_t ticks)
{
    uint32_t section = critical_enter();
    bool taken = semaphore->count > 0;
    if (taken)
        semaphore->count--;
    else
        taken = kernel_wait(&semaphore->waiting, ticks, &section);
    critical_leave(section);
    return taken;
}

void mutex_lock(struct mutex *mutex)
{
    uint32_t section = critical_enter();
    struct task *self = kernel_running();
    if (!mutex->owner) {
        mutex->owner = self;
    } else {
        if (mutex->owner->priority > self->priority)
            kernel_set_priority(mutex->owner, self->priority);
        kernel_wait(&mutex->waiting, FOREVER, &section);
    }
    critical_leave(section);
}

void mutex_unlock(struct mutex *mutex)
{
    uint32_t section = critical_enter();
    struct task *self = mutex->owner;
    mutex->owner = kernel_wake(&mutex->waiting);
    kernel_set_priority(self, self->base);
    critical_leave(section);
}

static void put(struct queue *queue, uint32_t item)
{
    queue->items[(queue->first + queue->count) % queue->capacity] = item;
    queue->count++;
    kernel_wake(&queue->readers);
}

bool queue_send_from_handler(struct queue *queue, uint32_t item)
{
    uint32_t section = critical_enter();
    bool sent = queue->count < queue->capacity;
    if (sent)
        put(queue, item);
    critical_leave(section);
    return sent;
}

bool queue_send(struct queue *queue, uint32_t item, uint32_t ticks)
{
    uint32_t section = critical_enter();
    bool sent = true;
    while (sent && queue->count == queue->capacity)
        sent = kernel_wait(&queue->writers, ticks, &section);
    if (sent)
        put(queue, item);
    critical_leave(section);
    return sent;
}

bool queue_receive(struct queue *queue, uint32_t *item, uint32_t ticks)
{
    uint32_t section = critical_enter();
    bool received = true;
    while (received && queue->count == 0)
        received = kernel_wait(&queue->readers, ticks, &section);
    if (received) {
        *item = queue->items[queue->first];
        queue->first = (queue->first + 1) % queue->capacity;
        queue->count--;
        kernel_wake(&queue->writers);
    }
    critical_leave(section);
    return received;
}
