// SPDX-License-Identifier: Apache-2.0
//
// A program for newlib with `--specs=rdimon.specs`: whatever it does with files, time and its end goes
// through semihosting, and it knows nothing of that. Nothing of it is made for a hypervisor. Ends with code
// 7.

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void at_exit(void)
{
    puts("rdimon: at exit");
}

static void heap(void)
{
    size_t blocks = 0;
    char *last = NULL;
    for (char *block; (block = malloc(1024)) != NULL; last = block) {
        memset(block, 0x5a, 1024);
        memcpy(block, &last, sizeof last);
        blocks++;
    }
    while (last != NULL) {
        char *before;
        memcpy(&before, last, sizeof before);
        free(last);
        last = before;
    }
    printf("rdimon: heap of %s blocks\n", blocks > 8 && blocks < 32 ? "some" : "WRONG");
}

int main(int argc, char **argv)
{
    atexit(at_exit);
    printf("rdimon: argc %d, argv[0] \"%s\"\n", argc, argc > 0 ? argv[0] : "");
    printf("rdimon: pi %.6f, root %.6f\n", 3.14159265358979, sqrt(2.0));
    printf("rdimon: terminals %d %d %d\n", isatty(0), isatty(1), isatty(2));
    fprintf(stderr, "rdimon: an error\n");
    heap();
    FILE *file = fopen("/etc/passwd", "r");
    printf("rdimon: a file %s, %s\n", file == NULL ? "none" : "OPEN", strerror(errno));
    errno = 0;
    printf("rdimon: removed %d, renamed %d\n", remove("x"), rename("x", "y"));
    time_t start = time(NULL);
    clock_t ticks = clock();
    printf("rdimon: time %s\n", start >= 0 && ticks != (clock_t)-1 ? "goes" : "WRONG");
    for (int line = 0; line < 100; line++)
        printf("rdimon: line %3d of a hundred, all of which arrive\n", line);
    printf("rdimon: a name? ");
    fflush(stdout);
    char name[16];
    int number = 0;
    if (scanf("%15s %d", name, &number) == 2)
        printf("rdimon: %s has %d\n", name, number);
    exit(7);
}
