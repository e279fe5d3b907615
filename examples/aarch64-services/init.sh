#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# First process of both clients, after their modules are loaded: uses the disk, the console and the network.
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/root PS1='~ # '
mkdir -p /mnt /tmp/www

# The disk: make a file system, fill a file, read it back from the disk itself.
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

# The kernel hands these words of its command line to us.
echo "hello from $address" > /dev/hvc0

# The network: each serves 256 KiB to the other by TCP. The bytes are those of a generator with a key.
ip link set lo up
ip link set eth0 up
ip addr add "$address/24" dev eth0
dd if=/dev/zero of=/tmp/www/file bs=1k count=256 2> /dev/null
seq 1 20000 >> /tmp/www/file
busybox httpd -p 80 -h /tmp/www
until ping -c 1 -W 1 "$other" > /dev/null 2>&1; do :; done
ping -c 3 -i 0.1 -W 5 "$other" | grep packets
until wget -q -O /tmp/file "http://$other/file"; do sleep 1; done
if cmp /tmp/file /tmp/www/file; then
    echo "network: $(wc -c < /tmp/file) bytes by TCP"
fi
cat /proc/interrupts | grep virtio
cd /root || cd /
while :; do setsid cttyhack sh; done
