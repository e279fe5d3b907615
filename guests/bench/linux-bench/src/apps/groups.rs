// SPDX-License-Identifier: Apache-2.0
//! Groups of processes that send each other short messages, as `hackbench` has them: in a group each sender
//! sends to each receiver, by the receiver's pair of sockets.

use super::{expect, timed};
use crate::linux::{File, fork, network, pipe, wait};

const GROUPS: usize = 2;
/// Senders of a group, and receivers of a group.
const SIDE: usize = 5;
/// Messages of each sender to each receiver.
const MESSAGES: usize = 40;
const MESSAGE: usize = 100;

/// The pipes by which a process says that it is ready, and by which all are let go.
struct Gate {
    ready: [File; 2],
    go: [File; 2],
}

impl Gate {
    fn pass(&self) {
        self.ready[1].write_all(&[0]);
        self.go[0].read();
    }

    /// Waits for all processes, and lets them go.
    fn open(&self) {
        for _ in 0..GROUPS * SIDE * 2 {
            self.ready[0].read();
        }
        self.go[1].write_all(&[0; GROUPS * SIDE * 2]);
    }
}

/// Takes all messages of a group's senders, and counts each one's.
fn receive(socket: File) {
    let mut counts = [0; SIDE];
    let mut message = [0; MESSAGE];
    for _ in 0..SIDE * MESSAGES {
        expect(socket.read_full(&mut message) == MESSAGE, "a message is cut");
        let sender = usize::from(message[0]);
        expect(
            message.iter().all(|byte| *byte == message[0]),
            "a message is mixed",
        );
        if let Some(count) = counts.get_mut(sender) {
            *count += 1;
        }
    }
    expect(counts == [MESSAGES; SIDE], "messages are lost");
}

fn send(sender: usize, sockets: &[[File; 2]; SIDE]) {
    let message = [sender as u8; MESSAGE];
    for _ in 0..MESSAGES {
        for [_, socket] in sockets {
            socket.write_all(&message);
        }
    }
}

pub fn measure() {
    let gate = Gate {
        ready: pipe(),
        go: pipe(),
    };
    for _ in 0..GROUPS {
        let sockets = [(); SIDE].map(|()| network::pair());
        for [socket, _] in sockets {
            fork(|| {
                gate.pass();
                receive(socket);
            });
        }
        for sender in 0..SIDE {
            fork(|| {
                gate.pass();
                send(sender, &sockets);
            });
        }
        for end in sockets.as_flattened() {
            end.close();
        }
    }
    timed("groups", || {
        gate.open();
        for _ in 0..GROUPS * SIDE * 2 {
            wait();
        }
    });
    for end in [gate.ready, gate.go].as_flattened() {
        end.close();
    }
}
