// SPDX-License-Identifier: Apache-2.0
//
// Functions that the kernel calls, and those that `print.c` wants: it was written for the kernel of mcu-rtos.

#include <FreeRTOS.h>
#include <task.h>

#include "kernel.h"
#include "print.h"

void assert_failed(const char *file, int line)
{
    print("freertos: WRONG: assertion in %s, line %d\n", file, line);
    portDISABLE_INTERRUPTS();
    for (;;) {
    }
}

void vApplicationStackOverflowHook(TaskHandle_t task, char *name)
{
    (void)task;
    print("freertos: WRONG: stack of %s\n", name);
    portDISABLE_INTERRUPTS();
    for (;;) {
    }
}

void vApplicationMallocFailedHook(void)
{
    assert_failed("heap", 0);
}

// The board is not for us alone.
void vApplicationIdleHook(void)
{
    __asm__ volatile("wfi");
}

// The parts of the other kernel that keep lines of different tasks apart.
uint32_t kernel_switches(void)
{
    return xTaskGetSchedulerState() == taskSCHEDULER_RUNNING;
}

void mutex_lock(struct mutex *mutex)
{
    (void)mutex;
    vTaskSuspendAll();
}

void mutex_unlock(struct mutex *mutex)
{
    (void)mutex;
    xTaskResumeAll();
}
