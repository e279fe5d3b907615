// SPDX-License-Identifier: Apache-2.0
//
// As its vendor's driver uses it: FIFOs, a word at a time. Sections are those of the LAN9118's datasheet,
// revision 1.5. With `WITH_RING` it also knows the ring of frames that Bulkhead's virtual controller can have
// (docs/devices.md), and uses it where there is one.

#include "ethernet.h"

#include "board.h"

// The address of the controller on a board with a Cortex-M7 and on one with a Cortex-M4 (Arm DAI 0500A and
// 0386D).
#define BASE_M7 0xa0000000u
#define BASE_M4 0x40200000u
#define CPUID REGISTER(0xe000ed00)
#define PART_M7 0xc27u

enum {
    RX_DATA = 0x00,
    TX_DATA = 0x20,
    RX_STATUS = 0x40,
    IRQ_CFG = 0x54,
    INT_STS = 0x58,
    INT_EN = 0x5c,
    BYTE_TEST = 0x64,
    FIFO_INT = 0x68,
    TX_CFG = 0x70,
    HW_CFG = 0x74,
    RX_FIFO_INF = 0x7c,
    TX_FIFO_INF = 0x80,
    MAC_CSR_CMD = 0xa4,
    MAC_CSR_DATA = 0xa8,
};
enum { MAC_CR = 1, ADDRH = 2, ADDRL = 3 };

#define RECEIVED (1u << 3)
#define MAC_BUSY (1u << 31)
#define MAC_READ (1u << 30)
// Full duplex, transmitter and receiver on (5.4.1).
#define MAC_ON (1u << 20 | 1u << 3 | 1u << 2)
// The whole of a frame is in one buffer (3.12.2).
#define FIRST_AND_LAST (1u << 13 | 1u << 12)

static uintptr_t base;

#ifdef WITH_RING
// Reserved on the chip, and 0 there: the address of the memory for frames. A store of 1 takes the ring.
enum { RING = 0xc0 };
enum { TRANSMIT = 1664, PRODUCED = 2046, CONSUMED = 2047 };
static volatile uint32_t *memory;
#endif

static uint32_t read(uint32_t offset)
{
    return REGISTER(base + offset);
}

static void write(uint32_t offset, uint32_t value)
{
    REGISTER(base + offset) = value;
}

static uint32_t mac(uint32_t number)
{
    write(MAC_CSR_CMD, MAC_BUSY | MAC_READ | number);
    while (read(MAC_CSR_CMD) & MAC_BUSY) {
    }
    return read(MAC_CSR_DATA);
}

bool ethernet_start(uint8_t address[6])
{
    base = (CPUID >> 4 & 0xfff) == PART_M7 ? BASE_M7 : BASE_M4;
    if (read(BYTE_TEST) != 0x87654321)
        return false;
    write(HW_CFG, 1);
    while (read(HW_CFG) & 1) {
    }
    write(HW_CFG, 1u << 20 | 5u << 16);
    // An interrupt for the first frame; none for room to send.
    write(FIFO_INT, 0xff000000);
    write(INT_STS, UINT32_MAX);
    write(TX_CFG, 2);
    uint32_t low = mac(ADDRL), high = mac(ADDRH);
    for (int index = 0; index < 6; index++)
        address[index] = (uint8_t)(index < 4 ? low >> 8 * index : high >> 8 * (index - 4));
    write(MAC_CSR_DATA, MAC_ON);
    write(MAC_CSR_CMD, MAC_BUSY | MAC_CR);
    while (read(MAC_CSR_CMD) & MAC_BUSY) {
    }
    write(INT_EN, RECEIVED);
    write(IRQ_CFG, 1u << 8 | 1u << 4 | 1);
#ifdef WITH_RING
    memory = (volatile uint32_t *)(uintptr_t)read(RING);
    if (memory) {
        memory[PRODUCED] = memory[CONSUMED] = 0;
        write(RING, 1);
    }
#endif
    return true;
}

#ifdef WITH_RING
static bool receive_from_ring(struct frame *frame)
{
    while (memory[CONSUMED] != memory[PRODUCED]) {
        uint32_t at = memory[CONSUMED];
        if (memory[at] == 0)
            at = 0;
        uint32_t length = memory[at], words = (length + 3) / 4;
        bool fits = length >= 4 && length <= FRAME_BYTES;
        for (uint32_t word = 0; fits && word < words; word++)
            frame->words[word] = memory[at + 1 + word];
        memory[CONSUMED] = at + 1 + words;
        frame->length = length - 4;
        if (fits)
            return true;
    }
    return false;
}

static void send_from_memory(const struct frame *frame)
{
    for (uint32_t word = 0; word < (frame->length + 3) / 4; word++)
        memory[TRANSMIT + word] = frame->words[word];
    write(TX_DATA, frame->length);
}
#endif

void ethernet_hold(void)
{
#ifdef WITH_RING
    // Its interrupt comes once for each frame, and has no level.
    if (memory)
        return;
#endif
    write(INT_EN, 0);
}

bool ethernet_receive(struct frame *frame)
{
#ifdef WITH_RING
    if (memory)
        return receive_from_ring(frame);
#endif
    while (read(RX_FIFO_INF) >> 16 & 0xff) {
        uint32_t status = read(RX_STATUS), length = status >> 16 & 0x3fff;
        for (uint32_t word = 0; word < (length + 3) / 4; word++) {
            uint32_t value = read(RX_DATA);
            if (word < FRAME_BYTES / 4)
                frame->words[word] = value;
        }
        // The last four bytes are the check sum.
        frame->length = length - 4;
        if (!(status & 1u << 15) && length >= 4 && length <= FRAME_BYTES)
            return true;
    }
    write(INT_STS, RECEIVED);
    write(INT_EN, RECEIVED);
    return false;
}

void ethernet_send(const struct frame *frame)
{
#ifdef WITH_RING
    if (memory) {
        send_from_memory(frame);
        return;
    }
#endif
    while ((read(TX_FIFO_INF) & 0xffff) < frame->length + 16) {
    }
    write(TX_DATA, FIRST_AND_LAST | frame->length);
    write(TX_DATA, frame->length);
    for (uint32_t word = 0; word < (frame->length + 3) / 4; word++)
        write(TX_DATA, frame->words[word]);
}
