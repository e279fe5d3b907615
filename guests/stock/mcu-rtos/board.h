// SPDX-License-Identifier: Apache-2.0
//
// Registers of the CPU (Arm DDI 0403E, B3) and of an MPS2 board (Arm DAI 0386D, section 4), as CMSIS names
// them.
#ifndef BOARD_H
#define BOARD_H

#include <stdint.h>

#define REGISTER(address) (*(volatile uint32_t *)(address))

#define SYST_CSR REGISTER(0xe000e010)
#define SYST_RVR REGISTER(0xe000e014)
#define SYST_CVR REGISTER(0xe000e018)
#define SYST_ENABLE_TICK_CORE_CLOCK 7u

#define NVIC_ISER0 REGISTER(0xe000e100)
#define NVIC_ICER0 REGISTER(0xe000e180)
#define NVIC_ISPR0 REGISTER(0xe000e200)
#define NVIC_ICPR0 REGISTER(0xe000e280)
#define NVIC_IPR(line) (*(volatile uint8_t *)(0xe000e400u + (line)))

#define SCB_ICSR REGISTER(0xe000ed04)
#define SCB_ICSR_PENDSVSET (1u << 28)
#define SCB_VTOR REGISTER(0xe000ed08)
#define SCB_AIRCR REGISTER(0xe000ed0c)
#define SCB_SHPR2 REGISTER(0xe000ed1c)
#define SCB_SHPR3 REGISTER(0xe000ed20)
#define SCB_CPACR REGISTER(0xe000ed88)

// A board with another clock says so to the compiler.
#ifndef CPU_CLOCK_HZ
#define CPU_CLOCK_HZ 25000000u
#endif

// External interrupts of the board.
enum line {
    LINE_UART0_RECEIVE = 0,
    LINE_UART0_TRANSMIT = 1,
    LINE_UART1_RECEIVE = 2,
    LINE_UART1_TRANSMIT = 3,
    LINE_UART2_RECEIVE = 4,
    LINE_UART2_TRANSMIT = 5,
    LINE_TIMER0 = 8,
    LINE_TIMER1 = 9,
    LINE_DUAL_TIMER = 10,
    LINE_ETHERNET = 13,
};

// Lets an interrupt through, with a priority from 0 (first) to 255.
static inline void interrupt_enable(enum line line, uint8_t priority)
{
    NVIC_IPR(line) = priority;
    NVIC_ISER0 = 1u << line;
}

// CMSDK APB timer (Arm DDI 0479D, section 4.1): counts down to 0, reloads, asks for an interrupt.
struct timer {
    volatile uint32_t control, value, reload, interrupt;
};
#define TIMER1 ((struct timer *)0x40001000)
#define TIMER_ENABLE 1u
#define TIMER_ENABLE_INTERRUPT 9u

#endif
