/* SPDX-License-Identifier: Apache-2.0 */
/* Measures exceptions of the translation and an external interrupt of a PowerPC 405, each with its handler and
 * its return. The same file runs on the bare board.
 *
 * The time base ticks once in three instructions. A figure is the mean of a thousand rounds of a loop, less the
 * same loop without the exception. "bench NAME INSTRUCTIONS" is one figure; "bench done" is the end. */
#include "loops.h"

#define UART ((volatile uint8_t *)0xef600300ul)
#define ROUNDS 1000u
#define INSTRUCTIONS 3u
/* Addresses of start.S, and rights of TLBLO. */
#define WINDOW 0x40000000u
#define REFUSED 0x60000000u
#define EXECUTE 0x200u
#define WRITE 0x100u
/* The entries of the program itself and of start.S, and one that no page uses. */
#define OWN 0u
#define ENTRY 5u
#define UNUSED 6u
#define OTHER 7u

static void put(char byte)
{
    while (!(UART[5] & 0x20)) {
    }
    UART[0] = (uint8_t)byte;
}

static void print(const char *text)
{
    for (; *text; text++)
        put(*text);
}

static void print_number(uint32_t number)
{
    char digits[11];
    char *at = digits + sizeof digits;
    *--at = 0;
    do {
        *--at = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    print(at);
}

static void show(const char *name, uint32_t instructions)
{
    print("bench ");
    print(name);
    print(" ");
    print_number(instructions);
    print("\n");
}

static __attribute__((noreturn)) void end(const char *how)
{
    print(how);
    /* DBCR0: system reset. The reader of the figures has them by then. */
    for (;;)
        __asm volatile("mtspr 1010, %0" ::"r"(0x30000000u));
}

void on_unexpected(uint32_t vector, uint32_t address)
{
    print("bench failed: interrupt ");
    print_number(vector);
    print(" at ");
    print_number(address);
    end("\n");
}

static void write_entry(uint32_t number, uint32_t high, uint32_t low)
{
    __asm volatile("tlbwe %1, %2, 1\n tlbwe %0, %2, 0\n isync" ::"r"(high), "r"(low), "r"(number) : "memory");
}

/* Shows a loop, less the same loop without what is measured. */
static void measure(const char *name, uint32_t (*loop)(uint32_t, uint32_t), uint32_t with, uint32_t without)
{
    loop(2, with);
    uint32_t all = loop(ROUNDS, with), nothing = loop(ROUNDS, without);
    show(name, (all - nothing) * INSTRUCTIONS / ROUNDS);
}

static void exceptions(void)
{
    uint32_t own = (uint32_t)(uintptr_t)page;
    __asm volatile("mtspr 944, %0\n mtspr 945, %1" ::"r"(0x55555555u), "r"(0));
    /* 1M from address 0: all of the program. */
    write_entry(OWN, 5u << 7 | 1u << 6, EXECUTE | WRITE);
    measure("fetch-miss", fetch_misses, ENTRY, UNUSED);
    measure("load-miss", load_misses, ENTRY, UNUSED);
    write_entry(OTHER, REFUSED | 0xc0, own | EXECUTE);
    measure("data-storage", stores, REFUSED, WINDOW);
    write_entry(OTHER, REFUSED | 0xc0, own | WRITE);
    measure("instruction-storage", fetches, REFUSED, WINDOW);
    /* The UART interrupts as long as its transmitter is empty: line 0 of the controller. */
    __asm volatile("mtdcr 0xc4, %0\n mtdcr 0xc5, %1\n mtdcr 0xc3, %1" ::"r"(~0u), "r"(0));
    UART[1] = 2;
    __asm volatile("mtdcr 0xc0, %0\n mtdcr 0xc2, %1" ::"r"(~0u), "r"(0x80000000u));
    measure("external", interrupts, 1, 0);
    __asm volatile("mtdcr 0xc2, %0" ::"r"(0));
    UART[1] = 0;
}

int main(void)
{
    exceptions();
    end("bench done\n");
}
