// SPDX-License-Identifier: Apache-2.0
//
// An ARINC 653 partition in C that knows the standard's headers alone. The partition looks whether each status has the
// layout of the header, and whether bad arguments get their codes. Then three processes run: `law` reads the position,
// `listener` waits for messages and shows them on a blackboard, `late` misses its deadline. The error handler takes
// that.

#include "apex.h"

#define MILLISECOND 1000000LL
#define FRAME (20 * MILLISECOND)

enum { STACK = 8192, REPORT = 10, POSITION_SIZE = 8, EVENT_SIZE = 32, BOARD_SIZE = 8 };

static const APEX_PORT_TYPE PORTS[] = {
    {.NAME = "position", .DIRECTION = DESTINATION, .MAX_MESSAGE_SIZE = POSITION_SIZE, .REFRESH_PERIOD = FRAME},
    {.NAME = "events", .DIRECTION = DESTINATION, .MAX_MESSAGE_SIZE = EVENT_SIZE, .MAX_NB_MESSAGE = 4},
};

const APEX_CONFIGURATION_TYPE APEX_CONFIGURATION = {
    .IDENTIFIER = 2,
    .PERIOD = FRAME,
    .DURATION = 4 * MILLISECOND,
    .PORTS = PORTS,
    .NB_PORTS = sizeof PORTS / sizeof PORTS[0],
    .HEALTH = {HM_COLD_START, HM_COLD_START, HM_COLD_START, HM_COLD_START, HM_COLD_START, HM_COLD_START, HM_COLD_START,
               HM_COLD_START},
};

static SAMPLING_PORT_ID_TYPE position;
static QUEUING_PORT_ID_TYPE events;
static BLACKBOARD_ID_TYPE board;
static SEMAPHORE_ID_TYPE news;
static unsigned held, failed;

// A line of text: words and numbers one after the other.
struct line {
    APEX_BYTE bytes[64];
    MESSAGE_SIZE_TYPE length;
};

static void add(struct line *line, const char *text)
{
    while (*text && line->length < sizeof line->bytes)
        line->bytes[line->length++] = (APEX_BYTE)*text++;
}

static void add_number(struct line *line, uint32_t number)
{
    char digits[11];
    unsigned at = sizeof digits - 1;
    digits[at] = 0;
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    add(line, digits + at);
}

static void say(const struct line *line)
{
    RETURN_CODE_TYPE code;
    REPORT_APPLICATION_MESSAGE(line->bytes, line->length, &code);
}

// Counts a check, and names the check if it does not hold.
static void check(const char *name, int holds)
{
    if (holds) {
        held++;
        return;
    }
    failed++;
    struct line line = {.length = 0};
    add(&line, "FAILED ");
    add(&line, name);
    say(&line);
}

static int same(const char *one, const char *other)
{
    while (*one && *one == *other)
        one++, other++;
    return *one == *other;
}

// Creates the objects inside the partition, and reads the status of each.
static void check_objects(void)
{
    RETURN_CODE_TYPE code;
    BUFFER_ID_TYPE buffer = 0;
    BUFFER_STATUS_TYPE of_buffer;
    CREATE_BUFFER("buffer", 8, 3, FIFO, &buffer, &code);
    check("CREATE_BUFFER", code == NO_ERROR);
    SEND_BUFFER(buffer, (const APEX_BYTE *)"abc", 3, 0, &code);
    check("SEND_BUFFER", code == NO_ERROR);
    GET_BUFFER_STATUS(buffer, &of_buffer, &code);
    check("BUFFER_STATUS_TYPE", code == NO_ERROR && of_buffer.NB_MESSAGE == 1 && of_buffer.MAX_NB_MESSAGE == 3 &&
                                    of_buffer.MAX_MESSAGE_SIZE == 8 && of_buffer.WAITING_PROCESSES == 0);
    APEX_BYTE bytes[8] = {0};
    MESSAGE_SIZE_TYPE length = 0;
    RECEIVE_BUFFER(buffer, 0, bytes, &length, &code);
    check("RECEIVE_BUFFER", code == NO_ERROR && length == 3 && bytes[2] == 'c');

    BLACKBOARD_STATUS_TYPE of_board;
    CREATE_BLACKBOARD("board", BOARD_SIZE, &board, &code);
    GET_BLACKBOARD_STATUS(board, &of_board, &code);
    check("BLACKBOARD_STATUS_TYPE", code == NO_ERROR && of_board.EMPTY_INDICATOR == EMPTY &&
                                        of_board.MAX_MESSAGE_SIZE == BOARD_SIZE && of_board.WAITING_PROCESSES == 0);

    SEMAPHORE_STATUS_TYPE of_semaphore;
    CREATE_SEMAPHORE("news", 0, 5, PRIORITY, &news, &code);
    GET_SEMAPHORE_STATUS(news, &of_semaphore, &code);
    check("SEMAPHORE_STATUS_TYPE", code == NO_ERROR && of_semaphore.CURRENT_VALUE == 0 &&
                                       of_semaphore.MAXIMUM_VALUE == 5 && of_semaphore.WAITING_PROCESSES == 0);

    EVENT_ID_TYPE event = 0;
    EVENT_STATUS_TYPE of_event;
    CREATE_EVENT("event", &event, &code);
    SET_EVENT(event, &code);
    GET_EVENT_STATUS(event, &of_event, &code);
    check("EVENT_STATUS_TYPE", code == NO_ERROR && of_event.EVENT_STATE == UP && of_event.WAITING_PROCESSES == 0);

    MUTEX_ID_TYPE mutex = 0;
    MUTEX_STATUS_TYPE of_mutex;
    CREATE_MUTEX("mutex", 60, FIFO, &mutex, &code);
    GET_MUTEX_STATUS(mutex, &of_mutex, &code);
    check("MUTEX_STATUS_TYPE", code == NO_ERROR && of_mutex.MUTEX_OWNER == NULL_PROCESS_ID &&
                                   of_mutex.MUTEX_STATE == AVAILABLE && of_mutex.MUTEX_PRIORITY == 60 &&
                                   of_mutex.LOCK_COUNT == 0 && of_mutex.WAITING_PROCESSES == 0);
}

static void check_ports(void)
{
    RETURN_CODE_TYPE code;
    SAMPLING_PORT_STATUS_TYPE of_position;
    CREATE_SAMPLING_PORT("position", POSITION_SIZE, DESTINATION, FRAME, &position, &code);
    check("CREATE_SAMPLING_PORT", code == NO_ERROR);
    GET_SAMPLING_PORT_STATUS(position, &of_position, &code);
    check("SAMPLING_PORT_STATUS_TYPE", code == NO_ERROR && of_position.REFRESH_PERIOD == FRAME &&
                                           of_position.MAX_MESSAGE_SIZE == POSITION_SIZE &&
                                           of_position.PORT_DIRECTION == DESTINATION &&
                                           of_position.LAST_MSG_VALIDITY == INVALID);
    QUEUING_PORT_STATUS_TYPE of_events;
    CREATE_QUEUING_PORT("events", EVENT_SIZE, 4, DESTINATION, FIFO, &events, &code);
    check("CREATE_QUEUING_PORT", code == NO_ERROR);
    GET_QUEUING_PORT_STATUS(events, &of_events, &code);
    check("QUEUING_PORT_STATUS_TYPE", code == NO_ERROR && of_events.MAX_NB_MESSAGE == 4 &&
                                          of_events.MAX_MESSAGE_SIZE == EVENT_SIZE &&
                                          of_events.PORT_DIRECTION == DESTINATION && of_events.WAITING_PROCESSES == 0);
    CREATE_SAMPLING_PORT("none", POSITION_SIZE, DESTINATION, FRAME, &position, &code);
    check("an unknown port", code == INVALID_CONFIG);
}

// Arguments that only a program in C can give.
static void check_arguments(void)
{
    RETURN_CODE_TYPE code;
    EVENT_ID_TYPE event;
    SEMAPHORE_ID_TYPE semaphore;
    CREATE_EVENT(0, &event, &code);
    check("no name", code == INVALID_PARAM);
    CREATE_EVENT("other", 0, &code);
    check("no place for the result", code == INVALID_PARAM);
    GET_EVENT_ID("other", &event, &code);
    check("a refused service creates nothing", code == INVALID_CONFIG);
    CREATE_SEMAPHORE("other", 0, 1, (QUEUING_DISCIPLINE_TYPE)7, &semaphore, &code);
    check("no discipline", code == INVALID_PARAM);
    SET_PARTITION_MODE((OPERATING_MODE_TYPE)9, &code);
    check("no mode", code == INVALID_PARAM);
    CREATE_PROCESS(0, &event, &code);
    check("no attributes", code == INVALID_PARAM);
    RAISE_APPLICATION_ERROR(HARDWARE_FAULT, (const APEX_BYTE *)"x", 1, &code);
    check("an error of the monitor", code == INVALID_PARAM);
    REPORT_APPLICATION_MESSAGE(0, 4, &code);
    check("no message", code == INVALID_PARAM);
    SET_EVENT(99, 0);
}

static void law(void)
{
    RETURN_CODE_TYPE code;
    uint32_t last = 0, valid = 0;
    for (uint32_t release = 1;; release++) {
        APEX_BYTE bytes[POSITION_SIZE];
        MESSAGE_SIZE_TYPE length;
        VALIDITY_TYPE validity;
        READ_SAMPLING_MESSAGE(position, bytes, &length, &validity, &code);
        if (code == NO_ERROR && validity == VALID && length == POSITION_SIZE) {
            valid++;
            last = bytes[0] | (uint32_t)bytes[1] << 8;
        }
        if (release % REPORT == 0) {
            struct line line = {.length = 0};
            add(&line, "law: ");
            add_number(&line, release);
            add(&line, " releases, ");
            add_number(&line, valid);
            add(&line, " valid, the last is ");
            add_number(&line, last);
            say(&line);
        }
        PERIODIC_WAIT(&code);
    }
}

static void listener(void)
{
    RETURN_CODE_TYPE code;
    for (;;) {
        APEX_BYTE bytes[EVENT_SIZE];
        MESSAGE_SIZE_TYPE length;
        RECEIVE_QUEUING_MESSAGE(events, INFINITE_TIME_VALUE, bytes, &length, &code);
        if (code != NO_ERROR)
            continue;
        DISPLAY_BLACKBOARD(board, bytes, length < BOARD_SIZE ? length : BOARD_SIZE, &code);
        SIGNAL_SEMAPHORE(news, &code);
    }
}

// Reads what `listener` shows, five messages at a time.
static void reader(void)
{
    RETURN_CODE_TYPE code;
    for (uint32_t count = 1;; count++) {
        WAIT_SEMAPHORE(news, INFINITE_TIME_VALUE, &code);
        if (code != NO_ERROR || count % 5)
            continue;
        char text[BOARD_SIZE + 1] = {0};
        MESSAGE_SIZE_TYPE length;
        READ_BLACKBOARD(board, INFINITE_TIME_VALUE, (MESSAGE_ADDR_TYPE)text, &length, &code);
        struct line line = {.length = 0};
        add(&line, "reader: message ");
        add_number(&line, count);
        add(&line, ": ");
        add(&line, text);
        say(&line);
    }
}

// Computes beyond its deadline.
static void late(void)
{
    RETURN_CODE_TYPE code;
    SYSTEM_TIME_TYPE begin, now;
    for (;;) {
        GET_TIME(&begin, &code);
        do
            GET_TIME(&now, &code);
        while (now - begin < 4 * MILLISECOND);
        PERIODIC_WAIT(&code);
    }
}

static void handler(void)
{
    RETURN_CODE_TYPE code;
    ERROR_STATUS_TYPE error;
    PROCESS_STATUS_TYPE status;
    for (;;) {
        GET_ERROR_STATUS(&error, &code);
        if (code != NO_ERROR)
            STOP_SELF();
        GET_PROCESS_STATUS(error.FAILED_PROCESS_ID, &status, &code);
        struct line line = {.length = 0};
        add(&line, "handler: code ");
        add_number(&line, error.ERROR_CODE);
        add(&line, " of ");
        add(&line, code == NO_ERROR ? status.ATTRIBUTES.NAME : "nobody");
        say(&line);
    }
}

static void create(const char *name, void (*entry)(void), PRIORITY_TYPE priority, SYSTEM_TIME_TYPE period,
                   SYSTEM_TIME_TYPE capacity)
{
    RETURN_CODE_TYPE code;
    PROCESS_ID_TYPE process = 0, found = 0;
    PROCESS_STATUS_TYPE status;
    PROCESS_ATTRIBUTE_TYPE attributes = {.PERIOD = period,
                                         .TIME_CAPACITY = capacity,
                                         .ENTRY_POINT = entry,
                                         .STACK_SIZE = STACK,
                                         .BASE_PRIORITY = priority,
                                         .DEADLINE = SOFT};
    for (unsigned i = 0; name[i]; i++)
        attributes.NAME[i] = name[i];
    CREATE_PROCESS(&attributes, &process, &code);
    check("CREATE_PROCESS", code == NO_ERROR);
    GET_PROCESS_ID(name, &found, &code);
    check("GET_PROCESS_ID", code == NO_ERROR && found == process);
    GET_PROCESS_STATUS(process, &status, &code);
    check("PROCESS_STATUS_TYPE", code == NO_ERROR && status.PROCESS_STATE == DORMANT &&
                                     status.CURRENT_PRIORITY == priority && status.ATTRIBUTES.PERIOD == period &&
                                     status.ATTRIBUTES.TIME_CAPACITY == capacity &&
                                     status.ATTRIBUTES.ENTRY_POINT == entry && status.ATTRIBUTES.STACK_SIZE == STACK &&
                                     status.ATTRIBUTES.DEADLINE == SOFT && same(status.ATTRIBUTES.NAME, name));
    START(process, &code);
    check("START", code == NO_ERROR);
}

void APEX_MAIN(void)
{
    RETURN_CODE_TYPE code;
    PARTITION_STATUS_TYPE status;
    GET_PARTITION_STATUS(&status, &code);
    check("PARTITION_STATUS_TYPE", code == NO_ERROR && status.PERIOD == FRAME && status.DURATION == 4 * MILLISECOND &&
                                       status.IDENTIFIER == 2 && status.OPERATING_MODE == COLD_START &&
                                       status.START_CONDITION == NORMAL_START && status.NUM_ASSIGNED_CORES == 1);
    check_objects();
    check_ports();
    check_arguments();
    CREATE_ERROR_HANDLER(handler, STACK, &code);
    check("CREATE_ERROR_HANDLER", code == NO_ERROR);
    create("law", law, 50, FRAME, FRAME);
    create("listener", listener, 40, INFINITE_TIME_VALUE, INFINITE_TIME_VALUE);
    create("reader", reader, 30, INFINITE_TIME_VALUE, INFINITE_TIME_VALUE);
    create("late", late, 10, 5 * FRAME, 2 * MILLISECOND);
    struct line line = {.length = 0};
    add_number(&line, held);
    add(&line, " checks held, ");
    add_number(&line, failed);
    add(&line, " failed");
    say(&line);
    SET_PARTITION_MODE(NORMAL, &code);
    check("SET_PARTITION_MODE", 0);
}
