// SPDX-License-Identifier: Apache-2.0
//
// A VM that has a pattern in its registers of floating point, in rounds, beside others that do the same. The
// handler of its SysTick uses the registers too, some time after it has begun. So the thread's frame still
// lacks the registers while others have their turns (lazy stacking).

#include "board.h"
#include "floats.h"
#include "uart.h"

static volatile uint32_t ticks, sum;

void SysTick_Handler(void)
{
    ticks++;
    for (volatile uint32_t spin = 0; spin < 300; spin++) {
    }
    __asm__ volatile(".fpu fpv5-sp-d16\n"
                     "vmov.f32 s3, #2.0\n"
                     "vadd.f32 s3, s3, s3\n"
                     "vmov %0, s3"
                     : "=r"(sum));
}

int main(void)
{
    SCB_CPACR = 0xfu << 20;
    __asm__ volatile("dsb\n isb");
    uart_start(UART0, false);
    uart_print(UART0, floats_are_new() ? "" : "FAIL registers of another\n");
    SYST_RVR = 2001;
    SYST_CVR = 0;
    SYST_CSR = SYST_ENABLE_TICK_CORE_CLOCK;
    for (uint32_t life = 1;; life++) {
        uint32_t right = 0;
        for (uint32_t round = 0; round < ROUNDS; round++)
            right += floats_stay(SEED + round);
        uart_print(UART0, right == ROUNDS && ticks > life && sum == 0x40800000 ? "right\n" : "FAIL another value\n");
    }
}
