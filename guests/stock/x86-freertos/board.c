/* SPDX-License-Identifier: Apache-2.0 */
/* A PC: the PM timer of ACPI, a 16550, and the 8259 pair, which is switched off. */
#include "board.h"
#include "FreeRTOS.h"

#define UART 0x3f8
#define PM_CONTROL 0x604
#define PM_TIMER 0x608
/* Bits of the PM timer that count, and their rate (ACPI 6.5, 4.8.3.3). */
#define PM_MASK 0xffffffu
#define PM_HERTZ 3579545u

const char board_name[] = "32-bit x86";

static inline void out8(uint16_t port, uint8_t value) { __asm volatile("outb %0, %1" ::"a"(value), "Nd"(port)); }

static inline void out16(uint16_t port, uint16_t value) { __asm volatile("outw %0, %1" ::"a"(value), "Nd"(port)); }

static inline uint8_t in8(uint16_t port)
{
    uint8_t value;
    __asm volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
    return value;
}

static inline uint32_t in32(uint16_t port)
{
    uint32_t value;
    __asm volatile("inl %1, %0" : "=a"(value) : "Nd"(port));
    return value;
}

void board_init(void)
{
    /* The masks of both 8259. */
    out8(0x21, 0xff);
    out8(0xa1, 0xff);
}

/* The kernel has no promise about the time from an interrupt to a task here: no interrupt is one of the tests. */
void measure_costs(void) {}

/* Asked by one task at least every four seconds, so no turn of the timer is missed. */
uint64_t board_now(void)
{
    static uint64_t now;
    now += (in32(PM_TIMER) - (uint32_t)now) & PM_MASK;
    return now;
}

uint64_t board_hertz(void) { return PM_HERTZ; }

void board_wait(void) { __asm volatile("hlt"); }

void board_power_off(void) { out16(PM_CONTROL, 1u << 13); }

void board_put(char byte)
{
    /* LSR: the transmitter is empty. */
    while (!(in8(UART + 5) & 0x20)) {
    }
    out8(UART, (uint8_t)byte);
}
