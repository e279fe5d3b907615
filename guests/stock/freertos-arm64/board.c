/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupt controller (Arm IHI 0069), generic timer (Arm ARM, chapter D12), UART (Arm DDI 0183), PSCI. */
#include "FreeRTOS.h"
#include "board.h"

#define GICD 0x08000000ul
#define GICR 0x080a0000ul
#define UART 0x09000000ul
#define PSCI_SYSTEM_OFF 0x84000008ul

/* Interrupts: the EL1 virtual timer (Arm BSA, PPI 11), and a software generated interrupt of the tests. */
#define LINE_TIMER 27u
#define LINE_TEST 1u

const char board_name[] = "64-bit Arm";

#define PRIORITY_TICK (portLOWEST_USABLE_INTERRUPT_PRIORITY << portPRIORITY_SHIFT)
#define PRIORITY_TEST ((configMAX_API_CALL_INTERRUPT_PRIORITY + 2u) << portPRIORITY_SHIFT)

static uint64_t interval;

static volatile uint32_t *at(uintptr_t address) { return (volatile uint32_t *)address; }

void board_init(void)
{
    /* Affinity routing, group 1 on. */
    *at(GICD) = 1u << 4 | 1u << 1;
    /* GICR_WAKER: the redistributor wakes up. */
    *at(GICR + 0x14) &= ~2u;
    while (*at(GICR + 0x14) & 4u) {
    }
    uintptr_t own = GICR + 0x10000;
    *at(own + 0x80) = ~0u;
    for (uint32_t line = 0; line < 32; line += 4) {
        uint32_t low = line == (LINE_TEST & ~3u) ? PRIORITY_TEST : PRIORITY_TICK;
        *at(own + 0x400 + line) = low * 0x01010101u;
    }
    *at(own + 0x100) = 1u << LINE_TIMER | 1u << LINE_TEST;
    __asm volatile("msr s3_0_c12_c12_5, %0\n isb" ::"r"(7ul));  /* ICC_SRE_EL1 */
    __asm volatile("msr s3_0_c12_c12_3, %0" ::"r"((uint64_t)portMAX_BINARY_POINT_VALUE));  /* ICC_BPR1_EL1 */
    __asm volatile("msr s3_0_c4_c6_0, %0" ::"r"(0xfful));  /* ICC_PMR_EL1 */
    __asm volatile("msr s3_0_c12_c12_7, %0\n isb" ::"r"(1ul));  /* ICC_IGRPEN1_EL1 */
}

void board_raise_test(void)
{
    /* ICC_SGI1R_EL1: to the CPU with affinity 0.0.0.0. */
    __asm volatile("msr s3_0_c12_c11_5, %0\n isb" ::"r"((uint64_t)LINE_TEST << 24 | 1u) : "memory");
}

uint64_t board_now(void)
{
    uint64_t now;
    __asm volatile("isb\n mrs %0, cntvct_el0" : "=r"(now)::"memory");
    return now;
}

uint64_t board_hertz(void)
{
    uint64_t hertz;
    __asm volatile("mrs %0, cntfrq_el0" : "=r"(hertz));
    return hertz;
}

void board_start_tick(void)
{
    interval = board_hertz() / configTICK_RATE_HZ;
    __asm volatile("msr cntv_cval_el0, %0" ::"r"(board_now() + interval));
    __asm volatile("msr cntv_ctl_el0, %0\n isb" ::"r"(1ul));
}

void board_clear_tick(void)
{
    uint64_t due;
    __asm volatile("mrs %0, cntv_cval_el0" : "=r"(due));
    __asm volatile("msr cntv_cval_el0, %0\n isb" ::"r"(due + interval));
}

void vApplicationIRQHandler(uint32_t acknowledged)
{
    uint32_t line = acknowledged & 0xffffff;
    if (line == LINE_TIMER)
        FreeRTOS_Tick_Handler();
    else if (line == LINE_TEST)
        on_test_interrupt();
}

void board_power_off(void)
{
    register uint64_t function __asm("x0") = PSCI_SYSTEM_OFF;
    __asm volatile("hvc #0" : "+r"(function)::"x1", "x2", "x3", "memory");
}

void board_wait(void) { __asm volatile("wfi"); }

void board_put(char byte)
{
    /* UARTFR.TXFF */
    while (*at(UART + 0x18) & 1u << 5) {
    }
    *at(UART) = (uint32_t)byte;
}
