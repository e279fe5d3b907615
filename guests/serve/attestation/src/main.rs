// SPDX-License-Identifier: Apache-2.0
//! The attestation task: makes quotes for the partitions that may send to its port.
//!
//! It needs these capabilities: `secret`, from which its key follows; `quotes` (a port whose messages have
//! 1024 bytes and that identifies senders; read); and a console. It measures itself, and each partition for
//! which it has a capability with the right `read`, under the name of that capability.
//!
//! A message of 32, 48 or 64 bytes is a nonce, and the reply is a quote. A message of one byte 0 asks for the
//! public key. The reply to anything else is empty. The task prints its public key once, for the
//! enrolment of the device.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_attest::{
    COMPONENT_CLASS_BINARY, COMPONENT_SYSTEM, Claims, Component, KEY_REQUEST, MAX_TOKEN, SigningKey,
    write_token,
};
use bulkhead_guest::abi::measurement::Measurement;
use bulkhead_guest::abi::{Error, ObjectKind, Rights};
use bulkhead_guest::hypercall::{Handle, SELF};
use bulkhead_guest::port::{self, Message, Received};
use bulkhead_guest::startup_page::StartupPage;
use bulkhead_guest::{println, secret};

bulkhead_guest::task_main!(main);

/// Components of a quote at most: for more, a message has no room.
const MOST: usize = 8;
/// The longest nonce.
const NONCE: usize = 64;

/// The facts about the device.
struct Attester {
    key: SigningKey,
    components: [Component<'static>; MOST],
    count: usize,
}

fn main(page: StartupPage<'static>) {
    let find = |name: &str| page.find(name).map(|found| Handle(found.index));
    let (Some(own), Some(quotes)) = (find("secret"), find("quotes")) else {
        println!("attestation: no capability `secret` or `quotes`");
        return;
    };
    let attester = match Attester::new(own, &page) {
        Ok(attester) => attester,
        Err(error) => {
            println!("attestation: {error:?}");
            return;
        }
    };
    println!("attestation key {}", Hex(attester.key.public()));
    attester.serve(quotes);
}

impl Attester {
    /// Takes the secret, and measures all that the task may look at.
    fn new(own: Handle, page: &StartupPage<'static>) -> Result<Self, Error> {
        let mut attester = Self {
            key: SigningKey::of_secret(&secret::take(own)?),
            components: [Component {
                name: "",
                measurement: [0; 32],
            }; MOST],
            count: 0,
        };
        attester.add(COMPONENT_CLASS_BINARY, SELF, Measurement::ClassBinary)?;
        attester.add(COMPONENT_SYSTEM, SELF, Measurement::System)?;
        for found in page.capabilities() {
            if found.kind == ObjectKind::Partition && found.rights.contains(Rights::READ) {
                attester.add(found.name, Handle(found.index), Measurement::Partition)?;
            }
        }
        Ok(attester)
    }

    /// Adds a component, if there is room.
    fn add(&mut self, name: &'static str, partition: Handle, what: Measurement) -> Result<(), Error> {
        let place = self.components.get_mut(self.count).ok_or(Error::NoSpace)?;
        *place = Component {
            name,
            measurement: secret::measure(partition, what)?,
        };
        self.count += 1;
        Ok(())
    }

    /// Answers for ever.
    fn serve(&self, quotes: Handle) {
        let mut message = Message::<MAX_TOKEN>::new();
        let (mut to, mut length) = (None, 0);
        loop {
            // A client that has given up is no reason to end: the next receive has no one to reply to.
            let received = port::reply_receive(quotes, to, length, &mut message, 0);
            (to, length) = match received {
                Ok(received) => (received.reply, self.answer(&received, &mut message)),
                Err(_) => (None, 0),
            };
        }
    }

    /// Writes the answer to a message in its place, and returns its length.
    fn answer(&self, received: &Received, message: &mut Message<MAX_TOKEN>) -> usize {
        let asked = message.0.get(..received.length).unwrap_or(&[]);
        if *asked == KEY_REQUEST {
            message.0[..32].copy_from_slice(self.key.public());
            return 32;
        }
        let mut nonce = [0; NONCE];
        let (Some(nonce), Some(sender)) = (nonce.get_mut(..asked.len()), received.sender) else {
            return 0;
        };
        nonce.copy_from_slice(asked);
        let [class_binary, ..] = self.components;
        let claims = Claims {
            nonce,
            client: -1 - i32::from(sender),
            implementation: class_binary.measurement,
            // The class binary has the keys of the owner in it, and runs nothing else.
            signer: class_binary.measurement,
            components: &self.components[..self.count],
        };
        write_token(&claims, &self.key, &mut message.0).unwrap_or(0)
    }
}

/// Bytes, printed as hexadecimal digits.
struct Hex<'a>(&'a [u8; 32]);

impl core::fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
