// SPDX-License-Identifier: Apache-2.0
//! Semihosting: the services of a debugger or an emulator that programs for microcontrollers call by
//! `BKPT 0xAB` (Arm, Semihosting for AArch32 and AArch64, 2020Q4).
//!
//! **Files.** There are two: `:tt`, the console, for reading and writing whichever handle is used, and
//! `:semihosting-features`. No files of the host can be reached.
//!
//! **A call that prints takes several traps.** The bytes that leave in one of them are at most
//! [`HOST_BYTES`]. Until all of it has left, the guest stays at its BKPT: its interrupts are taken meanwhile,
//! and another of its threads may run and call as well. The progress of the call is therefore kept in the
//! register that held the operation's number, which no caller finds again, beside a bit that no operation
//! has. It is only ever a distance from the address that the guest itself has given, so what else a guest
//! puts there is its own affair.
//!
//! **Memory** is looked at with the guest's own rights, a word or byte at a time: what it may not load or
//! store ends the call with its error.

use crate::emulate::advance_it;
use crate::guest::Guest;
use crate::processor::VirtualCore;
use bulkhead_arch_api::{GuestPhys, HOST_BYTES, HostCall};

/// BKPT 0xAB.
pub const SEMIHOSTING: u16 = 0xBEAB;

const OPEN: u32 = 0x01;
const CLOSE: u32 = 0x02;
const WRITEC: u32 = 0x03;
const WRITE0: u32 = 0x04;
const WRITE: u32 = 0x05;
const READ: u32 = 0x06;
const READC: u32 = 0x07;
const ISERROR: u32 = 0x08;
const ISTTY: u32 = 0x09;
const SEEK: u32 = 0x0A;
const FLEN: u32 = 0x0C;
const CLOCK: u32 = 0x10;
const TIME: u32 = 0x11;
const ERRNO: u32 = 0x13;
const GET_CMDLINE: u32 = 0x15;
const HEAPINFO: u32 = 0x16;
const EXIT: u32 = 0x18;
const EXIT_EXTENDED: u32 = 0x20;
const ELAPSED: u32 = 0x30;
const TICKFREQ: u32 = 0x31;

/// The answer of an operation that fails, or that there is none of.
const FAILED: u32 = u32::MAX;
/// The `errno` of all that fails: there is no such file.
const ENOENT: u32 = 2;
/// The reason of an end that is no error (`ADP_Stopped_ApplicationExit`).
const APPLICATION_EXIT: u32 = 0x2_0026;

/// In the place of the operation: it is under way. Above its number is how many bytes have left.
const UNDER_WAY: u32 = 1 << 31;
/// The largest number of bytes of one call.
const LONGEST: u32 = 0x7F_FFFF;

/// Modes of opening: from here on there are none.
const MODES: u32 = 12;
const CONSOLE_NAME: &[u8] = b":tt";
const FEATURES_NAME: &[u8] = b":semihosting-features";
/// Both extensions there are: SYS_EXIT_EXTENDED, and a stderr of its own.
const FEATURES: &[u8] = b"SHFB\x03";
/// Handles of the console: 1 for input, 2 for output, 3 for errors; each does for all.
const CONSOLES: u32 = 3;
const FEATURES_HANDLE: u32 = 4;

/// Operations on a file, whose handle comes first: one bit each.
const FILE_OPERATIONS: u32 = 1 << CLOSE | 1 << WRITE | 1 << READ | 1 << ISTTY | 1 << SEEK | 1 << FLEN;

/// The outcome of a call.
enum Answer {
    Now(u32),
    Ask(HostCall),
}

/// Returns the operation, and how many bytes of it are done.
const fn under_way(operation: u32) -> (u32, u32) {
    match (operation & UNDER_WAY, operation & 0xFF) {
        (UNDER_WAY, number @ WRITEC..=WRITE) => (number, operation >> 8 & LONGEST),
        _ => (operation, 0),
    }
}

const fn physical(address: u32) -> GuestPhys {
    GuestPhys(address as u64)
}

/// Returns so many bytes, or as many as move at once.
const fn at_once(bytes: u32) -> u8 {
    if bytes < HOST_BYTES as u32 {
        bytes as u8
    } else {
        HOST_BYTES as u8
    }
}

/// Reads word `index` of a block. One that cannot be read is one that nothing can be done with: no handle, no
/// address, the longest length.
#[inline(never)]
fn field(guest: &impl Guest, block: u32, index: u32) -> u32 {
    guest.load(block.wrapping_add(index << 2)).unwrap_or(u32::MAX)
}

/// Fills the words that begin at `block`. Returns whether all of them could be stored.
#[inline(never)]
fn fill(guest: &mut impl Guest, block: u32, words: &[u32]) -> bool {
    (0_u32..)
        .zip(words)
        .all(|(index, word)| guest.store(block.wrapping_add(index << 2), *word))
}

#[inline(never)]
fn byte(guest: &impl Guest, address: u32) -> Option<u8> {
    let word = guest.load(address & !3)?;
    Some(word.wrapping_shr(address.wrapping_shl(3)) as u8)
}

fn store_byte(guest: &mut impl Guest, address: u32, byte: u8) -> bool {
    let lane = address.wrapping_shl(3);
    let rest = |word: u32| word & !0xFF_u32.rotate_left(lane) | u32::from(byte).rotate_left(lane);
    let word = guest.load(address & !3).map(rest);
    word.is_some_and(|word| guest.store(address & !3, word))
}

impl VirtualCore {
    /// Answers the call of privileged code of the guest that is at its BKPT 0xAB; the time is in ticks,
    /// beside how many of them are a second. For a call that the guest's own memory does not answer,
    /// [`VirtualCore::host_answers`] follows, unless the call is to be repeated or the guest has ended.
    pub fn host_called(&mut self, guest: &mut impl Guest, time: (u64, u32)) -> Option<HostCall> {
        match self.answer(guest, time) {
            Answer::Now(result) => {
                finish(guest, result);
                None
            }
            Answer::Ask(call) => Some(call),
        }
    }

    /// Goes on when the call that [`VirtualCore::host_called`] has made of the guest's has been answered.
    pub fn host_answers(&self, guest: &mut impl Guest, answer: u32) {
        let (operation, done) = under_way(guest.register(0));
        let block = guest.register(1);
        let result = match operation {
            READC => answer,
            READ => field(guest, block, 2).wrapping_sub(answer),
            // Without the zero.
            GET_CMDLINE if fill(guest, block.wrapping_add(4), &[answer.wrapping_sub(1)]) => 0,
            GET_CMDLINE => FAILED,
            // The rest at the next trap.
            _ => return guest.set_register(0, UNDER_WAY | done.wrapping_add(answer) << 8 | operation),
        };
        finish(guest, result);
    }

    #[inline(never)]
    fn answer(&mut self, guest: &mut impl Guest, (ticks, hertz): (u64, u32)) -> Answer {
        let (operation, done) = under_way(guest.register(0));
        let block = guest.register(1);
        let [first, second, third] = [0, 1, 2].map(|index| field(guest, block, index));
        if operation < 32
            && FILE_OPERATIONS.wrapping_shr(operation) & 1 != 0
            && first.wrapping_sub(1) >= CONSOLES
        {
            return Answer::Now(self.features(guest, operation, [first, second, third]));
        }
        Answer::Now(match operation {
            OPEN => self.open(guest, first, second, third),
            WRITEC => return print(guest, block, done, Some(1)),
            WRITE0 => return print(guest, block, done, None),
            WRITE => return print(guest, second, done, Some(third)),
            READ if third != 0 && guest.reaches(second, at_once(third).into()) => {
                return Answer::Ask(HostCall::Read(physical(second), at_once(third)));
            }
            READ => third,
            READC => return Answer::Ask(HostCall::ReadByte),
            ISERROR => first >> 31,
            CLOSE | FLEN => 0,
            ISTTY => 1,
            CLOCK | TIME => {
                let parts = if operation == CLOCK { 100 } else { 1 };
                ticks.wrapping_mul(parts).checked_div(hertz.into()).unwrap_or(0) as u32
            }
            ELAPSED if fill(guest, block, &[ticks as u32, (ticks >> 32) as u32]) => 0,
            ELAPSED => {
                guest.set_register(1, FAILED);
                FAILED
            }
            TICKFREQ => hertz,
            ERRNO => ENOENT,
            GET_CMDLINE if second != 0 && guest.reaches(first, at_once(second).into()) => {
                return Answer::Ask(HostCall::Name(physical(first), at_once(second)));
            }
            // The answer is not known: the values that the program was linked with count.
            HEAPINFO if fill(guest, first, &[0; 4]) => 0,
            EXIT => return ended(block, 0),
            EXIT_EXTENDED => return ended(first, second),
            _ => FAILED,
        })
    }

    #[inline(never)]
    fn open(&mut self, guest: &impl Guest, from: u32, mode: u32, length: u32) -> u32 {
        let (name, handle, modes) = match length {
            3 => (CONSOLE_NAME, (mode >> 2).wrapping_add(1), MODES),
            _ => (FEATURES_NAME, FEATURES_HANDLE, 2),
        };
        // A name at the end of the address space goes on at its beginning, like the processor's own accesses.
        let mut bytes = (0..length).zip(name);
        let is_named = length as usize == name.len()
            && bytes.all(|(offset, expected)| byte(guest, from.wrapping_add(offset)) == Some(*expected));
        if !is_named || mode >= modes {
            return FAILED;
        }
        if handle == FEATURES_HANDLE {
            self.features_read = 0;
        }
        handle
    }

    /// Does an operation on the file of the features, or on none.
    #[inline(never)]
    fn features(&mut self, guest: &mut impl Guest, operation: u32, [handle, to, length]: [u32; 3]) -> u32 {
        let is_open = handle == FEATURES_HANDLE;
        match operation {
            READ if is_open => self.read_features(guest, to, length),
            READ | WRITE => length,
            CLOSE | ISTTY if is_open => 0,
            FLEN if is_open => FEATURES.len() as u32,
            SEEK if is_open && to <= FEATURES.len() as u32 => {
                self.features_read = to as u8;
                0
            }
            _ => FAILED,
        }
    }

    /// Reads the features. Returns the number of bytes that were not read.
    fn read_features(&mut self, guest: &mut impl Guest, to: u32, length: u32) -> u32 {
        let mut left = length;
        let mut to = to;
        while let Some(byte) = FEATURES.get(usize::from(self.features_read))
            && left != 0
            && store_byte(guest, to, *byte)
        {
            self.features_read = self.features_read.wrapping_add(1);
            left = left.wrapping_sub(1);
            to = to.wrapping_add(1);
        }
        left
    }
}

/// Prints what is left of the bytes at `from`, as much as goes at once. Without an `end` they end before a
/// zero.
fn print(guest: &impl Guest, from: u32, done: u32, end: Option<u32>) -> Answer {
    let from = from.wrapping_add(done);
    let length = end.unwrap_or(LONGEST);
    let most = u32::from(at_once(length.min(LONGEST).saturating_sub(done)));
    let mut bytes = 0;
    while bytes < most {
        match byte(guest, from.wrapping_add(bytes)) {
            Some(byte) if byte != 0 || end.is_some() => bytes = bytes.wrapping_add(1),
            _ => break,
        }
    }
    match bytes {
        0 => Answer::Now(length.saturating_sub(done)),
        bytes => Answer::Ask(HostCall::Write(physical(from), bytes as u8)),
    }
}

/// Returns the end of the program: an error, unless the number is 0.
fn ended(reason: u32, code: u32) -> Answer {
    let is_usual = reason == APPLICATION_EXIT;
    Answer::Ask(HostCall::Failed(if is_usual { code } else { reason.max(1) }))
}

/// Ends the call, which is done.
#[inline(never)]
fn finish(guest: &mut impl Guest, result: u32) {
    guest.set_register(0, result);
    guest.set_register(15, guest.register(15).wrapping_add(2));
    guest.set_xpsr(advance_it(guest.xpsr()));
}
