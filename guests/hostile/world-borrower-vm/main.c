// SPDX-License-Identifier: Apache-2.0
//
// The guest `borrower` as a VM. It takes a capability for memory from its port, holds the memory and never
// gives the memory back. The first byte of the message is its manner: 0 stores for ever, 1 loads, 2 stores
// where it may only load, 3 holds and releases for ever, 4 stores after it has released. Each manner but the
// one with number 3 ends with a fault. What a VM of this class may only load is not mapped for it, so the
// manners 1 and 2 fault at once.

#include "board.h"
#include "vm.h"

enum { LOANS = 1, ANSWER = 1, COUNTS = 2 };

static volatile uint32_t *words;
static uint32_t count;

static int32_t hold(uint32_t memory)
{
    uint64_t place[4] = {0};
    int32_t answer = vm_call(BULKHEAD_CHANNEL_HOLD, memory, 0, place);
    words = (volatile uint32_t *)(uintptr_t)place[0];
    count = (uint32_t)place[1] / 4;
    return answer;
}

// Tells whether everything that must be refused is refused.
static uint32_t refusals(uint32_t memory)
{
    const uint64_t there[5] = {(uintptr_t)words, 64};
    return vm_call(BULKHEAD_CHANNEL_HOLD, memory, 0, 0) == BULKHEAD_ERROR_WRONG_STATE &&
           vm_call(BULKHEAD_PORT_TRY_RECEIVE, LOANS, there, 0) == BULKHEAD_ERROR_INVALID_ARGUMENT &&
           vm_call(BULKHEAD_CHANNEL_HOLD, LOANS, 0, 0) == BULKHEAD_ERROR_WRONG_KIND;
}

static void store_for_ever(uint32_t memory)
{
    words[ANSWER] = refusals(memory);
    for (uint32_t value = 1;; value++)
        for (uint32_t at = COUNTS; at < count; at++)
            words[at] = value;
}

static void hold_and_release(uint32_t memory)
{
    uint32_t value = 1;
    do {
        words[ANSWER] = 1;
        words[COUNTS] = value++;
    } while (vm_call(BULKHEAD_CHANNEL_RELEASE, memory, 0, 0) == 0 && hold(memory) == 0);
}

int main(void)
{
    static uint8_t message[8] __attribute__((aligned(8)));
    for (;;) {
        const uint64_t buffer[5] = {(uintptr_t)message, sizeof message};
        uint64_t taken[4];
        if (vm_call(BULKHEAD_PORT_RECEIVE, LOANS, buffer, taken) != 0)
            continue;
        uint32_t memory = (uint32_t)taken[3];
        const uint64_t rights[5] = {BULKHEAD_RIGHT_READ};
        vm_call(BULKHEAD_CAPABILITY_DERIVE, memory, rights, 0);
        if (hold(memory) != 0)
            continue;
        if (message[0] == 0)
            store_for_ever(memory);
        else if (message[0] == 3)
            hold_and_release(memory);
        else if (message[0] == 2 || (message[0] == 4 && vm_call(BULKHEAD_CHANNEL_RELEASE, memory, 0, 0) == 0))
            words[ANSWER] = 2;
        else
            (void)words[ANSWER];
    }
}
