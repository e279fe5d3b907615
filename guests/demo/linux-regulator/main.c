/* SPDX-License-Identifier: Apache-2.0 */
/* A program of Linux that takes readings from the ring of a channel and tells their state through another one.
 *
 * It is the first process. Function 0 has the ring, function 1 the state. The program maps their memory and
 * waits for their interrupt in /dev/uio0. */
#include "linux_channel.h"
#include "ring.h"

/* The side of the sensor at the channel `state`. */
enum { SENSOR = 1 };

int main(void)
{
    struct channel_function readings, state;
    struct ring ring;
    uint64_t message[2], last = 0, lost = 0;
    uint32_t interrupts = 0;
    int uio;
    const char *wanted = getenv("count");
    uint64_t count = wanted ? strtoull(wanted, NULL, 10) : 200;

    channel_bind();
    readings = channel_function(0);
    state = channel_function(1);
    uio = open("/dev/uio0", O_RDWR);
    if (uio < 0)
        channel_end("/dev/uio0");
    if (ring_attach(&ring, readings.memory, readings.size / 4, 0) != 0)
        channel_end("ring");
    readings.registers[INTR_MASK] = 1;
    printf("regulator: Linux at side %u, %zu bytes\n", readings.registers[IV_POSITION], readings.size);
    while (last < count) {
        long length = ring_receive(&ring, message, sizeof message);
        if (length == sizeof message) {
            lost += message[0] - (last + 1);
            last = message[0];
            __atomic_store_n(&state.memory[1], (uint32_t)message[1], __ATOMIC_RELAXED);
            __atomic_store_n(&state.memory[0], (uint32_t)last, __ATOMIC_RELEASE);
            state.registers[DOORBELL] = SENSOR << 16;
        } else if (length == RING_EMPTY) {
            uint32_t total;
            channel_enable(&readings);
            if (read(uio, &total, sizeof total) != sizeof total)
                channel_end("/dev/uio0");
            interrupts++;
            (void)readings.registers[INTR_STATUS];
        } else {
            printf("regulator: broken, %ld\n", length);
            channel_end(NULL);
        }
    }
    printf("regulator: %llu readings in order, %llu lost, interrupts %s\n", (unsigned long long)last,
           (unsigned long long)lost, interrupts > 10 ? "came" : "missing");
    channel_end(NULL);
}
