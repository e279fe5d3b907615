// SPDX-License-Identifier: Apache-2.0
//
// The everyday work of an RTOS, and its cost: sensitive instructions, registers of the CPU, exceptions, and
// the kernel of mcu-rtos with its switches and messages. The same image runs on the bare board and in a
// partition.
//
// Each operation is done a thousand times and the empty loop is taken off. Timer 1 counts the CPU's clock
// down, of which a tick takes 40 instructions in an emulator that counts one instruction as a nanosecond: a
// thousand of anything are exact to a fraction of an instruction. `bench NAME INSTRUCTIONS` is one figure;
// `bench done` is the end. While the kernel is measured its tick stands still. With CPU_ONLY the kernel is
// not measured: its port is for processors with one world.

#include <stdint.h>

#include "board.h"
#include "kernel.h"
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

static uint32_t empty_loop;
static struct semaphore wake, go;
QUEUE(messages, 4);

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
#define INSTRUCTION(text) __asm__ volatile(text ::: "r3", "memory")

static volatile uint32_t supervisor_calls, interrupts;
// The kernel's own handler starts its first task; these are for the time before.
static uint32_t table[16 + 32] __attribute__((aligned(256)));

static void supervisor_call(void)
{
    supervisor_calls++;
}

static void pend(void)
{
    interrupts++;
}

static void nothing(void)
{
}

// The spare interrupt wakes a task once the kernel runs.
void SPARE_Handler(void)
{
    interrupts++;
    if (kernel_switches())
        semaphore_give(&wake);
}

static void measure_cpu(void)
{
    volatile uint32_t *const icsr = &SCB_ICSR;
    empty_loop = TICKS((void)0);
    MEASURE("read-primask", 1, INSTRUCTION("mrs r3, primask"));
    MEASURE("read-basepri", 1, INSTRUCTION("mrs r3, basepri"));
    MEASURE("write-basepri", 1, INSTRUCTION("mov r3, #0\n msr basepri, r3"));
    MEASURE("read-psp", 1, INSTRUCTION("mrs r3, psp"));
    MEASURE("write-psp", 1, INSTRUCTION("mov r3, #0x20000000\n msr psp, r3"));
    MEASURE("cps-pair", 2, INSTRUCTION("cpsid i\n cpsie i"));
    MEASURE("read-private", 1, (void)*icsr);
    MEASURE("read-systick", 1, (void)SYST_CVR);
    MEASURE("write-private", 1, NVIC_ISER0 = 1u << SPARE);
    MEASURE("write-priority", 1, NVIC_IPR(SPARE) = KERNEL_PRIORITY);
    MEASURE("call", 1, INSTRUCTION("svc #1"));
    MEASURE("pendsv", 1, *icsr = SCB_ICSR_PENDSVSET; INSTRUCTION("dsb\n isb"));
    MEASURE("interrupt", 1, NVIC_ISPR0 = 1u << SPARE; INSTRUCTION("dsb\n isb"));
    if (supervisor_calls != ROUNDS || interrupts != 2 * ROUNDS)
        print("bench WRONG %u calls, %u interrupts\n", supervisor_calls, interrupts);
}

// Turns with `measure`, which has the same priority.
static void partner(void)
{
    for (;;) {
        semaphore_take(&go, FOREVER);
        for (uint32_t round = 0; round < ROUNDS; round++)
            task_yield();
    }
}

static void waiter(void)
{
    for (;;)
        semaphore_take(&wake, FOREVER);
}

static void reader(void)
{
    uint32_t item, expected = 0;
    for (;;) {
        queue_receive(&messages, &item, FOREVER);
        if (item != expected++)
            print("bench WRONG message %u\n", item);
    }
}

static void measure_kernel(void)
{
    static struct mutex mutex;
    SYST_CSR = 0;
    empty_loop = TICKS((void)0);
    MEASURE("critical-section", 1, critical_leave(critical_enter()));
    MEASURE("mutex", 1, mutex_lock(&mutex); mutex_unlock(&mutex));
    semaphore_give(&go);
    uint32_t before = kernel_switches();
    uint32_t ticks = TICKS(task_yield());
    uint32_t switches = kernel_switches() - before;
    if (switches + 2 < 2 * ROUNDS)
        print("bench WRONG %u switches\n", switches);
    say("rtos-switch", ticks, 2);
    MEASURE("rtos-semaphore", 1, semaphore_give(&wake));
    MEASURE("rtos-message", 1, queue_send(&messages, round, FOREVER));
    MEASURE("rtos-interrupt", 1, NVIC_ISPR0 = 1u << SPARE; INSTRUCTION("dsb\n isb"));
    print("bench done\n");
    task_sleep(FOREVER);
}

#define START(body, priority)                                                                                                  \
    do {                                                                                                                       \
        static struct task task;                                                                                               \
        static uint32_t stack[256] __attribute__((aligned(8)));                                                                \
        task_create(&task, #body, priority, body, stack, 256);                                                                 \
    } while (0)

int main(void)
{
    const uint32_t *vectors = (const uint32_t *)(uintptr_t)SCB_VTOR;
    uart_start(UART0, false);
    TIMER1->reload = UINT32_MAX;
    TIMER1->control = TIMER_ENABLE;
    for (uint32_t vector = 0; vector < 16 + 32; vector++)
        table[vector] = vectors[vector];
    table[11] = (uintptr_t)supervisor_call;
    table[14] = (uintptr_t)pend;
    table[15] = (uintptr_t)nothing;
    SCB_VTOR = (uintptr_t)table;
    measure_cpu();
    SCB_VTOR = (uintptr_t)vectors;
#ifdef CPU_ONLY
    print("bench done\n");
    for (;;)
        __asm__ volatile("wfi");
#endif

    START(waiter, 2);
    START(reader, 2);
    START(measure_kernel, 3);
    START(partner, 3);
    kernel_start();
}
