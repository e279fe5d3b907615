/* SPDX-License-Identifier: Apache-2.0 */
/* Basic mathematics: roots of cubic equations, square roots of whole numbers, and angles in degrees and in
 * radians. */
#include "math.h"
#include "programs.h"

/* Finds the real roots of a x x x + b x x + c x + d by Viete's and Cardano's formulas. */
static unsigned cubic(double a, double b, double c, double d, double *roots)
{
    double a1 = b / a, a2 = c / a, a3 = d / a;
    double q = (a1 * a1 - 3 * a2) / 9, r = (2 * a1 * a1 * a1 - 9 * a1 * a2 + 27 * a3) / 54;
    double rest = r * r - q * q * q;
    if (rest <= 0) {
        double third = arc_cosine(r / __builtin_sqrt(q * q * q)) / 3;
        for (unsigned number = 0; number < 3; number++)
            roots[number] = -2 * __builtin_sqrt(q) * cosine(third + number * (2 * PI / 3)) - a1 / 3;
        return 3;
    }
    double root = cube_root(__builtin_sqrt(rest) + (r < 0 ? -r : r));
    root += q / root;
    roots[0] = (r < 0 ? root : -root) - a1 / 3;
    return 1;
}

/* Tells whether the value at each root is as good as nothing. */
static int solves(double a, double b, double c, double d)
{
    double roots[3];
    unsigned count = cubic(a, b, c, d, roots);
    for (unsigned number = 0; number < count; number++) {
        double x = roots[number], size = x < 0 ? -x : x;
        double value = ((a * x + b) * x + c) * x + d;
        double scale = ((a * size + (b < 0 ? -b : b)) * size + (c < 0 ? -c : c)) * size + (d < 0 ? -d : d);
        if ((value < 0 ? -value : value) > 1e-9 * scale)
            return 0;
    }
    return 1;
}

/* Returns the root of a whole number, a bit in each step. */
static uint32_t whole_root(uint32_t value)
{
    uint32_t root = 0, rest = 0;
    for (unsigned step = 0; step < 16; step++) {
        rest = rest << 2 | value >> 30;
        value <<= 2;
        root <<= 1;
        if (rest > root * 2) {
            rest -= root * 2 + 1;
            root++;
        }
    }
    return root;
}

static int is_root(uint64_t value)
{
    uint64_t root = whole_root((uint32_t)value);
    return root * root <= value && (root + 1) * (root + 1) > value;
}

static int angles(void)
{
    int good = 1;
    for (unsigned degrees = 0; degrees <= 360; degrees++) {
        volatile double radians = degrees * PI / 180;
        double back = radians * 180 / PI - degrees;
        good &= back < 1e-9 && back > -1e-9;
    }
    return good;
}

int basicmath(void)
{
    int good = solves(1, -10.5, 32, -30) & solves(1, -4.5, 17, -30) & solves(1, -3.5, 22, -31) &
               solves(1, -13.7, 1, -35);
    for (unsigned a = 1; a < 10; a++)
        for (unsigned b = 10; b > 0; b--)
            for (double c = 5; c < 15; c += 0.5)
                for (int d = -1; d > -11; d--)
                    good &= solves(a, b, c, d);
    for (unsigned value = 0; value < 1001; value++)
        good &= is_root(value);
    return good & is_root(0x3fed0169) & angles();
}
