// SPDX-License-Identifier: Apache-2.0
//! Systems of class `armv7m`: programs where they are linked, rewritten, in one flashable ELF file.

mod support;

use bulkhead_arch_api::class::ARMV7M;
use bulkhead_image::layout::{
    CONTROLLER_NVIC, MAP_CODE, MEMORY_CLEAR, MEMORY_EXECUTE, MEMORY_READ, MEMORY_WRITE, VIRTUAL_CMSDK_UART,
};
use bulkhead_image::{Image, Portable};
use bulkhead_manifest::parts::Part;
use bulkhead_manifest::{ClassBinary, CompileInput, FlashError, System, Window, compile, flashable};
use std::ops::Range;
use support::firmware::class_binary;
use support::microcontroller::{contents, image, system_of};
use support::{firmware, raw_binary};

/// Addresses of class binary, system image, log and RAM of the hypervisor on this board.
const BINARY: u32 = 0x3d_6000;
const IMAGE: u32 = BINARY + 0x8000;
const OWN_RAM: Range<u32> = 0x60ff_9000..0x6100_0000;
const LOG: u32 = OWN_RAM.start;
const POOL: u32 = LOG + 0x1000;
const CODE: u32 = 0x3_0000;
const RAM: u32 = 0x2001_0000;
/// The address where the code of `support::firmware` starts.
const START: u32 = CODE + 64;

/// `cpsid i; mrs r1, primask; msr basepri, r3; msr apsr_nzcvq, r0; udf #255; wfi; b .`, then data that looks
/// like `cpsid i`.
const PROGRAM: [u16; 12] = [
    0xb672, 0xf3ef, 0x8110, 0xf383, 0x8811, 0xf380, 0x8800, 0xdeff, 0xbf30, 0xe7fe, 0xb672, 0xb672,
];
const PROGRAM_MAP: [(u32, &str); 2] = [(0, "$t"), (20, "$d.7")];

const MANIFEST: &str = r#"
board = "mps2-an500"
[partition.rtos]
kind = "vm"
image = "@guests/rtos"
memory = "16K"
devices = ["uart1"]
vcpus = [{ pcpu = 0 }]
"#;

const TASK: &str = r#"
board = "mps2-an500"
[partition.driver]
kind = "task"
image = "@guests/driver"
memory = "4K"
vcpus = [{ pcpu = 0 }]
[partition.driver.capabilities]
clock = { timer = true }
"#;

fn system(name: &str, program: &[u8]) -> Result<System, String> {
    system_of(MANIFEST, name, program)
}

#[test]
fn the_image_says_where_everything_is() {
    let system = system("image", &firmware(CODE, RAM, &PROGRAM, &PROGRAM_MAP)).expect("a system");
    // The map has all that programs cannot have, not only the part that an image takes.
    let own = system
        .memory_map()
        .into_iter()
        .find(|row| row.what == "hypervisor, system image");
    let own = own.expect("a row of the map");
    assert_eq!((own.host, own.size), (BINARY.into(), 168 << 10));
    let bytes = image(&system);
    let image = Image::check(&bytes, &ARMV7M, &Portable).expect("checked");
    let board = image.board();
    assert_eq!(
        (board.load_address.get(), board.image_base.get()),
        (BINARY.into(), IMAGE.into())
    );
    assert_eq!(
        (board.pool_base.get(), board.pool_size.get()),
        (POOL.into(), 0x6000)
    );
    assert_eq!(board.log_base.get(), u64::from(LOG));
    assert!((0x2000_0000..0x2040_0000).contains(&board.trace_base.get()));
    assert!(image.map().iter().any(|entry| entry.kind.get() == MAP_CODE));
    assert!(
        image
            .controllers()
            .iter()
            .any(|controller| controller.compatible.get() == CONTROLLER_NVIC)
    );
    let rtos = &image.partitions()[0];
    assert_eq!(rtos.argument.get(), u64::from(CODE));
    assert_eq!(rtos.entry.get(), u64::from(START | 1));
    assert_eq!(rtos.stack.get(), u64::from(RAM + 0x1000));
    assert_eq!(rtos.virtual_lines.get(), 32);
    let memory: Vec<_> = image
        .memory_of(0)
        .map(|mapping| (mapping.guest.get(), mapping.size.get(), mapping.flags.get()))
        .collect();
    assert_eq!(
        memory[0],
        (RAM.into(), 0x4000, MEMORY_READ | MEMORY_WRITE | MEMORY_CLEAR)
    );
    assert_eq!(memory[1], (CODE.into(), 96, MEMORY_READ | MEMORY_EXECUTE));
    assert_eq!((memory[2].0, memory[2].1), (0x4000_5000, 0x1000));
    let uart = &image.virtual_devices()[0];
    assert_eq!(uart.kind.get(), VIRTUAL_CMSDK_UART);
    assert_eq!((uart.base[0].get(), uart.virtual_line.get()), (0x4000_4000, 0));
    let lines: Vec<u32> = image
        .interrupts()
        .iter()
        .map(|record| record.line.get())
        .collect();
    assert_eq!(lines, [2, 3]);
    assert_eq!(image.loads().len(), 0);
}

#[test]
fn a_task_has_its_startup_page_behind_its_code_and_nothing_replaced() {
    let system = system_of(TASK, "task", &firmware(CODE, RAM, &PROGRAM, &PROGRAM_MAP)).expect("a system");
    let bytes = image(&system);
    let image = Image::check(&bytes, &ARMV7M, &Portable).expect("checked");
    let task = &image.partitions()[0];
    let page = CODE + 96;
    assert_eq!(task.entry.get(), u64::from(START | 1));
    assert_eq!(task.argument.get(), u64::from(page));
    assert_eq!(task.stack.get(), u64::from(RAM + 0x1000));
    assert_eq!((task.virtual_lines.get(), image.virtual_devices().len()), (0, 0));
    assert_eq!(image.lookalikes().len(), 0);
    let resident: Vec<u64> = image
        .residents()
        .iter()
        .map(|resident| resident.address.get())
        .collect();
    assert_eq!(resident, [u64::from(CODE), u64::from(page)]);
    let binary = ClassBinary::from_elf(&class_binary(BINARY, OWN_RAM)).expect("a class binary");
    let file = flashable(&binary, &bytes, &system).expect("a file");
    let program = contents(&file, CODE).expect("the program");
    let halves = program[64..]
        .chunks(2)
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    assert!(halves.take(PROGRAM.len()).eq(PROGRAM));
    let page = contents(&file, page).expect("the startup page");
    assert_eq!(page[..8], *b"BHSTART1");
    assert_eq!((page.len(), page[8]), (32 + 2 * 32, 2));
    assert_eq!(page[16..24], u64::from(RAM).to_le_bytes());
    assert_eq!(&page[64..69], b"clock");
}

#[test]
fn a_task_that_cannot_start_is_refused() {
    let program = firmware(CODE, RAM, &PROGRAM, &PROGRAM_MAP);
    let refusal = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut changed = program.clone();
        change(&mut changed);
        system_of(TASK, "refused-task", &changed).expect_err("a refusal")
    };
    // The entry point is the word at 24 of the file's header.
    let entry = |address: u32| move |file: &mut Vec<u8>| file[24..28].copy_from_slice(&address.to_le_bytes());
    let outside = refusal(&entry(RAM | 1));
    assert!(
        outside.contains("E063") && outside.contains("is not in code memory"),
        "{outside}"
    );
    let even = refusal(&entry(START));
    assert!(even.contains("E063") && even.contains("bit 0 is clear"), "{even}");
}

#[test]
fn instructions_are_replaced_and_nothing_else() {
    let before = firmware(CODE, RAM, &PROGRAM, &PROGRAM_MAP);
    let system = system("replaced", &before).expect("a system");
    assert_eq!(system.replaced(0), Some((4, 1)));
    let regions: Vec<_> = system
        .mpu_regions(0)
        .iter()
        .map(|region| (region.base, region.size, region.left_out, region.access.name()))
        .collect();
    // The code has 88 bytes: too few for eighths, so the block is the one that the planner makes of 96.
    let code: u64 = regions
        .iter()
        .filter(|region| region.3 == "rx")
        .map(|region| region.1 - region.1 / 8 * u64::from(region.2.count_ones()))
        .sum();
    assert_eq!(code, 96);
    assert!(regions.contains(&(RAM.into(), 0x4000, 0, "rw".to_owned())));
    assert!(regions.contains(&(0x4000_5000, 0x1000, 0, "rw".to_owned())));
    let bytes = image(&system);
    let image = Image::check(&bytes, &ARMV7M, &Portable).expect("checked");
    assert_eq!(image.lookalikes().len(), 0);
    let binary = ClassBinary::from_elf(&class_binary(BINARY, OWN_RAM)).expect("a class binary");
    let file = flashable(&binary, &bytes, &system).expect("a file");
    let found = contents(&file, CODE).expect("the program");
    let halves: Vec<u16> = found[64..]
        .chunks(2)
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
        .collect();
    assert_eq!(
        halves,
        [
            0xde92, 0xf7f0, 0xa110, 0xf7fa, 0xa311, 0xf380, 0x8800, 0xdeff, 0xdea3, 0xe7fe, 0xb672, 0xb672
        ]
    );
    assert_eq!(image.check_resident(0, &found, &Portable), Ok(()));
    assert!(
        image
            .check_resident(0, &before[116..116 + found.len()], &Portable)
            .is_err()
    );
    // The system image is where the class binary looks for it.
    assert_eq!(contents(&file, IMAGE).as_deref(), Some(&bytes[..]));
    assert_eq!(contents(&file, BINARY).as_deref(), Some(&b"program."[..]));
    // The place where the CPU looks after a reset belongs to the hypervisor.
    let vectors = [[0; 4], (BINARY | 1).to_le_bytes()].concat();
    assert_eq!(contents(&file, 0), Some(vectors));
}

#[test]
fn what_only_looks_like_a_replaced_instruction_is_listed() {
    // Own UDFs of both lengths, also of numbers that stand for nothing; CPSID; data with a WFI in the middle
    // of an MRS; half of an instruction at the end.
    let halves = [
        0xde92, 0xf7fa, 0xa311, 0xde55, 0xf7f4, 0xa001, 0xb672, 0xe7fe, 0xf7f0, 0xa110, 0xdea3, 0xf7f0,
    ];
    let program = firmware(CODE, RAM, &halves, &[(0, "$t"), (16, "$d")]);
    let system = system("lookalikes", &program).expect("a system");
    assert_eq!(system.replaced(0), Some((1, 4)));
    let bytes = image(&system);
    let image = Image::check(&bytes, &ARMV7M, &Portable).expect("checked");
    let found: Vec<u32> = image
        .lookalikes()
        .iter()
        .map(|lookalike| lookalike.address.get() - START)
        .collect();
    assert_eq!(found, [0, 2, 16, 20, 22]);
}

/// Returns why a system with this code needs `semihosting`, if it does.
fn debugger(name: &str, halves: &[u16], map: &[(u32, &str)], manifest: &str) -> Option<String> {
    let system = system_of(manifest, name, &firmware(CODE, RAM, halves, map)).expect("a system");
    let mut used = system.parts(false).into_iter();
    used.find(|used| used.part == Part::Semihosting)
        .map(|used| used.why)
}

#[test]
fn a_call_of_a_debugger_is_found_wherever_a_jump_can_meet_it() {
    let code = [(0, "$t")];
    let at = |address: u32| format!("jumps to {address:#x}, within another instruction or data");
    let why = debugger("call", &[0xbeab, 0xe7fe], &code, MANIFEST).expect("an instruction");
    assert_eq!(why, "the program of `rtos` can call a debugger");
    // LDR.W r11, [r0, #0xeab].
    let why = debugger("second", &[0xbf00, 0xf8d0, 0xbeab, 0xe7fe], &code, MANIFEST).expect("half of one");
    assert!(why.ends_with(&at(START + 4)), "{why}");
    let data = [(0, "$t"), (2, "$d")];
    let why = debugger("data", &[0xe7fe, 0x0000, 0xbeab], &data, MANIFEST).expect("data");
    assert!(why.ends_with(&at(START + 4)), "{why}");
    // The same bytes at odd addresses are no calls, and a task has no debugger.
    assert_eq!(debugger("odd", &[0xe7fe, 0xab00, 0x00be], &data, MANIFEST), None);
    assert_eq!(debugger("task", &[0xf8d0, 0xbeab, 0xe7fe], &code, TASK), None);
    let unheard = format!("{MANIFEST}machine = {{ semihosting = false }}\n");
    assert_eq!(
        debugger("unheard", &[0xf8d0, 0xbeab, 0xe7fe], &code, &unheard),
        None
    );
}

#[test]
fn a_program_may_be_linked_to_the_reset_vectors() {
    let before = support::firmware_at(0, 0x2000_0000);
    let system = system("zero", &before).expect("a system");
    let bytes = image(&system);
    let image = Image::check(&bytes, &ARMV7M, &Portable).expect("checked");
    let rtos = &image.partitions()[0];
    assert_eq!((rtos.argument.get(), rtos.entry.get()), (0, 65));
    assert_eq!(rtos.stack.get(), 0x2000_1000);
    let binary = ClassBinary::from_elf(&class_binary(BINARY, OWN_RAM)).expect("a class binary");
    let file = flashable(&binary, &bytes, &system).expect("a file");
    let found = contents(&file, 0).expect("the program");
    assert_eq!(found[..4], 0x2000_1000_u32.to_le_bytes());
    assert_eq!(found[4..8], (BINARY | 1).to_le_bytes());
    assert_eq!(found[8..], before[116 + 8..][..found.len() - 8]);
    assert_eq!(image.check_resident(0, &found, &Portable), Ok(()));
}

#[test]
fn a_class_binary_that_is_linked_elsewhere_is_refused() {
    let system = system("elsewhere", &support::firmware_at(CODE, RAM)).expect("a system");
    let binary = ClassBinary::from_elf(&class_binary(0, OWN_RAM)).expect("a class binary");
    let refused = FlashError::Elsewhere {
        linked: 0,
        board: BINARY.into(),
    };
    assert_eq!(flashable(&binary, &[], &system), Err(refused));
}

#[test]
fn a_class_binary_with_other_ram_is_refused() {
    let system = system("ram", &support::firmware_at(CODE, RAM)).expect("a system");
    let window = |range: Range<u32>| Window {
        base: range.start.into(),
        size: u64::from(range.end - range.start),
    };
    for linked in [
        0x203f_8000..0x2040_0000,
        LOG + 4..OWN_RAM.end,
        LOG..OWN_RAM.end + 4,
    ] {
        let binary = class_binary(BINARY, linked.clone());
        let binary = ClassBinary::from_elf(&binary).expect("a class binary");
        assert_eq!(binary.len(), 0x8000);
        let refused = FlashError::RamElsewhere {
            linked: window(linked),
            board: window(OWN_RAM),
        };
        assert_eq!(flashable(&binary, &[], &system), Err(refused));
    }
}

#[test]
fn code_that_cannot_be_told_from_data_is_listed() {
    /// Code, mapping symbols, and the text of the refusal.
    type Case = (&'static [u16], &'static [(u32, &'static str)], &'static str);
    let cases: [Case; 7] = [
        (&[0xe7fe], &[], "0x00030040 to 0x00030042"),
        // The CPU would see `cpsid i` at 0x30042.
        (
            &[0xe7fe, 0xb672],
            &[(1, "$t")],
            "0x00030041 in section `.text`: T32 code at an odd address",
        ),
        (
            &[0xe7fe, 0xb672],
            &[(0, "$t"), (3, "$d")],
            "0x00030042 in section `.text`: the code ends within",
        ),
        (
            &[0xe7fe, 0xf3ef, 0x8010],
            &[(0, "$t"), (4, "$t")],
            "0x00030042 in section `.text`: the code ends within",
        ),
        (
            &[0xe7fe, 0xf3ef],
            &[(0, "$t")],
            "the code ends within an instruction",
        ),
        (
            &[0xbf30, 0xe7fe],
            &[(2, "$t")],
            "0x00030040 to 0x00030042 in section `.text`: no symbol says whether this is code or data, and 0x00030040 could be",
        ),
        (&[0xe7fe, 0xe7fe], &[(0, "$a")], "A32 instructions"),
    ];
    for (number, (code, map, expected)) in cases.into_iter().enumerate() {
        let refused =
            system(&format!("list-{number}"), &firmware(CODE, RAM, code, map)).expect_err("refused");
        assert!(
            refused.contains("E082") && refused.contains(expected),
            "{refused}"
        );
    }
}

/// Puts words into a file.
fn with_words(file: &[u8], words: &[(usize, u32)]) -> Vec<u8> {
    let mut file = file.to_vec();
    for (at, word) in words {
        file[*at..at + 4].copy_from_slice(&word.to_le_bytes());
    }
    file
}

/// Returns the offset of the section headers of a file.
fn sections_at(file: &[u8]) -> usize {
    u32::from_le_bytes(file[32..36].try_into().expect("four bytes")) as usize
}

#[test]
fn code_that_is_executed_and_would_not_be_read_is_refused() {
    const FIRST: usize = 52;
    const SECOND: usize = FIRST + 32;
    const LENGTH: u32 = 64 + 2 * PROGRAM.len() as u32;
    let good = firmware(CODE, RAM, &PROGRAM, &PROGRAM_MAP);
    let (text, vectors) = (sections_at(&good) + 40, sections_at(&good) + 4 * 40);
    let copy = [
        (4, 52 + 64),
        (8, CODE + 0x1000),
        (12, CODE + 0x1000),
        (16, LENGTH),
        (20, LENGTH),
        (24, 5),
    ];
    // The table of names is the section before the last one; the last name loses its end.
    let names = sections_at(&good) + 3 * 40 + 20;
    let shorter = u32::from_le_bytes(good[names..names + 4].try_into().expect("four bytes")) - 1;
    let cases = [
        (
            "unnamed",
            with_words(&good, &[(names, shorter)]),
            "the name of a symbol has no end in the table of names",
        ),
        (
            "larger",
            with_words(&good, &[(FIRST + 16, 68), (FIRST + 20, 68)]),
            "section `.text` is larger than the segment it is in",
        ),
        (
            "twice",
            with_words(&good, &copy.map(|(at, word)| (SECOND + at, word))),
            "section `.text` is in several segments",
        ),
        (
            // The section starts in none of the segments and ends in one.
            "before",
            with_words(&good, &[(text + 16, 52 + 64 - 4), (text + 20, LENGTH)]),
            "section `.text` is larger than the segment it is in",
        ),
        (
            // The beginning of the section is in a segment of RAM, where nothing is executed. The rest is in
            // code memory.
            "across",
            with_words(
                &good,
                &[
                    (SECOND + 4, 52 + 32),
                    (SECOND + 16, 32),
                    (text + 16, 52 + 64 - 4),
                    (text + 20, LENGTH),
                ],
            ),
            "section `.text` is in several segments",
        ),
        (
            "overlap",
            with_words(&good, &[(vectors + 8, 6), (vectors + 20, 72)]),
            "its section `` and its section `.text` overlap",
        ),
    ];
    for (name, bad, expected) in cases {
        let refused = system(name, &bad).expect_err("refused");
        assert!(
            refused.contains("E057") && refused.contains(expected),
            "{refused}"
        );
    }
}

#[test]
fn code_in_a_section_of_data_is_code_if_a_symbol_says_so() {
    let good = firmware(CODE, RAM, &PROGRAM, &PROGRAM_MAP);
    // A section that is allocated, but not executable: a start-up file in assembly that forgets the flag
    // makes one.
    let text = sections_at(&good) + 40;
    let marked = with_words(&good, &[(text + 8, 2)]);
    assert_eq!(
        system("data", &marked).expect("a system").replaced(0),
        Some((4, 1))
    );
    // Contents without a symbol are data there.
    let silent = firmware(CODE, RAM, &PROGRAM, &[]);
    let silent = with_words(&silent, &[(sections_at(&silent) + 40 + 8, 2)]);
    assert_eq!(
        system("silent", &silent).expect("a system").replaced(0),
        Some((0, 0))
    );
}

/// Gives symbols of a file a kind and a size: its number, `STT_FUNC` or `STT_OBJECT`, bytes.
fn with_kinds(file: &[u8], kinds: &[(usize, u8, u32)]) -> Vec<u8> {
    let mut file = file.to_vec();
    let table = sections_at(&file) + 2 * 40 + 16;
    let symbols = u32::from_le_bytes(file[table..table + 4].try_into().expect("four bytes")) as usize;
    for (number, kind, size) in kinds {
        let symbol = symbols + 16 * number;
        file[symbol + 8..symbol + 12].copy_from_slice(&size.to_le_bytes());
        file[symbol + 12] = *kind;
    }
    file
}

#[test]
fn constants_behind_code_stay_what_they_are_whatever_linker_put_them_there() {
    const FUNCTION: u8 = 2;
    const VARIABLE: u8 = 1;
    // LLD writes no mapping symbol for the data at the end of `PROGRAM`.
    let names = [(0, "$t"), (1, "main"), (20, "table")];
    let lld = firmware(CODE, RAM, &PROGRAM, &names);
    let function = (2, FUNCTION, 20);
    let table = with_kinds(&lld, &[function, (3, VARIABLE, 4)]);
    let built = system("lld", &table).expect("a system");
    let marked = system("ld", &firmware(CODE, RAM, &PROGRAM, &PROGRAM_MAP)).expect("a system");
    assert_eq!(
        (built.replaced(0), image(&built)),
        (marked.replaced(0), image(&marked))
    );
    // Constants without names: a string could not be an instruction to be replaced, but these constants
    // could.
    let refused = system("strings", &with_kinds(&lld, &[function])).expect_err("refused");
    let expected = "0x00030054 to 0x00030058 in section `.text`: no symbol says whether this is code or data, and 0x00030054 could be";
    assert!(
        refused.contains("E082") && refused.contains(expected),
        "{refused}"
    );
    let mut harmless = PROGRAM;
    harmless[10..].copy_from_slice(&[0x6568, 0x006c]);
    let harmless = with_kinds(&firmware(CODE, RAM, &harmless, &names), &[function]);
    assert_eq!(
        system("string", &harmless).expect("a system").replaced(0),
        Some((4, 1))
    );
}

#[test]
fn many_sections_over_much_code_take_no_longer_than_both() {
    const MORE: u16 = 60_000;
    let code = vec![0xbf00; 0x2_0000];
    let good = firmware(CODE, RAM, &code, &[(0, "$t")]);
    let headers = good[sections_at(&good)..].to_vec();
    let mut bad = with_words(&good, &[(32, good.len() as u32)]);
    bad[48..50].copy_from_slice(&(MORE + 5).to_le_bytes());
    bad.extend(&headers);
    // Each section says once more that the vector table is data.
    for _ in 0..MORE {
        bad.extend(&headers[4 * 40..]);
    }
    let system = system("many", &bad).expect("it is a fine program");
    assert!(!image(&system).is_empty());
}

#[test]
fn damaged_programs_are_refused_and_never_more() {
    let good = firmware(CODE, RAM, &PROGRAM, &PROGRAM_MAP);
    for end in (0..good.len()).step_by(7) {
        let _ = system("cut", &good[..end]).map(|system| image(&system));
    }
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x81;
        let _ = system("bit", &bad).map(|system| {
            compile(
                &system,
                &CompileInput {
                    class_binary_len: 0x8000,
                    stop_after_ms: None,
                    trace_records: None,
                },
            )
        });
    }
}

#[test]
fn a_raw_binary_without_such_instructions_stays_as_it_is() {
    let manifest = MANIFEST.replace(
        "memory =",
        &format!("place = {RAM:#x}\nmachine.load-at = {CODE:#x}\nmemory ="),
    );
    let loop_only = raw_binary(&firmware(CODE, RAM, &[0xe7fe], &[]));
    let system = system_of(&manifest, "raw", &loop_only).expect("a system");
    assert_eq!(system.replaced(0), Some((0, 0)));
    let masks = raw_binary(&firmware(CODE, RAM, &PROGRAM, &PROGRAM_MAP));
    let refused = system_of(&manifest, "masks", &masks).expect_err("refused");
    assert!(
        refused.contains("E082") && refused.contains("has no symbols"),
        "{refused}"
    );
}
