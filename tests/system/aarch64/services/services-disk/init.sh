#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# First process of a client: uses its part of the board's disk, then powers off.
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
export PATH=/bin:/sbin:/usr/bin:/usr/sbin
mkdir -p /mnt

echo "size: $(cat /sys/block/vda/size) sectors, $(cat /sys/block/vda/queue/write_cache)"
busybox mke2fs /dev/vda > /dev/null
mount -t ext4 /dev/vda /mnt
dd if=/dev/urandom of=/mnt/data bs=64k count=16 conv=fsync 2> /dev/null
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
grep virtio /proc/interrupts
poweroff -f
