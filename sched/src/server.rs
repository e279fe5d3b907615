// SPDX-License-Identifier: Apache-2.0
//! Budgets of `fixed-priority`: deferrable and sporadic servers.
//!
//! **Deferrable** (Strosnider, Lehoczky and Sha, "The Deferrable Server Algorithm", 1995). Periods are
//! counted from the first time the vCPU is ready. At the start of each period the budget is full. Budget that
//! is not used in a period is lost at the end of the period, and not before: a vCPU that waits keeps its
//! budget. The vCPU may therefore run for two budgets in a row across a boundary. The analysis charges this
//! to the less important vCPUs.
//!
//! **Sporadic** (Sprunt, Sha and Lehoczky, "Aperiodic Task Scheduling for Hard Real-Time Systems", 1989).
//! Each piece of budget comes back one period after the vCPU became ready to use the piece. So the less
//! important vCPUs see no more than a periodic task. The POSIX text of that rule lets budget come back too
//! early and grow. The rules here are from Stanovich, Baker, Wang and Gonzalez Harbour, "Defects of the
//! POSIX Sporadic Server and How to Correct Them", 2010:
//!
//! - The budget is a queue of pieces. The amounts of the pieces always add up to the budget.
//! - A vCPU that becomes ready starts now with all pieces that are due or become due while the first is used.
//!   It never starts with the time of an earlier activation.
//! - Used time goes to the end of the queue. It is due one period after the piece it was taken from.
//! - Overruns are taken from the next pieces.
//!
//! The queue is short. When the queue is full, used time is joined with the last piece at the later of the
//! two times. If a vCPU blocks more often than that in a period, its budget may come late, and never early.
//!
//! Both servers are hard: without budget a vCPU does not run. A budget of the whole period is no limit.
//! Everything is O(1): the queue has at most [`PIECES`] entries.

use crate::{PolicyError, Server, ServerKind, Ticks};

/// Largest number of pieces into which a sporadic budget can be divided.
pub const PIECES: usize = 4;

/// The time that a vCPU may still use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Budget {
    /// The vCPU may use all time.
    Unlimited,
    /// The budget of a deferrable server. See the head of this file.
    Deferrable(Deferrable),
    /// The budget of a sporadic server. See the head of this file.
    Sporadic(Sporadic),
}

impl Budget {
    /// Returns the budget of a manifest.
    pub fn new(server: Option<Server>) -> Result<Self, PolicyError> {
        let Some(Server { budget, period, kind }) = server else {
            return Ok(Self::Unlimited);
        };
        if budget == 0 || budget > period || kind == ServerKind::ConstantBandwidth {
            return Err(PolicyError::BadParameter);
        }
        if budget == period {
            return Ok(Self::Unlimited);
        }
        Ok(match kind {
            ServerKind::Deferrable => Self::Deferrable(Deferrable {
                budget,
                period,
                left: budget,
                debt: 0,
                boundary: Ticks::MAX,
            }),
            ServerKind::Sporadic | ServerKind::ConstantBandwidth => {
                Self::Sporadic(Sporadic::new(budget, period))
            }
        })
    }

    /// Takes note that the vCPU becomes ready.
    pub fn activate(&mut self, now: Ticks) {
        match self {
            Self::Unlimited => {}
            Self::Deferrable(server) => server.activate(now),
            Self::Sporadic(server) => server.activate(now),
        }
    }

    /// Takes note that the vCPU is no longer ready.
    pub fn deactivate(&mut self) {
        if let Self::Sporadic(server) = self {
            server.deactivate();
        }
    }

    /// Returns the time since when, or from when on, there is budget.
    pub fn available_from(&mut self, now: Ticks) -> Ticks {
        match self {
            Self::Unlimited => 0,
            Self::Deferrable(server) => server.available_from(now),
            Self::Sporadic(server) => server.pieces[0].due,
        }
    }

    /// Returns the time at which the budget ends if the vCPU runs from now on. Requires: there is budget.
    pub fn lasts_until(&mut self, now: Ticks) -> Ticks {
        match self {
            Self::Unlimited => Ticks::MAX,
            Self::Deferrable(server) => {
                server.refresh(now);
                server.lasts_until(now)
            }
            Self::Sporadic(server) => server.lasts_until(now),
        }
    }

    /// Takes note that the vCPU ran for `ran` ticks up to `now`.
    pub fn charge(&mut self, ran: Ticks, now: Ticks) {
        match self {
            Self::Unlimited => {}
            Self::Deferrable(server) => server.charge(ran, now),
            Self::Sporadic(server) => server.charge(ran),
        }
    }
}

/// A deferrable server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Deferrable {
    budget: Ticks,
    period: Ticks,
    left: Ticks,
    /// The time that was used beyond the budget, because the hypervisor came late.
    debt: Ticks,
    /// Start of the next period. It is never before the first activation.
    boundary: Ticks,
}

impl Deferrable {
    const fn activate(&mut self, now: Ticks) {
        if self.boundary == Ticks::MAX {
            self.boundary = now.saturating_add(self.period);
        }
        self.refresh(now);
    }

    /// Starts the periods that are due. Missed periods pay back the debt.
    const fn refresh(&mut self, now: Ticks) {
        let Some(late) = now.checked_sub(self.boundary) else {
            return;
        };
        let Some(missed) = late.checked_div(self.period) else {
            return;
        };
        let periods = missed.saturating_add(1);
        self.boundary = self.boundary.saturating_add(periods.saturating_mul(self.period));
        self.debt = self.debt.saturating_sub(missed.saturating_mul(self.budget));
        self.left = self.budget;
        let debt = self.debt;
        self.debt = 0;
        self.take(debt);
    }

    const fn take(&mut self, ran: Ticks) {
        self.debt = self.debt.saturating_add(ran.saturating_sub(self.left));
        self.left = self.left.saturating_sub(ran);
    }

    const fn available_from(&mut self, now: Ticks) -> Ticks {
        self.refresh(now);
        if self.left == 0 { self.boundary } else { 0 }
    }

    const fn lasts_until(&self, now: Ticks) -> Ticks {
        let end = now.saturating_add(self.left);
        if end < self.boundary {
            return end;
        }
        // The budget is full again before it is empty.
        self.boundary.saturating_add(self.budget)
    }

    fn charge(&mut self, ran: Ticks, now: Ticks) {
        let after = now.saturating_sub(self.boundary).min(ran);
        self.take(ran.saturating_sub(after));
        if after > 0 {
            self.refresh(self.boundary);
            self.take(after);
        }
        self.refresh(now);
    }
}

/// A piece of a sporadic server's budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Piece {
    /// The time since when, or from when on, the piece can be used.
    due: Ticks,
    amount: Ticks,
}

const NO_PIECE: Piece = Piece { due: 0, amount: 0 };

/// A sporadic server.
///
/// Invariants:
///
/// - 1 <= count <= PIECES.
/// - The amounts add up to the budget.
/// - Pieces are in the order of `due`, and the last is due at most a period after the first.
/// - `used` is less than the first amount.
/// - Entries after the last are `NO_PIECE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sporadic {
    budget: Ticks,
    period: Ticks,
    /// The time that has been used of the first piece since the activation.
    used: Ticks,
    pieces: [Piece; PIECES],
    count: u8,
}

impl Sporadic {
    fn new(budget: Ticks, period: Ticks) -> Self {
        let mut pieces = [NO_PIECE; PIECES];
        pieces[0].amount = budget;
        Self {
            budget,
            period,
            used: 0,
            pieces,
            count: 1,
        }
    }

    fn activate(&mut self, now: Ticks) {
        if self.pieces[0].due > now {
            return;
        }
        let mut first = self.pieces[0].amount;
        let mut gone = 1;
        for piece in self.pieces.iter().take(usize::from(self.count)).skip(1) {
            if piece.due > now.saturating_add(first) {
                break;
            }
            first = first.saturating_add(piece.amount);
            gone = u8::saturating_add(gone, 1);
        }
        // The joined pieces move out at the front, and the first piece moves back in.
        for _ in 1..gone {
            self.pop();
        }
        self.pieces[0] = Piece {
            due: now,
            amount: first,
        };
    }

    fn deactivate(&mut self) {
        if self.used == 0 {
            return;
        }
        let used = Piece {
            due: self.pieces[0].due.saturating_add(self.period),
            amount: self.used,
        };
        self.pieces[0].amount = self.pieces[0].amount.saturating_sub(self.used);
        self.used = 0;
        self.push(used);
    }

    fn lasts_until(&self, now: Ticks) -> Ticks {
        let mut end = now
            .saturating_add(self.pieces[0].amount)
            .saturating_sub(self.used);
        for piece in self.pieces.iter().take(usize::from(self.count)).skip(1) {
            if piece.due > end {
                break;
            }
            end = end.saturating_add(piece.amount);
        }
        end
    }

    fn charge(&mut self, ran: Ticks) {
        self.used = self.used.saturating_add(ran);
        // A whole budget uses each piece once.
        let rounds = self.used.checked_div(self.budget).unwrap_or(0);
        if rounds > 0 {
            self.used = self.used.saturating_sub(rounds.wrapping_mul(self.budget));
            let later = rounds.saturating_mul(self.period);
            for piece in self.pieces.iter_mut().take(usize::from(self.count)) {
                piece.due = piece.due.saturating_add(later);
            }
        }
        for _ in 0..PIECES {
            let first = self.pieces[0];
            if self.used < first.amount {
                break;
            }
            self.used = self.used.saturating_sub(first.amount);
            self.pop();
            self.push(Piece {
                due: first.due.saturating_add(self.period),
                amount: first.amount,
            });
        }
    }

    /// Takes out the first piece.
    fn pop(&mut self) {
        self.pieces[0] = NO_PIECE;
        self.pieces.rotate_left(1);
        self.count = self.count.saturating_sub(1);
    }

    /// Adds a piece at the end. The piece is not due before the last one.
    fn push(&mut self, piece: Piece) {
        let count = usize::from(self.count);
        if let Some(last) = count.checked_sub(1).and_then(|last| self.pieces.get_mut(last)) {
            let is_seamless = piece.due <= last.due.saturating_add(last.amount);
            if is_seamless || count == PIECES {
                if !is_seamless {
                    last.due = piece.due;
                }
                last.amount = last.amount.saturating_add(piece.amount);
                return;
            }
        }
        if let Some(free) = self.pieces.get_mut(count) {
            *free = piece;
            self.count = self.count.saturating_add(1);
        }
    }
}
