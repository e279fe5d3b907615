/* SPDX-License-Identifier: Apache-2.0 */
/* FreeRTOS for a PC in flat 32-bit mode, whose local APIC counts once in a nanosecond, as QEMU's does. */
#ifndef FREERTOS_CONFIG_H
#define FREERTOS_CONFIG_H
#include "application.h"

#define configCPU_CLOCK_HZ                      1000000000ul
#define configTICK_TYPE_WIDTH_IN_BITS           TICK_TYPE_WIDTH_32_BITS
#define configUSE_PORT_OPTIMISED_TASK_SELECTION 1
/* Critical sections raise the task priority of the local APIC. */
#define configMAX_API_CALL_INTERRUPT_PRIORITY   10
#define configUSE_COMMON_INTERRUPT_ENTRY_POINT  1
/* Words. */
#define configISR_STACK_SIZE                    2048
#define configSUPPORT_FPU                       0
#endif
