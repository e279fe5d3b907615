/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a board support package that FreeRTOS' port for the PowerPC 405 uses: handlers of interrupts. The
 * port gives the names; the frame that a handler finds is in the port's portasm.S. */
#ifndef XEXCEPTION_L_H
#define XEXCEPTION_L_H
#include <stdint.h>

typedef void (*XExceptionHandler)(void *data);
typedef void (*XInterruptHandler)(void *data);

/* The vectors' offsets by 0x100 (PPC405 User's Manual, table 5-1). */
#define XEXC_ID_NON_CRITICAL_INT 0x05
#define XEXC_ID_PROGRAM 0x07
#define XEXC_ID_SYSTEM_CALL 0x0c
#define XEXC_ID_PIT_INT 0x10

/* MSR[EE] */
#define XEXC_NON_CRITICAL 0x8000ul

void XExc_Init(void);
void XExc_RegisterHandler(uint8_t id, XExceptionHandler handler, void *data);

static inline uint32_t board_state(void)
{
    uint32_t state;
    __asm volatile("mfmsr %0" : "=r"(state)::"memory");
    return state;
}

static inline void board_set_state(uint32_t state) { __asm volatile("mtmsr %0" ::"r"(state) : "memory"); }

#define XExc_mEnableExceptions(mask) board_set_state(board_state() | (mask))
#define XExc_mDisableExceptions(mask) board_set_state(board_state() & ~(mask))
#endif
