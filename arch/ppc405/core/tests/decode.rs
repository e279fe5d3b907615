// SPDX-License-Identifier: Apache-2.0
//! The decoder against an assembler's reading of the same instructions: each of the 93 encodings that trap in
//! problem state, as `as -m405` of GNU binutils 2.40 writes it.

use bulkhead_arch_ppc405_core::decode::{Fields, Operation, decode};
use bulkhead_arch_ppc405_core::emulate::Effect;
use bulkhead_arch_ppc405_core::registers::{Cpu, Frame};

/// Text, word and meaning.
#[rustfmt::skip]
const PRIVILEGED: &[(&str, u32, Operation)] = &[
    ("mfmsr 3", 0x7C60_00A6, Operation::MoveFromMsr(3)),
    ("mtmsr 31", 0x7FE0_0124, Operation::MoveToMsr(31)),
    ("wrtee 4", 0x7C80_0106, Operation::WriteEnable(4)),
    ("wrteei 0", 0x7C00_0146, Operation::WriteEnableImmediate(false)),
    ("wrteei 1", 0x7C00_8146, Operation::WriteEnableImmediate(true)),
    ("rfi", 0x4C00_0064, Operation::ReturnFromInterrupt),
    ("rfci", 0x4C00_0066, Operation::ReturnFromCritical),
    ("mfspr 5, 26", 0x7CBA_02A6, Operation::MoveFromSpr(5, 26)),
    ("mtspr 26, 6", 0x7CDA_03A6, Operation::MoveToSpr(6, 26)),
    ("mfspr 5, 27", 0x7CBB_02A6, Operation::MoveFromSpr(5, 27)),
    ("mtspr 27, 6", 0x7CDB_03A6, Operation::MoveToSpr(6, 27)),
    ("mfspr 5, 990", 0x7CBE_F2A6, Operation::MoveFromSpr(5, 990)),
    ("mtspr 990, 6", 0x7CDE_F3A6, Operation::MoveToSpr(6, 990)),
    ("mfspr 5, 991", 0x7CBF_F2A6, Operation::MoveFromSpr(5, 991)),
    ("mtspr 991, 6", 0x7CDF_F3A6, Operation::MoveToSpr(6, 991)),
    ("mfspr 5, 272", 0x7CB0_42A6, Operation::MoveFromSpr(5, 272)),
    ("mtspr 272, 6", 0x7CD0_43A6, Operation::MoveToSpr(6, 272)),
    ("mfspr 5, 273", 0x7CB1_42A6, Operation::MoveFromSpr(5, 273)),
    ("mtspr 273, 6", 0x7CD1_43A6, Operation::MoveToSpr(6, 273)),
    ("mfspr 5, 274", 0x7CB2_42A6, Operation::MoveFromSpr(5, 274)),
    ("mtspr 274, 6", 0x7CD2_43A6, Operation::MoveToSpr(6, 274)),
    ("mfspr 5, 275", 0x7CB3_42A6, Operation::MoveFromSpr(5, 275)),
    ("mtspr 275, 6", 0x7CD3_43A6, Operation::MoveToSpr(6, 275)),
    ("mfspr 5, 276", 0x7CB4_42A6, Operation::MoveFromSpr(5, 276)),
    ("mtspr 276, 6", 0x7CD4_43A6, Operation::MoveToSpr(6, 276)),
    ("mfspr 5, 277", 0x7CB5_42A6, Operation::MoveFromSpr(5, 277)),
    ("mtspr 277, 6", 0x7CD5_43A6, Operation::MoveToSpr(6, 277)),
    ("mfspr 5, 278", 0x7CB6_42A6, Operation::MoveFromSpr(5, 278)),
    ("mtspr 278, 6", 0x7CD6_43A6, Operation::MoveToSpr(6, 278)),
    ("mfspr 5, 279", 0x7CB7_42A6, Operation::MoveFromSpr(5, 279)),
    ("mtspr 279, 6", 0x7CD7_43A6, Operation::MoveToSpr(6, 279)),
    ("mfspr 5, 945", 0x7CB1_EAA6, Operation::MoveFromSpr(5, 945)),
    ("mtspr 945, 6", 0x7CD1_EBA6, Operation::MoveToSpr(6, 945)),
    ("mfspr 5, 944", 0x7CB0_EAA6, Operation::MoveFromSpr(5, 944)),
    ("mtspr 944, 6", 0x7CD0_EBA6, Operation::MoveToSpr(6, 944)),
    ("mfspr 5, 947", 0x7CB3_EAA6, Operation::MoveFromSpr(5, 947)),
    ("mtspr 947, 6", 0x7CD3_EBA6, Operation::MoveToSpr(6, 947)),
    ("mfspr 5, 980", 0x7CB4_F2A6, Operation::MoveFromSpr(5, 980)),
    ("mtspr 980, 6", 0x7CD4_F3A6, Operation::MoveToSpr(6, 980)),
    ("mfspr 5, 981", 0x7CB5_F2A6, Operation::MoveFromSpr(5, 981)),
    ("mtspr 981, 6", 0x7CD5_F3A6, Operation::MoveToSpr(6, 981)),
    ("mfspr 5, 982", 0x7CB6_F2A6, Operation::MoveFromSpr(5, 982)),
    ("mtspr 982, 6", 0x7CD6_F3A6, Operation::MoveToSpr(6, 982)),
    ("mfspr 5, 984", 0x7CB8_F2A6, Operation::MoveFromSpr(5, 984)),
    ("mtspr 984, 6", 0x7CD8_F3A6, Operation::MoveToSpr(6, 984)),
    ("mfspr 5, 986", 0x7CBA_F2A6, Operation::MoveFromSpr(5, 986)),
    ("mtspr 986, 6", 0x7CDA_F3A6, Operation::MoveToSpr(6, 986)),
    ("mfspr 5, 987", 0x7CBB_F2A6, Operation::MoveFromSpr(5, 987)),
    ("mtspr 987, 6", 0x7CDB_F3A6, Operation::MoveToSpr(6, 987)),
    ("mfspr 5, 1008", 0x7CB0_FAA6, Operation::MoveFromSpr(5, 1008)),
    ("mtspr 1008, 6", 0x7CD0_FBA6, Operation::MoveToSpr(6, 1008)),
    ("mfspr 5, 1010", 0x7CB2_FAA6, Operation::MoveFromSpr(5, 1010)),
    ("mtspr 1010, 6", 0x7CD2_FBA6, Operation::MoveToSpr(6, 1010)),
    ("mfspr 5, 957", 0x7CBD_EAA6, Operation::MoveFromSpr(5, 957)),
    ("mtspr 957, 6", 0x7CDD_EBA6, Operation::MoveToSpr(6, 957)),
    ("mfspr 5, 1012", 0x7CB4_FAA6, Operation::MoveFromSpr(5, 1012)),
    ("mtspr 1012, 6", 0x7CD4_FBA6, Operation::MoveToSpr(6, 1012)),
    ("mfspr 5, 1013", 0x7CB5_FAA6, Operation::MoveFromSpr(5, 1013)),
    ("mtspr 1013, 6", 0x7CD5_FBA6, Operation::MoveToSpr(6, 1013)),
    ("mfspr 5, 948", 0x7CB4_EAA6, Operation::MoveFromSpr(5, 948)),
    ("mtspr 948, 6", 0x7CD4_EBA6, Operation::MoveToSpr(6, 948)),
    ("mfspr 5, 949", 0x7CB5_EAA6, Operation::MoveFromSpr(5, 949)),
    ("mtspr 949, 6", 0x7CD5_EBA6, Operation::MoveToSpr(6, 949)),
    ("mfspr 5, 1018", 0x7CBA_FAA6, Operation::MoveFromSpr(5, 1018)),
    ("mtspr 1018, 6", 0x7CDA_FBA6, Operation::MoveToSpr(6, 1018)),
    ("mfspr 5, 1019", 0x7CBB_FAA6, Operation::MoveFromSpr(5, 1019)),
    ("mtspr 1019, 6", 0x7CDB_FBA6, Operation::MoveToSpr(6, 1019)),
    ("mfspr 5, 954", 0x7CBA_EAA6, Operation::MoveFromSpr(5, 954)),
    ("mtspr 954, 6", 0x7CDA_EBA6, Operation::MoveToSpr(6, 954)),
    ("mfspr 5, 953", 0x7CB9_EAA6, Operation::MoveFromSpr(5, 953)),
    ("mtspr 953, 6", 0x7CD9_EBA6, Operation::MoveToSpr(6, 953)),
    ("mfspr 5, 955", 0x7CBB_EAA6, Operation::MoveFromSpr(5, 955)),
    ("mtspr 955, 6", 0x7CDB_EBA6, Operation::MoveToSpr(6, 955)),
    ("mfspr 5, 287", 0x7CBF_42A6, Operation::MoveFromSpr(5, 287)),
    ("mtspr 284, 6", 0x7CDC_43A6, Operation::MoveToSpr(6, 284)),
    ("mtspr 285, 6", 0x7CDD_43A6, Operation::MoveToSpr(6, 285)),
    ("mfspr 5, 979", 0x7CB3_F2A6, Operation::MoveFromSpr(5, 979)),
    ("mtspr 256, 6", 0x7CC0_43A6, Operation::MoveToSpr(6, 256)),
    ("mfdcr 7, 0xC0", 0x7CE0_3286, Operation::MoveFromDcr(7, 0xC0)),
    ("mtdcr 0x3FF, 8", 0x7D1F_FB86, Operation::MoveToDcr(8, 0x3FF)),
    ("tlbre 9, 10, 0", 0x7D2A_0764, Operation::ReadEntry(Fields { target: 9, first: 10, second: 0 }, false)),
    ("tlbwe 9, 10, 0", 0x7D2A_07A4, Operation::WriteEntry(Fields { target: 9, first: 10, second: 0 }, false)),
    ("tlbre 9, 10, 1", 0x7D2A_0F64, Operation::ReadEntry(Fields { target: 9, first: 10, second: 1 }, true)),
    ("tlbwe 9, 10, 1", 0x7D2A_0FA4, Operation::WriteEntry(Fields { target: 9, first: 10, second: 1 }, true)),
    ("tlbsx 9, 10, 11", 0x7D2A_5F24, Operation::SearchEntry(Fields { target: 9, first: 10, second: 11 }, false)),
    ("tlbsx. 9, 10, 11", 0x7D2A_5F25, Operation::SearchEntry(Fields { target: 9, first: 10, second: 11 }, true)),
    ("tlbia", 0x7C00_02E4, Operation::InvalidateEntries),
    ("tlbsync", 0x7C00_046C, Operation::Synchronize),
    ("dccci 0, 4", 0x7C00_238C, Operation::InvalidateCache),
    ("iccci 0, 4", 0x7C00_278C, Operation::InvalidateCache),
    ("dcread 12, 0, 4", 0x7D80_23CC, Operation::ReadDataCache(12)),
    ("icread 0, 4", 0x7C00_27CC, Operation::ReadInstructionCache),
    ("dcbi 0, 4", 0x7C00_23AC, Operation::InvalidateLine),
];

#[test]
fn each_encoding_is_decoded() {
    for (text, word, meaning) in PRIVILEGED {
        assert_eq!(decode(*word), Some(*meaning), "{text}");
    }
}

#[test]
fn each_encoding_has_an_effect() {
    for (text, word, _) in PRIVILEGED {
        let (mut cpu, mut frame) = (Cpu::new(0), Frame::ZERO);
        // rfi and rfci go somewhere else.
        cpu.saved = [4; 4];
        let operation = decode(*word).expect("a privileged instruction");
        let effect = cpu.execute(&mut frame, operation, 0);
        // The MSR that rfi and rfci bring has no bit of the processor's.
        let is_others = matches!(effect, Effect::WriteDcr(0x3FF, 0));
        assert!(effect == Effect::Done || is_others, "{text}: {effect:?}");
        assert_eq!(frame.pc, if is_others { 0 } else { 4 }, "{text}");
    }
}

#[test]
fn other_words_are_no_privileged_instructions() {
    // mtlr, mflr, mtctr, mfxer, mftb by mfspr and SPRG4 for programs are special purpose registers that a
    // program may use: an instruction like that may follow a privileged one.
    for word in [
        0x7C08_03A6,
        0x7C08_02A6,
        0x7C09_03A6,
        0x7C61_02A6,
        0x7C6C_42A6,
        0x7C64_42A6,
    ] {
        assert_eq!(decode(word), None, "{word:#x}");
    }
    // The word 0, add, lwz, blr, sc, mfcr, sync and eieio.
    for word in [
        0,
        0x7C64_2A14,
        0x8064_FFFC,
        0x4E80_0020,
        0x4400_0002,
        0x7C60_0026,
        0x7C00_04AC,
        0x7C00_06AC,
    ] {
        assert_eq!(decode(word), None, "{word:#x}");
    }
}
