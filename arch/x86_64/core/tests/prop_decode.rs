// SPDX-License-Identifier: Apache-2.0
//! The decoder agrees with `iced-x86` on every instruction that it takes, and takes the moves that it should.

use bulkhead_arch_x86_64_core::decode::{Mode, Operation, access, control_move};
use iced_x86::{Code, Decoder, DecoderOptions, InstructionInfoFactory, Mnemonic, OpAccess, OpKind};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

fn modes() -> impl Strategy<Value = (Mode, u32)> {
    prop_oneof![
        Just((Mode::Bits16, 16)),
        Just((Mode::Bits32, 32)),
        Just((Mode::Bits64, 64))
    ]
}

/// Makes bytes of an instruction: prefixes, an opcode of those that count, anything.
fn code() -> impl Strategy<Value = Vec<u8>> {
    let prefix = prop_oneof![Just(0x66_u8), Just(0x67), Just(0x2E), Just(0x65), 0x40_u8..0x50];
    let opcode = prop_oneof![
        prop_oneof![
            0x88_u8..0x8C,
            0xA0_u8..0xA4,
            0xC6_u8..0xC8,
            0x80_u8..0x86,
            0xF6_u8..0xF8,
            Just(0x38),
            Just(0x39),
            Just(0x63)
        ]
        .prop_map(|byte| vec![byte]),
        prop_oneof![Just(0xB6_u8), Just(0xB7), Just(0xBE), Just(0xBF)].prop_map(|byte| vec![0x0F, byte]),
        any::<u8>().prop_map(|byte| vec![byte]),
    ];
    let rest = proptest::collection::vec(any::<u8>(), 12);
    (proptest::collection::vec(prefix, 0..3), opcode, rest).prop_map(|(mut all, opcode, rest)| {
        all.extend(opcode);
        all.extend(rest);
        all.truncate(15);
        all
    })
}

/// Tells whether the kind of an operand is memory.
fn is_memory(kind: OpKind) -> bool {
    kind == OpKind::Memory
}

proptest! {
    #![proptest_config(Config { cases: 20_000, rng_seed: RngSeed::Fixed(7), ..Config::default() })]

    #[test]
    fn what_is_decoded_is_what_the_other_decoder_says((mode, bits) in modes(), bytes in code()) {
        let mut decoder = Decoder::new(bits, &bytes, DecoderOptions::NONE);
        let other = decoder.decode();
        let Some(own) = access(&bytes, mode) else { return Ok(()) };
        // LOCK before a move is an exception of the processor, which never gets here.
        prop_assume!(other.code() != Code::INVALID);
        prop_assert_eq!(usize::from(own.length), other.len(), "{:?} {:x?}", other.code(), bytes);
        prop_assert_eq!(usize::from(own.size), other.memory_size().size(), "{:?} {:x?}", other.code(), bytes);
        let is_store = matches!(own.operation, Operation::StoreRegister(_) | Operation::StoreValue(_));
        let mut factory = InstructionInfoFactory::new();
        let info = factory.info(&other);
        let stores = info.used_memory().iter().any(|memory| memory.access() == OpAccess::Write);
        prop_assert_eq!(is_store, stores, "{:?} {:x?}", other.code(), bytes);
    }

    #[test]
    fn plain_moves_are_all_decoded((mode, bits) in modes(), bytes in code()) {
        let mut decoder = Decoder::new(bits, &bytes, DecoderOptions::NONE);
        let other = decoder.decode();
        let moves = matches!(other.mnemonic(), Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movsx);
        let to_memory = (0..other.op_count()).any(|operand| is_memory(other.op_kind(operand)));
        let has_segment = (0..other.op_count())
            .any(|operand| other.op_kind(operand) == OpKind::Register && other.op_register(operand).is_segment_register());
        let repeats = other.has_rep_prefix() || other.has_repne_prefix() || other.has_lock_prefix();
        let counts = moves && to_memory && !has_segment && !repeats && other.code() != Code::INVALID;
        prop_assert!(!counts || access(&bytes, mode).is_some(), "{:?} {:x?}", other.code(), bytes);
    }

    #[test]
    fn any_bytes_are_taken(bytes in proptest::collection::vec(any::<u8>(), 0..20), (mode, _) in modes()) {
        let found = access(&bytes, mode);
        prop_assert!(found.is_none_or(|found| usize::from(found.length) <= bytes.len().min(15)));
        let found = control_move(&bytes, mode);
        prop_assert!(found.is_none_or(|found| usize::from(found.length) <= bytes.len().min(15)));
    }
}
