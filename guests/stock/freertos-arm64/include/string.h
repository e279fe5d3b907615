/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STRING_H
#define STRING_H
#include <stddef.h>
void *memset(void *to, int byte, size_t count);
void *memcpy(void *to, const void *from, size_t count);
size_t strlen(const char *text);
#endif
