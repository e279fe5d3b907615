/* SPDX-License-Identifier: Apache-2.0 */
/* FreeRTOS for QEMU's board `virt` with a GICv3. */
#ifndef FREERTOS_CONFIG_H
#define FREERTOS_CONFIG_H
#include "application.h"

/* The kernel and its handlers keep to general registers: only tasks that say so have others saved. */
#ifndef __ASSEMBLER__
#pragma GCC target("general-regs-only")
#endif

#define configTICK_TYPE_WIDTH_IN_BITS           TICK_TYPE_WIDTH_64_BITS
#define configUSE_PORT_OPTIMISED_TASK_SELECTION 1
/* Tasks have no FPU context: the program is compiled for general registers only. */
#define configUSE_TASK_FPU_SUPPORT              1

/* A GICv3 has at least 32 priorities for software at EL1 (Arm IHI 0069, section 4.8). */
#define configUNIQUE_INTERRUPT_PRIORITIES       32
#define configMAX_API_CALL_INTERRUPT_PRIORITY   18

void board_start_tick(void);
void board_clear_tick(void);
#define configSETUP_TICK_INTERRUPT() board_start_tick()
#define configCLEAR_TICK_INTERRUPT() board_clear_tick()
#endif
