// SPDX-License-Identifier: Apache-2.0
//
// A host in 10.0.2.0/24 that pings the gateway and the host with the next number every 50 ms, and answers
// pings: ARP (RFC 826), IPv4 without options (RFC 791), ICMP echo (RFC 792).

#include <stdbool.h>
#include <stddef.h>

#include "board.h"
#include "ethernet.h"
#include "kernel.h"
#include "main.h"
#include "print.h"

enum { HOSTS = 2, PERIOD = 50, REPORT_PINGS = 5, ECHO_BYTES = 14 + 20 + 8 + 32 };
enum { TARGET_MAC = 0, SOURCE_MAC = 6, TYPE = 12 };
enum { ARP_OPERATION = 21, ARP_MAC = 22, ARP_IP = 28, ARP_TARGET = 38, ARP_END = 42 };
enum { IP_LENGTH = 16, IP_PROTOCOL = 23, IP_SUM = 24, IP_SOURCE = 26, IP_TARGET = 30, ICMP = 34, ICMP_SUM = 36, ICMP_NUMBER = 40 };

static uint8_t own_mac[6], own_ip[4] = {10, 0, 2, 0};
static struct host {
    uint8_t ip[4], mac[6];
    bool known;
    uint32_t sent, answered;
} hosts[HOSTS] = {{.ip = {10, 0, 2, 2}}, {.ip = {10, 0, 2, 0}}};

static struct semaphore received;
static struct frame frame;

void ETHERNET_Handler(void)
{
    ethernet_hold();
    semaphore_give(&received);
}

static void copy(uint8_t *to, const uint8_t *from, size_t length)
{
    while (length--)
        *to++ = *from++;
}

static bool same(const uint8_t *one, const uint8_t *other, size_t length)
{
    while (length && *one == *other)
        one++, other++, length--;
    return length == 0;
}

static void put_sum(uint32_t from, uint32_t end, uint32_t at)
{
    frame.bytes[at] = frame.bytes[at + 1] = 0;
    uint32_t sum = 0;
    for (uint32_t index = from; index < end; index++)
        sum += (uint32_t)frame.bytes[index] << ((index - from) % 2 ? 0 : 8);
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    frame.bytes[at] = (uint8_t)(~sum >> 8);
    frame.bytes[at + 1] = (uint8_t)~sum;
}

static void send(const uint8_t *to, uint32_t length)
{
    // `to` may be in the frame.
    uint8_t target[6];
    copy(target, to, 6);
    copy(&frame.bytes[TARGET_MAC], target, 6);
    copy(&frame.bytes[SOURCE_MAC], own_mac, 6);
    frame.length = length;
    ethernet_send(&frame);
}

static void send_arp(uint8_t operation, const uint8_t *mac, const uint8_t *ip)
{
    static const uint8_t head[] = {8, 6, 0, 1, 8, 0, 6, 4, 0};
    uint8_t target[10];
    copy(target, mac, 6);
    copy(target + 6, ip, 4);
    copy(&frame.bytes[TYPE], head, sizeof head);
    frame.bytes[ARP_OPERATION] = operation;
    copy(&frame.bytes[ARP_MAC], own_mac, 6);
    copy(&frame.bytes[ARP_IP], own_ip, 4);
    copy(&frame.bytes[ARP_IP + 4], target, 10);
    send(target, ARP_END);
}

static void ping(struct host *host)
{
    static const uint8_t everybody[] = {255, 255, 255, 255, 255, 255};
    static const uint8_t head[] = {8, 0, 0x45, 0, 0, ECHO_BYTES - 14, 0, 0, 0, 0, 64, 1};
    if (!host->known) {
        send_arp(1, everybody, host->ip);
        return;
    }
    for (uint32_t index = ICMP; index < ECHO_BYTES; index++)
        frame.bytes[index] = (uint8_t)index;
    copy(&frame.bytes[TYPE], head, sizeof head);
    copy(&frame.bytes[IP_SOURCE], own_ip, 4);
    copy(&frame.bytes[IP_TARGET], host->ip, 4);
    put_sum(14, ICMP, IP_SUM);
    host->sent++;
    frame.bytes[ICMP] = 8;
    frame.bytes[ICMP + 1] = 0;
    frame.bytes[ICMP_NUMBER] = (uint8_t)(host->sent >> 8);
    frame.bytes[ICMP_NUMBER + 1] = (uint8_t)host->sent;
    put_sum(ICMP, ECHO_BYTES, ICMP_SUM);
    send(host->mac, ECHO_BYTES);
}

static void heard_arp(void)
{
    const uint8_t *bytes = frame.bytes;
    for (struct host *host = hosts; host < hosts + HOSTS; host++) {
        if (same(&bytes[ARP_IP], host->ip, 4)) {
            copy(host->mac, &bytes[ARP_MAC], 6);
            host->known = true;
        }
    }
    if (bytes[ARP_OPERATION] == 1 && same(&bytes[ARP_TARGET], own_ip, 4))
        send_arp(2, &bytes[ARP_MAC], &bytes[ARP_IP]);
}

static void heard_icmp(void)
{
    uint8_t *bytes = frame.bytes;
    uint32_t end = 14 + ((uint32_t)bytes[IP_LENGTH] << 8 | bytes[IP_LENGTH + 1]);
    if (end > frame.length || end < ICMP + 8)
        return;
    if (bytes[ICMP] == 0) {
        for (struct host *host = hosts; host < hosts + HOSTS; host++) {
            uint32_t number = (uint32_t)bytes[ICMP_NUMBER] << 8 | bytes[ICMP_NUMBER + 1];
            if (same(&bytes[IP_SOURCE], host->ip, 4) && number == (host->sent & 0xffff))
                host->answered++;
        }
    } else if (bytes[ICMP] == 8) {
        copy(&bytes[IP_TARGET], &bytes[IP_SOURCE], 4);
        copy(&bytes[IP_SOURCE], own_ip, 4);
        bytes[ICMP] = 0;
        put_sum(ICMP, end, ICMP_SUM);
        send(&bytes[SOURCE_MAC], end);
    }
}

static void listen(void)
{
    static const uint8_t arp[] = {8, 6}, ip[] = {8, 0, 0x45};
    while (ethernet_receive(&frame)) {
        if (frame.length >= ARP_END && same(&frame.bytes[TYPE], arp, 2))
            heard_arp();
        else if (frame.length > ICMP + 8 && same(&frame.bytes[TYPE], ip, 3) && frame.bytes[IP_PROTOCOL] == 1 &&
                 same(&frame.bytes[IP_TARGET], own_ip, 4))
            heard_icmp();
    }
}

static void network(void)
{
    if (!ethernet_start(own_mac)) {
        print("rtos: no network\n");
        task_sleep(FOREVER);
    }
    // Numbers below 100 are the emulator's.
    own_ip[3] = 100 + own_mac[5] % 100;
    hosts[1].ip[3] = own_ip[3] + 1;
    print("rtos: network at 10.0.2.%u\n", own_ip[3]);
    interrupt_enable(LINE_ETHERNET, KERNEL_PRIORITY + 0x10);
    uint32_t due = kernel_ticks();
    for (;;) {
        int32_t left = (int32_t)(due - kernel_ticks());
        if (left > 0) {
            semaphore_take(&received, (uint32_t)left);
            listen();
            continue;
        }
        due += PERIOD;
        for (struct host *host = hosts; host < hosts + HOSTS; host++) {
            ping(host);
            if (host->known && host->sent % REPORT_PINGS == 0 && host->sent)
                print("rtos: 10.0.2.%u answered %u of %u pings\n", host->ip[3], host->answered, host->sent - 1);
        }
    }
}

void network_start(void)
{
    START(network, NETWORK);
}
