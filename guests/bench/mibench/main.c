/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the programs, and prints "bench mibench-NAME TICKS" of all passes of each, then "bench done". In a
 * VM that has turns with another one, each measurement begins at the end of a turn: so the VM's share of the
 * time is known to a switch. */
#include "FreeRTOS.h"
#include "board.h"
#include "programs.h"
#include "task.h"
#include "turn.h"

/* A microcontroller has no room for the words, no instructions for numbers of 64 bits, and less time. */
#ifdef SMALL
#define PASSES(large, small) small
#else
#define PASSES(large, small) large
#endif

static const struct program programs[] = {
#ifndef SMALL
    {"basicmath", 7, basicmath},
#endif
    {"bitcount", 1, bitcount},
#ifndef SMALL
    {"qsort", 3, sort_words},
#endif
    {"susan-smoothing", PASSES(2, 1), susan_smoothing},
    {"susan-edges", PASSES(10, 2), susan_edges},
    {"susan-corners", PASSES(10, 2), susan_corners},
};

void on_test_interrupt(void) { fail("an interrupt that no program raises"); }

/* Lets code of this program use the registers for floating-point numbers (Arm ARM, CPACR_EL1.FPEN). */
static void enable_floating_point(void)
{
#ifdef __aarch64__
    __asm volatile("msr cpacr_el1, %0\n isb" ::"r"(3ul << 20));
#endif
}

static void measure(void *unused)
{
    (void)unused;
    portTASK_USES_FLOATING_POINT();
    int has_turns = 1;
    for (unsigned number = 0; number < sizeof programs / sizeof *programs; number++) {
        const struct program *program = &programs[number];
        uint64_t begin = has_turns ? end_of_turn() : 0;
        has_turns = begin != 0;
        if (!has_turns)
            begin = board_now();
        int is_good = 1;
        for (unsigned pass = 0; pass < program->passes; pass++)
            is_good &= program->pass();
        uint64_t took = board_now() - begin;
        if (!is_good)
            fail(program->name);
        print("bench mibench-");
        print(program->name);
        print(" ");
        print_number(took);
        print("\n");
    }
    print("bench done\n");
    board_power_off();
    for (;;) {
    }
}

int main(void)
{
    board_init();
    enable_floating_point();
    xTaskCreate(measure, "measure", 4096, NULL, configMAX_PRIORITIES - 1, NULL);
    vTaskStartScheduler();
    return 0;
}
