// SPDX-License-Identifier: Apache-2.0
//
// Vector table, and what newlib's start-up leaves to a debugger: initial values of variables, and the FPU.

#include <stdint.h>

extern uint32_t __data_start[], __data_end[], __data_load[], __stack[];

// newlib's own: it asks for heap and stack, clears variables, opens the console, asks for the arguments and
// calls `main`.
void _start(void);

__attribute__((noreturn)) void Reset_Handler(void)
{
    *(volatile uint32_t *)0xE000ED88 |= 0xfu << 20;
    __asm__ volatile("dsb\n isb" ::: "memory");
    const volatile uint32_t *from = __data_load;
    for (volatile uint32_t *to = __data_start; to < __data_end;)
        *to++ = *from++;
    _start();
    for (;;) {
    }
}

// An exception that nobody handles stops here, where a debugger finds it.
static void stop(void)
{
    for (;;) {
    }
}

typedef void (*vector)(void);
__attribute__((section(".vectors"), used)) static const vector vectors[16] = {
    (vector)__stack, Reset_Handler, stop, stop, stop, stop, stop, 0, 0, 0, 0, stop, stop, 0, stop, stop,
};
