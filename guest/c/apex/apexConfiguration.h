// SPDX-License-Identifier: Apache-2.0
//
// Not of the standard: what the integrator fixes of a partition, as a constant of its program, and the name of the
// main process.
#ifndef APEX_CONFIGURATION_H
#define APEX_CONFIGURATION_H

#include "apexPartition.h"
#include "apexType.h"

typedef enum { HM_IGNORE = 0, HM_IDLE = 1, HM_COLD_START = 2, HM_WARM_START = 3 } APEX_HM_ACTION_TYPE;

// A port. A sampling port has `MAX_NB_MESSAGE` 0, a queuing port `REFRESH_PERIOD` 0.
typedef struct {
    NAME_TYPE NAME;
    PORT_DIRECTION_TYPE DIRECTION;
    MESSAGE_SIZE_TYPE MAX_MESSAGE_SIZE;
    MESSAGE_RANGE_TYPE MAX_NB_MESSAGE;
    SYSTEM_TIME_TYPE REFRESH_PERIOD;
} APEX_PORT_TYPE;

// Period and duration of the partition in a schedule.
typedef struct {
    SYSTEM_TIME_TYPE PERIOD;
    SYSTEM_TIME_TYPE DURATION;
} APEX_TIMES_TYPE;

typedef struct {
    PARTITION_ID_TYPE IDENTIFIER;
    SYSTEM_TIME_TYPE PERIOD;
    SYSTEM_TIME_TYPE DURATION;
    const APEX_PORT_TYPE *PORTS;
    const NAME_TYPE *SCHEDULES;
    APEX_UNSIGNED NB_PORTS;
    APEX_UNSIGNED NB_SCHEDULES;
    // By `ERROR_CODE_TYPE`: what follows from an error that no error handler takes.
    APEX_HM_ACTION_TYPE HEALTH[8];
    // `NB_SCHEDULES` pairs of times, in the order of `SCHEDULES`; null if they are the same in all.
    const APEX_TIMES_TYPE *TIMES;
} APEX_CONFIGURATION_TYPE;

#ifdef __cplusplus
extern "C" {
#endif

// The partition defines both. The main process creates everything, and ends with `SET_PARTITION_MODE`.
extern const APEX_CONFIGURATION_TYPE APEX_CONFIGURATION;
void APEX_MAIN(void);

#ifdef __cplusplus
}
#endif

#endif
