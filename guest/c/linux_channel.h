/* SPDX-License-Identifier: Apache-2.0 */
/* A channel of the hypervisor for a program of Linux: a PCI function in ivshmem's layout, which Debian's own
 * uio_pci_generic binds. The program is the first process, or root. A step that fails is told, and ends the
 * machine: without its channels the program has nothing to do. */
#ifndef BULKHEAD_LINUX_CHANNEL_H
#define BULKHEAD_LINUX_CHANNEL_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHANNEL_DEVICES "/sys/bus/pci/devices/0000:00:0"
#define CHANNEL_NEW_ID "/sys/bus/pci/drivers/uio_pci_generic/new_id"

enum { INTR_MASK = 0, INTR_STATUS = 1, IV_POSITION = 2, DOORBELL = 3 };
enum { COMMAND = 4, INTX_OFF = 1 << 10 };

struct channel_function {
    volatile uint32_t *registers;
    volatile uint32_t *memory;
    size_t size;
    int config;
};

static inline void channel_end(const char *what)
{
    if (what)
        perror(what);
    fflush(stdout);
    sync();
    reboot(RB_POWER_OFF);
    exit(1);
}

static inline void channel_put(const char *path, const char *text)
{
    int file = open(path, O_WRONLY);
    if (file < 0 || write(file, text, strlen(text)) < 0)
        channel_end(path);
    close(file);
}

static inline volatile uint32_t *channel_map(const char *path, size_t *size)
{
    struct stat status;
    int file = open(path, O_RDWR | O_SYNC);
    void *found;
    if (file < 0 || fstat(file, &status) < 0)
        channel_end(path);
    *size = (size_t)status.st_size;
    found = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (found == MAP_FAILED)
        channel_end(path);
    close(file);
    return found;
}

static inline struct channel_function channel_function(int device)
{
    struct channel_function found;
    size_t ignored;
    char path[80];
    snprintf(path, sizeof path, CHANNEL_DEVICES "%d.0/resource0", device);
    found.registers = channel_map(path, &ignored);
    snprintf(path, sizeof path, CHANNEL_DEVICES "%d.0/resource2", device);
    found.memory = channel_map(path, &found.size);
    snprintf(path, sizeof path, CHANNEL_DEVICES "%d.0/config", device);
    found.config = open(path, O_RDWR);
    if (found.config < 0)
        channel_end(path);
    return found;
}

/* Lets the function interrupt again: the driver has disabled INTx when the interrupt came. */
static inline void channel_enable(const struct channel_function *function)
{
    uint16_t command;
    if (pread(function->config, &command, sizeof command, COMMAND) != sizeof command)
        channel_end("config");
    command &= (uint16_t)~INTX_OFF;
    if (pwrite(function->config, &command, sizeof command, COMMAND) != sizeof command)
        channel_end("config");
}

/* Mounts what the functions below look at, and lets uio_pci_generic bind all channels. */
static inline void channel_bind(void)
{
    mount("sysfs", "/sys", "sysfs", 0, NULL);
    mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
    channel_put(CHANNEL_NEW_ID, "1af4 1110");
}

#endif
