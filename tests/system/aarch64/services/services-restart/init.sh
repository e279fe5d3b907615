#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# First process of the client: writes while the server dies, and looks whether all that was acknowledged is
# there.
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
export PATH=/bin:/sbin:/usr/bin:/usr/sbin
mkdir -p /mnt

busybox mke2fs /dev/vda > /dev/null
mount -t ext4 -o sync /dev/vda /mnt
good=0
for round in $(seq 40); do
    dd if=/dev/urandom of=/mnt/data$round bs=16k count=4 conv=fsync 2> /dev/null
    before=$(sha256sum < /mnt/data$round)
    echo 3 > /proc/sys/vm/drop_caches
    [ "$(sha256sum < /mnt/data$round)" = "$before" ] && good=$((good + 1))
    echo "$round $before" >> /tmp/sums
done
umount /mnt
echo 3 > /proc/sys/vm/drop_caches
mount -t ext4 -o ro /dev/vda /mnt
still=0
while read -r round sum; do
    [ "$(sha256sum < /mnt/data$round)" = "$sum" ] && still=$((still + 1))
done < /tmp/sums
umount /mnt
echo "disk: $good of 40 files at once, $still of 40 at the end, $(dmesg | grep -c -i 'i/o error\|EXT4-fs error') errors"
sleep 1
poweroff -f
