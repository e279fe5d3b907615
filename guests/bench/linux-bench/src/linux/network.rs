// SPDX-License-Identifier: Apache-2.0
//! Sockets: connected pairs, and TCP by the loopback interface.

use super::cpu::{ACCEPT, BIND, CONNECT, IOCTL, LISTEN, SOCKET, SOCKETPAIR, call};
use super::{File, good};

const AF_UNIX: usize = 1;
const AF_INET: usize = 2;
const SOCK_STREAM: usize = 1;
const SOCK_DGRAM: usize = 2;
const SIOCSIFFLAGS: usize = 0x8914;
const IFF_UP: u16 = 1;
/// The length of an interface's name in a request.
const NAME: usize = 16;

/// `struct sockaddr_in`.
#[repr(C)]
struct Address {
    family: u16,
    port: [u8; 2],
    host: [u8; 4],
    zero: [u8; 8],
}

impl Address {
    /// Returns the address of a port of this machine.
    fn of(port: u16) -> Self {
        Self {
            family: AF_INET as u16,
            port: port.to_be_bytes(),
            host: [127, 0, 0, 1],
            zero: [0; 8],
        }
    }
}

/// `struct ifreq` with flags.
#[repr(C)]
struct Request {
    name: [u8; NAME],
    flags: u16,
    rest: [u8; 22],
}

/// Returns two connected sockets.
pub fn pair() -> [File; 2] {
    let mut ends = [0_i32; 2];
    let arguments = [AF_UNIX, SOCK_STREAM, 0, ends.as_mut_ptr() as usize, 0, 0];
    // SAFETY: two words are written, to a variable of ours.
    good("socketpair", unsafe { call(SOCKETPAIR, arguments) });
    ends.map(|end| File(end as usize))
}

fn socket(kind: usize) -> File {
    // SAFETY: no memory is involved.
    File(good("socket", unsafe {
        call(SOCKET, [AF_INET, kind, 0, 0, 0, 0])
    }))
}

/// Switches the loopback interface on.
pub fn start() {
    let mut request = Request {
        name: [0; NAME],
        flags: IFF_UP,
        rest: [0; 22],
    };
    request.name[..2].copy_from_slice(b"lo");
    let any = socket(SOCK_DGRAM);
    let arguments = [any.0, SIOCSIFFLAGS, &raw const request as usize, 0, 0, 0];
    // SAFETY: the request is only read.
    good("ioctl", unsafe { call(IOCTL, arguments) });
    any.close();
}

/// Returns a socket that waits for connections.
pub fn listen(port: u16) -> File {
    let (socket, address) = (socket(SOCK_STREAM), Address::of(port));
    let arguments = [
        socket.0,
        &raw const address as usize,
        size_of::<Address>(),
        0,
        0,
        0,
    ];
    // SAFETY: the address is only read.
    good("bind", unsafe { call(BIND, arguments) });
    // SAFETY: no memory is involved.
    good("listen", unsafe { call(LISTEN, [socket.0, 1, 0, 0, 0, 0]) });
    socket
}

/// Waits for a connection.
pub fn accept(listener: File) -> File {
    // SAFETY: the address of the other side is not asked for.
    File(good("accept", unsafe {
        call(ACCEPT, [listener.0, 0, 0, 0, 0, 0])
    }))
}

/// Connects to a port.
pub fn connect(port: u16) -> File {
    let (socket, address) = (socket(SOCK_STREAM), Address::of(port));
    let arguments = [
        socket.0,
        &raw const address as usize,
        size_of::<Address>(),
        0,
        0,
        0,
    ];
    // SAFETY: the address is only read.
    good("connect", unsafe { call(CONNECT, arguments) });
    socket
}
