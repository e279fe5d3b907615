/* SPDX-License-Identifier: Apache-2.0 */
/* The port's only limit. The compiler's own file wants that of a C library. */
#ifndef LIMITS_H
#define LIMITS_H
#define USHRT_MAX 0xffff
#endif
