// SPDX-License-Identifier: Apache-2.0
//! Random instructions for coprocessors.

/// Returns a random coprocessor instruction that a guest survives, or none. Instructions that change the
/// guest's own vectors, translation or control registers are left out. Everything else in the encodings is
/// in.
pub fn strange_word(random: u64) -> Option<u32> {
    let field = |shift: u32, bits: u32| (random >> shift) as u32 & ((1 << bits) - 1);
    let coprocessor = field(0, 2) | 0xC | if field(2, 2) == 0 { 0 } else { 0xE };
    let (read, major, middle) = (field(4, 1), field(5, 4), field(9, 4));
    let (register, opcode_1, opcode_2) = (field(13, 2), field(15, 3), field(18, 3));
    let own = matches!(major, 1 | 2 | 3 | 12);
    match field(21, 3) {
        // LDC, STC: the address is in a register that points to harmless memory.
        0 => Some(0xED80_0000 | read << 20 | register << 16 | major << 12 | coprocessor << 8),
        // MRRC, MCRR.
        1 if read == 1 || middle != 2 => {
            let pair = read << 20 | 1 << 16;
            Some(0xEC40_0000 | pair | coprocessor << 8 | opcode_1 << 4 | middle)
        }
        // CDP.
        2 => Some(0xEE00_0000 | major << 16 | coprocessor << 8 | opcode_2 << 5 | middle),
        // MRC, MCR.
        3.. if read == 1 || !own => {
            let name = major << 16 | opcode_2 << 5 | middle;
            Some(0xEE00_0010 | opcode_1 << 21 | read << 20 | name | register << 12 | coprocessor << 8)
        }
        _ => None,
    }
}
