/* SPDX-License-Identifier: Apache-2.0 */
/* Bulkhead's interface to partitions. Generated from the crate bulkhead-abi; do not edit.
 * Class aarch64: SMC Calling Convention; HVC #0 from a VM, SVC #0 from a task.
 * in:  x0 = function identifier, x1 = capability index, x2..x6 = arguments
 * out: x0 = 0 or a negative error, x1..x4 = results; other registers keep their value
 * Class armv7m: the same in 32-bit registers; UDF #0xB1 from a VM, SVC #0 from a task.
 * in:  r0 = function identifier, r1 = capability index, r2:r3, r4:r5 .. r10:r11 = arguments, low word first
 * out: r0 = 0 or a negative error, r2:r3 .. r8:r9 = results; other registers keep their value */
#ifndef BULKHEAD_H
#define BULKHEAD_H

#include <stdint.h>

/* revision: major << 16 | minor */
#define BULKHEAD_ABI_VERSION                       0x10007u

/* function identifiers (x0, r0) */
#define BULKHEAD_FUNCTION_BASE                     0xc6000000u
#define BULKHEAD_HYPERCALL_GATE                    0x1ffffb10u
#define BULKHEAD_NULL                              0xc6000000u
#define BULKHEAD_VERSION                           0xc6000001u
#define BULKHEAD_PARTITION_STATUS                  0xc6000100u
#define BULKHEAD_PARTITION_START                   0xc6000101u
#define BULKHEAD_PARTITION_STOP                    0xc6000102u
#define BULKHEAD_PARTITION_RESTART                 0xc6000103u
#define BULKHEAD_PARTITION_KICK                    0xc6000104u
#define BULKHEAD_PARTITION_MEASURE                 0xc6000105u
#define BULKHEAD_EVENT_WAIT                        0xc6000200u
#define BULKHEAD_EVENT_POLL                        0xc6000201u
#define BULKHEAD_EVENT_SIGNAL                      0xc6000202u
#define BULKHEAD_EVENT_UPCALL                      0xc6000203u
#define BULKHEAD_TIMER_NOW                         0xc6000300u
#define BULKHEAD_TIMER_SLEEP                       0xc6000301u
#define BULKHEAD_CONSOLE_WRITE                     0xc6000400u
#define BULKHEAD_CONSOLE_READ                      0xc6000401u
#define BULKHEAD_CAPABILITY_DERIVE                 0xc6000500u
#define BULKHEAD_CAPABILITY_GRANT                  0xc6000501u
#define BULKHEAD_CAPABILITY_REVOKE                 0xc6000502u
#define BULKHEAD_CAPABILITY_DELETE                 0xc6000503u
#define BULKHEAD_CAPABILITY_INSPECT                0xc6000504u
#define BULKHEAD_CAPABILITY_FIND                   0xc6000505u
#define BULKHEAD_SCHEDULE_STATUS                   0xc6000600u
#define BULKHEAD_SCHEDULE_CHANGE                   0xc6000601u
#define BULKHEAD_PORT_SEND                         0xc6000700u
#define BULKHEAD_PORT_RECEIVE                      0xc6000701u
#define BULKHEAD_PORT_TRY_RECEIVE                  0xc6000702u
#define BULKHEAD_PORT_SEND_RECEIVE                 0xc6000703u
#define BULKHEAD_PORT_SEND_RECEIVE_DONATE          0xc6000704u
#define BULKHEAD_PORT_RECEIVE_DONATE               0xc6000705u
#define BULKHEAD_PORT_RESUME                       0xc6000706u
#define BULKHEAD_PORT_REPLY                        0xc6000800u
#define BULKHEAD_LOCK_TAKE                         0xc6000900u
#define BULKHEAD_LOCK_TRY_TAKE                     0xc6000901u
#define BULKHEAD_LOCK_RELEASE                      0xc6000902u
#define BULKHEAD_DEVICE_HOLD                       0xc6000a00u
#define BULKHEAD_DEVICE_RELEASE                    0xc6000a01u
#define BULKHEAD_INTERRUPT_BIND                    0xc6000b00u
#define BULKHEAD_INTERRUPT_DONE                    0xc6000b01u
#define BULKHEAD_INTERRUPT_UNBIND                  0xc6000b02u
#define BULKHEAD_SECRET_TAKE                       0xc6000c00u
#define BULKHEAD_CHANNEL_PLACE                     0xc6000d00u
#define BULKHEAD_CHANNEL_DOORBELL                  0xc6000d01u
#define BULKHEAD_CHANNEL_HOLD                      0xc6000d02u
#define BULKHEAD_CHANNEL_RELEASE                   0xc6000d03u
#define BULKHEAD_SERVICE_TAKE                      0xc6000e00u
#define BULKHEAD_SERVICE_ANSWER                    0xc6000e01u
#define BULKHEAD_SERVICE_NEWS                      0xc6000e02u
#define BULKHEAD_SERVICE_INTERRUPT                 0xc6000e03u
#define BULKHEAD_SERVICE_READ                      0xc6000e04u
#define BULKHEAD_SERVICE_WRITE                     0xc6000e05u
#define BULKHEAD_SERVICE_REACH                     0xc6000e06u
#define BULKHEAD_SERVICE_KEEP                      0xc6000e07u
#define BULKHEAD_SERVICE_KEPT                      0xc6000f00u

/* errors (x0, r0) */
#define BULKHEAD_ERROR_NOT_SUPPORTED               (-1)
#define BULKHEAD_ERROR_NO_CAPABILITY               (-2)
#define BULKHEAD_ERROR_WRONG_KIND                  (-3)
#define BULKHEAD_ERROR_NO_RIGHT                    (-4)
#define BULKHEAD_ERROR_INVALID_ARGUMENT            (-5)
#define BULKHEAD_ERROR_NO_SPACE                    (-6)
#define BULKHEAD_ERROR_WRONG_STATE                 (-7)
#define BULKHEAD_ERROR_TIMED_OUT                   (-8)
#define BULKHEAD_ERROR_INTERRUPTED                 (-9)
#define BULKHEAD_ERROR_REVOKED                     (-10)
#define BULKHEAD_ERROR_DONATION_CYCLE              (-11)
#define BULKHEAD_ERROR_OUT_OF_REACH                (-12)

/* object kinds */
#define BULKHEAD_KIND_PARTITION                    1u
#define BULKHEAD_KIND_EVENT_GATE                   2u
#define BULKHEAD_KIND_TIMER                        3u
#define BULKHEAD_KIND_CONSOLE                      4u
#define BULKHEAD_KIND_SCHEDULE                     6u
#define BULKHEAD_KIND_PORT                         7u
#define BULKHEAD_KIND_REPLY                        8u
#define BULKHEAD_KIND_LOCK                         9u
#define BULKHEAD_KIND_DEVICE                       10u
#define BULKHEAD_KIND_INTERRUPT                    11u
#define BULKHEAD_KIND_SECRET                       12u
#define BULKHEAD_KIND_CHANNEL                      13u
#define BULKHEAD_KIND_SERVICE                      14u

/* rights, a set of bits */
#define BULKHEAD_RIGHT_READ                        1u
#define BULKHEAD_RIGHT_WRITE                       2u
#define BULKHEAD_RIGHT_CONTROL                     4u
#define BULKHEAD_RIGHT_GRANT                       8u
#define BULKHEAD_RIGHT_ALL                         15u

/* capability space */
#define BULKHEAD_CAPABILITY_SLOTS                  64u
#define BULKHEAD_CAPABILITY_NAME                   32u
#define BULKHEAD_SELF_CAPABILITY                   0u

/* messages, copies and words that are kept: most bytes, alignment, words */
#define BULKHEAD_MAX_MESSAGE                       1024u
#define BULKHEAD_MESSAGE_ALIGN                     8u
#define BULKHEAD_MAX_COPY                          1024u
#define BULKHEAD_KEPT_WORDS                        15u
#define BULKHEAD_KEPT_GROUP                        3u
#define BULKHEAD_UPCALL_WORDS                      12u

/* a bit of the fourth argument of BULKHEAD_PORT_SEND; numbers instead of a partition's */
#define BULKHEAD_SEND_REPLACES                     UINT64_C(0x1000000)
#define BULKHEAD_LINE_SENDER                       UINT64_C(0x10000)
#define BULKHEAD_OWN_MEMORY                        255u
#define BULKHEAD_DEVICE_EVENT                      59u

/* partition states: bits 7:0 of the status word */
#define BULKHEAD_STATE_STOPPED                     0u
#define BULKHEAD_STATE_LOADING                     1u
#define BULKHEAD_STATE_RUNNING                     2u
#define BULKHEAD_STATE_FAILED                      3u
#define BULKHEAD_STATE_STOPPING                    4u

/* health classes: bits 15:8 of the status word, 0 = no health event yet */
#define BULKHEAD_HEALTH_MEMORY                     1u
#define BULKHEAD_HEALTH_SYSTEM                     2u
#define BULKHEAD_HEALTH_HYPERCALL                  3u
#define BULKHEAD_HEALTH_WATCHDOG                   4u
#define BULKHEAD_HEALTH_TASK                       5u

/* restarts and health events since boot: 16 and 32 bits of the status word from these bits on */
#define BULKHEAD_STATUS_RESTARTS_SHIFT             16
#define BULKHEAD_STATUS_EVENTS_SHIFT               32

/* start modes: bits 7:0 of the start word, and of the options of a start */
#define BULKHEAD_START_COLD                        0u
#define BULKHEAD_START_WARM                        1u

/* start causes: bits 15:8 of the start word; bits 23:16 are the health class of the last of them */
#define BULKHEAD_CAUSE_BOOT                        0u
#define BULKHEAD_CAUSE_SUPERVISOR                  1u
#define BULKHEAD_CAUSE_OWN                         2u
#define BULKHEAD_CAUSE_HEALTH                      3u

/* alternative and starts since boot: 8 and 32 bits of the start word from these bits on */
#define BULKHEAD_EVENT_WINDOW_START                UINT64_C(0x4000000000000000)
#define BULKHEAD_EVENT_PERIOD_START                UINT64_C(0x8000000000000000)
#define BULKHEAD_START_ALTERNATIVE_SHIFT           24
#define BULKHEAD_START_STARTS_SHIFT                32

/* an option of a start: this alternative from now on */
#define BULKHEAD_OPTION_ALTERNATIVE(n)             (256u | (n) * 65536u)

/* startup page of a task, its address in x0 or r0 at the first instruction */
#define BULKHEAD_STARTUP_MAGIC                     UINT64_C(0x3154524154534842)

struct bulkhead_startup_header {
    uint64_t magic;
    uint32_t count;
    uint32_t abi_version;
    uint64_t memory_base;
    uint64_t memory_size;
};
_Static_assert(sizeof(struct bulkhead_startup_header) == 32, "bulkhead_startup_header");

struct bulkhead_startup_capability {
    char name[24];
    uint32_t index;
    uint8_t kind;
    uint8_t rights;
    uint16_t object;
};
_Static_assert(sizeof(struct bulkhead_startup_capability) == 32, "bulkhead_startup_capability");

#endif
