// SPDX-License-Identifier: Apache-2.0
//
// A program for a Cortex-M33 whose stacks are full, guarded or nowhere when an exception comes. It prints which
// handler ran, and what that found. The same text comes from the bare board and from a VM: the comparison is the
// test.
//
// Left out is what docs/armv8m.md says of a VM: the number in IPSR, the bits of a BusFault, and the main stack
// pointer after an overflow of the main stack.

#include <stdbool.h>
#include <stddef.h>

#include "board.h"
#include "kernel.h"
#include "print.h"
#include "uart.h"

#define SCB_CCR REGISTER(0xe000ed14)
#define SCB_CCR_DIV_0_TRP (1u << 4)
#define SCB_SHCSR REGISTER(0xe000ed24)
#define SCB_SHCSR_MEMFAULTENA (1u << 16)
#define SCB_SHCSR_USGFAULTENA (1u << 18)
#define SCB_CFSR REGISTER(0xe000ed28)
#define SCB_CFSR_BUS 0xff00u
#define SCB_HFSR REGISTER(0xe000ed2c)
#define MPU_CTRL REGISTER(0xe000ed94)
#define MPU_CTRL_ON 5u // ENABLE, PRIVDEFENA
#define MPU_RNR REGISTER(0xe000ed98)
#define MPU_RBAR REGISTER(0xe000ed9c)
#define MPU_RBAR_READ_ONLY (3u << 1)
#define MPU_RLAR REGISTER(0xe000eda0)
#define FPCCR REGISTER(0xe000ef34)
#define FPCCR_LSPACT 1u

#define EXC_RETURN_THREAD (1u << 3)
#define EXC_RETURN_PROCESS (1u << 2)
#define EXC_RETURN_BASIC (1u << 4)
#define EXC_RETURN_TO_MAIN 0xffffffb8u // a thread of the non-secure world on the main stack
#define XPSR_THUMB (1u << 24)

// Non-secure addresses of the board without memory.
#define NOWHERE 0x2f000000u
#define CALL 11u

#define SPECIAL_WRITE(name, value) __asm__ volatile("msr " name ", %0\n isb" : : "r"(value) : "memory")

// What a handler finds, in the order in which `caught` stores it.
__attribute__((used)) static volatile struct {
    uint32_t vector, link, process, main, control, saved[8], hard;
} seen;

enum where { PROCESS, PROCESS_LIMIT, PROCESS_ROOM, PROCESS_GUARD, PROCESS_NOWHERE, MAIN, MAIN_LIMIT, MAIN_GUARD };

// What happens in thread mode, or in the handler of the thread's call.
struct trial {
    const char *name;
    enum where where;
    void (*act)(void);
    uint32_t handlers;
    void (*in_handler)(void);
    bool returns_nowhere;
};

static uint32_t stack[128] __attribute__((aligned(256)));
static uint32_t handler_stack[256] __attribute__((aligned(8), used));
static uint32_t frame[8] __attribute__((aligned(8)));
static uint32_t last_frame[8] __attribute__((aligned(8), used));
static unsigned current;

static void call(void)
{
    __asm__ volatile("svc 0" : : : "memory");
}

__attribute__((naked)) static void push(void)
{
    __asm__ volatile("push {r0-r7}\n pop {r0-r7}\n bx lr");
}

static void undefined(void)
{
    __asm__ volatile("udf 0" : : : "memory");
}

static void pend(void)
{
    SCB_ICSR = SCB_ICSR_PENDSVSET;
    __asm__ volatile("dsb\n isb" : : : "memory");
}

static void divide(void)
{
    uint32_t quotient;
    SCB_CCR |= SCB_CCR_DIV_0_TRP;
    __asm__ volatile("udiv %0, %1, %2" : "=r"(quotient) : "r"(1), "r"(0));
}

static void masked_call(void)
{
    SPECIAL_WRITE("primask", 1);
    call();
}

static void call_with_floats(void)
{
    __asm__ volatile("vmov s0, %0" : : "r"(0) : "s0");
    call();
}

static void call_in_handler(void)
{
    call();
}

static void overflow_in_handler(void)
{
    uint32_t pointer;
    __asm__ volatile("mov %0, sp" : "=r"(pointer));
    SPECIAL_WRITE("msplim", (pointer & ~7u) - 16);
    push();
}

#define OWN (SCB_SHCSR_MEMFAULTENA | SCB_SHCSR_USGFAULTENA)

static const struct trial trials[] = {
    {"limit, call", PROCESS_LIMIT, call, 0, NULL, false},
    {"limit, push", PROCESS_LIMIT, push, 0, NULL, false},
    {"limit, PendSV", PROCESS_LIMIT, pend, 0, NULL, false},
    {"limit, call with floats", PROCESS_ROOM, call_with_floats, 0, NULL, false},
    {"guard, call", PROCESS_GUARD, call, 0, NULL, false},
    {"guard, push", PROCESS_GUARD, push, 0, NULL, false},
    {"nowhere, call", PROCESS_NOWHERE, call, 0, NULL, false},
    {"nowhere, push", PROCESS_NOWHERE, push, 0, NULL, false},
    {"nowhere, undefined", PROCESS_NOWHERE, undefined, 0, NULL, false},
    {"return to nowhere", PROCESS, call, 0, NULL, true},
    {"main limit, call", MAIN_LIMIT, call, 0, NULL, false},
    {"main guard, call", MAIN_GUARD, call, 0, NULL, false},
    {"overflow in a handler", PROCESS, call, 0, overflow_in_handler, false},
    {"call in its handler", PROCESS, call, 0, call_in_handler, false},
    {"undefined", PROCESS, undefined, 0, NULL, false},
    {"undefined, main", MAIN, undefined, 0, NULL, false},
    {"divide", PROCESS, divide, 0, NULL, false},
    {"masked call", PROCESS, masked_call, 0, NULL, false},
    {"own handlers: limit, call", PROCESS_LIMIT, call, OWN, NULL, false},
    {"own handlers: limit, push", PROCESS_LIMIT, push, OWN, NULL, false},
    {"own handlers: limit, PendSV", PROCESS_LIMIT, pend, OWN, NULL, false},
    {"own handlers: guard, call", PROCESS_GUARD, call, OWN, NULL, false},
    {"own handlers: guard, push", PROCESS_GUARD, push, OWN, NULL, false},
    {"own handlers: nowhere, call", PROCESS_NOWHERE, call, OWN, NULL, false},
    {"own handlers: main limit, call", MAIN_LIMIT, call, OWN, NULL, false},
    {"own handlers: main guard, call", MAIN_GUARD, call, OWN, NULL, false},
    {"own handlers: overflow in a handler", PROCESS, call, OWN, overflow_in_handler, false},
    {"own handlers: undefined", PROCESS, undefined, OWN, NULL, false},
    {"own handlers: masked call", PROCESS, masked_call, OWN, NULL, false},
};

// There is no kernel beside `print`.
uint32_t kernel_switches(void)
{
    return 0;
}

void mutex_lock(struct mutex *mutex)
{
    (void)mutex;
}

void mutex_unlock(struct mutex *mutex)
{
    (void)mutex;
}

// Makes the first 128 bytes of the stack read-only.
static void guard(void)
{
    MPU_RNR = 0;
    MPU_RBAR = (uint32_t)stack | MPU_RBAR_READ_ONLY;
    MPU_RLAR = (((uint32_t)stack + 127) & ~31u) | 1;
    MPU_CTRL = MPU_CTRL_ON;
    __asm__ volatile("dsb\n isb" : : : "memory");
}

// Goes on with `act` on a stack, whose pointer and limit the caller gives. Known values are in r4 to r11.
__attribute__((naked)) static void on_process(void (*act)(void), uint32_t pointer, uint32_t limit)
{
    (void)act, (void)pointer, (void)limit;
    __asm__ volatile("msr psp, r1\n msr psplim, r2\n movs r3, #2\n msr control, r3\n isb\n"
                     "mov r3, r0\n movs r0, #0\n movs r1, #0\n movs r2, #0\n mov r4, #4\n mov r5, #5\n mov r6, #6\n"
                     "mov r7, #7\n mov r8, #8\n mov r9, #9\n mov r10, #10\n mov r11, #11\n"
                     "ldr lr, =went_on\n bx r3");
}

__attribute__((naked)) static void on_main(void (*act)(void), uint32_t pointer, uint32_t limit)
{
    (void)act, (void)pointer, (void)limit;
    __asm__ volatile("msr msp, r1\n msr msplim, r2\n mov r3, r0\n mov r4, #4\n mov r5, #5\n mov r6, #6\n"
                     "mov r7, #7\n mov r8, #8\n mov r9, #9\n mov r10, #10\n mov r11, #11\n"
                     "ldr lr, =went_on\n bx r3");
}

static void begin(const struct trial *trial)
{
    uint32_t top = (uint32_t)&stack[128], guarded = (uint32_t)stack + 144;
    print("stacks: %s\n", trial->name);
    SCB_SHCSR = trial->handlers;
    switch (trial->where) {
    case PROCESS:
        on_process(trial->act, top, 0);
        break;
    case PROCESS_LIMIT:
        on_process(trial->act, top, top - 16);
        break;
    case PROCESS_ROOM: // for a frame without floats
        on_process(trial->act, top, top - 64);
        break;
    case PROCESS_GUARD:
        guard();
        on_process(trial->act, guarded, 0);
        break;
    case PROCESS_NOWHERE:
        on_process(trial->act, NOWHERE, 0);
        break;
    case MAIN:
        on_main(trial->act, top, 0);
        break;
    case MAIN_LIMIT:
        on_main(trial->act, top, top - 16);
        break;
    case MAIN_GUARD:
        guard();
        on_main(trial->act, guarded, 0);
        break;
    }
}

// Goes from trial to trial, on an empty main stack.
__attribute__((noreturn, used)) static void next(void)
{
    SPECIAL_WRITE("primask", 0);
    MPU_CTRL = 0;
    if (current < sizeof(trials) / sizeof(trials[0]))
        begin(&trials[current++]);
    print("stacks: done\n");
    for (;;)
        __asm__ volatile("wfi");
}

__attribute__((naked, used)) static void went_on(void)
{
    __asm__ volatile("movs r0, #0\n msr control, r0\n msr msplim, r0\n isb\n ldr r0, =__stack_top\n mov sp, r0\n b next");
}

// Ends the handler of the call, in which something else was handled.
__attribute__((naked, used)) static void leave(void)
{
    __asm__ volatile("ldr r0, =last_frame\n mov sp, r0\n ldr lr, =%c0\n bx lr" : : "i"(EXC_RETURN_TO_MAIN));
}

static void put_frame(uint32_t *frame, void (*to)(void), uint32_t handler)
{
    for (unsigned word = 0; word < 6; word++)
        frame[word] = 0;
    frame[6] = (uint32_t)to & ~1u;
    frame[7] = XPSR_THUMB | handler;
}

// What the handler found, as far as the bare board and a VM have it in common.
static void tell(const struct trial *trial)
{
    uint32_t status = SCB_CFSR & ~SCB_CFSR_BUS;
    print("  %u: lr=%08x control=%u", seen.vector, seen.link, seen.control & 3);
    bool is_far = trial->where == PROCESS_NOWHERE || trial->returns_nowhere;
    if (seen.link & EXC_RETURN_PROCESS)
        print(" psp=%d", (int)(seen.process - (is_far ? NOWHERE : (uint32_t)stack)));
    else if (trial->where == MAIN_GUARD)
        print(" msp=%d", (int)(seen.main - (uint32_t)stack));
    print(" cfsr=%08x", status);
    // Of a BusFault a VM finds no status.
    if (status)
        print(" hfsr=%08x", seen.hard);
    print(" shcsr=%08x r4-r11", SCB_SHCSR & 0xf800u);
    for (unsigned index = 0; index < 8; index++)
        print(" %u", seen.saved[index]);
    print("\n");
}

// Prints what a handler found, and returns the frame with which it ends.
__attribute__((used)) static const uint32_t *handle(void)
{
    const struct trial *trial = &trials[current - 1];
    seen.hard = SCB_HFSR;
    bool is_call = seen.vector == CALL;
    tell(trial);
    SCB_CFSR = UINT32_MAX;
    SCB_HFSR = UINT32_MAX;
    MPU_CTRL = 0;
    FPCCR &= ~FPCCR_LSPACT;
    SPECIAL_WRITE("primask", 0);
    if (is_call && trial->in_handler && seen.link & EXC_RETURN_THREAD)
        trial->in_handler();
    if (is_call && trial->returns_nowhere)
        return (const uint32_t *)NOWHERE;
    if (seen.link & EXC_RETURN_THREAD) {
        put_frame(frame, went_on, 0);
    } else {
        put_frame(frame, leave, CALL);
        put_frame(last_frame, went_on, 0);
    }
    return frame;
}

__attribute__((naked, used)) static void caught(void)
{
    __asm__ volatile("ldr r0, =seen\n mov r2, lr\n mrs r3, psp\n stmia r0!, {r1-r3}\n mov r1, sp\n mrs r2, control\n"
                     "stmia r0!, {r1, r2, r4-r11}\n movs r1, #0\n msr msplim, r1\n msr psplim, r1\n"
                     "ldr r1, =handler_stack + %c0\n mov sp, r1\n bl handle\n"
                     "ldr r1, =seen\n ldr lr, [r1, #4]\n orr lr, lr, %1\n tst lr, %2\n"
                     "ite ne\n msrne psp, r0\n msreq msp, r0\n bx lr"
                     :
                     : "i"(sizeof(handler_stack)), "i"(EXC_RETURN_BASIC), "i"(EXC_RETURN_PROCESS));
}

#define CATCH(name, number)                                                                                            \
    __attribute__((naked)) void name(void)                                                                             \
    {                                                                                                                  \
        __asm__ volatile("movs r1, %0\n b caught" : : "i"(number));                                                    \
    }
CATCH(HardFault_Handler, 3)
CATCH(MemManage_Handler, 4)
CATCH(BusFault_Handler, 5)
CATCH(UsageFault_Handler, 6)
CATCH(SVC_Handler, CALL)
CATCH(PendSV_Handler, 14)

int main(void)
{
    uart_start(UART0, false);
    next();
}
