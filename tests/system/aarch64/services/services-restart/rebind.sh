#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# First process of the client: its driver goes and comes again, and finds the disk each time.
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
export PATH=/bin:/sbin:/usr/bin:/usr/sbin
driver=/sys/bus/virtio/drivers/virtio_blk
good=0
for round in $(seq 60); do
    echo virtio0 > $driver/unbind
    echo virtio0 > $driver/bind
    read=$(dd if=/dev/vda bs=512 count=8 2> /dev/null | wc -c)
    [ "$read" = 4096 ] && good=$((good + 1))
done
echo "disk: $good of 60 binds, $(dmesg | grep -c -i 'i/o error') errors"
poweroff -f
