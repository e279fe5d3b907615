/* SPDX-License-Identifier: Apache-2.0 */
/* What the application of main.c wants of the kernel, on any board (FreeRTOS' reference manual, chapter
 * "Customisation"). Assembly of the kernel includes this too. */
#ifndef APPLICATION_H
#define APPLICATION_H

#ifndef configTICK_RATE_HZ
#define configTICK_RATE_HZ                      1000
#endif
#define configMAX_PRIORITIES                    8
#define configMINIMAL_STACK_SIZE                512
#define configMAX_TASK_NAME_LEN                 12
#define configTOTAL_HEAP_SIZE                   (256 * 1024)
#define configUSE_PREEMPTION                    1
#define configUSE_TIME_SLICING                  1
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

#define INCLUDE_vTaskDelay                      1
#define INCLUDE_xTaskDelayUntil                 1
#define INCLUDE_vTaskDelete                     1
#define INCLUDE_vTaskSuspend                    1
#define INCLUDE_vTaskPrioritySet                1
#define INCLUDE_uxTaskPriorityGet               1
#define INCLUDE_xTaskGetCurrentTaskHandle       1

#ifndef __ASSEMBLER__
void on_assertion(const char *file, int line);
#endif
#define configASSERT(condition) do { if (!(condition)) on_assertion(__FILE__, __LINE__); } while (0)
#endif
