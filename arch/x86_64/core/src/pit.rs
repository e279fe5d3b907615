// SPDX-License-Identifier: Apache-2.0
//! An 8254 interval timer with port 0x61 of a PC (Intel 231164-005). Time is in its own ticks.
//!
//! Modes 0 and 4 count once, modes 2 and 3 for ever; modes 1 and 5, which a gate starts, are modes of counter
//! 2 alone. BCD is not there: the counter is binary then too.

/// First port.
pub const PORT: u64 = 0x40;
/// The port of the speaker: gate and output of counter 2.
pub const SPEAKER: u64 = 0x61;

/// The least ticks between two interrupts of counter 0, 10 us: a machine with shorter ones would do nothing
/// but take them.
const SHORTEST: u64 = 12;

/// The bytes of a count that a port takes or gives in turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Access {
    Low,
    High,
    #[default]
    Both,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    mode: u8,
    access: Access,
    /// Counts from 65536 if 0.
    reload: u16,
    /// The low byte of a count of which the high one has not come yet.
    low: Option<u8>,
    /// The high byte is read next.
    reads_high: bool,
    latch: Option<u16>,
    status: Option<u8>,
    /// A count has been written since the mode was.
    is_running: bool,
    started: u64,
    /// Edges of the output that were told.
    told: u64,
}

impl Counter {
    const fn period(&self) -> u64 {
        if self.reload == 0 {
            0x1_0000
        } else {
            self.reload as u64
        }
    }

    const fn repeats(&self) -> bool {
        matches!(self.mode, 2 | 3)
    }

    const fn elapsed(&self, now: u64) -> u64 {
        now.saturating_sub(self.started)
    }

    fn count(&self, now: u64) -> u16 {
        if !self.is_running {
            return self.reload;
        }
        let period = self.period();
        let elapsed = self.elapsed(now);
        let phase = elapsed.checked_rem(period).unwrap_or(0);
        match self.mode {
            2 => period.wrapping_sub(phase) as u16,
            // It counts by two.
            3 => period.wrapping_sub(phase.wrapping_mul(2).checked_rem(period).unwrap_or(0)) as u16,
            _ => period.wrapping_sub(elapsed) as u16,
        }
    }

    fn output(&self, now: u64) -> bool {
        if !self.is_running {
            return self.mode != 0;
        }
        let period = self.period();
        let elapsed = self.elapsed(now);
        let phase = elapsed.checked_rem(period).unwrap_or(0);
        match self.mode {
            2 => phase.wrapping_add(1) != period,
            3 => phase < period.div_ceil(2),
            _ => elapsed >= period,
        }
    }

    /// Rising edges of the output until now.
    fn edges(&self, now: u64) -> u64 {
        if !self.is_running {
            return 0;
        }
        let elapsed = self.elapsed(now);
        if self.repeats() {
            elapsed.checked_div(self.period()).unwrap_or(0)
        } else {
            u64::from(elapsed >= self.period())
        }
    }

    fn start(&mut self, now: u64) {
        self.is_running = true;
        self.started = now;
        self.told = 0;
    }

    fn write(&mut self, value: u8, now: u64) {
        let count = match (self.access, self.low) {
            (Access::Low, _) => u16::from(value),
            (Access::High, _) => u16::from(value) << 8,
            (Access::Both, Some(low)) => u16::from_le_bytes([low, value]),
            (Access::Both, None) => {
                self.low = Some(value);
                return;
            }
        };
        self.low = None;
        self.reload = count;
        self.start(now);
    }

    fn read(&mut self, now: u64) -> u8 {
        if let Some(status) = self.status.take() {
            return status;
        }
        let [low, high] = self.latch.unwrap_or_else(|| self.count(now)).to_le_bytes();
        match self.access {
            Access::Low => {
                self.latch = None;
                low
            }
            Access::High => {
                self.latch = None;
                high
            }
            Access::Both if self.reads_high => {
                self.reads_high = false;
                self.latch = None;
                high
            }
            Access::Both => {
                self.reads_high = true;
                low
            }
        }
    }

    fn latch_count(&mut self, now: u64) {
        if self.latch.is_none() {
            self.latch = Some(self.count(now));
        }
    }

    fn latch_status(&mut self, now: u64) {
        let access = match self.access {
            Access::Low => 1,
            Access::High => 2,
            Access::Both => 3,
        };
        let output = u8::from(self.output(now));
        self.status = Some(output << 7 | u8::from(!self.is_running) << 6 | access << 4 | self.mode << 1);
    }

    fn set_mode(&mut self, control: u8) {
        let mode = control >> 1 & 7;
        *self = Self {
            // Bit 2 of modes 2 and 3 does not matter.
            mode: if mode > 5 { mode & 3 } else { mode },
            access: match control >> 4 & 3 {
                1 => Access::Low,
                2 => Access::High,
                _ => Access::Both,
            },
            ..Self::default()
        };
    }
}

/// The timer.
#[derive(Clone, Debug, Default)]
pub struct Pit {
    counters: [Counter; 3],
    /// Bits 0 and 1 of port 0x61: gate of counter 2, speaker.
    speaker: u8,
}

impl Pit {
    /// Returns the state after a reset: nothing counts.
    #[must_use]
    pub const fn new() -> Self {
        const COUNTER: Counter = Counter {
            mode: 0,
            access: Access::Both,
            reload: 0,
            low: None,
            reads_high: false,
            latch: None,
            status: None,
            is_running: false,
            started: 0,
            told: 0,
        };
        Self {
            counters: [COUNTER; 3],
            speaker: 0,
        }
    }

    /// Answers a load from a port, if it is one of the timer's.
    pub fn read(&mut self, port: u64, now: u64) -> Option<u8> {
        if port == SPEAKER {
            let [_, _, second] = &self.counters;
            // Bit 4 is the refresh request, which toggles every 15 us.
            let refresh = (now >> 4 & 1) as u8;
            return Some(self.speaker | refresh << 4 | u8::from(second.output(now)) << 5);
        }
        let index = port.checked_sub(PORT)?;
        if index == 3 {
            return Some(0xFF);
        }
        let counter = self.counters.get_mut(usize::try_from(index).ok()?)?;
        Some(counter.read(now))
    }

    /// Takes a store to a port; false if it is none of the timer's.
    pub fn write(&mut self, port: u64, value: u8, now: u64) -> bool {
        match port {
            SPEAKER => {
                let opens = value & !self.speaker & 1 != 0;
                self.speaker = value & 3;
                let [_, _, second] = &mut self.counters;
                // The gate starts the count anew, in the modes for which it is a trigger or a pause.
                if opens && second.is_running {
                    second.start(now);
                }
            }
            0x43 => self.control(value, now),
            0x40..0x43 => {
                if let Some(counter) = self.counters.get_mut((port & 3) as usize) {
                    counter.write(value, now);
                }
            }
            _ => return false,
        }
        true
    }

    fn control(&mut self, value: u8, now: u64) {
        if value >> 6 == 3 {
            // Read-back: what is clear is latched.
            for (counter, index) in self.counters.iter_mut().zip(1_u32..) {
                if value >> index & 1 == 0 {
                    continue;
                }
                if value & 1 << 5 == 0 {
                    counter.latch_count(now);
                }
                if value & 1 << 4 == 0 {
                    counter.latch_status(now);
                }
            }
            return;
        }
        let Some(counter) = self.counters.get_mut(usize::from(value >> 6)) else {
            return;
        };
        if value >> 4 & 3 == 0 {
            counter.latch_count(now);
        } else {
            counter.set_mode(value);
        }
    }

    /// Tells whether the output of counter 0 has risen since this was asked last. Several times are one.
    pub fn has_risen(&mut self, now: u64) -> bool {
        let [first, ..] = &mut self.counters;
        let edges = first.edges(now);
        let has = edges > first.told;
        first.told = edges;
        has
    }

    /// Returns when the output of counter 0 is to be told next: when it rises, but with a short period not
    /// sooner than `SHORTEST` from now.
    #[must_use]
    pub fn next_rise(&self, now: u64) -> Option<u64> {
        let [first, ..] = &self.counters;
        if !first.is_running || (!first.repeats() && first.told != 0) {
            return None;
        }
        let periods = first.told.wrapping_add(1).wrapping_mul(first.period());
        let rise = first.started.wrapping_add(periods);
        let is_short = first.repeats() && first.period() < SHORTEST;
        Some(if is_short {
            rise.max(now.saturating_add(SHORTEST))
        } else {
            rise
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counter_2_counts_down_as_linux_calibrates_with_it() {
        let mut pit = Pit::new();
        pit.write(SPEAKER, 1, 0);
        pit.write(0x43, 0xB0, 0);
        pit.write(0x42, 0xFF, 0);
        pit.write(0x42, 0xFF, 10);
        assert_eq!(pit.read(0x42, 10), Some(0xFF));
        assert_eq!(pit.read(0x42, 10), Some(0xFF));
        assert_eq!(pit.read(0x42, 10 + 0x100), Some(0xFF));
        assert_eq!(pit.read(0x42, 10 + 0x100), Some(0xFE));
        assert_eq!(pit.read(SPEAKER, 11).unwrap() & 0x21, 1);
        assert_eq!(pit.read(SPEAKER, 10 + 0xFFFF).unwrap() & 0x21, 0x21);
    }

    #[test]
    fn counter_0_rises_for_ever_and_missed_rises_are_one() {
        let mut pit = Pit::new();
        assert_eq!(pit.next_rise(0), None);
        pit.write(0x43, 0x34, 0);
        pit.write(0x40, 100, 0);
        pit.write(0x40, 0, 0);
        assert_eq!(pit.next_rise(0), Some(100));
        assert!(!pit.has_risen(99) && pit.has_risen(100) && !pit.has_risen(199));
        assert!(pit.has_risen(450) && !pit.has_risen(499));
        assert_eq!(pit.next_rise(450), Some(500));
    }

    #[test]
    fn a_short_period_leaves_time_between_its_interrupts() {
        let mut pit = Pit::new();
        pit.write(0x43, 0x34, 0);
        pit.write(0x40, 2, 0);
        pit.write(0x40, 0, 0);
        assert_eq!(pit.next_rise(0), Some(SHORTEST));
        assert!(pit.has_risen(SHORTEST));
        assert_eq!(pit.next_rise(SHORTEST), Some(2 * SHORTEST));
        assert_eq!(pit.read(0x40, 3), Some(1), "it counts as fast as ever");
    }

    #[test]
    fn a_latched_count_stays() {
        let mut pit = Pit::new();
        pit.write(0x43, 0x30, 0);
        pit.write(0x40, 0, 0);
        pit.write(0x40, 1, 0);
        pit.write(0x43, 0x00, 10);
        assert_eq!(pit.read(0x40, 50), Some(0xF6));
        assert_eq!(pit.read(0x40, 60), Some(0));
        pit.write(0x43, 0xE2, 300);
        assert_eq!(pit.read(0x40, 300), Some(0xB0), "status: output, running, mode 0");
        assert!(pit.has_risen(300) && !pit.has_risen(900));
        assert_eq!(pit.next_rise(900), None);
        assert_eq!(pit.read(0x44, 0), None);
    }
}
