// SPDX-License-Identifier: Apache-2.0
//
// Bare metal. The handler of a timer does everything that a handler can do, one thing an alarm, while the
// thread sleeps: with the main stack, with the process stack, and without privileges. At the end it prints what
// it found. The output is the same on the bare board and wherever its handlers start early.

#include <stdbool.h>
#include <stddef.h>

#include "board.h"
#include "uart.h"

#define SCB_SHCSR REGISTER(0xe000ed24)
#define SCB_CFSR REGISTER(0xe000ed28)
#define SCB_HFSR REGISTER(0xe000ed2c)
#define SHCSR_FAULTS (7u << 16)

// Cycles between two alarms. The longest thing takes less.
#define PERIOD 25000u
// Turns of a loop that takes longer than an early start may.
#define LONG 20000
// Lines without a device here.
#define LINE_OWN 4
#define LINE_LATER 6

enum thing { NOTHING, LOOP, CALL, FLOAT, NUMBER, MASK, WRITE, FAULT, UNDEFINED, BREAKPOINT, DEEP, PEND, SLEEP, THINGS };

// The things that were found: added up in a number that depends on their order.
static volatile uint32_t found;
static volatile uint32_t alarms, calls, faults, pended, damaged;
static volatile float value = 1.0f;

static void find(uint32_t word)
{
    found = (found << 5 | found >> 27) ^ word;
}

static void say_number(uint32_t number)
{
    for (int shift = 28; shift >= 0; shift -= 4)
        uart_send(UART0, (uint8_t)"0123456789abcdef"[number >> shift & 15]);
}

static uint32_t exception_number(void)
{
    uint32_t number;
    __asm__ volatile("mrs %0, ipsr" : "=r"(number));
    return number;
}

// Uses more of the stack than a frame.
static __attribute__((noinline)) uint32_t deep(uint32_t seed)
{
    volatile uint32_t words[200];
    uint32_t sum = 0;
    for (size_t index = 0; index < 200; index++)
        words[index] = seed + index;
    for (size_t index = 0; index < 200; index++)
        sum += words[index];
    return sum;
}

void SVC_Handler(void)
{
    calls++;
    find(exception_number());
}

// Goes on after the instruction, which has four bytes.
__attribute__((naked)) static void skip(void)
{
    __asm__ volatile("tst lr, #4\n ite eq\n mrseq r0, msp\n mrsne r0, psp\n"
                     "ldr r1, [r0, #24]\n adds r1, #4\n str r1, [r0, #24]\n bx lr");
}

#define FAULT_HANDLER(name, note)                                                                                    \
    static __attribute__((used)) void note(void)                                                                     \
    {                                                                                                                \
        faults++;                                                                                                    \
        find(exception_number());                                                                                    \
        find(SCB_CFSR);                                                                                              \
        find(SCB_HFSR);                                                                                              \
        SCB_CFSR = SCB_CFSR;                                                                                         \
        SCB_HFSR = SCB_HFSR;                                                                                         \
    }                                                                                                                \
    __attribute__((naked)) void name(void)                                                                           \
    {                                                                                                                \
        __asm__ volatile("push {r4, lr}\n bl " #note "\n pop {r4, lr}\n b %c0" ::"i"(skip));                         \
    }
FAULT_HANDLER(HardFault_Handler, note_hard_fault)
FAULT_HANDLER(BusFault_Handler, note_bus_fault)
FAULT_HANDLER(UsageFault_Handler, note_usage_fault)

void UARTRX2_Handler(void)
{
    pended++;
    find(exception_number());
}

static void do_thing(enum thing thing)
{
    switch (thing) {
    case LOOP:
        for (int turn = 0; turn < LONG; turn++)
            __asm__ volatile("nop");
        break;
    case CALL:
        __asm__ volatile("svc #3" ::: "memory");
        break;
    case FLOAT:
        value = value * 1.5f;
        break;
    case NUMBER:
        find(exception_number());
        break;
    case MASK:
        __asm__ volatile("cpsid i\n cpsie i");
        break;
    case WRITE:
        NVIC_ISER0 = 1u << LINE_LATER;
        find(NVIC_ISER0);
        break;
    case FAULT:
        // The private bus has nothing there.
        __asm__ volatile("ldr.w r1, [%0]" ::"r"(0xe0050000u) : "r1", "memory");
        break;
    case UNDEFINED:
        __asm__ volatile("udf.w #1");
        break;
    case BREAKPOINT:
        __asm__ volatile("bkpt #7\n nop");
        break;
    case DEEP:
        find(deep(alarms));
        break;
    case PEND:
        NVIC_ISPR0 = 1u << LINE_OWN;
        break;
    case SLEEP:
        // The event of the exception's entry, and one of its own.
        __asm__ volatile("wfe\n sev\n wfe");
        break;
    default:
        break;
    }
}

// The handler of the timer, with numbers in all registers that it does not have to keep. The thread has others.
void TIMER1_Handler(void)
{
    TIMER1->interrupt = 1;
    do_thing(alarms % THINGS);
    find(alarms);
    alarms++;
}

// Sleeps with numbers in the registers. Returns how many have changed.
static __attribute__((noinline)) uint32_t sleep(void)
{
    uint32_t changed;
    __asm__ volatile("mov r4, #0x44\n mov r5, #0x55\n mov r6, #0x66\n mov r8, #0x88\n mov r9, #0x99\n mov r10, #0xaa\n"
                     "mov r11, #0xbb\n mov r0, #1\n mov r1, #0x11\n mov r2, #0x22\n mov r3, #0x33\n mov r12, #0xcc\n"
                     "wfi\n nop\n"
                     "sub r4, #0x44\n sub r5, #0x55\n sub r6, #0x66\n sub r8, #0x88\n sub r9, #0x99\n sub r10, #0xaa\n"
                     "sub r11, #0xbb\n sub r1, #0x11\n sub r2, #0x22\n sub r3, #0x33\n sub r12, #0xcc\n"
                     "orr r4, r4, r5\n orr r4, r4, r6\n orr r4, r4, r8\n orr r4, r4, r9\n orr r4, r4, r10\n"
                     "orr r4, r4, r11\n orr r4, r4, r1\n orr r4, r4, r2\n orr r4, r4, r3\n orr r4, r4, r12\n"
                     "mov %0, r4\n"
                     : "=r"(changed)
                     :
                     : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "cc", "memory");
    return changed;
}

// Rounds of all things.
static __attribute__((noinline)) void rounds(uint32_t number, const char *name)
{
    uint32_t end = alarms + number * THINGS;
    while (alarms < end)
        damaged |= sleep();
    uart_print(UART0, "sudden: ");
    uart_print(UART0, name);
    uint32_t numbers[] = {alarms, calls, faults, pended, damaged, (uint32_t)(value * 16.0f), found};
    for (size_t index = 0; index < sizeof numbers / sizeof *numbers; index++) {
        uart_print(UART0, " ");
        say_number(numbers[index]);
    }
    uart_print(UART0, "\r\n");
    value = 1.0f;
}

static uint32_t process_stack[256] __attribute__((aligned(8)));

int main(void)
{
    uart_start(UART0, false);
    SCB_SHCSR = SHCSR_FAULTS;
    SCB_SHPR2 = 0x00000000;
    interrupt_enable(LINE_OWN, 0x80);
    NVIC_IPR(LINE_TIMER1) = 0x40;
    TIMER1->reload = PERIOD;
    TIMER1->value = PERIOD;
    TIMER1->control = TIMER_ENABLE_INTERRUPT;
    interrupt_enable(LINE_TIMER1, 0x40);
    rounds(12, "main stack");
    __asm__ volatile("msr psp, %0\n mrs r1, control\n orr r1, r1, #2\n msr control, r1\n isb" ::"r"(process_stack + 256)
                     : "r1", "memory");
    rounds(12, "process stack");
    __asm__ volatile("mrs r1, control\n orr r1, r1, #1\n msr control, r1\n isb" ::: "r1", "memory");
    rounds(12, "without privileges");
    uart_print(UART0, "sudden: done\r\n");
    for (;;)
        __asm__ volatile("wfi");
}
