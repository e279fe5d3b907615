// SPDX-License-Identifier: Apache-2.0
//
// An application on the kernel: a sensor with a period, a filter behind a queue, two that calculate in turns,
// a shell.
//
// It checks what an RTOS relies on: no tick is lost (the sensor's releases), floating-point registers survive
// every switch (both calculators and the filter use them), a mutex keeps two tasks apart, and the urgent one
// comes first.

#include <stdint.h>

#include "board.h"
#include "kernel.h"
#include "main.h"
#include "print.h"
#include "uart.h"

enum { SAMPLE_PERIOD = 5, REPORT_PERIOD = 250 };

QUEUE(samples, 8);
QUEUE(keys, 32);

static volatile uint32_t releases, filtered, rounds[2], wrong;
static volatile float level;
static struct mutex shared_lock;
static volatile uint32_t shared, shared_copy;

// A triangle between 0 and 100.
static void sensor(void)
{
    uint32_t wake = kernel_ticks();
    for (;;) {
        task_sleep_until(&wake, SAMPLE_PERIOD);
        uint32_t phase = releases % 200;
        releases++;
        if (!queue_send(&samples, phase < 100 ? phase : 200 - phase, 0))
            wrong++;
    }
}

static void filter(void)
{
    float mean = 50.0f;
    for (;;) {
        uint32_t sample;
        queue_receive(&samples, &sample, FOREVER);
        mean += ((float)sample - mean) * 0.0625f;
        level = mean;
        filtered++;
    }
}

// A logistic map in floating point that is compared with the same in fixed steps: a register that gets lost
// shows at once.
static void calculate(uint32_t which)
{
    for (;;) {
        float first = 0.25f + 0.125f * (float)which, second = first;
        for (int step = 0; step < 200; step++) {
            first = 3.7f * first * (1.0f - first);
            __asm__ volatile("" : "+t"(first));
            second = 3.7f * second * (1.0f - second);
            __asm__ volatile("" : "+t"(second));
        }
        mutex_lock(&shared_lock);
        if (first != second || shared != shared_copy)
            wrong++;
        shared++;
        shared_copy = shared;
        mutex_unlock(&shared_lock);
        rounds[which]++;
        // The board is not for us alone: the rest of the period is for others.
        if (rounds[which] % 8 == 0)
            task_sleep(2);
    }
}

static void calculate_first(void)
{
    calculate(0);
}

static void calculate_second(void)
{
    calculate(1);
}

static void report(void)
{
    uint32_t wake = kernel_ticks();
    for (;;) {
        task_sleep_until(&wake, REPORT_PERIOD);
        uint32_t lost = kernel_ticks() / SAMPLE_PERIOD - releases;
        print("rtos: tick %u, %u samples, %u late, level %u, %s\n", kernel_ticks(), filtered, lost, (uint32_t)level,
              wrong || !rounds[0] || !rounds[1] ? "WRONG" : "all right");
    }
}

static void shell(void)
{
    for (;;) {
        uint32_t key;
        queue_receive(&keys, &key, FOREVER);
        if (key == '\r' || key == '\n')
            print("rtos: %u switches, %u and %u rounds\n", kernel_switches(), rounds[0], rounds[1]);
    }
}

void UARTRX0_Handler(void)
{
    int byte = uart_receive(UART0);
    if (byte >= 0)
        queue_send_from_handler(&keys, (uint32_t)byte);
}

int main(void)
{
    uart_start(UART0, true);
    print("rtos: a preemptive kernel in C, %u Hz, built by gcc %s\n", TICK_HZ, __VERSION__);
    interrupt_enable(LINE_UART0_RECEIVE, KERNEL_PRIORITY);
    START(sensor, SENSOR);
    START(filter, FILTER);
    START(shell, SHELL);
    START(report, REPORT);
    START(calculate_first, CALCULATE);
    START(calculate_second, CALCULATE);
#ifdef WITH_SERIAL
    serial_start();
#endif
#ifdef WITH_NETWORK
    network_start();
#endif
#ifdef WITH_WILD
    wild_start();
#endif
    kernel_start();
}
