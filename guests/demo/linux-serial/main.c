/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a serial port of Linux from a channel: /dev/ttyB0 is one end of a virtual serial link, and another
 * partition has the other end. Any program uses the port as it uses one of the board.
 *
 * It is the first process, and starts a shell on the console. The machine is switched off when the shell ends.
 * The port is a pseudo terminal. A process of its own moves the bytes between it and the channel, and waits for
 * both. If the other partition does not read, the port's buffers fill, and writers wait as at any port. */
#define _GNU_SOURCE
#include "linux_channel.h"
#include "link.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>

#define CONSOLE "/dev/console"
#define PORT "/dev/ttyB0"

enum { OTHER_SIDE = 1 };

/* Bytes on their way in one direction. */
struct pipe {
    unsigned char bytes[512];
    size_t from, end;
};

struct bridge {
    struct channel_function channel;
    struct link link;
    struct pipe to_link, to_port;
    int port, uio;
};

static int is_empty(const struct pipe *pipe)
{
    return pipe->from == pipe->end;
}

/* Makes the port: a pseudo terminal that passes each byte as it is. Returns the end for the bridge. */
static int make_port(void)
{
    struct termios raw;
    int master, slave;
    mkdir("/dev/pts", 0755);
    if (mount("devpts", "/dev/pts", "devpts", 0, "ptmxmode=0666") < 0)
        channel_end("/dev/pts");
    master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
        channel_end("/dev/ptmx");
    /* Kept open: the port stays as it is when a program closes it. */
    slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    if (slave < 0 || tcgetattr(slave, &raw) < 0)
        channel_end("port");
    cfmakeraw(&raw);
    if (tcsetattr(slave, TCSANOW, &raw) < 0 || symlink(ptsname(master), PORT) < 0)
        channel_end(PORT);
    return master;
}

/* Moves bytes from the port to the link. Returns whether any went. */
static int send_bytes(struct bridge *bridge)
{
    struct pipe *pipe = &bridge->to_link;
    long sent;
    if (is_empty(pipe)) {
        ssize_t length = read(bridge->port, pipe->bytes, sizeof pipe->bytes);
        pipe->from = 0;
        pipe->end = length > 0 ? (size_t)length : 0;
    }
    sent = link_write(&bridge->link, pipe->bytes + pipe->from, pipe->end - pipe->from);
    if (sent > 0)
        pipe->from += (size_t)sent;
    return sent > 0;
}

/* Moves bytes from the link to the port. Returns whether any went. */
static int receive_bytes(struct bridge *bridge)
{
    struct pipe *pipe = &bridge->to_port;
    ssize_t written;
    if (is_empty(pipe)) {
        long length = link_read(&bridge->link, pipe->bytes, sizeof pipe->bytes);
        pipe->from = 0;
        pipe->end = length > 0 ? (size_t)length : 0;
        if (length == 0)
            return 0;
        if (length < 0)
            return length;
    }
    written = write(bridge->port, pipe->bytes + pipe->from, pipe->end - pipe->from);
    if (written > 0)
        pipe->from += (size_t)written;
    return written > 0;
}

/* Waits until there may be something to move. */
static void rest(struct bridge *bridge)
{
    struct pollfd files[2] = {
        { .fd = bridge->port, .events = 0 },
        { .fd = bridge->uio, .events = POLLIN },
    };
    if (is_empty(&bridge->to_link))
        files[0].events |= POLLIN;
    if (!is_empty(&bridge->to_port))
        files[0].events |= POLLOUT;
    channel_enable(&bridge->channel);
    poll(files, 2, -1);
    if (files[1].revents & POLLIN) {
        uint32_t total;
        if (read(bridge->uio, &total, sizeof total) != sizeof total)
            channel_end("/dev/uio0");
        /* A load ends the interrupt. A ring from here on is another one. */
        (void)bridge->channel.registers[INTR_STATUS];
    }
}

static void move(struct bridge *bridge)
{
    for (;;) {
        int sent = send_bytes(bridge), received = receive_bytes(bridge);
        if (bridge->link.sender.is_broken || bridge->link.receiver.is_broken) {
            printf("serial: the other side broke the link\n");
            channel_end(NULL);
        }
        /* The other side has bytes to take, or room for more. */
        if (sent > 0 || received > 0)
            bridge->channel.registers[DOORBELL] = OTHER_SIDE << 16;
        else
            rest(bridge);
    }
}

/* Starts a shell on the console, and waits for its end. */
static void shell(void)
{
    pid_t child = fork();
    if (child == 0) {
        int console = open(CONSOLE, O_RDWR);
        setsid();
        ioctl(console, TIOCSCTTY, 1);
        dup2(console, 0);
        dup2(console, 1);
        dup2(console, 2);
        execl("/bin/sh", "sh", (char *)NULL);
        _exit(127);
    }
    waitpid(child, NULL, 0);
}

int main(void)
{
    static struct bridge bridge;
    channel_bind();
    bridge.channel = channel_function(0);
    bridge.uio = open("/dev/uio0", O_RDWR);
    if (bridge.uio < 0)
        channel_end("/dev/uio0");
    if (link_attach(&bridge.link, bridge.channel.memory, bridge.channel.size / 4, 0) != 0)
        channel_end("link");
    bridge.port = make_port();
    bridge.channel.registers[INTR_MASK] = 1;
    if (fork() == 0)
        move(&bridge);
    printf("serial: " PORT " is a port\n");
    shell();
    channel_end(NULL);
}
