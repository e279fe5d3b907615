/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of start.S: each gets its rounds and a further word, and returns the ticks that it took. */
#ifndef LOOPS_H
#define LOOPS_H
#include <stdint.h>

uint32_t fetch_misses(uint32_t rounds, uint32_t entry);
uint32_t load_misses(uint32_t rounds, uint32_t entry);
uint32_t stores(uint32_t rounds, uint32_t address);
uint32_t fetches(uint32_t rounds, uint32_t address);
uint32_t interrupts(uint32_t rounds, uint32_t lets_through);
/* The page that start.S maps: its first word is a return. */
extern const uint32_t page[];

void on_unexpected(uint32_t vector, uint32_t address);
#endif
