/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a board support package that FreeRTOS' port for the PowerPC 405 uses: the processor's timers
 * (PPC405 User's Manual, chapter 6). */
#ifndef XTIME_L_H
#define XTIME_L_H
#include <stdint.h>

/* TCR: PIT by itself again and with interrupts, FIT and watchdog with interrupts. TSR: what has come. */
#define TCR_WIE 0x08000000ul
#define TCR_PIE 0x04000000ul
#define TCR_FIE 0x00800000ul
#define TCR_ARE 0x00400000ul
#define TSR_WIS 0x40000000ul
#define TSR_PIS 0x08000000ul
#define TSR_FIS 0x04000000ul

static inline void board_change_tcr(uint32_t set, uint32_t clear)
{
    uint32_t value;
    __asm volatile("mftcr %0" : "=r"(value));
    __asm volatile("mttcr %0" ::"r"((value | set) & ~clear));
}

static inline void board_clear_tsr(uint32_t bits) { __asm volatile("mttsr %0" ::"r"(bits)); }

#define XTime_PITClearInterrupt() board_clear_tsr(TSR_PIS)
#define XTime_FITClearInterrupt() board_clear_tsr(TSR_FIS)
#define XTime_WDTClearInterrupt() board_clear_tsr(TSR_WIS)
#define XTime_WDTDisableInterrupt() board_change_tcr(0, TCR_WIE)
#define XTime_FITDisableInterrupt() board_change_tcr(0, TCR_FIE)
#define XTime_PITEnableInterrupt() board_change_tcr(TCR_PIE, 0)
#define XTime_PITEnableAutoReload() board_change_tcr(TCR_ARE, 0)
#define XTime_PITSetInterval(ticks) __asm volatile("mtpit %0" ::"r"(ticks))
#endif
