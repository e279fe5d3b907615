// SPDX-License-Identifier: Apache-2.0
//! Instructions at privilege level 3: each ends with an exception, after it if it was carried out.

use bulkhead_guest::pc::attempt;
use bulkhead_guest::println;

/// Instructions, with a HLT after each, which is #GP (13).
const CODE: &[(&str, &[u8])] = &[
    ("nop", b"\x90\xF4"),
    ("hlt", b"\xF4"),
    ("vmmcall", b"\x0F\x01\xD9\xF4"),
    ("vmcall", b"\x0F\x01\xC1\xF4"),
    ("cpuid", b"\x0F\xA2\xF4"),
    ("rdtsc", b"\x0F\x31\xF4"),
    ("cli", b"\xFA\xF4"),
    ("in", b"\xE4\x60\xF4"),
    ("rdmsr", b"\x0F\x32\xF4"),
    ("wrmsr", b"\x0F\x30\xF4"),
    ("rdpmc", b"\x0F\x33\xF4"),
    ("monitor", b"\x0F\x01\xC8\xF4"),
    ("mwait", b"\x0F\x01\xC9\xF4"),
    ("xsetbv", b"\x0F\x01\xD1\xF4"),
    ("wbinvd", b"\x0F\x09\xF4"),
    ("invd", b"\x0F\x08\xF4"),
    ("mov cr8", b"\x44\x0F\x20\xC0\xF4"),
    ("mov dr0", b"\x0F\x21\xC0\xF4"),
    ("ud2", b"\x0F\x0B"),
];

/// Runs them all.
pub(crate) fn all() {
    for (name, code) in CODE {
        println!("level 3: {name}: exception {}", attempt::run_user(code));
    }
}
