/* SPDX-License-Identifier: Apache-2.0 */
/* The names that FreeRTOS' port for the PowerPC 405 has for an interrupt controller in an FPGA. Here they are the
 * 405EP's own, the UIC, whose line N is number 31 - N. The application has no interrupt of a device, so the
 * linker leaves the callers of the four functions out. */
#ifndef XINTC_H
#define XINTC_H
#include "xexception_l.h"

typedef struct {
    XInterruptHandler Handler;
    void *CallBackRef;
} XIntc_VectorTableEntry;

typedef struct {
    uint32_t BaseAddress;
    XIntc_VectorTableEntry *HandlerTable;
} XIntc_Config;

typedef struct {
    XIntc_Config *config;
} XIntc;

extern XIntc_Config XIntc_ConfigTable[];

#define XPAR_XPS_INTC_0_DEVICE_ID 0
#define XPAR_INTC_MAX_NUM_INTR_INPUTS 32
#define XIN_REAL_MODE 1
#define XST_SUCCESS 0

int XIntc_Initialize(XIntc *controller, uint16_t device);
int XIntc_Start(XIntc *controller, uint8_t mode);
int XIntc_Connect(XIntc *controller, uint8_t line, XInterruptHandler handler, void *data);
void XIntc_Enable(XIntc *controller, uint8_t line);
#endif
