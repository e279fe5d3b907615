// SPDX-License-Identifier: Apache-2.0
//
// One of two partitions that `./bulkhead bench --board mps2-an505` measures, as a VM or as a task. The first
// capability of the partition says what it does:
//
// | first capability | part |
// |---|---|
// | a partition that it may read | computes for ever |
// | a partition that it may control | (a VM) computes, and has an interrupt of TIMER1 again and again |
// | a port that it may only read | answers the messages of the other side |
// | a port of its own, then the server's port | measures calls and messages |
// | a timer | waits for an interrupt of TIMER1 again and again, a task at its event gate |
//
// The program reads no clock. The bench counts the instructions in the log of the emulator, and `bench_mark`
// separates the operations there. The order of the operations is the one of bench/src/class/armv8m/calls.rs.

#include "board.h"
#ifdef TASK
#include "task.h"
#define CALL task_call
#else
#include "vm.h"
#define CALL vm_call
#endif

enum { FIRST = 1, SECOND = 2, ROUNDS = 1 + 3, SIZES = 5, STEP = 64, LONGEST = SIZES * STEP };
// Times are in nanoseconds. TICK is one of TIMER1.
enum { ARRIVALS = 3 + 32, AHEAD = 800000, TICK = 50 };

static uint64_t message[LONGEST / 8], answer[LONGEST / 8];

// Separates two operations.
__attribute__((noinline)) void bench_mark(void)
{
    __asm__ volatile("" ::: "memory");
}

// Ends the measurement.
__attribute__((noinline)) void bench_end(void)
{
    for (;;)
        __asm__ volatile("" ::: "memory");
}

static int32_t null_call(void)
{
    return CALL(BULKHEAD_NULL, BULKHEAD_SELF_CAPABILITY, 0, 0);
}

// The instruction of class armv7m, with which a VM can call as well.
static int32_t null_call_by_instruction(void)
{
    register uint32_t function __asm__("r0") = BULKHEAD_NULL;
    register uint32_t capability __asm__("r1") = BULKHEAD_SELF_CAPABILITY;
#ifdef TASK
    __asm__ volatile("svc #0" : "+r"(function), "+r"(capability)::"r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "memory");
#else
    __asm__ volatile(".inst.n 0xdeb1" : "+r"(function), "+r"(capability)::"r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "memory");
#endif
    return (int32_t)function;
}

static int32_t send(uint32_t port, uint32_t size)
{
    const uint64_t arguments[5] = {(uintptr_t)message, size};
    return CALL(BULKHEAD_PORT_SEND, port, arguments, 0);
}

static int32_t try_receive(uint32_t port)
{
    const uint64_t arguments[5] = {(uintptr_t)answer, LONGEST};
    return CALL(BULKHEAD_PORT_TRY_RECEIVE, port, arguments, 0);
}

static int32_t request(uint32_t function, uint32_t size)
{
    const uint64_t arguments[5] = {(uintptr_t)message, size, (uintptr_t)answer, LONGEST};
    return CALL(function, SECOND, arguments, 0);
}

#define MEASURE(operation)                                                                                                     \
    do {                                                                                                                       \
        bench_mark();                                                                                                          \
        if (operation != 0)                                                                                                    \
            return;                                                                                                            \
    } while (0)

// Passes the time in which the hypervisor prints what it has started.
static void let_it_print(void)
{
    for (volatile uint32_t turn = 0; turn < 10000; turn++) {
    }
}

static void measure(void)
{
    let_it_print();
    for (uint32_t round = 0; round < ROUNDS; round++) {
        MEASURE(null_call());
        MEASURE(null_call_by_instruction());
    }
    for (uint32_t size = STEP; size <= LONGEST; size += STEP) {
        for (uint32_t round = 0; round < ROUNDS; round++) {
            MEASURE(send(FIRST, size));
            MEASURE(try_receive(FIRST));
            MEASURE(request(BULKHEAD_PORT_SEND_RECEIVE_DONATE, size));
            MEASURE(request(BULKHEAD_PORT_SEND_RECEIVE, size));
            MEASURE(send(SECOND, size));
        }
    }
    bench_mark();
    bench_end();
}

static void serve(void)
{
    uint64_t results[4] = {0};
    for (;;) {
        const uint64_t arguments[5] = {(uintptr_t)answer, LONGEST, results[0], results[2]};
        if (CALL(BULKHEAD_PORT_RECEIVE_DONATE, FIRST, arguments, results) != 0)
            return;
    }
}

static void start_timer(uint32_t round)
{
    TIMER1->value = AHEAD / TICK + round;
    TIMER1->control = TIMER_ENABLE_INTERRUPT;
}

static void end_interrupt(void)
{
    TIMER1->control = 0;
    TIMER1->interrupt = 1;
}

#ifdef TASK
static void wait_for_interrupts(void)
{
    const uint64_t for_ever[5] = {0};
    for (uint32_t round = 0; round < ARRIVALS; round++) {
        start_timer(round);
        if (CALL(BULKHEAD_EVENT_WAIT, SECOND, for_ever, 0) != 0)
            return;
        bench_mark();
        end_interrupt();
    }
    bench_end();
}
#else
// The line of TIMER1 on this board. The vector table has the names of another board.
#define TIMER1_LINE LINE_UART2_RECEIVE
#define TIMER1_Handler UARTRX2_Handler

static volatile uint32_t arrivals;

void TIMER1_Handler(void)
{
    bench_mark();
    end_interrupt();
    arrivals++;
}

// Waits for the timer by calls of the hypervisor, or computes meanwhile.
static void wait_for_interrupts(int sleeps)
{
    const uint64_t for_ever[5] = {UINT64_MAX};
    interrupt_enable(TIMER1_LINE, 0);
    for (uint32_t round = 0; round < ARRIVALS; round++) {
        start_timer(round);
        while (arrivals == round)
            if (sleeps)
                CALL(BULKHEAD_TIMER_SLEEP, FIRST, for_ever, 0);
    }
    bench_end();
}

// The program fills 64 KiB of code memory, as a larger one does.
__attribute__((aligned(1024))) static const uint8_t filling[61 * 1024] = {1};
#endif

static void compute(void)
{
    for (;;)
        __asm__ volatile("" ::: "memory");
}

int main(void)
{
    uint64_t what[4] = {0};
    if (CALL(BULKHEAD_CAPABILITY_INSPECT, FIRST, 0, what) != 0)
        return 1;
    switch (what[0] >> 32) {
    case BULKHEAD_KIND_PORT:
        if (what[0] & BULKHEAD_RIGHT_WRITE)
            measure();
        else
            serve();
        return 1;
#ifdef TASK
    case BULKHEAD_KIND_TIMER:
        wait_for_interrupts();
        return 1;
#else
    case BULKHEAD_KIND_TIMER:
        wait_for_interrupts(1);
        return 1;
    case BULKHEAD_KIND_PARTITION:
        if (what[0] & BULKHEAD_RIGHT_CONTROL)
            wait_for_interrupts(0);
        (void)*(const volatile uint8_t *)filling;
        compute();
        return 0;
#endif
    default:
        compute();
        return 0;
    }
}
