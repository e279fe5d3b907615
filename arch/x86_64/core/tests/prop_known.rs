// SPDX-License-Identifier: Apache-2.0
//! The knowledge of an instruction is what a new look finds, after any changes.

use bulkhead_arch_x86_64_core::decode::Mode;
use bulkhead_arch_x86_64_core::known::{Code, Known};
use bulkhead_arch_x86_64_core::walk::Paging;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use std::collections::BTreeMap;

/// CR0.PG and EFER.LMA.
const PAGING: u64 = 1 << 31;
const LONG_MODE: u64 = 1 << 10;

/// A guest's memory, in words.
type Memory = BTreeMap<u64, u64>;

/// A change of memory: the word, and its new value.
type Change = (u64, u64);

/// Makes tables at 0x1000 to 0x5000 that map linear 0 and 0x1000, by a large page or two small ones, and
/// code.
fn memory(is_large: bool, code: &[u8]) -> Memory {
    let mut memory: Memory = [(0x1000, 0x2003), (0x2000, 0x3003)].into();
    if is_large {
        memory.insert(0x3000, 0x83);
    } else {
        memory.extend([(0x3000, 0x4003), (0x4000, 0x8003), (0x4008, 0x9003)]);
    }
    let (small, large): (u64, u64) = (0x8000, 0);
    let base = if is_large { large } else { small };
    for (index, word) in (0..).zip(code.chunks_exact(8)) {
        let value = word.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
        memory.insert(base + 0xFE0 + index * 8, value);
    }
    memory
}

/// Makes code of loads and stores in any order and at any place, and bytes that are anything.
fn code() -> impl Strategy<Value = Vec<u8>> {
    let instruction = prop_oneof![
        Just(vec![0x8B, 0x40, 0x10]),
        Just(vec![0x89, 0xB7, 0, 0xC0, 0x5F, 0xFF]),
        Just(vec![0xC7, 0x05, 0xB0, 0, 0, 0, 0x78, 0x56, 0x34, 0x12]),
        Just(vec![0x4C, 0x8B, 0x00]),
        any::<u8>().prop_map(|byte| vec![byte]),
    ];
    proptest::collection::vec(instruction, 64).prop_map(|all| {
        let mut bytes: Vec<u8> = all.into_iter().flatten().collect();
        bytes.resize(64, 0x90);
        bytes
    })
}

/// Looks at the instruction at `start`.
fn look(memory: &Memory, root: u64, start: u64) -> Option<Known<u64>> {
    let paging = Paging {
        cr0: PAGING,
        cr3: root,
        cr4: 0x20,
        efer: LONG_MODE,
    };
    let place = |at: u64| memory.contains_key(&(at & !7)).then_some(at & !7);
    let code = Code::fetch(&paging, start, place, |at| memory[&at]);
    code.access(root, Mode::Bits64)
}

/// Makes the changes of a step: a word of the tables or of code.
fn changes() -> impl Strategy<Value = Vec<Change>> {
    let at = prop_oneof![
        Just(0x1000_u64),
        Just(0x2000),
        Just(0x3000),
        Just(0x4000),
        Just(0x4008),
        (0_u64..8).prop_map(|index| 0xFE0 + index * 8),
        (0_u64..8).prop_map(|index| 0x8FE0 + index * 8),
    ];
    let value = prop_oneof![
        any::<u64>(),
        Just(0x83),
        Just(0x9003),
        Just(0x8003),
        Just(0x8023),
        Just(0)
    ];
    proptest::collection::vec((at, value), 0..2)
}

proptest! {
    #![proptest_config(Config { cases: 5_000, rng_seed: RngSeed::Fixed(34), ..Config::default() })]

    #[test]
    fn what_is_known_is_what_a_new_look_finds(
        is_large in any::<bool>(),
        bytes in code(),
        first in 0xFE0_u64..0x1010,
        steps in proptest::collection::vec((changes(), 0xFE0_u64..0x1010, 0_u8..8), 1..12),
    ) {
        let mut memory = memory(is_large, &bytes);
        let mut known = look(&memory, 0x1000, first);
        for (changes, start, other) in steps {
            for (at, value) in changes {
                if let Some(word) = memory.get_mut(&at) {
                    *word = value;
                }
            }
            // Mostly the same instruction and the same root once more.
            let start = if other < 5 { first } else { start };
            let root = if other == 7 { 0x2000 } else { 0x1000 };
            let found = look(&memory, root, start);
            if let Some(known) = known.filter(|known| known.is_still(start, root, |at| memory[&at])) {
                prop_assert_eq!(Some(*known.access()), found.map(|found| *found.access()));
            }
            known = found.or(known);
        }
    }
}

#[test]
fn an_instruction_is_known_until_a_word_differs() {
    let mut bytes = vec![0x90; 64];
    bytes[4..10].copy_from_slice(&[0x89, 0xB7, 0, 0xC0, 0x5F, 0xFF]);
    let mut memory = memory(false, &bytes);
    let known = look(&memory, 0x1000, 0xFE4).unwrap();
    let is_still = |memory: &Memory, start, root| known.is_still(start, root, |at| memory[&at]);
    assert_eq!(known.access().length, 6);
    assert!(is_still(&memory, 0xFE4, 0x1000));
    assert!(!is_still(&memory, 0xFE5, 0x1000), "another address");
    assert!(!is_still(&memory, 0xFE4, 0x2000), "other tables");
    memory.insert(0x8FF0, 1);
    assert!(is_still(&memory, 0xFE4, 0x1000), "a word behind the instruction");
    for at in [0x1000, 0x2000, 0x3000, 0x4000, 0x8FE0, 0x8FE8] {
        let mut changed = memory.clone();
        *changed.get_mut(&at).unwrap() ^= 1 << 60;
        assert!(!is_still(&changed, 0xFE4, 0x1000), "{at:#x}");
    }
}

#[test]
fn an_instruction_on_two_pages_has_too_many_words() {
    let mut bytes = vec![0x90; 64];
    bytes[30..32].copy_from_slice(&[0x89, 0xB7]);
    let mut memory = memory(false, &bytes);
    memory.insert(0x9000, 0x9090_9090_FF5F_C000);
    let known = look(&memory, 0x1000, 0xFFE).unwrap();
    assert_eq!(known.access().length, 6);
    assert!(!known.is_still(0xFFE, 0x1000, |at| memory[&at]));
}
