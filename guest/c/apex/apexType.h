// SPDX-License-Identifier: Apache-2.0
//
// Types and limits that all services of ARINC 653 Part 1 share. Numbers and layouts
// are those of the library `apex/c`.
#ifndef APEX_TYPE_H
#define APEX_TYPE_H

#include <stdint.h>

#define SYSTEM_LIMIT_NUMBER_OF_PARTITIONS 32
#define SYSTEM_LIMIT_NUMBER_OF_MESSAGES 512
#define SYSTEM_LIMIT_MESSAGE_SIZE 512
#define SYSTEM_LIMIT_NUMBER_OF_PROCESSES 16
#define SYSTEM_LIMIT_NUMBER_OF_SAMPLING_PORTS 8
#define SYSTEM_LIMIT_NUMBER_OF_QUEUING_PORTS 8
#define SYSTEM_LIMIT_NUMBER_OF_BUFFERS 8
#define SYSTEM_LIMIT_NUMBER_OF_BLACKBOARDS 8
#define SYSTEM_LIMIT_NUMBER_OF_SEMAPHORES 8
#define SYSTEM_LIMIT_NUMBER_OF_EVENTS 8
#define SYSTEM_LIMIT_NUMBER_OF_MUTEXES 8

#define MAX_NAME_LENGTH 32
#define INFINITE_TIME_VALUE (-1)

typedef uint8_t APEX_BYTE;
typedef int32_t APEX_INTEGER;
typedef uint32_t APEX_UNSIGNED;
typedef int64_t APEX_LONG_INTEGER;

typedef enum {
    NO_ERROR = 0,
    NO_ACTION = 1,
    NOT_AVAILABLE = 2,
    INVALID_PARAM = 3,
    INVALID_CONFIG = 4,
    INVALID_MODE = 5,
    TIMED_OUT = 6
} RETURN_CODE_TYPE;

// A compiler with short enumerations needs `-fno-short-enums`.
#ifndef __cplusplus
_Static_assert(sizeof(RETURN_CODE_TYPE) == 4, "build with -fno-short-enums");
#endif

typedef char NAME_TYPE[MAX_NAME_LENGTH];
typedef void (*SYSTEM_ADDRESS_TYPE)(void);
typedef APEX_BYTE *MESSAGE_ADDR_TYPE;
typedef APEX_UNSIGNED MESSAGE_SIZE_TYPE;
typedef APEX_UNSIGNED MESSAGE_RANGE_TYPE;
typedef APEX_INTEGER WAITING_RANGE_TYPE;
// Nanoseconds.
typedef APEX_LONG_INTEGER SYSTEM_TIME_TYPE;

typedef enum { SOURCE = 0, DESTINATION = 1 } PORT_DIRECTION_TYPE;
typedef enum { FIFO = 0, PRIORITY = 1 } QUEUING_DISCIPLINE_TYPE;

#endif
