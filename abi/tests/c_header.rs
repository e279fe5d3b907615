// SPDX-License-Identifier: Apache-2.0
//! The C header is generated from this crate, so that the two cannot differ.
//!
//! The test makes the header's text from the Rust definitions and compares it with `include/bulkhead.h`;
//! `BLESS=1 cargo test -p bulkhead-abi` writes the file instead. Numbers and offsets are taken from the
//! compiler, never typed again here; a struct's fields are listed, and the list is checked to be complete.

use std::fmt::{Debug, Write};
use std::mem::offset_of;
use std::path::Path;

use bulkhead_abi::hypercall::{
    ABI_VERSION, CAPABILITY_NAME, CAPABILITY_SLOTS, DEVICE_EVENT, Error, FUNCTION_BASE, HYPERCALL_GATE,
    KEPT_GROUP, KEPT_WORDS, LINE_SENDER, MAX_COPY, MAX_MESSAGE, MESSAGE_ALIGN, OWN_MEMORY, ObjectKind,
    Operation, Rights, SELF_CAPABILITY, SEND_REPLACES, UPCALL_WORDS, function_id,
};
use bulkhead_abi::startup::{STARTUP_MAGIC, StartupCapability, StartupHeader};
use bulkhead_abi::status::{
    HealthClass, PERIOD_START_EVENT, PartitionState, StartCause, StartMode, StartOptions, StartWord,
    StatusWord, WINDOW_START_EVENT,
};

/// Returns `EventWait` as `EVENT_WAIT`.
fn upper_snake(name: &str) -> String {
    let mut text = String::new();
    for character in name.chars() {
        if character.is_ascii_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(character.to_ascii_uppercase());
    }
    text
}

/// Writes a definition that is named after a variant.
fn define(text: &mut String, prefix: &str, variant: &dyn Debug, value: &str) {
    define_name(
        text,
        &format!("{prefix}{}", upper_snake(&format!("{variant:?}"))),
        value,
    );
}

fn define_name(text: &mut String, name: &str, value: &str) {
    let name = format!("BULKHEAD_{name}");
    writeln!(text, "#define {name:<42} {value}").expect("writing to a string");
}

fn section(text: &mut String, comment: &str) {
    writeln!(text, "\n/* {comment} */").expect("writing to a string");
}

/// A field of a C struct.
struct Field {
    declaration: &'static str,
    offset: usize,
    size: usize,
}

macro_rules! fields {
    ($struct:ty; $($field:ident: $type:ty => $declaration:literal),* $(,)?) => {
        [$(Field {
            declaration: $declaration,
            offset: offset_of!($struct, $field),
            size: {
                // The type given here is the field's.
                let _: fn(&$struct) -> &$type = |value| &value.$field;
                size_of::<$type>()
            },
        }),*]
    };
}

/// Writes a struct with its size and offsets asserted; the fields must fill it without a gap.
fn structure(text: &mut String, name: &str, size: usize, fields: &[Field]) {
    writeln!(text, "struct {name} {{").expect("writing to a string");
    let mut end = 0;
    for field in fields {
        assert_eq!(
            field.offset, end,
            "a field of {name} before `{}` is missing",
            field.declaration
        );
        end = field.offset + field.size;
        writeln!(text, "    {};", field.declaration).expect("writing to a string");
    }
    assert_eq!(end, size, "the last field of {name} is missing");
    writeln!(
        text,
        "}};\n_Static_assert(sizeof(struct {name}) == {size}, \"{name}\");\n"
    )
    .expect("writing to a string");
}

fn header() -> String {
    let mut text = String::from(
        "/* SPDX-License-Identifier: Apache-2.0 */\n\
         /* Bulkhead's interface to partitions. Generated from the crate bulkhead-abi; do not edit.\n \
          * Class aarch64: SMC Calling Convention; HVC #0 from a VM, SVC #0 from a task.\n \
          * in:  x0 = function identifier, x1 = capability index, x2..x6 = arguments\n \
          * out: x0 = 0 or a negative error, x1..x4 = results; other registers keep their value\n \
          * Class armv7m: the same in 32-bit registers; UDF #0xB1 from a VM, SVC #0 from a task.\n \
          * in:  r0 = function identifier, r1 = capability index, r2:r3, r4:r5 .. r10:r11 = arguments, low word first\n \
          * out: r0 = 0 or a negative error, r2:r3 .. r8:r9 = results; other registers keep their value */\n\
         #ifndef BULKHEAD_H\n#define BULKHEAD_H\n\n#include <stdint.h>\n",
    );
    section(&mut text, "revision: major << 16 | minor");
    define_name(&mut text, "ABI_VERSION", &format!("{ABI_VERSION:#x}u"));
    section(&mut text, "function identifiers (x0, r0)");
    define_name(&mut text, "FUNCTION_BASE", &format!("{FUNCTION_BASE:#x}u"));
    define_name(&mut text, "HYPERCALL_GATE", &format!("{HYPERCALL_GATE:#x}u"));
    for operation in Operation::ALL {
        define(
            &mut text,
            "",
            operation,
            &format!("{:#x}u", function_id(*operation)),
        );
    }
    section(&mut text, "errors (x0, r0)");
    for error in Error::ALL {
        define(&mut text, "ERROR_", error, &format!("({})", *error as i64));
    }
    section(&mut text, "object kinds");
    for kind in (0..=u8::MAX).filter_map(ObjectKind::from_number) {
        define(&mut text, "KIND_", &kind, &format!("{}u", kind as u8));
    }
    section(&mut text, "rights, a set of bits");
    for (name, right) in [
        ("READ", Rights::READ),
        ("WRITE", Rights::WRITE),
        ("CONTROL", Rights::CONTROL),
        ("GRANT", Rights::GRANT),
        ("ALL", Rights::ALL),
    ] {
        define_name(&mut text, &format!("RIGHT_{name}"), &format!("{}u", right.0));
    }
    section(&mut text, "capability space");
    define_name(&mut text, "CAPABILITY_SLOTS", &format!("{CAPABILITY_SLOTS}u"));
    define_name(&mut text, "CAPABILITY_NAME", &format!("{CAPABILITY_NAME}u"));
    define_name(&mut text, "SELF_CAPABILITY", &format!("{SELF_CAPABILITY}u"));
    messages(&mut text);
    status(&mut text);
    startup(&mut text);
    text.push_str("#endif\n");
    text
}

fn messages(text: &mut String) {
    section(
        text,
        "messages, copies and words that are kept: most bytes, alignment, words",
    );
    for (name, value) in [
        ("MAX_MESSAGE", MAX_MESSAGE),
        ("MESSAGE_ALIGN", MESSAGE_ALIGN as usize),
        ("MAX_COPY", MAX_COPY),
        ("KEPT_WORDS", KEPT_WORDS),
        ("KEPT_GROUP", KEPT_GROUP),
        ("UPCALL_WORDS", UPCALL_WORDS),
    ] {
        define_name(text, name, &format!("{value}u"));
    }
    section(
        text,
        "a bit of the fourth argument of BULKHEAD_PORT_SEND; numbers instead of a partition's",
    );
    define_name(text, "SEND_REPLACES", &format!("UINT64_C({SEND_REPLACES:#x})"));
    define_name(text, "LINE_SENDER", &format!("UINT64_C({LINE_SENDER:#x})"));
    define_name(text, "OWN_MEMORY", &format!("{OWN_MEMORY}u"));
    define_name(text, "DEVICE_EVENT", &format!("{DEVICE_EVENT}u"));
}

fn status(text: &mut String) {
    section(text, "partition states: bits 7:0 of the status word");
    for state in (0..=u8::MAX).filter_map(PartitionState::from_number) {
        define(text, "STATE_", &state, &format!("{}u", state as u8));
    }
    section(
        text,
        "health classes: bits 15:8 of the status word, 0 = no health event yet",
    );
    for class in HealthClass::ALL {
        define(text, "HEALTH_", class, &format!("{}u", *class as u8));
    }
    let word = |restarts, events| {
        let empty = StatusWord {
            state: PartitionState::Stopped,
            last_event: None,
            restarts,
            events,
        };
        empty.encode().trailing_zeros()
    };
    section(
        text,
        "restarts and health events since boot: 16 and 32 bits of the status word from these bits on",
    );
    define_name(text, "STATUS_RESTARTS_SHIFT", &word(1, 0).to_string());
    define_name(text, "STATUS_EVENTS_SHIFT", &word(0, 1).to_string());
    start(text);
}

fn start(text: &mut String) {
    section(
        text,
        "start modes: bits 7:0 of the start word, and of the options of a start",
    );
    for mode in (0..=u8::MAX).filter_map(StartMode::from_number) {
        define(text, "START_", &mode, &format!("{}u", mode as u8));
    }
    section(
        text,
        "start causes: bits 15:8 of the start word; bits 23:16 are the health class of the last of them",
    );
    for (name, cause) in [
        ("BOOT", StartCause::Boot),
        ("SUPERVISOR", StartCause::Supervisor),
        ("OWN", StartCause::Own),
        ("HEALTH", StartCause::Health(HealthClass::Memory)),
    ] {
        let word = StartWord {
            cause,
            ..StartWord::default()
        };
        define_name(
            text,
            &format!("CAUSE_{name}"),
            &format!("{}u", word.encode() >> 8 & 0xFF),
        );
    }
    section(
        text,
        "alternative and starts since boot: 8 and 32 bits of the start word from these bits on",
    );
    let shift = |alternative, starts| {
        let word = StartWord {
            alternative,
            starts,
            ..StartWord::default()
        };
        word.encode().trailing_zeros().to_string()
    };
    for (name, event) in [
        ("WINDOW_START", WINDOW_START_EVENT),
        ("PERIOD_START", PERIOD_START_EVENT),
    ] {
        define_name(text, &format!("EVENT_{name}"), &format!("UINT64_C({event:#x})"));
    }
    define_name(text, "START_ALTERNATIVE_SHIFT", &shift(1, 0));
    define_name(text, "START_STARTS_SHIFT", &shift(0, 1));
    section(text, "an option of a start: this alternative from now on");
    let chosen = |number| {
        StartOptions {
            alternative: Some(number),
            ..StartOptions::default()
        }
        .encode()
    };
    define_name(
        text,
        "OPTION_ALTERNATIVE(n)",
        &format!("({}u | (n) * {}u)", chosen(0), chosen(1) - chosen(0)),
    );
}

fn startup(text: &mut String) {
    section(
        text,
        "startup page of a task, its address in x0 or r0 at the first instruction",
    );
    define_name(text, "STARTUP_MAGIC", &format!("UINT64_C({STARTUP_MAGIC:#x})"));
    text.push('\n');
    let fields = fields!(StartupHeader;
        magic: u64 => "uint64_t magic",
        count: u32 => "uint32_t count",
        abi_version: u32 => "uint32_t abi_version",
        memory_base: u64 => "uint64_t memory_base",
        memory_size: u64 => "uint64_t memory_size",
    );
    structure(
        text,
        "bulkhead_startup_header",
        size_of::<StartupHeader>(),
        &fields,
    );
    let fields = fields!(StartupCapability;
        name: [u8; 24] => "char name[24]",
        index: u32 => "uint32_t index",
        kind: u8 => "uint8_t kind",
        rights: u8 => "uint8_t rights",
        object: u16 => "uint16_t object",
    );
    structure(
        text,
        "bulkhead_startup_capability",
        size_of::<StartupCapability>(),
        &fields,
    );
}

#[test]
fn c_header_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/bulkhead.h");
    let wanted = header();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &wanted).expect("the header can be written");
    }
    let found = std::fs::read_to_string(&path).expect("the header exists");
    assert!(
        found == wanted,
        "include/bulkhead.h is out of date: BLESS=1 cargo test -p bulkhead-abi writes it"
    );
}

#[test]
fn numbers_are_unique_and_decode() {
    for (i, operation) in Operation::ALL.iter().enumerate() {
        assert_eq!(Operation::from_number(*operation as u16), Some(*operation));
        assert!(
            Operation::ALL[..i]
                .iter()
                .all(|other| (*other as u16) < *operation as u16),
            "order of {operation:?}"
        );
    }
    assert_eq!(
        (0..=u16::MAX).filter_map(Operation::from_number).count(),
        Operation::ALL.len()
    );
    for error in Error::ALL {
        assert_eq!(Error::from_code(*error as i64), Some(*error));
    }
    assert_eq!(Error::from_code(0), None);
}

#[test]
fn status_words_survive_encoding() {
    for state in (0..=u8::MAX).filter_map(PartitionState::from_number) {
        for last_event in std::iter::once(None).chain(HealthClass::ALL.iter().copied().map(Some)) {
            for (restarts, events) in [(0, 0), (1, 2), (u16::MAX, u32::MAX)] {
                let word = StatusWord {
                    state,
                    last_event,
                    restarts,
                    events,
                };
                assert_eq!(StatusWord::decode(word.encode()), Some(word));
            }
        }
    }
    assert_eq!(StatusWord::decode(0xFF), None);
    assert_eq!(StatusWord::decode(0xFF00), None);
}

/// The constants that a C program does not need: the instruction of class `armv7m` (the comment has it), a
/// figure of the analysis, and the name of the first capability.
const NOT_IN_C: [&str; 3] = ["HYPERCALL_INSTRUCTION", "ORDER_SPACE_NS", "SELF_NAME"];

#[test]
fn each_constant_of_the_interface_is_in_the_header() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/hypercall.rs");
    let source = std::fs::read_to_string(source).expect("the source of the crate");
    let names = source.lines().filter_map(|line| {
        let name = line.strip_prefix("pub const ")?.split(':').next()?;
        name.chars()
            .all(|character| character.is_ascii_uppercase() || character == '_')
            .then_some(name)
    });
    let header = header();
    let missing: Vec<_> = names
        .filter(|name| !NOT_IN_C.contains(name) && !header.contains(&format!("BULKHEAD_{name} ")))
        .collect();
    assert_eq!(missing, [""; 0]);
}
