// SPDX-License-Identifier: Apache-2.0
//
// See `vm.h`.

#include "vm.h"

#include "call.h"

#if defined(__ARM_ARCH_8M_MAIN__)
// A branch to BULKHEAD_HYPERCALL_GATE, which is Secure memory, with bit 0 set.
CALL_TRAP(hypervisor_call, "movw lr, #0xfb11\n"
                           "movt lr, #0x1fff\n"
                           "blx lr")
#else
// UDF #0xB1, which no compiler uses.
CALL_TRAP(hypervisor_call, ".inst.n 0xdeb1")
#endif

int32_t vm_call(uint32_t function, uint32_t capability, const uint64_t arguments[5], uint64_t results[4])
{
    return call_by(hypervisor_call, function, capability, arguments, results);
}
