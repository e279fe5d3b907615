// SPDX-License-Identifier: Apache-2.0
//! The three lives of a partition that has a secret, or has none.
//!
//! The first life ends with a warm restart, and the second with a cold one. A partition with a capability
//! `secret` prints its secret in each life as `secret LIFE HEX`, and the answers to what it may not do.
//! Any other partition tries to take a secret by each index that it can name.

use bulkhead_guest::abi::hypercall::CAPABILITY_SLOTS;
use bulkhead_guest::abi::measurement::Measurement;
use bulkhead_guest::abi::status::StartOptions;
use bulkhead_guest::abi::{Rights, StartMode};
use bulkhead_guest::hypercall::{self, Handle, SELF};
use bulkhead_guest::{println, secret};

/// Lives that end with a restart.
const RESTARTS: u32 = 2;

/// Nanoseconds that the last life works for nothing.
const LAST_LIFE_NS: u64 = 60_000_000_000;

/// 32 bytes, printed in hexadecimal.
struct Hex([u8; 32]);

impl core::fmt::Display for Hex {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Lives one of the lives.
pub fn live() {
    let life = hypercall::partition_start_word(SELF).map_or(0, |word| word.starts);
    match hypercall::capability_find("secret") {
        Ok((own, ..)) => use_secret(own, life),
        Err(error) => {
            println!("no secret: {error:?}");
            let indices = (0..CAPABILITY_SLOTS as u32 + 1).map(Handle);
            let taken = indices.filter(|index| secret::take(*index).is_ok()).count();
            println!("taken by guessing: {taken}");
            return;
        }
    }
    if life <= RESTARTS {
        let options = StartOptions {
            mode: if life == 1 {
                StartMode::Warm
            } else {
                StartMode::Cold
            },
            alternative: None,
            is_health: false,
        };
        println!("restart: {:?}", hypercall::partition_restart_as(SELF, options));
        loop {
            core::hint::spin_loop();
        }
    }
    // Time for a reset of the board, which ends when all partitions have. Work takes the emulator time, and
    // sleep does not.
    if let Ok((clock, ..)) = hypercall::capability_find("clock") {
        let begin = hypercall::timer_now(clock).unwrap_or(0);
        while hypercall::timer_now(clock).is_ok_and(|now| now < begin + LAST_LIFE_NS) {}
    }
}

/// Takes the secret, and tries what is not allowed.
fn use_secret(own: Handle, life: u32) {
    for (name, what) in [
        ("program", Measurement::Partition),
        ("system", Measurement::System),
        ("class binary", Measurement::ClassBinary),
    ] {
        if let Ok(measured) = secret::measure(SELF, what) {
            println!("measured {name} {}", Hex(measured));
        }
    }
    println!("copy: {:?}", hypercall::capability_derive(own, Rights::READ));
    println!("gift: {:?}", hypercall::capability_grant(SELF, own, Rights::READ));
    match secret::take(own) {
        Ok(bytes) => println!("secret {life} {}", Hex(bytes)),
        Err(error) => println!("no secret: {error:?}"),
    }
    println!("again: {:?}", secret::take(own));
}
