// SPDX-License-Identifier: Apache-2.0
#ifndef PRINT_H
#define PRINT_H

// Prints on the console: %s, %c, %d, %u, %x (32 bits), with a width and a leading 0 for numbers. Lines of
// different tasks are not mixed.
void print(const char *format, ...);

#endif
