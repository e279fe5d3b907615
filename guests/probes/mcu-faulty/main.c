// SPDX-License-Identifier: Apache-2.0
//
// A VM of a microcontroller that does one wrong thing, for the tests of health events and actions. Nothing tells
// such a VM more than names, so a name says which: one of `faults`. It is the name of its partition, which a call of
// a debugger tells, or on Armv8-M, where the hypervisor answers no such call, the name of its capability.
//
// It prints `before NAME`; then `after NAME: VALUE` if it survives, and stops itself. If the fault is reflected
// into it, its HardFault prints `exception` and the fault status, and stops it.

#include "board.h"
#include "uart.h"
#include "vm.h"

// The configurable fault status (Arm DDI 0403E, B3.2.15).
#define SCB_CFSR REGISTER(0xe000ed28)
// An address that is nothing of the partition's.
#define NOWHERE 0x80000000u
// UART 1 of the boards of class armv8m, which the tests give to others.
#define DEVICE 0x40201000u

enum { CLOCK = 1, NOBODY = 15, MILLISECOND = 1000000, LATE = 20, KICKS = 10, NAME = 24, GET_COMMAND_LINE = 0x15 };

// What the handler of HardFault does.
static volatile enum { REPORTS, FAULTS, RETURNS } handler;
// A table of vectors without a vector (aligned as its size asks for, B3.2.5).
static const volatile uint32_t no_table[64] __attribute__((aligned(256), section(".bss.no_table")));

static void say_number(uint32_t number)
{
    uart_print(UART0, "0x");
    for (int shift = 28; shift >= 0; shift -= 4) {
        char digit[] = {"0123456789abcdef"[number >> shift & 15], 0};
        uart_print(UART0, digit);
    }
    uart_print(UART0, "\n");
}

static void stop(void)
{
    vm_call(BULKHEAD_PARTITION_STOP, BULKHEAD_SELF_CAPABILITY, 0, 0);
    for (;;)
        __asm__ volatile("wfi");
}

void HardFault_Handler(void)
{
    if (handler == RETURNS)
        return;
    if (handler == FAULTS)
        __asm__ volatile("udf #1");
    uart_print(UART0, "exception ");
    say_number(SCB_CFSR);
    stop();
}

static void sleep_milliseconds(uint32_t number)
{
    uint64_t now[4] = {0}, wake[5] = {0};
    vm_call(BULKHEAD_TIMER_NOW, CLOCK, 0, now);
    wake[0] = now[0] + (uint64_t)number * MILLISECOND;
    vm_call(BULKHEAD_TIMER_SLEEP, CLOCK, wake, 0);
}

static uint32_t none(void)
{
    return 0;
}

static uint32_t load(void)
{
    return REGISTER(NOWHERE);
}

static uint32_t store(void)
{
    REGISTER(NOWHERE) = 0x0bad0bad;
    return 0;
}

static uint32_t load_device(void)
{
    return REGISTER(DEVICE + 4);
}

static uint32_t store_device(void)
{
    REGISTER(DEVICE) = 'X';
    return 0;
}

static uint32_t jump(void)
{
    ((void (*)(void))(NOWHERE | 1))();
    return 0;
}

#ifdef NEIGHBOUR
// NEIGHBOUR is memory of another partition, as gcc.options says. The code is that of `world-ticker`. Another CPU
// may run the neighbour in its Non-secure world at this moment.
#define NEIGHBOUR_CODE 0x00028400u

static uint32_t load_from_neighbour(void)
{
    return REGISTER(NEIGHBOUR);
}

static uint32_t store_to_neighbour(void)
{
    REGISTER(NEIGHBOUR) = 0x0bad0bad;
    return 0;
}

static uint32_t jump_to_neighbour(void)
{
    ((void (*)(void))(NEIGHBOUR_CODE | 1))();
    return 0;
}
#endif

// A stack pointer to nothing, and an exception then.
static uint32_t lose_stack(void)
{
    __asm__ volatile("msr msp, %0\n svc #8" ::"r"(NOWHERE));
    return 0;
}

// An undefined instruction, while UsageFault is not enabled.
static uint32_t undefined(void)
{
    __asm__ volatile("udf #1");
    return 0;
}

// A fault in the handler of HardFault: a chip would lock up.
static uint32_t lock_up(void)
{
    handler = FAULTS;
    __asm__ volatile("udf #1");
    return 0;
}

// The handler goes back to what faults, for ever.
static uint32_t loop(void)
{
    handler = RETURNS;
    __asm__ volatile("udf #1");
    return 0;
}

static void lose_vectors(void)
{
    SCB_VTOR = (uintptr_t)no_table;
    __asm__ volatile("dsb\n isb" ::: "memory");
}

__attribute__((noinline)) static uint32_t undefined_without_vectors(void)
{
    lose_vectors();
    __asm__ volatile("udf #1");
    return 0;
}

__attribute__((noinline)) static uint32_t call_without_vectors(void)
{
    lose_vectors();
    __asm__ volatile("svc #7");
    return 0;
}

static uint32_t call_of_no_number(void)
{
    return (uint32_t)vm_call(BULKHEAD_FUNCTION_BASE | 0x7fff, BULKHEAD_SELF_CAPABILITY, 0, 0);
}

static uint32_t call_without_capability(void)
{
    return (uint32_t)vm_call(BULKHEAD_PARTITION_STATUS, NOBODY, 0, 0);
}

static uint32_t late(void)
{
    sleep_milliseconds(LATE);
    return 0;
}

__attribute__((noreturn)) static uint32_t busy(void)
{
    for (int kick = 0; kick < KICKS; kick++) {
        sleep_milliseconds(1);
        vm_call(BULKHEAD_PARTITION_KICK, BULKHEAD_SELF_CAPABILITY, 0, 0);
    }
    for (;;)
        __asm__ volatile("");
}

// Asleep for ever, interrupts masked.
__attribute__((noreturn)) static uint32_t hang(void)
{
    __asm__ volatile("cpsid i");
    for (;;)
        __asm__ volatile("wfi");
}

static const struct {
    const char *name;
    uint32_t (*function)(void);
} faults[] = {
    // The first, because on Armv8-M each name that is asked for in vain is an event of class `hypercall` too.
    {"hypercall-number", call_of_no_number},
    {"none", none},
    {"memory-read", load},
    {"memory-write", store},
    {"memory-exec", jump},
#ifdef NEIGHBOUR
    {"neighbour-read", load_from_neighbour},
    {"neighbour-write", store_to_neighbour},
    {"neighbour-exec", jump_to_neighbour},
#endif
    {"stack", lose_stack},
    {"hard-fault", undefined},
    {"lock-up", lock_up},
    {"loop", loop},
    {"undefined", undefined_without_vectors},
    {"call", call_without_vectors},
    {"hypercall-capability", call_without_capability},
    {"late", late},
    {"busy", busy},
    {"hang", hang},
    {"device-read", load_device},
    {"device-write", store_device},
};

#ifdef __ARM_ARCH_8M_MAIN__
static int is_told(const char *fault)
{
    uint64_t name[5] = {0}, results[4];
    for (unsigned at = 0; fault[at]; at++)
        name[at / 8] |= (uint64_t)(uint8_t)fault[at] << (at % 8 * 8);
    return vm_call(BULKHEAD_CAPABILITY_FIND, BULKHEAD_SELF_CAPABILITY, name, results) == 0;
}
#else
// Asks for the name of the partition (Arm, Semihosting for AArch32 and AArch64, SYS_GET_CMDLINE).
static void find_name(char *name)
{
    uint32_t block[] = {(uint32_t)name, NAME};
    register uint32_t operation __asm__("r0") = GET_COMMAND_LINE;
    register uint32_t *argument __asm__("r1") = block;
    __asm__ volatile("bkpt 0xab" : "+r"(operation) : "r"(argument) : "memory");
}

static int equal(const char *one, const char *other)
{
    for (; *one && *one == *other; one++)
        other++;
    return *one == *other;
}

static int is_told(const char *fault)
{
    char name[NAME] = {0};
    find_name(name);
    return equal(fault, name);
}
#endif

int main(void)
{
    uart_start(UART0, false);
    for (unsigned at = 0; at < sizeof faults / sizeof faults[0]; at++) {
        const char *name = faults[at].name;
        if (!is_told(name))
            continue;
        uart_print(UART0, "before ");
        uart_print(UART0, name);
        uart_print(UART0, "\n");
        uint32_t value = faults[at].function();
        uart_print(UART0, "after ");
        uart_print(UART0, name);
        uart_print(UART0, ": ");
        say_number(value);
        stop();
    }
    uart_print(UART0, "there is no such fault\n");
    return 0;
}
