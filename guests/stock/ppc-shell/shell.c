// SPDX-License-Identifier: Apache-2.0
// The first program of Linux on a PowerPC 405: a shell with a few commands of its own, without a C library.
//
// It mounts /dev, opens the console and answers lines. A command that works in a loop prints how many ticks
// of the time base a turn took.

typedef unsigned int u32;
typedef unsigned long long u64;

#define SYS_EXIT 1
#define SYS_FORK 2
#define SYS_READ 3
#define SYS_WRITE 4
#define SYS_OPEN 5
#define SYS_MOUNT 21
#define SYS_DUP 41
#define SYS_MKDIR 39
#define SYS_GETPPID 64
#define SYS_REBOOT 88
#define SYS_MUNMAP 91
#define SYS_WAIT4 114
#define SYS_UNAME 122
#define SYS_MMAP 90
#define SYS_NANOSLEEP_TIME64 407

static long call(long number, long a, long b, long c, long d, long e, long f)
{
    register long r0 asm("r0") = number;
    register long r3 asm("r3") = a;
    register long r4 asm("r4") = b;
    register long r5 asm("r5") = c;
    register long r6 asm("r6") = d;
    register long r7 asm("r7") = e;
    register long r8 asm("r8") = f;
    // An error sets CR0.SO, and r3 is the positive number of the error.
    asm volatile("sc\n\tbns+ 1f\n\tneg 3, 3\n1:"
                 : "+r"(r0), "+r"(r3), "+r"(r4), "+r"(r5), "+r"(r6), "+r"(r7), "+r"(r8)
                 :
                 : "r9", "r10", "r11", "r12", "cr0", "ctr", "memory");
    return r3;
}

static u32 ticks(void)
{
    u32 low;
    asm volatile("mftb %0" : "=r"(low));
    return low;
}

static u32 length(const char *text)
{
    u32 count = 0;
    while (text[count])
        count++;
    return count;
}

static void print(const char *text)
{
    call(SYS_WRITE, 1, (long)text, length(text), 0, 0, 0);
}

static void print_number(u32 value)
{
    char digits[11];
    int at = 10;
    digits[at] = 0;
    do {
        digits[--at] = '0' + value % 10;
        value /= 10;
    } while (value);
    print(digits + at);
}

static u32 number(const char *text)
{
    u32 value = 0;
    while (*text >= '0' && *text <= '9')
        value = value * 10 + (*text++ - '0');
    return value ? value : 1;
}

// Returns what follows a command's name in a line, or 0 if the line has another command.
static const char *after(const char *line, const char *name)
{
    while (*name)
        if (*line++ != *name++)
            return 0;
    if (*line == ' ')
        return line + 1;
    return *line ? 0 : line;
}

static void print_turns(const char *what, u32 turns, u32 start)
{
    u32 took = ticks() - start;
    print(what);
    print(": ");
    print_number(turns);
    print(" turns, ");
    print_number(took / turns);
    print(" ticks each\n");
}

static void do_null(u32 turns)
{
    u32 start = ticks();
    for (u32 turn = 0; turn < turns; turn++)
        call(SYS_GETPPID, 0, 0, 0, 0, 0, 0);
    print_turns("null", turns, start);
}

static void do_fork(u32 turns)
{
    u32 start = ticks();
    for (u32 turn = 0; turn < turns; turn++) {
        long child = call(SYS_FORK, 0, 0, 0, 0, 0, 0);
        if (child == 0)
            call(SYS_EXIT, 0, 0, 0, 0, 0, 0);
        call(SYS_WAIT4, child, 0, 0, 0, 0, 0);
    }
    print_turns("fork", turns, start);
}

// Touches pages that nobody has touched before.
static void do_touch(u32 pages)
{
    char *at = (char *)call(SYS_MMAP, 0, pages << 12, 3, 0x22, -1, 0);
    if ((long)at < 0 && (long)at > -4096) {
        print("touch: no memory\n");
        return;
    }
    u32 start = ticks();
    for (u32 page = 0; page < pages; page++)
        ((volatile char *)at)[page << 12] = 1;
    print_turns("touch", pages, start);
    // More pages than a translation buffer has entries, again and again.
    start = ticks();
    for (u32 round = 0; round < 16; round++)
        for (u32 page = 0; page < pages; page++)
            ((volatile char *)at)[page << 12] = 2;
    print_turns("miss", pages * 16, start);
    call(SYS_MUNMAP, (long)at, pages << 12, 0, 0, 0, 0);
}

static void do_sleep(u32 milliseconds)
{
    struct {
        u64 seconds;
        u64 nanoseconds;
    } time = {milliseconds / 1000, (u64)(milliseconds % 1000) * 1000000};
    u32 start = ticks();
    call(SYS_NANOSLEEP_TIME64, 1, 0, (long)&time, 0, 0, 0);
    print_turns("sleep", 1, start);
}

// A loop that only computes.
static void do_work(u32 rounds)
{
    u32 start = ticks(), value = 1;
    for (u32 round = 0; round < rounds * 1000; round++)
        value = value * 1103515245 + 12345;
    print_turns("work", rounds, start);
    if (value == 0)
        print("zero\n");
}

static void do_uname(void)
{
    static char names[6 * 65];
    call(SYS_UNAME, (long)names, 0, 0, 0, 0, 0);
    print(names);
    print(" ");
    print(names + 2 * 65);
    print(" ");
    print(names + 4 * 65);
    print("\n");
}

static void answer(const char *line)
{
    const char *rest;
    if ((rest = after(line, "echo"))) {
        print(rest);
        print("\n");
    } else if ((rest = after(line, "null")))
        do_null(number(rest));
    else if ((rest = after(line, "fork")))
        do_fork(number(rest));
    else if ((rest = after(line, "touch")))
        do_touch(number(rest));
    else if ((rest = after(line, "sleep")))
        do_sleep(number(rest));
    else if ((rest = after(line, "work")))
        do_work(number(rest));
    else if (after(line, "uname"))
        do_uname();
    else if (after(line, "reboot"))
        call(SYS_REBOOT, 0xfee1dead, 672274793, 0x1234567, 0, 0, 0);
    else if (*line)
        print("commands: echo TEXT, null N, fork N, touch PAGES, sleep MS, work N, uname, reboot\n");
}

void run(void)
{
    static char line[128];
    call(SYS_MKDIR, (long)"/dev", 0755, 0, 0, 0, 0);
    call(SYS_MOUNT, (long)"dev", (long)"/dev", (long)"devtmpfs", 0, 0, 0);
    long console = call(SYS_OPEN, (long)"/dev/console", 2, 0, 0, 0, 0);
    while (console >= 0 && console < 2)
        console = call(SYS_DUP, console, 0, 0, 0, 0, 0);
    print("shell: ready\n");
    for (;;) {
        print("# ");
        long count = call(SYS_READ, 0, (long)line, sizeof line - 1, 0, 0, 0);
        if (count <= 0) {
            // Nobody types: the console has no input.
            do_sleep(1000);
            continue;
        }
        while (count && (line[count - 1] == '\n' || line[count - 1] == '\r'))
            count--;
        line[count] = 0;
        answer(line);
    }
}

asm(".global _start\n"
    "_start:\n"
    "    li 0, 0\n"
    "    stwu 0, -16(1)\n"
    "    bl run\n");
