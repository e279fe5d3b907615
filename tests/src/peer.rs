// SPDX-License-Identifier: Apache-2.0
//! A peer at a serial line of the emulated board that no console uses. It sends a text, and keeps what comes
//! back.

use crate::case;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// The emulator is gone by then.
const PATIENCE: Duration = Duration::from_secs(10);

/// A peer that waits for the emulator, or talks to it.
pub(crate) struct Peer {
    /// The arguments that plug the peer in.
    pub(crate) arguments: Vec<String>,
    expected: String,
    socket: PathBuf,
    heard: Receiver<Vec<u8>>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Only a name is at stake.
        let _ = std::fs::remove_file(&self.socket);
    }
}

impl Peer {
    /// Listens for the emulator, which connects when it starts.
    pub(crate) fn listen(peer: &case::Peer) -> std::io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let socket = std::env::temp_dir().join(format!("bulkhead-peer-{}-{number}", std::process::id()));
        let listener = UnixListener::bind(&socket)?;
        let (sender, heard) = channel();
        let text = peer.sends.clone();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Ok((mut line, _)) = listener.accept() {
                // Text that cannot be sent is not heard either. An emulator that is killed ends the line.
                let _ = line.write_all(text.as_bytes());
                let _ = line.read_to_end(&mut bytes);
            }
            let _ = sender.send(bytes);
        });
        let name = socket.display().to_string();
        let argument = |argument: &String| argument.replace("{socket}", &name);
        Ok(Self {
            arguments: peer.arguments.iter().map(argument).collect(),
            expected: peer.hears.clone(),
            socket,
            heard,
        })
    }

    /// Returns what was heard instead, now that the emulator has ended.
    pub(crate) fn finding(self) -> Option<String> {
        let heard = self.heard.recv_timeout(PATIENCE).unwrap_or_default();
        let heard = String::from_utf8_lossy(&heard);
        (heard != self.expected).then(|| {
            format!(
                "the peer of the serial line heard {heard:?}, not {:?}",
                self.expected
            )
        })
    }
}
