// SPDX-License-Identifier: Apache-2.0
//! Service: accesses of clients that another partition answers.
//!
//! **Model.** A window of a client's address space belongs to a server, which is a partition. An access to
//! the window blocks the vCPU until the server answers, or until the time is up that the manifest allows. A
//! vCPU has one access at a time. So nothing here is a queue that could be full: the accesses that wait are a
//! set of vCPUs. The server takes the access of the most important one first, on any pCPU.
//!
//! **Not asked.** A window of a virtio device has three registers that the kernel answers itself. A
//! notification sets a bit for the server and blocks no vCPU. The two registers of the interrupt need nothing
//! of the server: the server adds causes, and the client takes them away.
//!
//! **A new life.** When a client starts anew, its windows are closed: the server cannot reach the client's
//! memory until it has asked for news, and so has learned that what it knows of the client is over. When a
//! server starts anew, each access that its earlier life has taken and not answered waits again.
//!
//! **Order of locks.** A server, then an access. A window is locked alone, with the backend's own lock
//! inside.
//!
//! **Work bounds.** To take an access costs a look at each vCPU that waits. All else is constant, but for a
//! copy, which has at most [`MAX_COPY`](bulkhead_abi::hypercall::MAX_COPY) bytes.

pub(crate) mod command;
mod serve;
mod wait;

use crate::parts::{Part, entries};
use crate::table::{Id, Table};
use bulkhead_abi::hypercall::{KEPT_GROUP, KEPT_WORDS};
use bulkhead_arch_api::{Access, MAX_PARTITIONS, MAX_VCPUS, PartitionId, VcpuId, VcpuSet};
use bulkhead_devices::virtio_mmio::Interrupt;
use bulkhead_image::MAX_SERVED;
use spin::RelaxStrategy;
use spin::mutex::TicketMutex;

/// A window, by its number in the system image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowId(pub u8);

impl Id for WindowId {
    fn index(self) -> usize {
        usize::from(self.0)
    }
}

const SERVERS: usize = entries(Part::Services, MAX_PARTITIONS);
const REQUESTS: usize = entries(Part::Services, MAX_VCPUS);
const WINDOWS: usize = entries(Part::Services, MAX_SERVED);

/// The clients of a server, as far as they want something.
#[derive(Debug)]
pub struct Server {
    /// The vCPUs whose accesses wait.
    pub posted: VcpuSet,
    /// The vCPUs whose accesses the server has taken.
    pub taken: VcpuSet,
    /// The windows that were notified, as a bitmap.
    pub rung: u32,
    /// The windows whose clients, or whose server, have started anew, as a bitmap.
    pub anew: u32,
    /// The windows of `anew` whose clients have started anew.
    pub clients: u32,
    /// Stops of the server's devices because a client started anew: one more at the beginning of a stop and
    /// one more at the end.
    pub stops: u64,
    /// The vCPU whose access was taken last.
    last: VcpuId,
}

impl Server {
    const fn new() -> Self {
        Self {
            posted: VcpuSet::EMPTY,
            taken: VcpuSet::EMPTY,
            rung: 0,
            anew: 0,
            clients: 0,
            stops: 0,
            last: VcpuId(0),
        }
    }

    /// Takes the access of the most important vCPU that waits. Equals take turns.
    pub fn take(&mut self, priority: impl Fn(VcpuId) -> u32) -> Option<VcpuId> {
        let most = self.posted.iter().map(&priority).max()?;
        let mut equals = VcpuSet::EMPTY;
        for vcpu in self.posted.iter().filter(|vcpu| priority(*vcpu) == most) {
            equals.insert_all(VcpuSet::of(vcpu));
        }
        let turned = u32::from(self.last.0).wrapping_add(1);
        let behind = equals.0.rotate_right(turned).trailing_zeros();
        let next = VcpuId((behind.wrapping_add(turned) & 63) as u8);
        self.posted.0 &= !VcpuSet::of(next).0;
        self.taken.insert_all(VcpuSet::of(next));
        self.last = next;
        Some(next)
    }

    /// Takes a vCPU out of both sets.
    pub const fn forget(&mut self, vcpu: VcpuId) {
        self.posted.0 &= !VcpuSet::of(vcpu).0;
        self.taken.0 &= !VcpuSet::of(vcpu).0;
    }
}

/// The access of a vCPU.
#[derive(Debug)]
pub struct Request {
    /// The access and its window, while the vCPU waits.
    pub access: Option<(Access, WindowId)>,
    /// The number of the access among the accesses of the vCPU.
    pub number: u32,
    /// The answer.
    pub answer: Option<u64>,
}

/// A wait for the answer to an access. The request of the vCPU has all facts of the access. No interrupt ends
/// the wait: a load has no other end than its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessWait;

/// The state of a window.
#[derive(Debug)]
pub struct Window {
    /// The interrupt.
    pub interrupt: Interrupt,
    /// True if the server must not reach the memory of the client.
    pub is_closed: bool,
    /// Words that the server keeps here for its next life. The kernel does not look at them.
    pub kept: [[u64; KEPT_GROUP]; KEPT_WORDS / KEPT_GROUP],
}

/// The state of all windows.
#[derive(Debug)]
pub struct Services<R> {
    servers: Table<PartitionId, TicketMutex<Server, R>, SERVERS>,
    requests: Table<VcpuId, TicketMutex<Request, R>, REQUESTS>,
    windows: Table<WindowId, TicketMutex<Window, R>, WINDOWS>,
}

impl<R: RelaxStrategy> Services<R> {
    /// Makes the state before boot.
    pub const fn new() -> Self {
        const fn request<R>() -> TicketMutex<Request, R> {
            TicketMutex::new(Request {
                access: None,
                number: 0,
                answer: None,
            })
        }
        const fn window<R>() -> TicketMutex<Window, R> {
            TicketMutex::new(Window {
                interrupt: Interrupt::QUIET,
                is_closed: true,
                kept: [[0; KEPT_GROUP]; KEPT_WORDS / KEPT_GROUP],
            })
        }
        Self {
            servers: Table::new([const { TicketMutex::new(Server::new()) }; SERVERS]),
            requests: Table::new([const { request() }; REQUESTS]),
            windows: Table::new([const { window() }; WINDOWS]),
        }
    }

    /// Returns the state of a server.
    pub fn server(&self, server: PartitionId) -> &TicketMutex<Server, R> {
        self.servers.of(server)
    }

    /// Returns the access of a vCPU.
    pub fn request(&self, vcpu: VcpuId) -> &TicketMutex<Request, R> {
        self.requests.of(vcpu)
    }

    /// Returns the state of a window.
    pub fn window(&self, window: WindowId) -> &TicketMutex<Window, R> {
        self.windows.of(window)
    }
}
