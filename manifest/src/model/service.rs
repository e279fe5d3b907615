// SPDX-License-Identifier: Apache-2.0
//! The tables of a service.

use super::{Access, Given, Placed};
use crate::schema::declare::{choices, tables};
use crate::schema::form::{Whole, word};
use crate::units::{Address, Duration, Size};

tables! {
    /// Virtio devices that a partition serves to VMs. Each client finds one in its device tree; class
    /// `aarch64`.
    pub(crate) ServiceSpec [name] = "a service table" {
        /// the task that serves. It needs a capability for its windows, and one to wait at its own gate
        partition "partition": Option<Placed<String>>, required;
        /// kind of the devices
        kind "kind": ServiceKind, required;
        /// event at the gate of the server when a client wants something
        event "event": Given<Whole<0, 61>>, default(60);
        /// longest time that a client waits for the answer to an access of a register. Later it goes on, as
        /// `late` says, and that is a health event of the server, class `watchdog`
        timeout "timeout": Given<Duration>, default("1s");
        /// the end of an access without an answer in time
        late "late": Given<Late>, default("ones");
        /// the VMs with a device each
        clients "client": Vec<ClientSpec>, required;
    }

    /// A VM with a device of a service.
    pub(crate) ClientSpec [start] = "a client" {
        /// the VM
        partition "partition": Option<Placed<String>>, required;
        /// accesses of the server to the RAM of the VM, `rw` or `r`. A server that cannot write can neither
        /// read a disk for the VM nor tell it that a request is done
        access "access": Given<Access>, default("rw");
        /// address of the device's registers, 4K; without this key the tool finds one, from 0x0b000000 on
        guest "guest": Option<Placed<Address>>, optional;
        /// interrupt line (INTID) of the device; without this key the tool finds one, from 128 on
        interrupt "interrupt": Option<Placed<Whole<0, 991>>>, optional;
        /// first byte of the client's part of the server's disk; a multiple of 4K; kind `block`
        offset "offset": Option<Placed<Size>>, optional;
        /// bytes of that part; kind `block`
        size "size": Option<Placed<Size>>, optional;
        /// true if writes are refused; kind `block`
        read_only "read-only": Given<bool>, default(false);
        /// the other clients to which the VM may send frames; without this key all of them; kind `network`
        reaches "reaches": Option<Vec<Placed<String>>>, optional;
    }
}

choices! {
    /// Kind of the devices of a service.
    pub(crate) ServiceKind {
        /// a disk
        Block = "block",
        /// a console
        Console = "console",
        /// a source of random numbers
        Entropy = "entropy",
        /// an Ethernet interface
        Network = "network",
    }
}

impl ServiceKind {
    /// Returns the word for the kind in a manifest.
    pub fn name(self) -> &'static str {
        word(self)
    }

    /// Returns the number of the kind (Virtio 1.2, section 5).
    pub const fn number(self) -> u8 {
        match self {
            Self::Network => 1,
            Self::Block => 2,
            Self::Console => 3,
            Self::Entropy => 4,
        }
    }
}

choices! {
    /// The end of an access that has had no answer in time.
    pub(crate) Late {
        /// a load reads all ones, and a store does nothing
        Ones = "ones",
        /// the access is a fault of the client
        Fault = "fault",
    }
}
