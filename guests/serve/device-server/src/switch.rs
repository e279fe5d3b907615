// SPDX-License-Identifier: Apache-2.0
//! The switch between the Ethernet interfaces of a service: a frame goes to the client with the destination
//! address, or for a group to all that the sender may reach.

use crate::back_end::BackEnd;
use crate::client::Client;
use bulkhead_virtio::network::{FRAME, Network};

/// Carries the frames that clients have sent. Returns whether there were some.
pub fn carry(clients: &mut [Option<Client>]) -> bool {
    let mut frame = [0; FRAME];
    let mut is_busy = false;
    for sender in 0..clients.len() {
        let Some(client) = clients.get_mut(sender).and_then(Option::as_mut) else {
            continue;
        };
        let reaches = client.reaches();
        let sent = network(client).and_then(|network| network.sent(&mut frame));
        let Some(bytes) = sent.and_then(|length| frame.get(..length)) else {
            continue;
        };
        // The interface has room for the next frame.
        client.wake();
        is_busy = true;
        for other in clients.iter_mut().flatten() {
            if reaches >> other.number() & 1 != 0 {
                hand_on(other, bytes);
            }
        }
    }
    is_busy
}

fn network(client: &mut Client) -> Option<&mut Network> {
    match client.back_end() {
        Some(BackEnd::Network(server)) => Some(server.device()),
        _ => None,
    }
}

fn hand_on(client: &mut Client, frame: &[u8]) {
    let Some(network) = network(client) else { return };
    let is_for_group = frame.first().is_some_and(|first| first & 1 != 0);
    if is_for_group || frame.starts_with(&network.address()) {
        network.deliver(frame);
        client.wake();
    }
}
