/* SPDX-License-Identifier: Apache-2.0 */
/* SUSAN, by Smith's and Brady's description: smoothing, edges and corners of an image by the area around a
 * pixel that is about as bright as the pixel. The image is a bright rectangle with noise. */
#include "math.h"
#include "programs.h"
#include <string.h>

#define WIDTH 76
#define HEIGHT 95
/* The rectangle. */
#define LEFT 20
#define RIGHT 55
#define TOP 25
#define BOTTOM 70
#define DARK 60
#define BRIGHT 180
#define NOISE 5

#define THRESHOLD 20.0
/* The largest areas of an edge and of a corner: three quarters and a half of the mask of 37 pixels. */
#define MOST_EDGE 2650
#define MOST_CORNER 1850
/* Half of the mask's width for smoothing, and the width of its bell. */
#define REACH 7
#define BELL 4.0
#define BORDER 5

/* Rows of the round mask: half of the width of each. */
static const int half_width[7] = {1, 2, 3, 3, 3, 2, 1};

static uint8_t image[HEIGHT][WIDTH], smooth[HEIGHT][WIDTH];
static int response[HEIGHT][WIDTH];
/* The alikeness of two pixels by their difference, 0 to 100. */
static uint8_t alike[511];
static int bell[2 * REACH + 1][2 * REACH + 1];

static int ideal(int row, int column)
{
    int inside = row >= TOP && row < BOTTOM && column >= LEFT && column < RIGHT;
    return inside ? BRIGHT : DARK;
}

static void prepare(unsigned power)
{
    uint32_t state = 7;
    for (int row = 0; row < HEIGHT; row++)
        for (int column = 0; column < WIDTH; column++)
            image[row][column] = (uint8_t)(ideal(row, column) + (int)(next_random(&state) % (2 * NOISE + 1)) - NOISE);
    for (int difference = -255; difference <= 255; difference++) {
        double part = difference / THRESHOLD, raised = part * part;
        if (power == 6)
            raised = raised * raised * raised;
        alike[difference + 255] = (uint8_t)(100 * exponential(-raised) + 0.5);
    }
}

/* Returns the median of a pixel's eight neighbours. */
static uint8_t median(int row, int column)
{
    int sorted[8], count = 0;
    for (int down = -1; down <= 1; down++)
        for (int right = -1; right <= 1; right++) {
            if (down == 0 && right == 0)
                continue;
            int value = image[row + down][column + right], at = count++;
            for (; at > 0 && sorted[at - 1] > value; at--)
                sorted[at] = sorted[at - 1];
            sorted[at] = value;
        }
    return (uint8_t)((sorted[3] + sorted[4]) / 2);
}

static uint8_t smoothed(int row, int column)
{
    const uint8_t *of_pixel = alike + 255 - image[row][column];
    int area = 0, total = 0;
    for (int down = -REACH; down <= REACH; down++)
        for (int right = -REACH; right <= REACH; right++) {
            int value = image[row + down][column + right];
            int weight = bell[down + REACH][right + REACH] * of_pixel[value];
            area += weight;
            total += weight * value;
        }
    /* The pixel itself does not count. */
    area -= 10000;
    return area == 0 ? median(row, column) : (uint8_t)((total - image[row][column] * 10000) / area);
}

int susan_smoothing(void)
{
    prepare(2);
    for (int down = -REACH; down <= REACH; down++)
        for (int right = -REACH; right <= REACH; right++)
            bell[down + REACH][right + REACH] = (int)(100 * exponential(-(down * down + right * right) / (BELL * BELL)));
    int before = 0, after = 0;
    for (int row = REACH; row < HEIGHT - REACH; row++)
        for (int column = REACH; column < WIDTH - REACH; column++) {
            smooth[row][column] = smoothed(row, column);
            int good = ideal(row, column);
            before += (image[row][column] - good) * (image[row][column] - good);
            after += (smooth[row][column] - good) * (smooth[row][column] - good);
        }
    /* Most of the noise is gone, and no edge is washed out: a wrong side costs as much as 1400 pixels. */
    return after * 4 < before;
}

/* Fills in how much each pixel's area lacks of the largest one, and 0 where it lacks nothing. */
static void respond(int most)
{
    memset(response, 0, sizeof response);
    for (int row = BORDER; row < HEIGHT - BORDER; row++)
        for (int column = BORDER; column < WIDTH - BORDER; column++) {
            const uint8_t *of_pixel = alike + 255 - image[row][column];
            int area = 0;
            for (int down = -3; down <= 3; down++)
                for (int right = -half_width[down + 3]; right <= half_width[down + 3]; right++)
                    area += of_pixel[image[row + down][column + right]];
            if (area < most)
                response[row][column] = most - area;
        }
}

/* Finds where the centre of the area lies from its pixel, as sums. */
static void centre(int row, int column, int *across, int *along)
{
    const uint8_t *of_pixel = alike + 255 - image[row][column];
    *across = *along = 0;
    for (int down = -3; down <= 3; down++)
        for (int right = -half_width[down + 3]; right <= half_width[down + 3]; right++) {
            int weight = of_pixel[image[row + down][column + right]];
            *across += weight * right;
            *along += weight * down;
        }
}

/* Returns the distance from the outline of the rectangle to a pixel. The pixels at both sides have 0. */
static int from_outline(int row, int column)
{
    int rows = row < TOP ? TOP - 1 - row : row >= BOTTOM ? row - BOTTOM : -1;
    int columns = column < LEFT ? LEFT - 1 - column : column >= RIGHT ? column - RIGHT : -1;
    if (rows >= 0 || columns >= 0)
        return rows > columns ? rows : columns;
    int nearest = row - TOP;
    nearest = BOTTOM - 1 - row < nearest ? BOTTOM - 1 - row : nearest;
    nearest = column - LEFT < nearest ? column - LEFT : nearest;
    return RIGHT - 1 - column < nearest ? RIGHT - 1 - column : nearest;
}

int susan_edges(void)
{
    prepare(6);
    respond(MOST_EDGE);
    int found = 0, wrong = 0;
    for (int row = BORDER + 1; row < HEIGHT - BORDER - 1; row++)
        for (int column = BORDER + 1; column < WIDTH - BORDER - 1; column++) {
            int own = response[row][column], across, along;
            if (own == 0)
                continue;
            centre(row, column, &across, &along);
            int wide = across < 0 ? -across : across, high = along < 0 ? -along : along;
            /* An edge is thin: its pixels have the largest response of the direction towards the centre. */
            int down = high * 2 >= wide ? (along < 0 ? -1 : 1) : 0;
            int right = wide * 2 >= high ? (across < 0 ? -1 : 1) : 0;
            if (own < response[row + down][column + right] || own < response[row - down][column - right])
                continue;
            found++;
            wrong += from_outline(row, column) > 0;
        }
    return wrong == 0 && found >= 2 * (RIGHT - LEFT + BOTTOM - TOP) - 8;
}

static int is_largest(int row, int column)
{
    for (int down = -3; down <= 3; down++)
        for (int right = -3; right <= 3; right++)
            if (response[row + down][column + right] > response[row][column])
                return 0;
    return 1;
}

/* Tells whether all pixels from a corner towards the centre of its area are as bright as the corner, or nearly so. */
static int is_solid(int row, int column)
{
    int across, along;
    centre(row, column, &across, &along);
    int wide = across < 0 ? -across : across, high = along < 0 ? -along : along, most = wide > high ? wide : high;
    if (most == 0)
        return 0;
    int sum = 0;
    for (int step = 1; step <= 3; step++) {
        int at_row = row + step * along / most, at_column = column + step * across / most;
        sum += alike[255 + image[at_row][at_column] - image[row][column]];
    }
    return sum > 3 * 80;
}

static int is_near_corner(int row, int column, unsigned *seen)
{
    static const int rows[4] = {TOP, TOP, BOTTOM - 1, BOTTOM - 1};
    static const int columns[4] = {LEFT, RIGHT - 1, LEFT, RIGHT - 1};
    for (unsigned number = 0; number < 4; number++) {
        int down = row - rows[number], right = column - columns[number];
        if (down * down + right * right <= 8) {
            *seen |= 1u << number;
            return 1;
        }
    }
    return 0;
}

int susan_corners(void)
{
    prepare(6);
    respond(MOST_CORNER);
    unsigned seen = 0;
    for (int row = BORDER; row < HEIGHT - BORDER; row++)
        for (int column = BORDER; column < WIDTH - BORDER; column++) {
            if (response[row][column] == 0 || !is_largest(row, column) || !is_solid(row, column))
                continue;
            if (!is_near_corner(row, column, &seen))
                return 0;
        }
    return seen == 15;
}
