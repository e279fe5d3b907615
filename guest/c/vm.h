// SPDX-License-Identifier: Apache-2.0
//
// Hypercalls of a VM of a microcontroller, in C. A VM is a whole program with start-up code and devices of
// its own, so this file and `vm.c` have the call and nothing else. Numbers and layouts are those of
// `bulkhead.h`, which is generated. The indices of the VM's capabilities are the order of its table in the
// manifest, from 1 on; 0 is the VM itself.
#ifndef VM_H
#define VM_H

#include <stdint.h>

#include "bulkhead.h"

// Asks for an operation on the object of a capability. There are five arguments and four results. Either
// pointer may be null. Returns 0, or a negative error of `bulkhead.h`. Without the hypervisor the instruction
// is a UsageFault.
int32_t vm_call(uint32_t function, uint32_t capability, const uint64_t arguments[5], uint64_t results[4]);

#endif
