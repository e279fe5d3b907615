// SPDX-License-Identifier: Apache-2.0
//
// Vector table and start-up, as a chip vendor ships them: the table comes first in flash; a reset loads the
// stack pointer from its first word and jumps to its second. Handlers have the names of CMSIS and can be
// defined anywhere else.

#include "board.h"

extern uint32_t __data_start[], __data_end[], __data_load[], __bss_start[], __bss_end[], __stack_top[];

int main(void);

typedef void (*vector)(void);
static const vector vectors[16 + 32];

// An exception that nobody handles stops here, where a debugger finds it.
void Default_Handler(void)
{
    for (;;) {
    }
}

#define HANDLER(name) void name(void) __attribute__((weak, alias("Default_Handler")))
HANDLER(NMI_Handler);
HANDLER(HardFault_Handler);
HANDLER(MemManage_Handler);
HANDLER(BusFault_Handler);
HANDLER(UsageFault_Handler);
HANDLER(SVC_Handler);
HANDLER(DebugMon_Handler);
HANDLER(PendSV_Handler);
HANDLER(SysTick_Handler);
HANDLER(UARTRX0_Handler);
HANDLER(UARTTX0_Handler);
HANDLER(UARTRX1_Handler);
HANDLER(UARTTX1_Handler);
HANDLER(UARTRX2_Handler);
HANDLER(UARTTX2_Handler);
HANDLER(TIMER0_Handler);
HANDLER(TIMER1_Handler);
HANDLER(DUALTIMER_Handler);
HANDLER(ETHERNET_Handler);

static void system_init(void)
{
    SCB_VTOR = (uintptr_t)vectors;
    // Full access to the FPU (CP10, CP11), then the barriers that Arm DDI 0403E, B3.2.20 asks for.
    SCB_CPACR |= 0xfu << 20;
    __asm__ volatile("dsb\n isb" ::: "memory");
}

__attribute__((noreturn)) void Reset_Handler(void)
{
    const uint32_t *from = __data_load;
    for (uint32_t *to = __data_start; to < __data_end;)
        *to++ = *from++;
    for (uint32_t *to = __bss_start; to < __bss_end;)
        *to++ = 0;
    system_init();
    main();
    for (;;)
        __asm__ volatile("wfi");
}

__attribute__((section(".vectors"), used)) static const vector vectors[16 + 32] = {
    [0] = (vector)__stack_top,
    [1] = (vector)Reset_Handler,
    [2] = NMI_Handler,
    [3] = HardFault_Handler,
    [4] = MemManage_Handler,
    [5] = BusFault_Handler,
    [6] = UsageFault_Handler,
    [11] = SVC_Handler,
    [12] = DebugMon_Handler,
    [14] = PendSV_Handler,
    [15] = SysTick_Handler,
    [16 + LINE_UART0_RECEIVE] = UARTRX0_Handler,
    [16 + LINE_UART0_TRANSMIT] = UARTTX0_Handler,
    [16 + LINE_UART1_RECEIVE] = UARTRX1_Handler,
    [16 + LINE_UART1_TRANSMIT] = UARTTX1_Handler,
    [16 + LINE_UART2_RECEIVE] = UARTRX2_Handler,
    [16 + LINE_UART2_TRANSMIT] = UARTTX2_Handler,
    [16 + LINE_TIMER0] = TIMER0_Handler,
    [16 + LINE_TIMER1] = TIMER1_Handler,
    [16 + LINE_DUAL_TIMER] = DUALTIMER_Handler,
    [16 + LINE_ETHERNET] = ETHERNET_Handler,
};
