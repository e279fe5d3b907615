// SPDX-License-Identifier: Apache-2.0
//
// A program that takes all RAM that its linker script names: variables first, then a heap up to the stack,
// whose pointer starts at the end of RAM. It fills the heap a kilobyte at a time, and each second looks
// whether everything is as it was written.
#include <stdint.h>

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define SYST_CSR REGISTER(0xe000e010)
#define SYST_RVR REGISTER(0xe000e014)
#define SYST_CVR REGISTER(0xe000e018)
#define UART0_DATA REGISTER(0x40004000)
#define UART0_STATE REGISTER(0x40004004)
#define UART0_CONTROL REGISTER(0x40004008)
#define UART0_DIVIDER REGISTER(0x40004010)
#define CPU_CLOCK_HZ 25000000u
#define TICKS_A_SECOND 100u
#define KILOBYTE 1024u

extern uint32_t _sidata[], _sdata[], _edata[], _sbss[], _ebss[], _end[], _estack[], _Min_Stack_Size[];

// Initial values that are not zero, so that start-up has to copy them.
static const char *volatile greeting = "all RAM";
static volatile uint32_t ticks;

void Reset_Handler(void);

static void put(char byte)
{
    while (UART0_STATE & 1) {
    }
    UART0_DATA = (uint8_t)byte;
}

static void print(const char *text)
{
    while (*text)
        put(*text++);
}

static void print_number(uint32_t number, uint32_t base)
{
    char digits[11], *at = digits + sizeof digits;
    *--at = 0;
    do {
        *--at = "0123456789abcdef"[number % base];
        number /= base;
    } while (number);
    print(at);
}

// The heap, as `_sbrk` hands it out: from `_end` to the least stack.
static uint32_t *const heap = _end;
static uint32_t heap_words(void)
{
    return ((uintptr_t)_estack - (uintptr_t)_Min_Stack_Size - (uintptr_t)_end) / sizeof *heap;
}

static uint32_t pattern(uint32_t word, uint32_t round)
{
    return (word ^ round) * 2654435761u;
}

static uint32_t wrong_words(uint32_t round)
{
    uint32_t wrong = 0;
    for (uint32_t word = 0; word < heap_words(); word += KILOBYTE / sizeof *heap)
        wrong += heap[word] != pattern(word, round);
    return wrong;
}

void SysTick_Handler(void)
{
    ticks++;
}

static void Default_Handler(void)
{
    print("an exception that nobody expected\n");
    for (;;) {
    }
}

__attribute__((noreturn)) static void run(void)
{
    print(greeting);
    print(" from 0x");
    print_number((uintptr_t)_sdata, 16);
    print(" to 0x");
    print_number((uintptr_t)_estack, 16);
    print("\n");
    for (uint32_t round = 1;; round++) {
        for (uint32_t word = 0; word < heap_words(); word += KILOBYTE / sizeof *heap)
            heap[word] = pattern(word, round);
        while (ticks < round * TICKS_A_SECOND)
            __asm__ volatile("wfi");
        print("second ");
        print_number(round, 10);
        print(": ");
        print_number(heap_words() * sizeof *heap / KILOBYTE, 10);
        print("K of heap, ");
        print_number(wrong_words(round), 10);
        print(" words wrong\n");
    }
}

__attribute__((section(".isr_vector"), used)) static void (*const vectors[16])(void) = {
    [0] = (void (*)(void))_estack,
    [1] = Reset_Handler,
    [2] = Default_Handler,
    [3] = Default_Handler,
    [4] = Default_Handler,
    [5] = Default_Handler,
    [6] = Default_Handler,
    [11] = Default_Handler,
    [12] = Default_Handler,
    [14] = Default_Handler,
    [15] = SysTick_Handler,
};

void Reset_Handler(void)
{
    const uint32_t *from = _sidata;
    for (uint32_t *to = _sdata; to < _edata;)
        *to++ = *from++;
    for (uint32_t *to = _sbss; to < _ebss;)
        *to++ = 0;
    REGISTER(0xe000ed08) = (uintptr_t)vectors;
    UART0_DIVIDER = CPU_CLOCK_HZ / 115200;
    UART0_CONTROL = 1;
    SYST_RVR = CPU_CLOCK_HZ / TICKS_A_SECOND - 1;
    SYST_CVR = 0;
    SYST_CSR = 7;
    run();
}
