/* SPDX-License-Identifier: Apache-2.0 */
/* Ten thousand words, sorted by the letters. */
#include "programs.h"

#define WORDS 10000u
#define BYTES 128u
#define PARTS (BYTES / sizeof(uint64_t))
/* The shortest part that is divided further. */
#define SHORT 8u

union word {
    char text[BYTES];
    uint64_t parts[PARTS];
};

static union word words[WORDS];

static int compare(const union word *one, const union word *two)
{
    const char *first = one->text, *second = two->text;
    while (*first && *first == *second)
        first++, second++;
    return (unsigned char)*first - (unsigned char)*second;
}

static void swap(union word *one, union word *two)
{
    for (unsigned part = 0; part < PARTS; part++) {
        uint64_t kept = one->parts[part];
        one->parts[part] = two->parts[part];
        two->parts[part] = kept;
    }
}

static void insert(union word *from, unsigned count)
{
    for (unsigned next = 1; next < count; next++)
        for (unsigned at = next; at > 0 && compare(&from[at - 1], &from[at]) > 0; at--)
            swap(&from[at - 1], &from[at]);
}

/* Divides by the middle one of three. The shorter part is sorted first, so few parts wait. */
static void sort(union word *from, unsigned count)
{
    while (count > SHORT) {
        unsigned last = count - 1, middle = count / 2;
        if (compare(&from[0], &from[last]) > 0)
            swap(&from[0], &from[last]);
        if (compare(&from[middle], &from[0]) < 0)
            swap(&from[middle], &from[0]);
        else if (compare(&from[middle], &from[last]) > 0)
            swap(&from[middle], &from[last]);
        swap(&from[middle], &from[1]);
        unsigned low = 1, high = last;
        for (;;) {
            do
                low++;
            while (compare(&from[low], &from[1]) < 0);
            do
                high--;
            while (compare(&from[high], &from[1]) > 0);
            if (low >= high)
                break;
            swap(&from[low], &from[high]);
        }
        swap(&from[1], &from[high]);
        if (high < count - high) {
            sort(from, high);
            from += high + 1;
            count -= high + 1;
        } else {
            sort(from + high + 1, count - high - 1);
            count = high;
        }
    }
    insert(from, count);
}

/* Sums what no order of the words changes. */
static uint64_t sum(void)
{
    uint64_t total = 0;
    for (unsigned number = 0; number < WORDS; number++) {
        uint32_t of_word = 0;
        for (const char *letter = words[number].text; *letter; letter++)
            of_word = of_word * 31 + (unsigned char)*letter;
        total += of_word;
    }
    return total;
}

int sort_words(void)
{
    uint32_t state = 1;
    for (unsigned number = 0; number < WORDS; number++) {
        unsigned length = 3 + next_random(&state) % 10;
        for (unsigned at = 0; at < length; at++)
            words[number].text[at] = (char)('a' + next_random(&state) % 26);
        words[number].text[length] = 0;
    }
    uint64_t before = sum();
    sort(words, WORDS);
    for (unsigned number = 1; number < WORDS; number++)
        if (compare(&words[number - 1], &words[number]) > 0)
            return 0;
    return sum() == before;
}
