// SPDX-License-Identifier: Apache-2.0
//
// The configuration of mcu-freertos, and what the port to the Cortex-M33 asks for besides. The kernel runs
// non-secure and calls no secure functions.
#ifndef FREERTOS_CONFIG_WORLD_H
#define FREERTOS_CONFIG_WORLD_H

#include "../mcu-freertos/FreeRTOSConfig.h"

#undef configCPU_CLOCK_HZ
#define configCPU_CLOCK_HZ CPU_CLOCK_HZ

#define configENABLE_FPU 1
#define configENABLE_MPU 0
#define configENABLE_TRUSTZONE 0
#define configRUN_FREERTOS_SECURE_ONLY 0

#endif
