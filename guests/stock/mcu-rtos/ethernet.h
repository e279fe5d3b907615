// SPDX-License-Identifier: Apache-2.0
//
// The LAN9118 Ethernet controller of an MPS2 board.
#ifndef ETHERNET_H
#define ETHERNET_H

#include <stdbool.h>
#include <stdint.h>

#define FRAME_BYTES 1520

struct frame {
    uint32_t length;
    // The controller hands over a word at a time.
    union {
        uint32_t words[FRAME_BYTES / 4];
        uint8_t bytes[FRAME_BYTES];
    };
};

// Sets it up, with an interrupt for frames received. False if there is none.
bool ethernet_start(uint8_t address[6]);
// In the interrupt's handler: no more interrupts until `ethernet_receive` finds nothing.
void ethernet_hold(void);
// Takes a frame that has been received.
bool ethernet_receive(struct frame *frame);
void ethernet_send(const struct frame *frame);

#endif
