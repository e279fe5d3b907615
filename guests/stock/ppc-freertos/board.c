/* SPDX-License-Identifier: Apache-2.0 */
/* The PPC405EP evaluation board: time base, vectors, and the UART (a 16550). */
#include "board.h"
#include "FreeRTOS.h"
#include "xintc_i.h"

#define UART 0xef600300ul
/* Status and masked status of the UIC, device control registers. */
#define UIC_STATUS 0xc0
#define UIC_MASKED 0xc6
/* MSR[WE] */
#define WAIT 0x00040000ul
#define VECTORS 32

const char board_name[] = "PowerPC 405";

/* In start.S. */
void on_program(void *data);

/* start.S finds the handlers here. */
struct handler {
    XExceptionHandler handler;
    void *data;
} handlers[VECTORS];

void XExc_Init(void) {}

void XExc_RegisterHandler(uint8_t id, XExceptionHandler handler, void *data)
{
    handlers[id % VECTORS] = (struct handler){handler, data};
}

void on_exception(uint32_t vector, uint32_t address, uint32_t data) { on_unexpected(vector, address, data); }

static XIntc_VectorTableEntry lines[XPAR_INTC_MAX_NUM_INTR_INPUTS];
XIntc_Config XIntc_ConfigTable[] = {{UIC_STATUS, lines}};

uint32_t XIntc_mGetIntrStatus(uint32_t base)
{
    uint32_t status;
    (void)base;
    __asm volatile("mfdcr %0, %1" : "=r"(status) : "i"(UIC_MASKED));
    return status;
}

void XIntc_mAckIntr(uint32_t base, uint32_t mask)
{
    (void)base;
    __asm volatile("mtdcr %1, %0" ::"r"(mask), "i"(UIC_STATUS));
}

void board_init(void) { XExc_RegisterHandler(XEXC_ID_PROGRAM, on_program, 0); }

/* The kernel has no promise about the time from an interrupt to a task here: no interrupt is one of the tests. */
void measure_costs(void) {}

uint64_t board_now(void)
{
    uint32_t high, low, again;
    do {
        __asm volatile("mftbu %0\n mftb %1\n mftbu %2" : "=r"(high), "=r"(low), "=r"(again));
    } while (high != again);
    return (uint64_t)high << 32 | low;
}

uint64_t board_hertz(void) { return configCPU_CLOCK_HZ; }

void board_wait(void) { board_set_state(board_state() | WAIT | XEXC_NON_CRITICAL); }

void board_power_off(void)
{
    /* The board cannot be switched off. */
    for (;;)
        board_set_state(WAIT);
}

void board_put(char byte)
{
    volatile uint8_t *uart = (volatile uint8_t *)UART;
    /* LSR: the transmitter is empty. */
    while (!(uart[5] & 0x20)) {
    }
    uart[0] = (uint8_t)byte;
}
