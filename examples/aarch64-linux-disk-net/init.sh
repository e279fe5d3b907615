#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# First process of partition `linux`, after its modules are loaded: uses the disk and the network, then gives a shell.
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/root PS1='~ # '
mkdir -p /mnt

# The disk is empty in each run: make a file system, fill a file, read it back from the disk itself.
busybox mke2fs /dev/vda > /dev/null
mount -t ext4 /dev/vda /mnt
dd if=/dev/urandom of=/mnt/data bs=64k count=16 2> /dev/null
before=$(sha256sum < /mnt/data)
umount /mnt
echo 3 > /proc/sys/vm/drop_caches
mount -t ext4 -o ro /dev/vda /mnt
if [ "$(sha256sum < /mnt/data)" = "$before" ]; then
    echo "disk: $(awk '$2 == "/mnt" { print $3 }' /proc/mounts), 1 MiB written and read back"
else
    echo "disk: what was read is not what was written"
fi
umount /mnt

# The emulator's own network: an address by DHCP, and a gateway that answers.
ip link set eth0 up
ip addr add 10.0.2.15/24 dev eth0
ping -c 3 -i 0.1 -W 5 10.0.2.2 | grep packets

grep virtio /proc/interrupts
cd /root || cd /
while :; do setsid cttyhack sh; done
