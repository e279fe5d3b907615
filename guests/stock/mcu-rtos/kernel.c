// SPDX-License-Identifier: Apache-2.0

#include "kernel.h"

#include "board.h"

// The frame in which a task begins: R4 to R11 and EXC_RETURN, and the exception's own eight words.
#define SAVED_WORDS 9
#define FRAME_WORDS 8
// Thread mode, process stack, no floating-point registers in the frame.
#define RETURN_TO_TASK 0xfffffffdu

void kernel_enter(void);

// Names that switch.S uses.
struct task *current;
void kernel_select(void);

static struct task *ready[PRIORITIES];
// Bit 31 - N: somebody of priority N is ready. Counting leading zeros finds the most urgent.
static uint32_t ready_priorities;
static struct task *all_tasks;
static volatile uint32_t ticks;
static uint32_t switches;

uint32_t critical_enter(void)
{
    uint32_t before;
    __asm__ volatile("mrs %0, basepri\n"
                     "msr basepri, %1\n"
                     "isb\n dsb"
                     : "=&r"(before)
                     : "r"(KERNEL_PRIORITY)
                     : "memory");
    return before;
}

void critical_leave(uint32_t before)
{
    __asm__ volatile("msr basepri, %0" ::"r"(before) : "memory");
}

struct task *kernel_running(void)
{
    return current;
}

uint32_t kernel_ticks(void)
{
    return ticks;
}

uint32_t kernel_switches(void)
{
    return switches;
}

static void append(struct task **list, struct task *task)
{
    // Waiting lists are in the order of priorities; a ready list has one priority only.
    while (*list && (*list)->priority <= task->priority)
        list = &(*list)->next;
    task->next = *list;
    *list = task;
}

static void unlink(struct task *task)
{
    struct task **link = task->list;
    while (*link != task)
        link = &(*link)->next;
    *link = task->next;
    uint8_t priority = task->priority;
    if (task->list == &ready[priority] && !ready[priority])
        ready_priorities &= ~(0x80000000u >> priority);
}

static void enlist(struct task **list, struct task *task)
{
    task->list = list;
    append(list, task);
}

static void request_switch(void)
{
    SCB_ICSR = SCB_ICSR_PENDSVSET;
    __asm__ volatile("dsb\n isb" ::: "memory");
}

static void make_ready(struct task *task)
{
    task->timed = false;
    enlist(&ready[task->priority], task);
    ready_priorities |= 0x80000000u >> task->priority;
    if (current && task->priority < current->priority)
        request_switch();
}

void kernel_select(void)
{
    current = ready[__builtin_clz(ready_priorities)];
    switches++;
}

bool kernel_wait(struct task **list, uint32_t duration, uint32_t *section)
{
    struct task *self = current;
    if (duration == 0)
        return false;
    unlink(self);
    enlist(list, self);
    self->timed_out = false;
    self->timed = duration != FOREVER;
    self->wake = ticks + duration;
    request_switch();
    critical_leave(*section);
    // Others run here.
    *section = critical_enter();
    return !self->timed_out;
}

struct task *kernel_wake(struct task **list)
{
    struct task *task = *list;
    if (task) {
        unlink(task);
        make_ready(task);
    }
    return task;
}

void kernel_set_priority(struct task *task, uint8_t priority)
{
    if (task->priority == priority)
        return;
    bool is_ready = task->list == &ready[task->priority];
    unlink(task);
    task->priority = priority;
    if (is_ready)
        make_ready(task);
    else
        enlist(task->list, task);
    if (current && __builtin_clz(ready_priorities) < current->priority)
        request_switch();
}

// Those that only wait for a time.
static struct task *sleeping;

void task_sleep(uint32_t duration)
{
    uint32_t section = critical_enter();
    kernel_wait(&sleeping, duration, &section);
    critical_leave(section);
}

void task_sleep_until(uint32_t *wake, uint32_t period)
{
    *wake += period;
    uint32_t section = critical_enter();
    int32_t left = (int32_t)(*wake - ticks);
    if (left > 0)
        kernel_wait(&sleeping, (uint32_t)left, &section);
    critical_leave(section);
}

// To the end of its list.
static void take_turns(struct task *task)
{
    if (!task->next)
        return;
    unlink(task);
    make_ready(task);
    request_switch();
}

void task_yield(void)
{
    uint32_t section = critical_enter();
    take_turns(current);
    critical_leave(section);
}

void SysTick_Handler(void)
{
    uint32_t section = critical_enter();
    ticks++;
    for (struct task *task = all_tasks; task; task = task->all) {
        if (task->timed && task->wake == ticks) {
            unlink(task);
            task->timed_out = true;
            make_ready(task);
        }
    }
    if (current->list == &ready[current->priority])
        take_turns(current);
    critical_leave(section);
}

void task_create(struct task *task, const char *name, uint8_t priority, void (*body)(void), uint32_t *stack, uint32_t words)
{
    // Full: a look at the memory tells how much of it was ever used.
    for (uint32_t word = 0; word < words; word++)
        stack[word] = 0xa5a5a5a5;
    // Exceptions align the stack to eight bytes; so does the procedure call standard.
    uint32_t *top = (uint32_t *)((uintptr_t)(stack + words) & ~7u);
    top -= FRAME_WORDS;
    top[5] = 0xffffffff;
    top[6] = (uintptr_t)body & ~1u;
    top[7] = 1u << 24;
    top -= SAVED_WORDS;
    top[8] = RETURN_TO_TASK;
    *task = (struct task){.stack = top, .name = name, .base = priority, .priority = priority};
    uint32_t section = critical_enter();
    task->all = all_tasks;
    all_tasks = task;
    make_ready(task);
    critical_leave(section);
}

static void idle(void)
{
    for (;;)
        __asm__ volatile("wfi");
}

void kernel_start(void)
{
    static struct task idle_task;
    static uint32_t idle_stack[96] __attribute__((aligned(8)));
    task_create(&idle_task, "idle", PRIORITIES - 1, idle, idle_stack, 96);

    // PendSV and SysTick are the least urgent: a switch happens when no handler is active.
    SCB_SHPR3 |= (uint32_t)LOWEST_PRIORITY << 16 | (uint32_t)LOWEST_PRIORITY << 24;
    SYST_RVR = CPU_CLOCK_HZ / TICK_HZ - 1;
    SYST_CVR = 0;
    SYST_CSR = SYST_ENABLE_TICK_CORE_CLOCK;
    kernel_select();
    kernel_enter();
    for (;;) {
    }
}
