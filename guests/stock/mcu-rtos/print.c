// SPDX-License-Identifier: Apache-2.0

#include "print.h"

#include <stdarg.h>

#include "kernel.h"
#include "uart.h"

static void put(char letter)
{
    if (letter == '\n')
        uart_send(UART0, '\r');
    uart_send(UART0, (uint8_t)letter);
}

static void put_number(uint32_t value, uint32_t base, int width, char fill)
{
    char digits[10];
    int count = 0;
    do {
        digits[count++] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value);
    for (int blanks = width - count; blanks > 0; blanks--)
        put(fill);
    while (count)
        put(digits[--count]);
}

static void put_argument(char kind, int width, char fill, va_list *arguments)
{
    switch (kind) {
    case 's':
        for (const char *text = va_arg(*arguments, const char *); *text; text++)
            put(*text);
        break;
    case 'c':
        put((char)va_arg(*arguments, int));
        break;
    case 'd': {
        int value = va_arg(*arguments, int);
        if (value < 0)
            put('-');
        put_number(value < 0 ? -(uint32_t)value : (uint32_t)value, 10, width, fill);
        break;
    }
    case 'u':
        put_number(va_arg(*arguments, unsigned), 10, width, fill);
        break;
    case 'x':
        put_number(va_arg(*arguments, unsigned), 16, width, fill);
        break;
    default:
        put(kind);
    }
}

void print(const char *format, ...)
{
    static struct mutex lock;
    // Before the kernel runs there is only one caller.
    bool locked = kernel_switches() > 0;
    va_list arguments;
    va_start(arguments, format);
    if (locked)
        mutex_lock(&lock);
    while (*format) {
        char letter = *format++;
        if (letter != '%') {
            put(letter);
            continue;
        }
        char fill = *format == '0' ? '0' : ' ';
        int width = 0;
        while (*format >= '0' && *format <= '9')
            width = width * 10 + (*format++ - '0');
        put_argument(*format++, width, fill, &arguments);
    }
    if (locked)
        mutex_unlock(&lock);
    va_end(arguments);
}
