// SPDX-License-Identifier: Apache-2.0
//
// Time management (Part 1, section 3.4).
#ifndef APEX_TIME_H
#define APEX_TIME_H

#include "apexType.h"

#ifdef __cplusplus
extern "C" {
#endif

void TIMED_WAIT(SYSTEM_TIME_TYPE DELAY_TIME, RETURN_CODE_TYPE *RETURN_CODE);
void PERIODIC_WAIT(RETURN_CODE_TYPE *RETURN_CODE);
void GET_TIME(SYSTEM_TIME_TYPE *SYSTEM_TIME, RETURN_CODE_TYPE *RETURN_CODE);
void REPLENISH(SYSTEM_TIME_TYPE BUDGET_TIME, RETURN_CODE_TYPE *RETURN_CODE);

#ifdef __cplusplus
}
#endif

#endif
