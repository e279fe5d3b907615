#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# First process of partition `linux`: shows what the VM has, works a little, then gives a shell.
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/root PS1='~ # '
mkdir -p /tmp

cpus=$(nproc)
echo "linux: kernel $(uname -r), nproc says $cpus, $(awk '/MemTotal/ { print int($2 / 1024) }' /proc/meminfo) MiB"

# One worker per CPU, so that there is load on every pCPU the VM has.
echo "linux: workload: hashing on every CPU"
n=0
while [ "$n" -lt "$cpus" ]; do
    dd if=/dev/zero bs=64k count=16 2>/dev/null | sha256sum > "/tmp/worker.$n" &
    n=$((n + 1))
done
wait
if [ "$(sort -u /tmp/worker.* | wc -l)" = 1 ]; then
    echo "linux: workload: done, $cpus equal results"
else
    echo "linux: workload: the CPUs disagree"
fi

cd /root || cd /
while :; do setsid cttyhack sh; done
