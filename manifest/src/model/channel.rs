// SPDX-License-Identifier: Apache-2.0
//! The tables of a channel.

use super::{Access, Given, Placed};
use crate::schema::declare::tables;
use crate::schema::form::Whole;
use crate::units::{Address, Size};

tables! {
    /// Memory that its sides share, and a doorbell. The capabilities of the sides let them ring.
    pub(crate) ChannelSpec [name] = "a channel table" {
        /// bytes of the memory; a multiple of 4K, on class `armv7m` a power of two
        size "size": Option<Placed<Size>>, otherwise("required, but not with `device`");
        /// a device of the board, whose registers are the memory: each side is held, and has no doorbell;
        /// classes `aarch64` and `armv8m`
        device "device": Option<Placed<String>>, optional;
        /// address of the memory on the board; without this key the tool finds a place
        at "place": Option<Placed<Address>>, optional;
        /// the partitions that see the memory, two at least
        sides "side": Vec<SideSpec>, required;
    }

    /// A partition at a channel.
    pub(crate) SideSpec [start] = "a side" {
        /// the partition
        partition "partition": Option<Placed<String>>, required;
        /// accesses of the partition to the memory, `rw` or `r`
        access "access": Given<Access>, default("rw");
        /// true if an operating system finds the channel as a PCI function in the layout of QEMU's ivshmem,
        /// with INTx on the line `interrupt`; VM of class `aarch64` only
        pci "pci": Given<bool>, default(false);
        /// true if the partition sees the memory only while it holds it, by a capability for the channel that
        /// the manifest or another partition gives it. Then the channel has 256K at most; classes `aarch64`
        /// and `armv8m`
        held "held": Given<bool>, default(false);
        /// line (INTID) that the doorbell makes pending at the partition, for a moment, as an edge does; VM
        /// only
        interrupt "interrupt": Option<Placed<Whole<0, 991>>>, optional;
        /// event that the doorbell raises at the partition's own gate
        event "event": Option<Placed<Whole<0, 61>>>, optional;
        /// address at which the partition sees the memory; without this key the tool finds one, from
        /// 0x10000000 on. A class without translation has no such key
        guest "guest": Option<Placed<Address>>, optional;
    }
}
