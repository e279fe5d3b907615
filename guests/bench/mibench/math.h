/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of a library of mathematics. */
#ifndef MATH_H
#define MATH_H
#define PI 3.14159265358979323846

double cosine(double angle);
double arc_cosine(double value);
double cube_root(double value);
/* Returns e to the power of a number that is not positive. */
double exponential(double power);
#endif
