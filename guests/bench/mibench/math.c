/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of a library of mathematics, to ten digits and more. */
#include "math.h"
#include <stdint.h>

/* Sums 1 - x + x x / (3 4) - ... of Horner's form: x is the square, the divisors rise by twos. */
static double series(double square, unsigned last)
{
    double sum = 1;
    for (unsigned at = last; at > 1; at -= 2)
        sum = 1 - square / (at * (at - 1.0)) * sum;
    return sum;
}

double cosine(double angle)
{
    double turns = angle / (PI / 2);
    int64_t quarter = (int64_t)(turns < 0 ? turns - 0.5 : turns + 0.5);
    double rest = angle - (double)quarter * (PI / 2), square = rest * rest;
    switch (quarter & 3) {
    case 0:
        return series(square, 16);
    case 1:
        return -rest * series(square, 17);
    case 2:
        return -series(square, 16);
    default:
        return rest * series(square, 17);
    }
}

/* The angle is halved until the series is short. */
static double arc_tangent(double value)
{
    double halved = value;
    for (unsigned times = 0; times < 3; times++)
        halved = halved / (1 + __builtin_sqrt(1 + halved * halved));
    double square = halved * halved, sum = 0;
    for (int at = 17; at > 0; at -= 2)
        sum = 1.0 / at - square * sum;
    return 8 * halved * sum;
}

double arc_cosine(double value)
{
    if (value <= -1)
        return PI;
    return 2 * arc_tangent(__builtin_sqrt((1 - value) / (1 + value)));
}

double cube_root(double value)
{
    union {
        double number;
        uint64_t bits;
    } guess = {value < 0 ? -value : value};
    if (guess.number == 0)
        return 0;
    /* A third of the exponent is near. */
    guess.bits = guess.bits / 3 + 0x2a9f7893782da1ceull;
    double root = guess.number, whole = value < 0 ? -value : value;
    for (unsigned times = 0; times < 4; times++)
        root = (2 * root + whole / (root * root)) / 3;
    return value < 0 ? -root : root;
}

double exponential(double power)
{
    if (power < -40)
        return 0;
    double part = power / 1024, sum = 1 + part * (1 + part / 2 * (1 + part / 3 * (1 + part / 4)));
    for (unsigned times = 0; times < 10; times++)
        sum *= sum;
    return sum;
}
