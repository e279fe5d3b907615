/* SPDX-License-Identifier: Apache-2.0 */
/* See xintc.h. */
#ifndef XINTC_I_H
#define XINTC_I_H
#include "xintc.h"

uint32_t XIntc_mGetIntrStatus(uint32_t base);
void XIntc_mAckIntr(uint32_t base, uint32_t mask);
#endif
