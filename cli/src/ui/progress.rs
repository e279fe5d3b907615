// SPDX-License-Identifier: Apache-2.0
//! Tells the user which steps take time.
//!
//! A step that is done in a moment is not worth a line, so a step shows up only once it has taken longer than
//! `PATIENCE`. A second run that has nothing to do is therefore silent by itself. On a terminal the steps
//! under way turn on one line. Elsewhere each step gets a line when it shows up and one when it is done. All
//! of it goes to standard error, so that output can be piped.

use crate::problem::Problem;
use std::io::{IsTerminal, Write, stderr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Steps shorter than this are not shown.
const PATIENCE: Duration = Duration::from_millis(1200);
/// One turn of the indicator.
const TICK: Duration = Duration::from_millis(120);
const INDICATOR: &[char] = &['|', '/', '-', '\\'];

#[derive(Debug)]
struct Step {
    title: String,
    started: Instant,
    shown: bool,
}

#[derive(Debug, Default)]
struct State {
    steps: Vec<Step>,
    turn: usize,
    line_shown: bool,
}

/// Shows steps. Several steps may run at once.
#[derive(Debug)]
pub struct Progress {
    state: Arc<Mutex<State>>,
    ended: Arc<AtomicBool>,
    ticker: Option<JoinHandle<()>>,
    live: bool,
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // A second panic must not hide the cause of the first one.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

impl Progress {
    /// Makes a display of progress on standard error.
    #[must_use]
    pub fn new() -> Self {
        let live = stderr().is_terminal();
        let state = Arc::new(Mutex::new(State::default()));
        let ended = Arc::new(AtomicBool::new(false));
        let (shared, end) = (Arc::clone(&state), Arc::clone(&ended));
        let ticker = std::thread::spawn(move || {
            while !end.load(Ordering::Acquire) {
                locked(&shared).tick(live);
                std::thread::park_timeout(TICK);
            }
        });
        Self {
            state,
            ended,
            ticker: Some(ticker),
            live,
        }
    }

    /// Does `work` as a step named `title`.
    ///
    /// # Errors
    /// The errors of `work`.
    pub fn step<T>(&self, title: &str, work: impl FnOnce() -> Result<T, Problem>) -> Result<T, Problem> {
        let step = Step {
            title: title.to_owned(),
            started: Instant::now(),
            shown: false,
        };
        locked(&self.state).steps.push(step);
        let result = work();
        locked(&self.state).end(title, result.is_ok(), self.live);
        result
    }

    /// Tells whether a step of this title is under way.
    #[cfg(test)]
    pub(crate) fn has(&self, title: &str) -> bool {
        locked(&self.state).steps.iter().any(|step| step.title == title)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Some(ticker) = self.ticker.take() {
            ticker.thread().unpark();
            // The thread cannot fail. If it did, nothing would be left to show.
            let _ = ticker.join();
        }
        locked(&self.state).clear_line();
    }
}

impl State {
    fn tick(&mut self, live: bool) {
        for step in &mut self.steps {
            if !step.shown && step.started.elapsed() >= PATIENCE {
                step.shown = true;
                if !live {
                    say(&format!("bulkhead: {} ...\n", step.title));
                }
            }
        }
        if live {
            self.draw();
        }
    }

    fn draw(&mut self) {
        let titles: Vec<String> = self
            .steps
            .iter()
            .filter(|step| step.shown)
            .map(|step| format!("{} ({} s)", step.title, step.started.elapsed().as_secs()))
            .collect();
        if titles.is_empty() {
            return;
        }
        self.turn = (self.turn + 1) % INDICATOR.len();
        let columns = crate::ui::terminal::columns().unwrap_or(80).saturating_sub(3);
        let line: String = titles.join(", ").chars().take(columns).collect();
        say(&format!("\r\x1b[K{} {line}", INDICATOR[self.turn]));
        self.line_shown = true;
    }

    fn end(&mut self, title: &str, good: bool, live: bool) {
        let Some(index) = self.steps.iter().position(|step| step.title == title) else {
            return;
        };
        let step = self.steps.remove(index);
        if !step.shown {
            return;
        }
        self.clear_line();
        let seconds = step.started.elapsed().as_secs_f32();
        let result = if good { "done" } else { "failed" };
        if live {
            say(&format!("  {title}: {result} ({seconds:.1} s)\n"));
        } else {
            say(&format!("bulkhead: {title}: {result} ({seconds:.1} s)\n"));
        }
    }

    fn clear_line(&mut self) {
        if std::mem::take(&mut self.line_shown) {
            say("\r\x1b[K");
        }
    }
}

/// Shows a text. A display that fails is no reason to stop working.
fn say(text: &str) {
    let _ = stderr().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_return_what_their_work_returns() {
        let progress = Progress::new();
        assert_eq!(progress.step("adding", || Ok(1 + 1)).unwrap(), 2);
        let problem = progress
            .step("failing", || Err::<(), _>(Problem::new("no")))
            .unwrap_err();
        assert_eq!(problem.to_string(), "no");
        assert!(locked(&progress.state).steps.is_empty());
    }
}
