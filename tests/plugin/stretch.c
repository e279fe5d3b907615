// SPDX-License-Identifier: Apache-2.0
// The longest stretches in which the hypervisor looks at no interrupt, counted by the emulator: a plugin of
// QEMU's TCG.
//
// It knows nothing of any CPU. The host (tests/src/stretch) names ranges of addresses that are the
// hypervisor's, and places in them: where a guest comes in, where the hypervisor leaves, looks or waits, and
// which functions say what an exit is about. The plugin counts every instruction in those ranges exactly, the
// first execution of one that QEMU then does again for the sake of the clock included once.
//
// A stretch begins where a guest comes in, and behind each look; it ends at the next look, or where the
// hypervisor leaves. The longest of each kind are kept, with what they did. A kind is how a stretch began,
// and which of the named functions it went through. Everything is in a file that is mapped: an emulator that
// is killed leaves it as it is.
//
// Vocabulary of the file of places, one a line, numbers in hexadecimal:
//   text FIRST END           the hypervisor's instructions
//   idle FIRST END           of them: code that runs with interrupts on, while nobody is ready
//   enter ADDRESS KIND       a guest comes in here, by exception KIND
//   leave ADDRESS 0          this instruction goes back to a guest, or to the hypervisor that was interrupted
//   look ADDRESS 0           this instruction takes an interrupt, or sees whether one waits
//   wait ADDRESS 0           this instruction waits for one
//   read ADDRESS 0           a load from this address is a look
//   end ADDRESS 0            the function here ends the system or the hypervisor: nobody is late any more
//   tag ADDRESS BIT          the function here is one of those that say what an exit is about
//
// Packages of QEMU 7.2 have no header for plugins: what is used of it is declared here (plugin API 1, which
// 9.1 replaced).

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef void (*on_execution)(unsigned cpu, void *data);
typedef void (*on_memory)(unsigned cpu, uint32_t information, uint64_t address, void *data);
enum { NO_REGISTERS = 0, ADD = 0, ANY_ACCESS = 3 };

extern void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*call)(plugin_id, struct qemu_plugin_tb *));
extern void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, on_execution, int flags, void *data);
extern void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, on_execution, int flags, void *data);
extern void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *, int operation, void *at, uint64_t value);
extern void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, on_memory, int flags, int kinds, void *data);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
extern uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
extern bool qemu_plugin_mem_is_store(uint32_t information);
extern uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
extern void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *);

EXPORT int qemu_plugin_version = 1;

// ---- what is written -------------------------------------------------------------------------------

#define MAGIC 0x3148435445525453ull // "STRETCH1"
enum { CPUS = 16, KINDS = 512, KEPT = 3, PARTS = 512, BUCKETS = 32 };

struct part {
    uint32_t offset; // of a translated block, from the start of the hypervisor
    uint32_t count;  // instructions of it that were executed
};

struct stretch {
    uint32_t length; // 0: no stretch is kept here
    uint32_t cpu;
    uint64_t guest; // where the guest was before
    uint32_t ordinal; // how many stretches had ended before
    uint32_t parts;
    struct part part[PARTS];
};

struct kind {
    uint32_t used;
    uint32_t entry;
    uint64_t tags;
    uint64_t count;
    uint64_t total;
    uint64_t histogram[BUCKETS]; // by the number of bits of the length
    struct stretch kept[KEPT];
};

struct output {
    uint64_t magic;
    uint64_t size;
    uint64_t begun;     // stretches that were counted
    uint64_t forgotten; // stretches of more kinds than there is room for
    struct kind kinds[KINDS];
};

static struct output *output;

// ---- what is known ---------------------------------------------------------------------------------

enum { AT_ENTER = 1, AT_LEAVE = 2, AT_LOOK = 4, AT_WAIT = 8, AT_IDLE = 16, AT_END = 32 };
enum { AFTER_LOOK = 0x100, AFTER_WAIT = 0x101 };

// A place, or a translated block of the hypervisor.
struct place {
    uint8_t what;
    uint16_t entry;
    uint64_t tags;
    uint32_t stamp[CPUS];
    uint32_t count[CPUS];
};

static uint64_t text_first, text_end;
static struct place *places; // one for each two bytes of the text
static uint64_t reads[16];
static unsigned read_count;
static uintptr_t host_first; // where the text is in the emulator's memory; 0 until it is seen

static struct place *place_at(uint64_t address) {
    return &places[(address - text_first) / 2];
}

static bool is_text(uint64_t address) {
    return text_first <= address && address < text_end;
}

// ---- counting --------------------------------------------------------------------------------------

enum { TOUCHED = 8192 };

struct cpu {
    bool begun; // a guest has run on it
    bool open;  // a stretch is under way
    unsigned inner; // exceptions that interrupted the hypervisor
    uint16_t entry;
    uint64_t tags;
    uint32_t stamp; // of the stretch
    uint32_t length;
    uint64_t guest;
    unsigned touched;
    uint32_t offsets[TOUCHED];
};

static struct cpu cpus[CPUS];
static uint64_t executed; // instructions of the hypervisor, added to by the translated code
static uint64_t seen;     // of them, how many are in somebody's stretch
static unsigned running;  // who executes them
static struct place *block;

static void settle(void) {
    uint64_t fresh = executed - seen;
    seen = executed;
    struct cpu *cpu = &cpus[running];
    if (fresh == 0 || block == NULL || !cpu->open) return;
    if (block->stamp[running] != cpu->stamp) {
        block->stamp[running] = cpu->stamp;
        block->count[running] = 0;
        if (cpu->touched < TOUCHED) cpu->offsets[cpu->touched++] = (uint32_t)(block - places) * 2;
    }
    block->count[running] += (uint32_t)fresh;
    cpu->length += (uint32_t)fresh;
}

static struct kind *kind_of(const struct cpu *cpu) {
    uint64_t hash = (cpu->tags ^ cpu->entry * 0x9E3779B97F4A7C15ull) * 0xD6E8FEB86659FD93ull;
    for (unsigned step = 0; step < KINDS; step++) {
        struct kind *kind = &output->kinds[((hash >> 32) + step) % KINDS];
        if (!kind->used) {
            kind->entry = cpu->entry;
            kind->tags = cpu->tags;
            kind->used = 1;
        }
        if (kind->entry == cpu->entry && kind->tags == cpu->tags) return kind;
    }
    return NULL;
}

static void keep(struct stretch *kept, const struct cpu *cpu, unsigned number) {
    kept->length = 0; // whoever reads it now finds nothing
    kept->cpu = number;
    kept->guest = cpu->guest;
    kept->ordinal = (uint32_t)output->begun;
    kept->parts = 0;
    // The largest parts, if there are too many: by insertion, which is done seldom.
    for (unsigned index = 0; index < cpu->touched; index++) {
        struct part part = {cpu->offsets[index], places[cpu->offsets[index] / 2].count[number]};
        unsigned at = kept->parts;
        if (at == PARTS) {
            at--;
            if (kept->part[at].count >= part.count) continue;
        } else {
            kept->parts++;
        }
        while (at > 0 && kept->part[at - 1].count < part.count) {
            kept->part[at] = kept->part[at - 1];
            at--;
        }
        kept->part[at] = part;
    }
    kept->length = cpu->length;
}

static void close_stretch(unsigned number) {
    struct cpu *cpu = &cpus[number];
    if (!cpu->open) return;
    cpu->open = false;
    output->begun++;
    struct kind *kind = kind_of(cpu);
    if (kind == NULL) {
        output->forgotten++;
        return;
    }
    kind->count++;
    kind->total += cpu->length;
    unsigned bits = cpu->length == 0 ? 0 : 32 - (unsigned)__builtin_clz(cpu->length);
    kind->histogram[bits < BUCKETS ? bits : BUCKETS - 1]++;
    struct stretch *least = &kind->kept[0];
    for (unsigned index = 1; index < KEPT; index++)
        if (kind->kept[index].length < least->length) least = &kind->kept[index];
    if (cpu->length > least->length) keep(least, cpu, number);
}

static void open_stretch(unsigned number, uint16_t entry) {
    struct cpu *cpu = &cpus[number];
    cpu->open = true;
    cpu->entry = entry;
    cpu->tags = 0;
    cpu->length = 0;
    cpu->touched = 0;
    cpu->stamp++;
}

// ---- calls of the translated code ------------------------------------------------------------------

// A block of a guest's, or of the code that waits with interrupts on.
static void on_guest(unsigned number, void *address) {
    struct cpu *cpu = &cpus[number];
    if (cpu->open) {
        settle();
        close_stretch(number);
    }
    cpu->inner = 0;
    cpu->guest = (uint64_t)(uintptr_t)address;
}

static void on_block(unsigned number, void *data) {
    struct place *place = data;
    settle();
    running = number;
    block = place;
    struct cpu *cpu = &cpus[number];
    if (place->what & AT_ENTER) {
        if (cpu->open) {
            cpu->inner++;
        } else {
            cpu->begun = true;
            open_stretch(number, place->entry);
        }
    }
    if (place->what & AT_END) cpu->open = cpu->begun = false;
    cpu->tags |= place->tags;
}

static void on_leave(unsigned number, void *data) {
    (void)data;
    settle();
    if (cpus[number].inner > 0) {
        cpus[number].inner--;
    } else {
        close_stretch(number);
    }
}

static void look(unsigned number, uint16_t entry) {
    if (!cpus[number].begun) return;
    settle();
    close_stretch(number);
    open_stretch(number, entry);
}

static void on_look(unsigned number, void *data) {
    (void)data;
    look(number, AFTER_LOOK);
}

static void on_wait(unsigned number, void *data) {
    (void)data;
    look(number, AFTER_WAIT);
}

static void on_read(unsigned number, uint32_t information, uint64_t address, void *data) {
    (void)data;
    if (qemu_plugin_mem_is_store(information)) return;
    for (unsigned index = 0; index < read_count; index++)
        if (reads[index] == address) look(number, AFTER_LOOK);
}

// Tells whether these are instructions of the hypervisor and not of a guest at the same virtual address.
static bool is_hypervisor(uint64_t address, const struct qemu_plugin_insn *first) {
    if (!is_text(address)) return false;
    uintptr_t host = (uintptr_t)qemu_plugin_insn_haddr(first) - (uintptr_t)(address - text_first);
    if (host_first == 0) host_first = host; // the first that runs there is the hypervisor
    return host == host_first;
}

static void on_translation(plugin_id id, struct qemu_plugin_tb *tb) {
    (void)id;
    uint64_t start = qemu_plugin_tb_vaddr(tb);
    size_t count = qemu_plugin_tb_n_insns(tb);
    if (!is_hypervisor(start, qemu_plugin_tb_get_insn(tb, 0)) || place_at(start)->what & AT_IDLE) {
        qemu_plugin_register_vcpu_tb_exec_cb(tb, on_guest, NO_REGISTERS, (void *)(uintptr_t)start);
        return;
    }
    qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, NO_REGISTERS, place_at(start));
    for (size_t index = 0; index < count; index++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, index);
        uint64_t address = qemu_plugin_insn_vaddr(insn);
        uint8_t what = is_text(address) ? place_at(address)->what : 0;
        if (what & AT_LEAVE) qemu_plugin_register_vcpu_insn_exec_cb(insn, on_leave, NO_REGISTERS, NULL);
        if (what & AT_LOOK) qemu_plugin_register_vcpu_insn_exec_cb(insn, on_look, NO_REGISTERS, NULL);
        if (what & AT_WAIT) qemu_plugin_register_vcpu_insn_exec_cb(insn, on_wait, NO_REGISTERS, NULL);
        qemu_plugin_register_vcpu_insn_exec_inline(insn, ADD, &executed, 1);
        if (read_count) qemu_plugin_register_vcpu_mem_cb(insn, on_read, NO_REGISTERS, ANY_ACCESS, NULL);
    }
}

// ---- installation ----------------------------------------------------------------------------------

static bool read_places(const char *path) {
    FILE *file = fopen(path, "r");
    if (!file) return false;
    char word[16];
    unsigned long long first, second;
    bool good = true;
    while (good && fscanf(file, "%15s %llx %llx\n", word, &first, &second) == 3) {
        if (!strcmp(word, "text") && !places && first < second) {
            text_first = first;
            text_end = second;
            places = calloc((second - first) / 2 + 1, sizeof *places);
            good = places != NULL;
            continue;
        }
        if (!strcmp(word, "read") && read_count < 16) {
            reads[read_count++] = first;
            continue;
        }
        good = places && is_text(first);
        if (!good) break;
        struct place *place = place_at(first);
        if (!strcmp(word, "enter")) {
            place->what |= AT_ENTER;
            place->entry = (uint16_t)second;
        } else if (!strcmp(word, "leave")) {
            place->what |= AT_LEAVE;
        } else if (!strcmp(word, "look")) {
            place->what |= AT_LOOK;
        } else if (!strcmp(word, "wait")) {
            place->what |= AT_WAIT;
        } else if (!strcmp(word, "end")) {
            place->what |= AT_END;
        } else if (!strcmp(word, "tag")) {
            place->tags |= 1ull << second;
        } else if (!strcmp(word, "idle")) {
            for (; first < second && is_text(first); first += 2) place_at(first)->what |= AT_IDLE;
        } else {
            good = false;
        }
    }
    good = good && feof(file) && places;
    fclose(file);
    return good;
}

static bool map_output(const char *path) {
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || ftruncate(file, sizeof *output) != 0) return false;
    output = mmap(NULL, sizeof *output, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (output == MAP_FAILED) return false;
    output->magic = MAGIC;
    output->size = sizeof *output;
    return true;
}

EXPORT int qemu_plugin_install(plugin_id id, const void *information, int count, char **arguments) {
    (void)information;
    const char *from = NULL, *to = NULL;
    for (int index = 0; index < count; index++) {
        if (!strncmp(arguments[index], "places=", 7)) from = arguments[index] + 7;
        if (!strncmp(arguments[index], "output=", 7)) to = arguments[index] + 7;
    }
    if (!from || !to || !read_places(from) || !map_output(to)) {
        fprintf(stderr, "stretch: bad places=FILE or output=FILE\n");
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    return 0;
}
