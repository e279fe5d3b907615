// SPDX-License-Identifier: Apache-2.0
//! A client: its device, and the calls that carry the device.

use crate::back_end::{BackEnd, Remote, begin_line, each};
use crate::store;
use bulkhead_devices::virtio_mmio::{CAUSE_CONFIGURATION, CAUSE_USED, Kept, STATUS};
use bulkhead_guest::hypercall::Handle;
use bulkhead_guest::service::{Access, KeptWords, News};
use bulkhead_guest::startup_page::Window;
use bulkhead_guest::{println, service};
use bulkhead_virtio::server::Served;

/// A client.
pub struct Client {
    window: Window<'static>,
    remote: Remote,
    back_end: Option<BackEnd>,
    /// The registers, as they are kept beside the window.
    kept: KeptWords,
    /// True if the queues may have something.
    is_busy: bool,
    /// The counts at the last report.
    reported: (u64, u64),
    /// Rules that its driver has broken.
    broken: u64,
    was_broken: bool,
}

impl Client {
    /// Makes the client of a window.
    pub fn new(window: &Window<'static>, service: Handle) -> Self {
        let back_end = BackEnd::new(window);
        if back_end.is_none() {
            println!(
                "device-server: no back end of kind {} for {}",
                window.kind, window.client
            );
        }
        Self {
            window: *window,
            remote: Remote {
                service,
                window: window.number,
            },
            back_end,
            kept: KeptWords::default(),
            is_busy: false,
            reported: (0, 0),
            broken: 0,
            was_broken: false,
        }
    }

    /// Returns the number of the window.
    pub fn number(&self) -> u8 {
        self.window.number
    }

    /// Returns the windows to which the client may send frames.
    pub fn reaches(&self) -> u32 {
        self.window.reaches
    }

    /// Returns the device.
    pub fn back_end(&mut self) -> Option<&mut BackEnd> {
        self.back_end.as_mut()
    }

    /// Looks at the queues in the next turn.
    pub fn wake(&mut self) {
        self.is_busy = true;
    }

    /// Takes the news of the window.
    pub fn hear(&mut self, news: &News) {
        let number = self.window.number;
        let is_it = |bits: u64| bits >> number & 1 != 0;
        if is_it(news.clients) {
            self.back_end = BackEnd::new(&self.window);
            self.kept = KeptWords::default();
        } else if is_it(news.anew) {
            self.resume();
        }
        self.is_busy |= is_it(news.notified);
    }

    /// Goes on where the earlier life of this program has ended.
    fn resume(&mut self) {
        let remote = &mut self.remote;
        let Some(back_end) = &mut self.back_end else {
            return;
        };
        self.kept = KeptWords::find(remote.service, remote.window);
        let is_kept = each!(back_end, server => {
            let kept = Kept::from_words(self.kept.words());
            if let Some(kept) = &kept {
                server.resume(kept, remote);
            }
            kept.is_some()
        });
        if let (BackEnd::Block(server), true, true) = (back_end, is_kept, store::is_lost()) {
            server.device().disk().lose();
        }
        if is_kept {
            println!(
                "device-server: {} of {} goes on",
                self.window.service, self.window.client
            );
            self.is_busy = true;
        }
    }

    /// Answers an access.
    pub fn answer(&mut self, access: &Access) {
        let Some(back_end) = &mut self.back_end else {
            let _ = service::answer(self.remote.service, access.number, 0);
            return;
        };
        let remote = self.remote;
        let value = each!(back_end, server => match access.stored {
            None => server.read(access.offset, access.size),
            Some(value) => {
                self.is_busy |= server.write(access.offset, access.size, value);
                // The registers are kept before the driver goes on and believes them.
                self.kept.keep(remote.service, remote.window, &server.keep().to_words());
                0
            }
        });
        if access.stored == Some(0) && access.offset == STATUS {
            let all = CAUSE_USED | CAUSE_CONFIGURATION;
            let _ = service::interrupt(self.remote.service, self.window.number, 0, all);
        }
        let _ = service::answer(self.remote.service, access.number, value);
    }

    /// Serves at most `most` chains. Returns whether there may be more.
    pub fn serve(&mut self, most: u32) -> bool {
        if !self.is_busy {
            return false;
        }
        let remote = &mut self.remote;
        let Some(back_end) = &mut self.back_end else {
            return false;
        };
        let (served, is_broken, causes) = each!(back_end, server => {
            let served = server.serve(remote, most);
            let causes = server.interrupt().causes();
            server.interrupt().acknowledge(causes);
            (served, server.broken().is_some(), causes)
        });
        if causes != 0 {
            let _ = service::interrupt(remote.service, self.window.number, causes, 0);
        }
        self.broken += u64::from(is_broken && !self.was_broken);
        self.was_broken = is_broken;
        self.is_busy = served == Served::Some;
        self.is_busy
    }

    /// Prints what was served, if that has changed.
    pub fn report(&mut self) {
        let Some(back_end) = &mut self.back_end else {
            return;
        };
        let counts = (each!(back_end, server => server.served()), self.broken);
        if counts == self.reported {
            return;
        }
        self.reported = counts;
        let (requests, broken) = counts;
        begin_line();
        let (service, client) = (self.window.service, self.window.client);
        println!("device-server: {service} of {client}: {requests} requests, {broken} broken rules");
    }
}
