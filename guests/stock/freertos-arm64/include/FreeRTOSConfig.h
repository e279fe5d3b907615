/* SPDX-License-Identifier: Apache-2.0 */
/* FreeRTOS for QEMU's board `virt` with a GICv3 (FreeRTOS' reference manual, chapter "Customisation"). */
#ifndef FREERTOS_CONFIG_H
#define FREERTOS_CONFIG_H

#define configTICK_RATE_HZ                      1000
#define configTICK_TYPE_WIDTH_IN_BITS           TICK_TYPE_WIDTH_64_BITS
#define configMAX_PRIORITIES                    8
#define configMINIMAL_STACK_SIZE                512
#define configMAX_TASK_NAME_LEN                 12
#define configTOTAL_HEAP_SIZE                   (256 * 1024)
#define configUSE_PREEMPTION                    1
#define configUSE_TIME_SLICING                  1
#define configUSE_PORT_OPTIMISED_TASK_SELECTION 1
#define configIDLE_SHOULD_YIELD                 1
#define configUSE_IDLE_HOOK                     1
#define configUSE_TICK_HOOK                     0
#define configUSE_MUTEXES                       1
#define configUSE_RECURSIVE_MUTEXES             1
#define configUSE_COUNTING_SEMAPHORES           1
#define configUSE_TASK_NOTIFICATIONS            1
#define configUSE_TIMERS                        1
#define configTIMER_TASK_PRIORITY               7
#define configTIMER_QUEUE_LENGTH                8
#define configTIMER_TASK_STACK_DEPTH            512
#define configCHECK_FOR_STACK_OVERFLOW          2
#define configUSE_MALLOC_FAILED_HOOK            1
#define configSUPPORT_DYNAMIC_ALLOCATION        1
#define configUSE_EVENT_GROUPS                  1
/* Tasks have no FPU context: the program is compiled for general registers only. */
#define configUSE_TASK_FPU_SUPPORT              1

#define INCLUDE_vTaskDelay                      1
#define INCLUDE_xTaskDelayUntil                 1
#define INCLUDE_vTaskDelete                     1
#define INCLUDE_vTaskSuspend                    1
#define INCLUDE_vTaskPrioritySet                1
#define INCLUDE_uxTaskPriorityGet               1
#define INCLUDE_xTaskGetCurrentTaskHandle       1

/* A GICv3 has at least 32 priorities for software at EL1 (Arm IHI 0069, section 4.8). */
#define configUNIQUE_INTERRUPT_PRIORITIES       32
#define configMAX_API_CALL_INTERRUPT_PRIORITY   18

void board_start_tick(void);
void board_clear_tick(void);
#define configSETUP_TICK_INTERRUPT() board_start_tick()
#define configCLEAR_TICK_INTERRUPT() board_clear_tick()

void on_assertion(const char *file, int line);
#define configASSERT(condition) do { if (!(condition)) on_assertion(__FILE__, __LINE__); } while (0)
#endif
