/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel includes it and uses nothing of it. */
#include <stddef.h>
