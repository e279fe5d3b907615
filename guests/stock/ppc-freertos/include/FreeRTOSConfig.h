/* SPDX-License-Identifier: Apache-2.0 */
/* FreeRTOS for a PowerPC 405 whose time base and timers count once in three nanoseconds, as QEMU 7.2's
 * ref405ep does. */
#ifndef FREERTOS_CONFIG_H
#define FREERTOS_CONFIG_H
#include "application.h"

#define configCPU_CLOCK_HZ                      333333333ul
#define configTICK_TYPE_WIDTH_IN_BITS           TICK_TYPE_WIDTH_32_BITS
#define configUSE_PORT_OPTIMISED_TASK_SELECTION 0
#define configUSE_FPU                           0
#endif
