// SPDX-License-Identifier: Apache-2.0
//! The life cycle of a partition whose vCPUs are spread over several pCPUs.
//!
//! ```text
//!            start                    loaded
//! Stopped ----------> Loading --------------------> Running
//! Failed                 |                             |
//!    ^                   +------> Stopping <-----------+   stop, restart, fault
//!    |                               |
//!    +------- last confirmation -----+----> Loading (restart)
//! ```
//!
//! Each partition has one small control block with a lock of its own. The lock is held for a bounded number
//! of instructions. No pCPU ever waits for another one. A request changes the block and says which pCPUs must
//! be told. Each of these pCPUs takes the vCPUs of the partition off its policy at its next decision, and
//! confirms. The last confirmation moves the block on. A stale message (load me, start me) finds a block that
//! is not in the state that the message needs, and does nothing.
//!
//! **Precedence.** While a partition is being stopped, one of its vCPUs may run on for a moment on another
//! pCPU. The wishes and faults of that vCPU change nothing any more. Otherwise the partition could end its
//! own stop, or get around its restart limit. Only a failure still counts, and only a capability holder has
//! the last word.
//!
//! **Cold or warm.** A cold start loads memory. A warm start leaves memory alone. A warm start needs memory
//! that an earlier start has loaded to the end, with the payloads that are wanted now. Otherwise the start is
//! cold, and says so. The wanted payloads are the payloads of the chosen *alternative*. A start or restart
//! that names an alternative chooses it. Every other start keeps the choice.
//!
//! The pCPU of vCPU 0 (the *home* pCPU) does the loading, in the time that the policy gives to that vCPU. So
//! a partition that restarts for ever spends its own time on loading ([`crate::load`]).
//!
//! A stop needs no message to a pCPU on which no vCPU of the partition is on. This is more than a saving. A
//! partition that restarts as fast as it can cannot interrupt a pCPU on which its vCPUs never got to run.

use crate::mailbox::bits;
use bulkhead_abi::status::StartWord;
use bulkhead_abi::{Error, PartitionState, StartCause, StartMode};
use bulkhead_arch_api::{CpuOnResult, CpuPower, GuestPhys, MAX_VCPUS_PER_PARTITION, PcpuId};

/// The manner in which a partition is to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Launch {
    /// The state of memory that the partition is to find.
    pub mode: StartMode,
    /// The payloads that the partition is to run from now on. `None`: the payloads that it has.
    pub alternative: Option<u8>,
    /// The cause of the start.
    pub cause: StartCause,
}

impl Launch {
    /// Makes a launch with the payloads that the partition has.
    #[must_use]
    pub const fn again(mode: StartMode, cause: StartCause) -> Self {
        Self {
            mode,
            alternative: None,
            cause,
        }
    }
}

/// A wish about the life cycle of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Load and run the partition.
    Start(Launch),
    /// End the partition: a capability holder wishes so.
    Stop,
    /// End the partition: the partition itself wishes so.
    Off,
    /// End the partition: a health action demands so.
    Fail,
    /// End the partition, load it again and run it.
    Restart(Launch),
}

impl Request {
    /// Tells whether the request has its origin in the partition itself: a wish or a health event of its own.
    const fn is_from_inside(self) -> bool {
        match self {
            Self::Start(launch) | Self::Restart(launch) => {
                matches!(launch.cause, StartCause::Own | StartCause::Health(_))
            }
            Self::Off => true,
            Self::Stop | Self::Fail => false,
        }
    }
}

/// A set of pCPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PcpuSet(pub u8);

impl PcpuSet {
    /// No pCPU.
    pub const EMPTY: Self = Self(0);

    /// Returns the set of `pcpu` only.
    #[must_use]
    pub const fn of(pcpu: PcpuId) -> Self {
        Self(1_u8.rotate_left(pcpu.0 as u32))
    }

    /// Tells whether there is no member.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the members of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the members.
    pub fn iter(self) -> impl Iterator<Item = PcpuId> {
        bits(u32::from(self.0)).map(PcpuId)
    }
}

/// The duties of the caller after a change of the control block. The caller lets the lock go before it does
/// its duties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Effects {
    /// The pCPUs that must be told to stop the partition.
    pub stop: PcpuSet,
    /// True if the home pCPU must be told to load the partition.
    pub load: bool,
    /// True if the load is the second half of a restart.
    pub restarted: bool,
    /// The present state of the partition, if the state changed.
    pub entered: Option<PartitionState>,
}

/// The pCPUs that the vCPUs of a partition are bound to. The binding is constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Homes {
    count: u8,
    pcpus: [u8; MAX_VCPUS_PER_PARTITION],
}

impl Homes {
    /// No vCPU yet.
    pub const NONE: Self = Self {
        count: 0,
        pcpus: [0; MAX_VCPUS_PER_PARTITION],
    };

    /// Adds the next vCPU. A vCPU too many is ignored (the image check has refused it).
    pub fn push(&mut self, pcpu: PcpuId) {
        if let Some(entry) = self.pcpus.get_mut(usize::from(self.count)) {
            *entry = pcpu.0;
            self.count = self.count.saturating_add(1);
        }
    }

    /// Returns the pCPU of vCPU 0.
    #[must_use]
    pub fn home(&self) -> PcpuId {
        PcpuId(self.pcpus.first().copied().unwrap_or(0))
    }
}

/// The state of one vCPU within the control block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Power {
    state: CpuPower,
    entry: GuestPhys,
    argument: u64,
}

/// The control block.
#[derive(Debug)]
pub struct Control {
    state: PartitionState,
    /// The state that `Stopping` leads to.
    after: PartitionState,
    /// The manner of the start, where `Stopping` leads to `Loading`.
    next: (StartMode, StartCause),
    /// The payloads to run from the next start on.
    chosen: u8,
    /// The payloads whose complete copies are in memory, even if the partition has changed the copies since.
    contents: Option<u8>,
    /// The present start, or the last one.
    start: StartWord,
    /// The pCPUs that have not yet confirmed the stop.
    unconfirmed: PcpuSet,
    power: [Power; MAX_VCPUS_PER_PARTITION],
}

impl Default for Control {
    fn default() -> Self {
        Self::new()
    }
}

impl Control {
    /// Makes the control block of a partition that has never been started.
    pub const fn new() -> Self {
        const OFF: Power = Power {
            state: CpuPower::Off,
            entry: GuestPhys(0),
            argument: 0,
        };
        Self {
            state: PartitionState::Stopped,
            after: PartitionState::Stopped,
            next: (StartMode::Cold, StartCause::Boot),
            chosen: 0,
            contents: None,
            start: StartWord {
                mode: StartMode::Cold,
                cause: StartCause::Boot,
                alternative: 0,
                starts: 0,
            },
            unconfirmed: PcpuSet::EMPTY,
            power: [OFF; MAX_VCPUS_PER_PARTITION],
        }
    }

    /// Returns the life cycle state.
    pub const fn state(&self) -> PartitionState {
        self.state
    }

    /// Returns the manner and the cause of the partition's start. A start that is under way counts already.
    pub const fn start(&self) -> StartWord {
        self.start
    }

    /// Applies a request.
    ///
    /// # Errors
    /// [`Error::WrongState`] for a start of a started partition, or a stop of a stopped partition.
    pub fn request(&mut self, request: Request, homes: &Homes) -> Result<Effects, Error> {
        use PartitionState::{Failed, Loading, Running, Stopped, Stopping};
        match (self.state, request) {
            (Stopped | Failed, Request::Start(launch) | Request::Restart(launch)) => {
                self.plan(launch);
                Ok(self.enter_loading())
            }
            (Stopped | Failed, Request::Stop | Request::Off | Request::Fail)
            | (Loading | Running, Request::Start(_)) => Err(Error::WrongState),
            (Stopping, _) if request.is_from_inside() => Ok(Effects::default()),
            // A failure is remembered even if it comes while the partition is already being stopped.
            // Otherwise the last word counts.
            (Stopping, Request::Stop) if self.after == Failed => Ok(Effects::default()),
            (Stopping, Request::Start(_)) if self.after == Loading => Err(Error::WrongState),
            (Stopping, _) => {
                self.after = self.target(request);
                Ok(Effects::default())
            }
            (Loading | Running, _) => {
                let after = self.target(request);
                Ok(self.enter_stopping(after, homes))
            }
        }
    }

    /// Notes that the pCPU has taken the partition's vCPUs out of its policy.
    pub fn confirm_stop(&mut self, pcpu: PcpuId) -> Effects {
        if self.state != PartitionState::Stopping {
            return Effects::default();
        }
        self.unconfirmed = PcpuSet(self.unconfirmed.0 & !PcpuSet::of(pcpu).0);
        if self.unconfirmed.is_empty() {
            self.leave_stopping()
        } else {
            Effects::default()
        }
    }

    /// Notes that the memory is ready: vCPU 0 goes on. Returns `None` if the partition has meanwhile been
    /// stopped.
    pub fn loaded(&mut self) -> Option<Effects> {
        if self.state != PartitionState::Loading {
            return None;
        }
        self.state = PartitionState::Running;
        self.contents = Some(self.start.alternative);
        self.start.starts = self.start.starts.saturating_add(1);
        if let Some(first) = self.power.first_mut() {
            first.state = CpuPower::On;
        }
        Some(Effects {
            entered: Some(self.state),
            ..Effects::default()
        })
    }

    /// Orders vCPU `index` to be switched on, because a vCPU asks for this. If the answer is `Started`, the
    /// pCPU of vCPU `index` must be told.
    pub fn switch_on(&mut self, index: u8, entry: GuestPhys, argument: u64) -> CpuOnResult {
        let running = self.state == PartitionState::Running;
        match self.power.get_mut(usize::from(index)) {
            Some(power) if running && power.state == CpuPower::Off => {
                *power = Power {
                    state: CpuPower::OnPending,
                    entry,
                    argument,
                };
                CpuOnResult::Started
            }
            Some(power) if power.state == CpuPower::On => CpuOnResult::AlreadyOn,
            // A partition on its way out gets an answer that it will not see.
            _ => CpuOnResult::Pending,
        }
    }

    /// Switches vCPU `index` on, for its pCPU. Returns the entry and the argument of the vCPU, or `None` if
    /// the start is wanted no more.
    pub fn take_start(&mut self, index: u8) -> Option<(GuestPhys, u64)> {
        if self.state != PartitionState::Running {
            return None;
        }
        let power = self.power.get_mut(usize::from(index))?;
        if power.state != CpuPower::OnPending {
            return None;
        }
        power.state = CpuPower::On;
        Some((power.entry, power.argument))
    }

    /// Notes that vCPU `index` has switched itself off. With the last vCPU off, the partition is at its end,
    /// because nothing inside can switch a vCPU on again.
    pub fn switch_off(&mut self, index: u8) -> Effects {
        if let Some(power) = self.power.get_mut(usize::from(index)) {
            power.state = CpuPower::Off;
        }
        if self.state == PartitionState::Running
            && self.power.iter().all(|power| power.state == CpuPower::Off)
        {
            self.state = PartitionState::Stopped;
            return Effects {
                entered: Some(self.state),
                ..Effects::default()
            };
        }
        Effects::default()
    }

    /// Returns the power state of vCPU `index`.
    pub fn power(&self, index: u8) -> CpuPower {
        self.power
            .get(usize::from(index))
            .map_or(CpuPower::Off, |power| power.state)
    }

    const fn target(&mut self, request: Request) -> PartitionState {
        match request {
            Request::Start(launch) | Request::Restart(launch) => {
                self.plan(launch);
                PartitionState::Loading
            }
            Request::Stop | Request::Off => PartitionState::Stopped,
            Request::Fail => PartitionState::Failed,
        }
    }

    const fn plan(&mut self, launch: Launch) {
        self.next = (launch.mode, launch.cause);
        if let Some(alternative) = launch.alternative {
            self.chosen = alternative;
        }
    }

    fn enter_loading(&mut self) -> Effects {
        self.state = PartitionState::Loading;
        let (wanted, cause) = self.next;
        let mode = match wanted {
            StartMode::Warm if self.contents == Some(self.chosen) => StartMode::Warm,
            _ => {
                self.contents = None;
                StartMode::Cold
            }
        };
        self.start = StartWord {
            mode,
            cause,
            alternative: self.chosen,
            starts: self.start.starts,
        };
        Effects {
            load: true,
            entered: Some(self.state),
            ..Effects::default()
        }
    }

    fn enter_stopping(&mut self, after: PartitionState, homes: &Homes) -> Effects {
        let mut stop = PcpuSet::EMPTY;
        if self.state == PartitionState::Loading {
            stop = PcpuSet::of(homes.home());
        }
        for (power, pcpu) in self.power.iter_mut().zip(homes.pcpus) {
            if power.state == CpuPower::On {
                stop = stop.union(PcpuSet::of(PcpuId(pcpu)));
            }
            power.state = CpuPower::Off;
        }
        self.state = PartitionState::Stopping;
        self.after = after;
        self.unconfirmed = stop;
        if stop.is_empty() {
            return self.leave_stopping();
        }
        Effects {
            stop,
            entered: Some(self.state),
            ..Effects::default()
        }
    }

    fn leave_stopping(&mut self) -> Effects {
        if self.after == PartitionState::Loading {
            return Effects {
                restarted: true,
                ..self.enter_loading()
            };
        }
        self.state = self.after;
        Effects {
            entered: Some(self.state),
            ..Effects::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Request = Request::Start(Launch::again(StartMode::Cold, StartCause::Supervisor));
    const RESTART: Request = Request::Restart(Launch::again(StartMode::Cold, StartCause::Own));
    const OVERRULE: Request = Request::Restart(Launch::again(StartMode::Cold, StartCause::Supervisor));
    const WARM: Launch = Launch::again(StartMode::Warm, StartCause::Supervisor);

    fn homes() -> Homes {
        let mut homes = Homes::default();
        homes.push(PcpuId(1));
        homes.push(PcpuId(2));
        homes
    }

    fn running() -> Control {
        let mut control = Control::new();
        let effects = control.request(START, &homes()).unwrap();
        assert_eq!(
            effects,
            Effects {
                load: true,
                entered: Some(PartitionState::Loading),
                ..Effects::default()
            }
        );
        assert_eq!(control.loaded().unwrap().entered, Some(PartitionState::Running));
        control
    }

    #[test]
    fn only_pcpus_with_a_vcpu_that_is_on_are_told_to_stop() {
        let mut control = running();
        let effects = control.request(Request::Stop, &homes()).unwrap();
        assert_eq!(effects.stop, PcpuSet::of(PcpuId(1)));
        assert_eq!(
            control.confirm_stop(PcpuId(1)).entered,
            Some(PartitionState::Stopped)
        );
    }

    #[test]
    fn the_last_confirmation_decides() {
        let mut control = running();
        assert_eq!(control.switch_on(1, GuestPhys(16), 5), CpuOnResult::Started);
        assert_eq!(control.switch_on(1, GuestPhys(16), 5), CpuOnResult::Pending);
        assert_eq!(control.take_start(1), Some((GuestPhys(16), 5)));
        assert_eq!(control.switch_on(1, GuestPhys(16), 5), CpuOnResult::AlreadyOn);
        let effects = control.request(RESTART, &homes()).unwrap();
        assert_eq!(effects.stop, PcpuSet(0b110));
        assert_eq!(control.confirm_stop(PcpuId(2)), Effects::default());
        assert_eq!(control.power(1), CpuPower::Off);
        let effects = control.confirm_stop(PcpuId(1));
        assert!(effects.load && effects.restarted);
        assert_eq!(control.state(), PartitionState::Loading);
    }

    #[test]
    fn a_pending_start_is_cancelled_without_a_message() {
        let mut control = running();
        assert_eq!(control.switch_on(1, GuestPhys(0), 0), CpuOnResult::Started);
        assert_eq!(
            control.request(Request::Stop, &homes()).unwrap().stop,
            PcpuSet::of(PcpuId(1))
        );
        assert_eq!(control.take_start(1), None);
    }

    #[test]
    fn the_last_word_counts_but_a_failure_stays_one() {
        let mut control = running();
        control.request(RESTART, &homes()).unwrap();
        assert_eq!(control.request(START, &homes()), Err(Error::WrongState));
        control.request(Request::Fail, &homes()).unwrap();
        control.request(Request::Stop, &homes()).unwrap();
        assert_eq!(
            control.confirm_stop(PcpuId(1)).entered,
            Some(PartitionState::Failed)
        );
        assert_eq!(control.request(Request::Stop, &homes()), Err(Error::WrongState));
        assert!(control.request(START, &homes()).unwrap().load);
    }

    #[test]
    fn a_partition_cannot_overrule_its_own_end() {
        let class = bulkhead_abi::HealthClass::Memory;
        let wishes = [
            RESTART,
            Request::Restart(Launch::again(StartMode::Warm, StartCause::Health(class))),
            Request::Start(Launch::again(StartMode::Warm, StartCause::Own)),
            Request::Off,
        ];
        let ends = [
            (Request::Stop, PartitionState::Stopped),
            (Request::Off, PartitionState::Stopped),
            (Request::Fail, PartitionState::Failed),
            (OVERRULE, PartitionState::Loading),
        ];
        for (end, state) in ends {
            let mut control = running();
            control.request(end, &homes()).unwrap();
            for wish in wishes {
                assert_eq!(
                    control.request(wish, &homes()),
                    Ok(Effects::default()),
                    "{end:?} {wish:?}"
                );
            }
            assert_eq!(
                control.confirm_stop(PcpuId(1)).entered,
                Some(state),
                "after {end:?}"
            );
            if state == PartitionState::Loading {
                assert_eq!(
                    (control.start().mode, control.start().cause),
                    (StartMode::Cold, StartCause::Supervisor)
                );
            }
        }
        let mut control = running();
        control.request(Request::Fail, &homes()).unwrap();
        control.request(OVERRULE, &homes()).unwrap();
        assert!(
            control.confirm_stop(PcpuId(1)).load,
            "a capability holder has the last word"
        );
    }

    #[test]
    fn a_stop_while_loading_wins() {
        let mut control = Control::new();
        control.request(START, &homes()).unwrap();
        control.request(Request::Stop, &homes()).unwrap();
        assert_eq!(control.loaded(), None);
        assert_eq!(
            control.confirm_stop(PcpuId(1)).entered,
            Some(PartitionState::Stopped)
        );
    }

    #[test]
    fn with_its_last_vcpu_off_a_partition_is_stopped() {
        let mut control = running();
        assert_eq!(control.switch_on(1, GuestPhys(0), 0), CpuOnResult::Started);
        assert_eq!(control.switch_off(0), Effects::default());
        assert_eq!(control.power(1), CpuPower::OnPending);
        assert!(control.take_start(1).is_some());
        assert_eq!(control.switch_off(1).entered, Some(PartitionState::Stopped));
    }

    /// Ends a running partition and starts it again.
    fn restart(control: &mut Control, launch: Launch) -> StartWord {
        control.request(Request::Restart(launch), &homes()).unwrap();
        control.confirm_stop(PcpuId(1));
        assert!(control.loaded().is_some());
        control.start()
    }

    #[test]
    fn a_warm_start_needs_memory_that_was_loaded() {
        let mut control = Control::new();
        control.request(Request::Start(WARM), &homes()).unwrap();
        assert_eq!(control.start().mode, StartMode::Cold, "nothing was there");
        control.request(Request::Restart(WARM), &homes()).unwrap();
        control.confirm_stop(PcpuId(1));
        assert_eq!(control.start().mode, StartMode::Cold, "loading had not ended");
        control.loaded().unwrap();
        let start = restart(&mut control, WARM);
        assert_eq!(
            (start.mode, start.cause, start.starts),
            (StartMode::Warm, StartCause::Supervisor, 2)
        );
        control.request(Request::Fail, &homes()).unwrap();
        control.confirm_stop(PcpuId(1));
        control.request(Request::Start(WARM), &homes()).unwrap();
        assert_eq!(
            control.start().mode,
            StartMode::Warm,
            "a failure leaves memory alone"
        );
    }

    #[test]
    fn an_alternative_is_kept_until_another_is_named() {
        let mut control = running();
        let other = Launch {
            alternative: Some(2),
            ..WARM
        };
        let start = restart(&mut control, other);
        assert_eq!(
            (start.mode, start.alternative),
            (StartMode::Cold, 2),
            "other payloads"
        );
        let start = restart(&mut control, WARM);
        assert_eq!((start.mode, start.alternative), (StartMode::Warm, 2));
        let start = restart(&mut control, Launch::default());
        assert_eq!((start.mode, start.alternative), (StartMode::Cold, 2));
        control.request(Request::Restart(other), &homes()).unwrap();
        control
            .request(
                Request::Restart(Launch {
                    alternative: Some(0),
                    ..WARM
                }),
                &homes(),
            )
            .unwrap();
        control.request(Request::Restart(WARM), &homes()).unwrap();
        control.confirm_stop(PcpuId(1));
        let start = control.start();
        assert_eq!((start.mode, start.alternative), (StartMode::Cold, 0));
    }
}
