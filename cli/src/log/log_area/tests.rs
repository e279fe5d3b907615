// SPDX-License-Identifier: Apache-2.0
//! Damaged and undamaged areas, and the texts about them.

use super::*;
use bulkhead_abi::log::{AREA_SIZE, ENTRIES, ENTRY_WORDS, LINE_MAX, RING_SIZE, STACK_WORDS};
use std::sync::atomic::AtomicU64;

fn area(put: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0; AREA_SIZE];
    let header: [(usize, &[u8]); 4] = [
        (0, &MAGIC.to_le_bytes()),
        (offset_of!(Header, version), &VERSION.to_le_bytes()),
        (offset_of!(Header, size), &(AREA_SIZE as u32).to_le_bytes()),
        (offset_of!(Header, hertz), &1_000_000_u64.to_le_bytes()),
    ];
    for (at, value) in header.iter().chain(put) {
        bytes[*at..*at + value.len()].copy_from_slice(value);
    }
    bytes
}

/// Returns the words of an entry as a CPU stores them.
fn words_of(entry: &Entry) -> [u64; ENTRY_WORDS] {
    let place = [const { AtomicU64::new(0) }; ENTRY_WORDS];
    entry.store(&place);
    place.map(AtomicU64::into_inner)
}

/// Returns an entry as a little-endian CPU stores it.
fn stored(entry: &Entry) -> Vec<u8> {
    words_of(entry)
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect()
}

#[test]
fn an_area_is_found_anywhere_in_a_dump_and_noise_is_not_one() {
    let mut dump = vec![0xA5; 4096 + 8];
    dump[16..24].copy_from_slice(&MAGIC.to_le_bytes());
    dump.extend(area(&[(offset_of!(Header, boots), &[7])]));
    let (at, found) = LogArea::find(&dump).unwrap();
    assert_eq!((at, found.boots()), (4104, 7));
    assert!(LogArea::find(&dump[..dump.len() - 1]).is_none(), "cut off");
    assert!(LogArea::find(&[]).is_none());
}

#[test]
fn the_area_of_a_microcontroller_is_shorter_and_as_readable() {
    let mut bytes = vec![0xA5; SMALL.size + 8];
    bytes[..SMALL.size].fill(0);
    let put: [(usize, &[u8]); 9] = [
        (0, &MAGIC.to_le_bytes()),
        (offset_of!(Header, version), &VERSION.to_le_bytes()),
        (offset_of!(Header, size), &(SMALL.size as u32).to_le_bytes()),
        (offset_of!(Header, written), &64_u64.to_le_bytes()),
        (offset_of!(Header, reserved), &64_u64.to_le_bytes()),
        (offset_of!(Header, partitions), &[200]),
        (SMALL.partitions.0, b"rtos"),
        (SMALL.ring.0, &stored(&Entry::text(1_000_000_000, b"text"))),
        (0x100, &CRASH_NEW.to_le_bytes()),
    ];
    for (at, value) in put {
        bytes[at..at + value.len()].copy_from_slice(value);
    }
    let mut asked = Vec::new();
    let read = read::<()>(0x1000, &mut |at, length| {
        asked.push((at, length));
        Ok(bytes[..length].to_vec())
    });
    assert_eq!(asked, [(0x1000, SMALL.size)]);
    let memory = read.unwrap();
    let area = LogArea::at_start(&memory).unwrap();
    assert_eq!(area.lines(), ["[1.000000] text"]);
    let counts = area.counts();
    assert_eq!(
        counts.partitions.len(),
        SMALL.partitions.1,
        "no more than there is room for"
    );
    assert_eq!(counts.partitions[0].name, "rtos");
    assert!(
        area.text_of_all()
            .contains("crash of the hypervisor: lockdown in boot 0")
    );
    assert!(LogArea::at_start(&memory[..SMALL.size - 1]).is_none());
}

#[test]
fn every_area_is_found_and_none_controls_the_terminal() {
    let ring = offset_of!(Area, ring);
    let forged = area(&[
        (offset_of!(Header, written), &64_u64.to_le_bytes()),
        (offset_of!(Header, reserved), &64_u64.to_le_bytes()),
        (offset_of!(Header, board), b"\x1b[2J"),
        (ring, &stored(&Entry::text(0, b"a\x1b[mb"))),
    ]);
    let dump = [vec![0; 64], forged, area(&[])].concat();
    let found: Vec<_> = LogArea::find_all(&dump).collect();
    let places: Vec<_> = found.iter().map(|(at, _)| *at).collect();
    assert_eq!(places, [64, 64 + AREA_SIZE]);
    assert_eq!(found[0].1.lines(), ["[0.000000] a\u{FFFD}[mb"]);
    let all = found[0].1.text_of_all();
    assert!(all.chars().all(|c| c == '\n' || !c.is_control()), "{all:?}");
}

#[test]
fn noise_in_an_area_is_shown_without_harm() {
    let mut state = 1_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..60 {
        let layout = if round % 2 == 0 { SMALL } else { LARGE };
        let mut bytes: Vec<u8> = (0..layout.size / 8)
            .flat_map(|_| match round % 3 {
                0 => random().to_le_bytes(),
                1 => (random() % 5).to_le_bytes(),
                _ => [if random() % 4 == 0 { 0xff } else { 0 }; 8],
            })
            .collect();
        // A reader does not find the area without these fields, so they are not random.
        let written = random() >> (random() % 56).max(1) & !(ENTRY_SIZE as u64 - 1);
        let reserved = written + ((random() % LINE_MAX as u64) & !(ENTRY_SIZE as u64 - 1));
        let header: [(usize, &[u8]); 5] = [
            (0, &MAGIC.to_le_bytes()),
            (offset_of!(Header, version), &VERSION.to_le_bytes()),
            (offset_of!(Header, size), &(layout.size as u32).to_le_bytes()),
            (offset_of!(Header, written), &written.to_le_bytes()),
            (offset_of!(Header, reserved), &reserved.to_le_bytes()),
        ];
        for (at, value) in header {
            bytes[at..at + value.len()].copy_from_slice(value);
        }
        let (at, area) = LogArea::find(&bytes).unwrap();
        assert_eq!(at, 0);
        let _ = (
            area.rings(),
            area.hertz(),
            area.booted(),
            area.tables(),
            area.boots(),
            area.lines(),
        );
        let texts = [
            area.board(),
            area.counts().table(),
            area.crash().unwrap_or_default(),
            area.text_of_all(),
        ];
        for text in texts {
            assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
        }
    }
}

/// Returns a fault of a partition in no time.
fn fault(partition: u8) -> Entry {
    let mut entry = Entry::new(Kind::Fault, 0);
    entry.partition = partition;
    entry
}

/// Returns an area whose ring holds these entries, and as many others before that a life of any length has.
fn ring_of(entries: &[Entry], before: u64, names: &[&[u8]]) -> Vec<u8> {
    let written = (before + entries.len() as u64) * ENTRY_SIZE as u64;
    let mut bytes = area(&[
        (offset_of!(Header, written), &written.to_le_bytes()),
        (offset_of!(Header, reserved), &written.to_le_bytes()),
        (offset_of!(Header, partitions), &[names.len() as u8]),
    ]);
    for (name, index) in names.iter().zip(0..) {
        let at = LARGE.partitions.0 + index * size_of::<Partition>();
        bytes[at..at + name.len()].copy_from_slice(name);
    }
    for (entry, number) in entries.iter().zip(before..) {
        let at = LARGE.ring.0 + number as usize % ENTRIES * ENTRY_SIZE;
        bytes[at..at + ENTRY_SIZE].copy_from_slice(&stored(entry));
    }
    bytes
}

#[test]
fn lines_across_the_wrap_and_a_line_in_the_making() {
    let mut long = [
        Entry::text(7_000, b"one line of "),
        Entry::text(8_000, b"two entries"),
    ];
    long[0].flags = bulkhead_abi::log::entry::MORE;
    let entries = [long[0], long[1], Entry::text(0, b"last")];
    let mut bytes = ring_of(&entries, ENTRIES as u64 - 1, &[]);
    let reserved = (ENTRIES as u64 + 5) * ENTRY_SIZE as u64;
    let at = offset_of!(Header, reserved);
    bytes[at..at + 8].copy_from_slice(&reserved.to_le_bytes());
    let area = LogArea::find(&bytes).unwrap().1;
    assert_eq!(
        area.lines(),
        ["[0.000007] one line of two entries", "[0.000000] last"],
        "entries that were never written are no lines"
    );
    assert_eq!(RING_SIZE, ENTRIES * ENTRY_SIZE);
}

#[test]
fn a_partition_has_the_name_that_it_had_in_the_life_of_the_entry() {
    let named = |partition: u8, name: &[u8]| {
        let mut entry = Entry::new(Kind::Partition, 0);
        entry.partition = partition;
        entry.put_bytes(name);
        entry
    };
    let name = |line: &String| line.split(['=', ' ']).nth(3).unwrap_or("?").to_owned();
    let entries = [
        fault(0),
        named(0, b"old"),
        fault(0),
        fault(1),
        named(0, b"new"),
        named(1, b"other"),
        fault(0),
        fault(1),
    ];
    let bytes = ring_of(&entries, 0, &[b"new", b"other"]);
    let lines = LogArea::find(&bytes).unwrap().1.lines();
    let faults: Vec<String> = lines
        .iter()
        .filter(|line| line.contains("health"))
        .map(name)
        .collect();
    assert_eq!(faults, ["#0", "old", "#1", "new", "other"]);
    let bytes = ring_of(&[fault(1)], 9000, &[b"new", b"other"]);
    let lines = LogArea::find(&bytes).unwrap().1.lines();
    assert_eq!(
        name(lines.last().unwrap()),
        "other",
        "the names of the last life are kept"
    );
}

#[test]
fn the_running_vcpu_is_charged_up_to_the_last_event() {
    let at = offset_of!(Area, pcpus);
    let vcpu = offset_of!(Area, vcpus);
    let partition = offset_of!(Area, partitions);
    let bytes = area(&[
        (offset_of!(Header, pcpus), &[1]),
        (offset_of!(Header, partitions), &[1]),
        (offset_of!(Header, vcpus), &[1]),
        (offset_of!(Header, noted), &1000_u64.to_le_bytes()),
        (at + offset_of!(Pcpu, idle), &300_u64.to_le_bytes()),
        (at + offset_of!(Pcpu, since), &600_u64.to_le_bytes()),
        (vcpu + offset_of!(Vcpu, ran), &300_u64.to_le_bytes()),
        (vcpu + offset_of!(Vcpu, exits.accesses), &[9]),
        (vcpu + offset_of!(Vcpu, exits.interrupts), &[1]),
        (partition, b"rogue"),
        (partition + offset_of!(Partition, state), &[3]),
        (partition + offset_of!(Partition, events) + 4, &[9]),
    ]);
    let counts = LogArea::find(&bytes).unwrap().1.counts();
    assert_eq!((counts.time, &counts.idle[..]), (1_000_000, &[300_000][..]));
    let rogue = &counts.partitions[0];
    assert_eq!((rogue.ran, rogue.state), (700_000, "failed"));
    assert_eq!((rogue.vcpus[0].exits[2], rogue.vcpus[0].total()), (9, 10));
    assert_eq!(rogue.events, [("memory", 9)]);
    let table = counts.table();
    assert!(table.contains("failed    70.0%* "), "{table}");
    assert!(table.contains("30.0%*\n* alone on its pCPU"), "{table}");
    let exits = "rogue               10         1       0       9       0       0       0       0";
    assert!(table.lines().any(|line| line == exits), "{table}");
    assert!(table.contains("health events of rogue: 9 memory"), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
}

#[test]
fn interrupts_that_were_late_are_shown_and_so_is_that_none_was() {
    let prompt = offset_of!(Area, partitions) + offset_of!(Partition, prompt);
    let shown = |put: &[(usize, &[u8])]| {
        let numbers: [(usize, &[u8]); 2] = [
            (offset_of!(Header, partitions), &[1]),
            (offset_of!(Area, partitions), b"serial"),
        ];
        let counts = LogArea::find(&area(&[&numbers, put].concat()))
            .unwrap()
            .1
            .counts()
            .table();
        let line = counts.lines().find(|line| line.starts_with("interrupts of "));
        line.map(str::to_owned)
    };
    let kept: (usize, &[u8]) = (prompt + offset_of!(Prompt, kept), &[9]);
    assert_eq!(shown(&[]), None);
    assert_eq!(
        shown(&[kept]).as_deref(),
        Some("interrupts of serial: 9 in time, 0 late")
    );
    let late = [
        kept,
        (prompt + offset_of!(Prompt, late), &[2]),
        (prompt + offset_of!(Prompt, latest), &[3]),
        (prompt + offset_of!(Prompt, unknown), &[1]),
    ];
    assert_eq!(
        shown(&late).as_deref(),
        Some("interrupts of serial: 9 in time, 2 late (by 3.00 us at most), 1 came while masked")
    );
}

#[test]
fn who_shares_a_pcpu_or_waits_by_an_exit_waits_in_nobodys_time() {
    let vcpu = offset_of!(Area, vcpus);
    let counts = |put: &[(usize, &[u8])]| {
        let numbers: [(usize, &[u8]); 2] = [
            (offset_of!(Header, pcpus), &[1]),
            (offset_of!(Header, partitions), &[1]),
        ];
        let bytes = area(&[&numbers, put].concat());
        LogArea::find(&bytes).unwrap().1.counts()
    };
    let one: (usize, &[u8]) = (offset_of!(Header, vcpus), &[1]);
    let alone = counts(&[one]);
    assert!(alone.waits_in_place[0] && alone.partitions[0].waits_in_place);
    let others: [&[(usize, &[u8])]; 3] = [
        // The vCPU has a neighbour on the pCPU, it waits by an exit, or none runs.
        &[(offset_of!(Header, vcpus), &[2])],
        &[one, (vcpu + offset_of!(Vcpu, exits.idle), &[1])],
        &[
            one,
            (offset_of!(Area, pcpus) + offset_of!(Pcpu, running), &[255; 4]),
        ],
    ];
    for put in others {
        let counts = counts(put);
        assert!(
            !counts.waits_in_place[0] && !counts.partitions[0].waits_in_place,
            "{put:?}"
        );
        assert!(!counts.table().contains('*'));
    }
}

#[test]
fn a_clock_is_late_if_it_was_or_if_it_is_due_and_has_not_come() {
    let at = offset_of!(Area, pcpus);
    let second = at + size_of::<Pcpu>();
    let bytes = area(&[
        (offset_of!(Header, pcpus), &[3]),
        (offset_of!(Header, noted), &(10 * CLOCK_STEP).to_le_bytes()),
        // The first one is due later, and has been late. The second one is due. The third one is never due.
        (at + offset_of!(Pcpu, due), &[12]),
        (at + offset_of!(Pcpu, late), &[3]),
        (second + offset_of!(Pcpu, due), &[4]),
        (second + offset_of!(Pcpu, late), &[1]),
    ]);
    // A tick is a microsecond.
    let steps = |number: u64| number * CLOCK_STEP * 1000;
    let delays = LogArea::find(&bytes).unwrap().1.delays();
    assert_eq!(delays, [steps(3), steps(6), 0]);
}

#[test]
fn a_clock_that_is_due_in_a_month_is_not_late() {
    let at = offset_of!(Area, pcpus);
    // The limit of a run without `--timeout`: 4,000,000 s at 62.5 MHz.
    let limit = in_steps(4_000_000 * 62_500_000);
    let bytes = area(&[
        (offset_of!(Header, pcpus), &[1]),
        (offset_of!(Header, noted), &(10 * CLOCK_STEP).to_le_bytes()),
        (at + offset_of!(Pcpu, due), &limit.to_le_bytes()),
    ]);
    assert!(
        10_u32.wrapping_sub(limit) < u32::MAX / 2,
        "the lower bits are those of the past"
    );
    assert_eq!(LogArea::find(&bytes).unwrap().1.delays(), [0]);
}

#[test]
fn a_crash_counts_when_its_record_is_complete() {
    let base = offset_of!(Area, crash);
    let mut bytes = area(&[
        (base + offset_of!(Crash, kind), &CRASH_EXCEPTION.to_le_bytes()),
        (base + offset_of!(Crash, message_length), &[4]),
        (base + offset_of!(Crash, message), b"boom"),
        (base + offset_of!(Crash, stack_words), &[255; 4]),
    ]);
    assert_eq!(LogArea::find(&bytes).unwrap().1.crash(), None);
    bytes[base..base + 4].copy_from_slice(&CRASH_NEW.to_le_bytes());
    let text = LogArea::find(&bytes).unwrap().1.crash().unwrap();
    assert!(
        text.starts_with("exception in boot 0 on pCPU 0\n  boom\n"),
        "{text}"
    );
    assert_eq!(text.matches("stack 0x").count(), STACK_WORDS / 4);
}

#[test]
fn what_a_vcpu_waits_in_its_own_time_is_idle() {
    let (pcpu, vcpu) = (offset_of!(Area, pcpus), offset_of!(Area, vcpus));
    let counts = |waited: u64, waiting: u64| {
        let longs = [
            (offset_of!(Header, hertz), 1_000_000),
            (offset_of!(Header, noted), 1000),
            (pcpu + offset_of!(Pcpu, idle), 200),
            (pcpu + offset_of!(Pcpu, since), 600),
            (vcpu + offset_of!(Vcpu, ran), 400),
            (vcpu + offset_of!(Vcpu, waited), waited),
            (vcpu + offset_of!(Vcpu, waiting), waiting),
        ]
        .map(|(at, value): (usize, u64)| (at, value.to_le_bytes()));
        let mut put: Vec<(usize, &[u8])> = longs.iter().map(|(at, bytes)| (*at, &bytes[..])).collect();
        put.extend([
            (offset_of!(Header, pcpus), &[1][..]),
            (offset_of!(Header, partitions), &[1]),
            (offset_of!(Header, vcpus), &[1]),
            (vcpu + offset_of!(Vcpu, exits.idle), &[1]),
        ]);
        let bytes = area(&put);
        let counts = LogArea::find(&bytes).unwrap().1.counts();
        (counts.time, counts.idle[0], counts.partitions[0].ran)
    };
    // It has run for 800 us.
    assert_eq!(counts(0, 0), (1_000_000, 200_000, 800_000));
    assert_eq!(counts(500, 0), (1_000_000, 700_000, 300_000));
    assert_eq!(counts(500, 900), (1_000_000, 800_000, 200_000), "it waits");
    assert_eq!(
        counts(500, 1300),
        (1_300_000, 700_000, 600_000),
        "nobody has noted the time since"
    );
}

#[test]
fn an_area_of_a_big_endian_class_says_the_same() {
    let areas = Endianness::ALL.map(|order| {
        let word = |value: u64| match order {
            Endianness::Little => (value as u32).to_le_bytes(),
            Endianness::Big => (value as u32).to_be_bytes(),
        };
        let pcpu = offset_of!(Area, pcpus);
        let vcpu = offset_of!(Area, vcpus);
        let longs = [
            (0, MAGIC),
            (offset_of!(Header, hertz), 1_000_000),
            (offset_of!(Header, written), ENTRY_SIZE as u64),
            (offset_of!(Header, reserved), ENTRY_SIZE as u64),
            (offset_of!(Header, noted), 1000),
            (offset_of!(Header, trace_base), 0x1234_5678),
            (pcpu + offset_of!(Pcpu, idle), 300),
            (pcpu + offset_of!(Pcpu, since), 1000),
            (pcpu + offset_of!(Pcpu, traced), 77),
            (vcpu + offset_of!(Vcpu, ran), 700),
            (0x100 + offset_of!(Crash, pc), 0x4000_1234),
        ];
        let words = [
            (offset_of!(Header, version), VERSION.into()),
            (offset_of!(Header, size), AREA_SIZE as u64),
            (offset_of!(Header, boots), 3),
            (offset_of!(Header, pcpus), 1),
            (offset_of!(Header, partitions), 1),
            (offset_of!(Header, vcpus), 1),
            (offset_of!(Header, trace_records), RING_MIN.into()),
            (vcpu + offset_of!(Vcpu, exits.other), 9),
            (0x100 + offset_of!(Crash, state), CRASH_NEW.into()),
            (0x100 + offset_of!(Crash, kind), CRASH_EXCEPTION.into()),
        ];
        let mut bytes = vec![0; AREA_SIZE];
        for (at, value) in longs {
            bytes[at..at + 8].copy_from_slice(&order.bytes(value));
        }
        for (at, value) in words {
            bytes[at..at + 4].copy_from_slice(&word(value));
        }
        let entry = words_of(&Entry::text(0, b"line"));
        for (word, place) in entry.iter().zip(bytes[offset_of!(Area, ring)..].chunks_mut(8)) {
            place.copy_from_slice(&order.bytes(*word));
        }
        bytes[offset_of!(Area, partitions)..][..4].copy_from_slice(b"part");
        bytes
    });
    let [little, big] = areas.each_ref().map(|bytes| LogArea::find(bytes).unwrap().1);
    assert_eq!(
        (big.lines(), big.boots()),
        (vec!["[0.000000] line".to_owned()], 3)
    );
    assert_eq!(big.counts(), little.counts());
    assert_eq!(big.counts().partitions[0].vcpus[0].exits[6], 9);
    assert_eq!(big.crash(), little.crash());
    let rings = big.rings().unwrap();
    assert_eq!((rings.base, &rings.stored[..]), (0x1234_5678, &[77][..]));
    assert_eq!(rings.order, Endianness::Big);
}

#[test]
fn a_partition_that_was_started_and_whose_first_vcpu_never_ran_is_named() {
    let vcpu = |index: usize| offset_of!(Area, vcpus) + index * size_of::<Vcpu>();
    let partition = |index: usize| offset_of!(Area, partitions) + index * size_of::<Partition>();
    let starts = offset_of!(Partition, starts);
    let (ran, owner) = (offset_of!(Vcpu, ran), offset_of!(Vcpu, partition));
    // `busy` has the pCPU for 90 ms of 100, `late` never, and `off` is not started.
    let bytes = area(&[
        (offset_of!(Header, pcpus), &[1]),
        (offset_of!(Header, partitions), &[3]),
        (offset_of!(Header, vcpus), &[3]),
        (offset_of!(Header, noted), &100_000_u64.to_le_bytes()),
        (
            offset_of!(Area, pcpus) + offset_of!(Pcpu, idle),
            &10_000_u64.to_le_bytes(),
        ),
        (
            offset_of!(Area, pcpus) + offset_of!(Pcpu, since),
            &100_000_u64.to_le_bytes(),
        ),
        (partition(0), b"busy"),
        (partition(0) + starts, &[1]),
        (partition(1), b"late"),
        (partition(1) + starts, &[1]),
        (partition(2), b"off"),
        (vcpu(0) + ran, &90_000_u64.to_le_bytes()),
        (vcpu(1) + owner, &[1]),
        (vcpu(2) + owner, &[2]),
    ]);
    let counts = LogArea::at_start(&bytes).unwrap().counts();
    let told = |since: u64| {
        let told = counts.never_ran(|_| Some(since));
        told.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        told(2_000_000),
        ["late was ready from 0.002000 s on and NEVER RAN; pCPU 0 was with busy 90.0 %, nobody 10.0 %"]
    );
    assert!(told(99_500_000).is_empty(), "it has just started");
}
