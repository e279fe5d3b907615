// SPDX-License-Identifier: Apache-2.0
//
// The smallest secure program of a board of class armv8m: it gives the board to the non-secure world, and
// starts another program there, as a vendor's boot code does. So a test sees what the other program does on
// the bare board.
//
// Registers: Arm DDI 0553B, section D1.2, for those of the CPU; Arm ECM0601256, section 4.4.2, for the
// security controller; Arm DDI 0571E, section 3.3, for the memory protection controllers.

#include <arm_cmse.h>
#include <stdint.h>

#define REGISTER(address) (*(volatile uint32_t *)(address))

#define SAU_CTRL REGISTER(0xe000edd0)
#define SAU_CTRL_ENABLE 1u
#define SAU_RNR REGISTER(0xe000edd8)
#define SAU_RBAR REGISTER(0xe000eddc)
#define SAU_RLAR REGISTER(0xe000ede0)
#define SAU_RLAR_ENABLE 1u
#define AIRCR REGISTER(0xe000ed0c)
// The key, and BFHFNMINS: the other program takes its own HardFaults.
#define AIRCR_OWN_FAULTS (0x05fau << 16 | 1u << 13)
#define NSACR REGISTER(0xe000ed8c)
#define NSACR_FPU (3u << 10)
#define ITNS ((volatile uint32_t *)0xe000e380)
#define VIRTUAL_LINES 0xffffff00u
#define TIMER_LINES 0x18u
#define VTOR_NS REGISTER(0xe002ed08)

#define SECURITY_CONTROLLER 0x50080000u
#define BLK_MAX 0x10
#define BLK_IDX 0x18
#define BLK_LUT 0x1c

// This program has the first block of code memory. The host tool writes the address of the other program's
// vector table to the last word of this block.
#define OWN_END 0x400
#define PROGRAM REGISTER(0x10000000 + OWN_END - 4)

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

// First and last byte of code memory behind this program, of RAM, and of devices.
static const uint32_t open[][2] = {{OWN_END, 0x0fffffff}, {0x20000000, 0x2fffffff}, {0x40000000, 0x4fffffff}};
// The gates of devices: AHBNSPPCEXP0 and 1, APBNSPPC0, APBNSPPCEXP0 to 2.
static const uint16_t gates[] = {0x60, 0x64, 0x70, 0x80, 0x84, 0x88};
// The controllers of SSRAM 1, 2 and 3 and of the first SRAM, and which of the first 32 blocks stay secure:
// the place of this program, and its stack.
static const struct memory {
    uint32_t controller, own;
} memories[] = {{0x58007000, 1}, {0x58008000, 0}, {0x58009000, 0}, {0x50083000, 0xf0000000}};

typedef void entry(void) __attribute__((cmse_nonsecure_call));

__attribute__((noreturn)) void Reset_Handler(void);
extern uint32_t __stack_top[];

__attribute__((section(".vectors"), used)) static void (*const vectors[])(void) = {(void (*)(void))__stack_top, Reset_Handler};

static void open_memory(const struct memory *memory)
{
    uint32_t words = REGISTER(memory->controller + BLK_MAX) + 1;
    for (uint32_t word = 0; word < words; word++) {
        REGISTER(memory->controller + BLK_IDX) = word;
        REGISTER(memory->controller + BLK_LUT) = word == 0 ? ~memory->own : UINT32_MAX;
    }
}

static void open_board(void)
{
    for (uint32_t region = 0; region < COUNT(open); region++) {
        SAU_RNR = region;
        SAU_RBAR = open[region][0];
        SAU_RLAR = (open[region][1] & ~31u) | SAU_RLAR_ENABLE;
    }
    SAU_CTRL = SAU_CTRL_ENABLE;
    for (uint32_t i = 0; i < COUNT(memories); i++)
        open_memory(&memories[i]);
    for (uint32_t i = 0; i < COUNT(gates); i++)
        REGISTER(SECURITY_CONTROLLER + gates[i]) = UINT32_MAX;
    // As a VM has them: the lines that no hardware drives, and those of devices that VMs can have.
    ITNS[0] = VIRTUAL_LINES | TIMER_LINES;
}

void Reset_Handler(void)
{
    const uint32_t *program = (const uint32_t *)PROGRAM;
    open_board();
    AIRCR = AIRCR_OWN_FAULTS;
    NSACR = NSACR_FPU;
    VTOR_NS = (uintptr_t)program;
    __asm__ volatile("msr msp_ns, %0\n dsb\n isb" : : "r"(program[0]) : "memory");
    ((entry *)cmse_nsfptr_create((uintptr_t)program[1]))();
    __builtin_unreachable();
}
