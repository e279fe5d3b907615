// SPDX-License-Identifier: Apache-2.0
//! Waits: the reasons why a vCPU is blocked.
//!
//! **Model.** A wait is one value, a struct of the feature that has the wait. It is small, because each slot
//! of a pCPU has room for one ([`crate::local`]). The two times that end a wait are the same for all and are
//! beside it ([`Pause`]).
//!
//! **Verbs.** The kernel asks a wait four things (`wait::verbs`): its outcome, what its deadline means, to
//! give up, and to leave when its partition stops. Each feature has the verbs of its own waits, so the rest
//! of the kernel names no wait but by them. A new wait is a struct and its verbs in the folder of the
//! feature, a variant here, and a line in `wait::verbs`. A build that lacks a part has no value of such a
//! variant (`crate::parts::If`).

pub(crate) mod verbs;

use crate::event::EventWait;
use crate::lock::LockWait;
pub use crate::outcome::Outcome;
use crate::parts::{If, Is, LOCKS, PORTS, Presence, SERVICES};
use crate::port::{MessageWait, ReplyWait};
use crate::service::AccessWait;
use crate::time::SleepWait;
use bulkhead_abi::Error;
use bulkhead_arch_api::Ticks;

/// The thing that a vCPU waits for. It is aligned so that one instruction writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(4))]
pub enum Wait {
    /// Events of a gate.
    Events(EventWait),
    /// A time.
    Sleep(SleepWait),
    /// A message.
    Message(If<PORTS, MessageWait>),
    /// The reply to a call.
    Reply(If<PORTS, ReplyWait>),
    /// A lock.
    Lock(If<LOCKS, LockWait>),
    /// The answer to an access.
    Access(If<SERVICES, AccessWait>),
}

/// Makes a [`Wait`] of each kind of wait that belongs to a part. A build without the part has no command that
/// waits so; there the wait would have no end but its deadline.
macro_rules! waits_of_parts {
    ($($has:ident: $variant:ident($wait:ident);)*) => {
        $(
            impl From<$wait> for Wait {
                #[inline(always)]
                fn from(wait: $wait) -> Self {
                    let lacking = Self::Sleep(SleepWait { index: 0 });
                    Is::<$has>::make(|| Ok(wait), lacking).map_or_else(|lacking| lacking, Self::$variant)
                }
            }
        )*
    };
}

waits_of_parts! {
    PORTS: Message(MessageWait);
    PORTS: Reply(ReplyWait);
    LOCKS: Lock(LockWait);
    SERVICES: Access(AccessWait);
}

/// The wait of a blocked vCPU, and the two times that end it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// The deadline of the wait itself.
    pub until: Ticks,
    /// The time of the vCPU's own timer, which interrupts the wait. `NEVER` for a wait that no interrupt
    /// ends.
    pub timer: Ticks,
    /// The thing that the vCPU waits for.
    pub wait: Wait,
}

const _: () = assert!(
    size_of::<Pause>() == 24,
    "a wait has at most 8 bytes, so that the place of a slot stays small"
);

impl Pause {
    /// Returns the time at which the wait ends if nothing else ends it.
    #[must_use]
    pub const fn deadline(self) -> Ticks {
        if self.timer.0 < self.until.0 {
            self.timer
        } else {
            self.until
        }
    }

    /// Returns the error that a wait ends with whose time has come by `now`: the time of its own deadline, or
    /// of the timer.
    pub(crate) const fn late_error(self, now: Ticks) -> Error {
        if self.until.0 <= now.0 {
            Error::TimedOut
        } else {
            Error::Interrupted
        }
    }
}
