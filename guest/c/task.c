// SPDX-License-Identifier: Apache-2.0
//
// See `task.h`. The hypervisor enters `_task_start` with the address of the startup page in r0 and the stack
// pointer at the end of the task's memory. The stack then moves to the place in the linker script, below the
// variables.

#include "task.h"

#include <stddef.h>

#include "call.h"
#include "number.h"

enum { CONSOLE_BYTES = 32 };

const struct bulkhead_startup_header *task_page;

extern uint32_t __data_start[], __data_end[], __data_load[], __bss_start[], __bss_end[];

// Functions that the compiler calls without being asked. (It must not recognise their bodies as such a call.)
__attribute__((used, optimize("no-tree-loop-distribute-patterns"))) void *memset(void *to, int value, size_t size)
{
    uint8_t *bytes = to;
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)value;
    return to;
}

__attribute__((used, optimize("no-tree-loop-distribute-patterns"))) void *memcpy(void *to, const void *from, size_t size)
{
    uint8_t *bytes = to;
    const uint8_t *others = from;
    for (size_t i = 0; i < size; i++)
        bytes[i] = others[i];
    return to;
}

CALL_TRAP(supervisor_call, "svc #0")

__attribute__((naked, noreturn, section(".text.start.task"))) void _task_start(void)
{
    __asm__("ldr r1, =__stack_top\n"
            "mov sp, r1\n"
            "b task_begin\n"
            ".ltorg");
}

__attribute__((used)) _Noreturn static void task_begin(const struct bulkhead_startup_header *page)
{
    const uint32_t *from = __data_load;
    for (uint32_t *to = __data_start; to < __data_end; to++)
        *to = *from++;
    for (uint32_t *to = __bss_start; to < __bss_end; to++)
        *to = 0;
    task_page = page;
    if (page->magic == BULKHEAD_STARTUP_MAGIC)
        main();
    task_exit();
}

int32_t task_call(uint32_t function, uint32_t capability, const uint64_t arguments[5], uint64_t results[4])
{
    return call_by(supervisor_call, function, capability, arguments, results);
}

uint32_t task_find(const char *name)
{
    const struct bulkhead_startup_capability *capability = (const void *)(task_page + 1);
    for (uint32_t i = 0; i < task_page->count; i++, capability++) {
        size_t at = 0;
        while (at < sizeof capability->name && capability->name[at] == name[at] && name[at])
            at++;
        if (at < sizeof capability->name && capability->name[at] == name[at])
            return capability->index;
    }
    return TASK_NONE;
}

uint32_t task_look_up(const char *name, uint64_t *what)
{
    uint64_t arguments[5] = {0}, results[4];
    for (size_t i = 0; name[i]; i++) {
        if (i == BULKHEAD_CAPABILITY_NAME)
            return TASK_NONE;
        arguments[i / 8] |= (uint64_t)(uint8_t)name[i] << (i % 8 * 8);
    }
    if (task_call(BULKHEAD_CAPABILITY_FIND, 0, arguments, results) != 0)
        return TASK_NONE;
    if (what)
        *what = results[1];
    return (uint32_t)results[0];
}

void task_print(uint32_t console, const char *text)
{
    while (*text) {
        uint64_t arguments[5] = {0}, results[4];
        uint64_t length = 0;
        for (; length < CONSOLE_BYTES && text[length]; length++)
            arguments[1 + length / 8] |= (uint64_t)(uint8_t)text[length] << (length % 8 * 8);
        arguments[0] = length;
        if (task_call(BULKHEAD_CONSOLE_WRITE, console, arguments, results) != 0)
            return;
        // A full console takes nothing for now.
        text += results[0] <= length ? results[0] : length;
    }
}

void task_print_number(uint32_t console, uint32_t number, uint32_t base)
{
    struct number room;
    task_print(console, number_text(number, base, &room));
}

uint64_t task_now(uint32_t clock)
{
    uint64_t results[4] = {0};
    task_call(BULKHEAD_TIMER_NOW, clock, NULL, results);
    return results[0];
}

_Noreturn void task_exit(void)
{
    task_call(BULKHEAD_PARTITION_STOP, BULKHEAD_SELF_CAPABILITY, NULL, NULL);
    for (;;)
        __asm__ volatile("udf #1");
}
