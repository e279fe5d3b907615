// SPDX-License-Identifier: Apache-2.0
//
// A VM that has a DMA controller of the board (PL081, Arm DDI 0218E) and lets it copy: within the VM's memory,
// which must work; then from memory that is not the VM's, of which nothing may arrive; then to memory that is
// not the VM's, of which the neighbours would show changes. Each address is used with bit 28 clear and set,
// which are the two worlds.
//
// One block of the hypervisor's RAM is in this world. It has instructions, which are no secret, and its place is
// not known here. So the program counts the blocks of this RAM of which something arrives, and leaves them as
// they are.

#include "board.h"
#include "uart.h"

#include <stdbool.h>

#define DMA(offset) REGISTER(0x40110000 + (offset))
enum { ERROR_CLEAR = 0x10, CONFIGURATION = 0x30, SOURCE = 0x100, DESTINATION = 0x104, NEXT = 0x108 };
enum { HYPERVISOR_CODE = 0x003d6000, HYPERVISOR_RAM = 0x283f8000, HYPERVISOR_LAST = 0x283fffff, BLOCK = 0x400 };
enum { CONTROL = 0x10c, CHANNEL_CONFIGURATION = 0x110, WORDS = 4 };
#define SECURE (1u << 28)
// Four words of 32 bits, both addresses grow, an interrupt at the end.
#define FOUR_WORDS (WORDS | 2u << 18 | 2u << 21 | 1u << 26 | 1u << 27 | 1u << 31)

// Memory of the board, and registers of its security: of the controllers of memory and of devices.
static const struct {
    uint32_t first, last, step;
} foreign[] = {
    {0x00000000, HYPERVISOR_CODE - 1, 0x4000}, {HYPERVISOR_CODE, 0x003fffff, BLOCK},
    {0x28000000, HYPERVISOR_RAM - 1, 0x2000},  {HYPERVISOR_RAM, HYPERVISOR_LAST, BLOCK},
    {0x20000000, 0x20007fff, 0x200},           {0x48007000, 0x48007fff, 0x10},
    {0x40080000, 0x400800ff, 0x10},
};

// Code and RAM of the VM (memory.ld), by their names in this world.
static const struct {
    uint32_t first, last;
} own[] = {{0x00190000, 0x00193fff}, {0x280c0000, 0x280c3fff}};

static volatile uint32_t from[WORDS], to[WORDS];
static uint32_t tries, leaks, blocks;

static void copy(uint32_t source, uint32_t destination)
{
    DMA(ERROR_CLEAR) = 0xff;
    DMA(SOURCE) = source;
    DMA(DESTINATION) = destination;
    DMA(NEXT) = 0;
    DMA(CONTROL) = FOUR_WORDS;
    DMA(CHANNEL_CONFIGURATION) = 1 | 3u << 14;
    while (DMA(CHANNEL_CONFIGURATION) & 1) {
    }
}

static void fill(void)
{
    for (uint32_t word = 0; word < WORDS; word++) {
        from[word] = 0xd3a00000 + word;
        to[word] = 0x11111111;
    }
}

// Reads from an address. Returns how many words arrive that are not zero.
static uint32_t words_from(uint32_t address)
{
    uint32_t words = 0;
    fill();
    copy(address, (uint32_t)to);
    for (uint32_t word = 0; word < WORDS; word++)
        words += to[word] != 0 && to[word] != 0x11111111;
    return words;
}

static bool is_ram_of_hypervisor(uint32_t address)
{
    return address >= HYPERVISOR_RAM && address <= HYPERVISOR_LAST;
}

// Reads from an address, then writes there. Of what is read only zeros may arrive, but for the one block.
static void attack(uint32_t address)
{
    uint32_t words = words_from(address);
    if (words != 0 && is_ram_of_hypervisor(address)) {
        blocks++;
        return;
    }
    leaks += words;
    fill();
    copy((uint32_t)from, address);
    tries++;
}

static bool is_own(uint32_t address)
{
    for (uint32_t part = 0; part < sizeof own / sizeof own[0]; part++)
        if (address >= own[part].first && address <= own[part].last)
            return true;
    return false;
}

int main(void)
{
    uart_start(UART0, false);
    DMA(CONFIGURATION) = 1;
    fill();
    copy((uint32_t)from, (uint32_t)to);
    uart_print(UART0, to[WORDS - 1] == from[WORDS - 1] ? "dma: copies within the VM\n" : "dma: WRONG copies nothing\n");
    for (uint32_t set = 0; set < sizeof foreign / sizeof foreign[0]; set++)
        for (uint32_t address = foreign[set].first; address <= foreign[set].last; address += foreign[set].step) {
            if (!is_own(address))
                attack(address);
            attack(address | SECURE);
        }
    uart_print(UART0, "dma: ");
    uart_print_number(UART0, tries, 10);
    uart_print(UART0, " tries, ");
    uart_print_number(UART0, leaks, 10);
    uart_print(UART0, " words of others\ndma: ");
    uart_print_number(UART0, blocks, 10);
    uart_print(UART0, " blocks of the hypervisor in this world\n");
    for (;;)
        __asm__ volatile("wfi");
}
