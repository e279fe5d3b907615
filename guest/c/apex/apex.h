// SPDX-License-Identifier: Apache-2.0
//
// All services of ARINC 653 that there are.
#ifndef APEX_H
#define APEX_H

#include "apexBlackboard.h"
#include "apexBuffer.h"
#include "apexConfiguration.h"
#include "apexError.h"
#include "apexEvent.h"
#include "apexMutex.h"
#include "apexPartition.h"
#include "apexProcess.h"
#include "apexQueuing.h"
#include "apexSampling.h"
#include "apexSchedule.h"
#include "apexSemaphore.h"
#include "apexTime.h"
#include "apexType.h"

#endif
