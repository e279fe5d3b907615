// SPDX-License-Identifier: Apache-2.0
//
// A VM of a microcontroller that is restarted for ever, as `guests/probes/phoenix` is on the other classes. Each
// life ends in another way, and checks what it is told about its start. The task `mcu-conductor` helps with the
// last two ways.
//
// It prints `FAIL ...` for a check that fails, and a line every 100 lives.

#include "board.h"
#include "uart.h"
#include "vm.h"

// After the stack: a warm start finds here what the earlier life wrote, a cold one zero. A program with other
// memory says so to the compiler.
#ifndef LAST_BYTES
#define LAST_BYTES 0x200bbff0
#endif
#define REMEMBERED REGISTER(LAST_BYTES)
// An address that is nothing of the partition's.
#define NOWHERE 0x80000000u
// AIRCR with its key and SYSRESETREQ (Arm DDI 0403E, B3.2.6).
#define RESET_REQUEST 0x05fa0004u

// Ticks until the VM's own timer fires, and the longest sleep in nanoseconds.
enum { CLOCK = 1, SOON = 1000, LONG = 1000000000 };

// How life n ends is number n modulo `WAYS`.
enum way { RESET, RESTART, STORE, JUMP, LOCK_UP, CALL, BUSY, ASLEEP, WAYS };

static volatile int fired;

static void fail(const char *what, uint32_t life, uint32_t found)
{
    uart_print(UART0, "FAIL life ");
    uart_print_number(UART0, life, 10);
    uart_print(UART0, what);
    uart_print_number(UART0, found, 10);
    uart_print(UART0, "\n");
}

void SysTick_Handler(void)
{
    SYST_CSR = 0;
    fired = 1;
}

// A fault here is one for which the processor has no handler left.
void HardFault_Handler(void)
{
    __asm__ volatile("udf #1");
}

// The low word of the start word that life `life` must find, by the end of the one before.
static uint32_t expected(uint32_t life)
{
    uint32_t before = life - 1;
    uint32_t own = BULKHEAD_START_WARM | BULKHEAD_CAUSE_OWN << 8;
    uint32_t health = BULKHEAD_CAUSE_HEALTH << 8;
    // The conductor takes turns.
    uint32_t turn = before / WAYS % 2 ? BULKHEAD_START_COLD : BULKHEAD_START_WARM;
    if (before == 0)
        return BULKHEAD_START_COLD | BULKHEAD_CAUSE_BOOT << 8;
    switch ((enum way)(before % WAYS)) {
    case STORE:
    case JUMP:
        return BULKHEAD_START_COLD | health | BULKHEAD_HEALTH_MEMORY << 16;
    case LOCK_UP:
        return BULKHEAD_START_WARM | health | BULKHEAD_HEALTH_SYSTEM << 16;
    case BUSY:
    case ASLEEP:
        return turn | BULKHEAD_CAUSE_SUPERVISOR << 8;
    default:
        return own;
    }
}

__attribute__((noreturn)) static void spin(void)
{
    for (;;)
        __asm__ volatile("");
}

// Checks that a sleep in the hypervisor ends when the VM's own timer fires.
static void interrupted_sleep(uint32_t life)
{
    uint64_t now[4] = {0}, wake[5] = {0};
    vm_call(BULKHEAD_TIMER_NOW, CLOCK, 0, now);
    wake[0] = now[0] + LONG;
    SYST_RVR = SOON;
    SYST_CVR = 0;
    SYST_CSR = SYST_ENABLE_TICK_CORE_CLOCK;
    int32_t slept = vm_call(BULKHEAD_TIMER_SLEEP, CLOCK, wake, 0);
    if (slept != BULKHEAD_ERROR_INTERRUPTED || !fired)
        fail(": sleep ", life, (uint32_t)-slept);
}

static void end(uint32_t life)
{
    uint64_t warm[5] = {BULKHEAD_START_WARM};
    switch ((enum way)(life % WAYS)) {
#ifndef __ARM_ARCH_8M_MAIN__ // where the request is the privilege of Secure code
    case RESET:
        SCB_AIRCR = RESET_REQUEST;
        spin();
#endif
    case STORE:
        REGISTER(NOWHERE) = 0x0bad0bad;
        return;
    case JUMP:
        ((void (*)(void))(NOWHERE | 1))();
        return;
    case LOCK_UP:
        __asm__ volatile("udf #1");
        return;
    case BUSY:
        spin();
    case ASLEEP:
        interrupted_sleep(life);
        for (;;)
            __asm__ volatile("wfi");
    default:
        vm_call(BULKHEAD_PARTITION_RESTART, BULKHEAD_SELF_CAPABILITY, warm, 0);
        // The conductor's last stop can overtake the restart.
        spin();
    }
}

int main(void)
{
    uint64_t status[4] = {0};
    uart_start(UART0, false);
    if (vm_call(BULKHEAD_PARTITION_STATUS, BULKHEAD_SELF_CAPABILITY, 0, status) != 0)
        uart_print(UART0, "FAIL status\n");
    uint32_t life = (uint32_t)(status[1] >> BULKHEAD_START_STARTS_SHIFT), start = (uint32_t)status[1];
    if (start != expected(life))
        fail(": start word ", life, start);
    uint32_t kept = (start & 0xff) == BULKHEAD_START_WARM ? life - 1 : 0;
    if (REMEMBERED != kept)
        fail(": memory says ", life, REMEMBERED);
    REMEMBERED = life;
    if (life % 100 == 0) {
        uart_print(UART0, "life ");
        uart_print_number(UART0, life, 10);
        uart_print(UART0, "\n");
    }
    end(life);
    fail(" goes on ", life, 0);
    return 0;
}
