/* SPDX-License-Identifier: Apache-2.0 */
/* A program of Linux that takes readings from the ring of a channel and tells their state through another one.
 *
 * It is the first process. Each channel is a PCI function in ivshmem's layout, which Debian's own
 * uio_pci_generic binds: function 0 has the ring, function 1 the state. The program maps their memory and waits
 * for their interrupt in /dev/uio0. */
#include <fcntl.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ring.h"

#define DEVICES "/sys/bus/pci/devices/0000:00:0"
#define NEW_ID "/sys/bus/pci/drivers/uio_pci_generic/new_id"

enum { INTR_MASK = 0, INTR_STATUS = 1, IV_POSITION = 2, DOORBELL = 3 };
enum { COMMAND = 4, INTX_OFF = 1 << 10 };
/* The side of the sensor at the channel `state`. */
enum { SENSOR = 1 };

struct function {
    volatile uint32_t *registers;
    volatile uint32_t *memory;
    size_t size;
    int config;
};

static void end(const char *what)
{
    if (what)
        perror(what);
    fflush(stdout);
    sync();
    reboot(RB_POWER_OFF);
    exit(1);
}

static void put(const char *path, const char *text)
{
    int file = open(path, O_WRONLY);
    if (file < 0 || write(file, text, strlen(text)) < 0)
        end(path);
    close(file);
}

static volatile uint32_t *map(const char *path, size_t *size)
{
    struct stat status;
    int file = open(path, O_RDWR | O_SYNC);
    void *found;
    if (file < 0 || fstat(file, &status) < 0)
        end(path);
    *size = (size_t)status.st_size;
    found = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (found == MAP_FAILED)
        end(path);
    close(file);
    return found;
}

static struct function function(int device)
{
    struct function found;
    size_t ignored;
    char path[80];
    snprintf(path, sizeof path, DEVICES "%d.0/resource0", device);
    found.registers = map(path, &ignored);
    snprintf(path, sizeof path, DEVICES "%d.0/resource2", device);
    found.memory = map(path, &found.size);
    snprintf(path, sizeof path, DEVICES "%d.0/config", device);
    found.config = open(path, O_RDWR);
    if (found.config < 0)
        end(path);
    return found;
}

/* Lets the function interrupt again: the driver has disabled INTx when the interrupt came. */
static void enable(const struct function *function)
{
    uint16_t command;
    if (pread(function->config, &command, sizeof command, COMMAND) != sizeof command)
        end("config");
    command &= (uint16_t)~INTX_OFF;
    if (pwrite(function->config, &command, sizeof command, COMMAND) != sizeof command)
        end("config");
}

int main(void)
{
    struct function readings, state;
    struct ring ring;
    uint64_t message[2], last = 0, lost = 0;
    uint32_t interrupts = 0;
    int uio;
    const char *wanted = getenv("count");
    uint64_t count = wanted ? strtoull(wanted, NULL, 10) : 200;

    mount("sysfs", "/sys", "sysfs", 0, NULL);
    mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
    put(NEW_ID, "1af4 1110");
    readings = function(0);
    state = function(1);
    uio = open("/dev/uio0", O_RDWR);
    if (uio < 0)
        end("/dev/uio0");
    if (ring_attach(&ring, readings.memory, readings.size / 4, 0) != 0)
        end("ring");
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
            enable(&readings);
            if (read(uio, &total, sizeof total) != sizeof total)
                end("/dev/uio0");
            interrupts++;
            (void)readings.registers[INTR_STATUS];
        } else {
            printf("regulator: broken, %ld\n", length);
            end(NULL);
        }
    }
    printf("regulator: %llu readings in order, %llu lost, interrupts %s\n", (unsigned long long)last,
           (unsigned long long)lost, interrupts > 10 ? "came" : "missing");
    end(NULL);
}
