#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# First process of a client: uses its disk, its console and its random numbers if it has some, then powers off.
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
export PATH=/bin:/sbin:/usr/bin:/usr/sbin
mkdir -p /mnt

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

[ -e /dev/hwrng ] && echo "random: $(cat /sys/class/misc/hw_random/rng_current), $(dd if=/dev/hwrng bs=64 count=1 2> /dev/null | wc -c) bytes"
echo "hello from Linux" > /dev/hvc0
grep virtio /proc/interrupts
sleep 1
poweroff -f
