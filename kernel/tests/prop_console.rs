// SPDX-License-Identifier: Apache-2.0
//! The console multiplexer against a demultiplexer written from `abi/src/framing.rs` alone. All text arrives
//! at the console it was printed on: for every text, in every order, with a transmitter of any speed.
#![forbid(unsafe_code)]

use bulkhead_abi::framing::{DLE, ESCAPE_MASK, HYPERVISOR_CONSOLE, RS, US};
use bulkhead_abi::log::record::{self, RECORD};
use bulkhead_abi::log::{Entry, Names, PieceLine, RegisterFile};
use bulkhead_arch_api::{Console, Line as IrqLine, PartitionId};
use bulkhead_kernel::console::shown::Shown;
use bulkhead_kernel::console::{BURST, Log, Multiplexer, PARTIAL_AGE_NS, PUMP_BYTES, RING};
use bulkhead_kernel::console::{Records, Text};
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

const NAMES: [&str; 4] = ["linux", "control", "rogue", "task"];

/// A log that loses nothing.
#[derive(Default)]
struct Queue(RefCell<VecDeque<Entry>>);

impl Queue {
    /// Adds a line of text.
    fn line(&self, text: &str) {
        let mut entries: Vec<Entry> = text
            .as_bytes()
            .chunks(48)
            .map(|text| Entry::text(0, text))
            .collect();
        entries.push(Entry::text(0, b""));
        let last = entries.len() - 1;
        entries[..last]
            .iter_mut()
            .for_each(|entry| entry.flags = bulkhead_abi::log::entry::MORE);
        self.0.borrow_mut().extend(entries);
    }
}

impl Names for Queue {
    fn add_name(&self, _partition: u8, to: &mut PieceLine) {
        to.text("somebody");
    }
    fn files(&self) -> &[&RegisterFile] {
        &[]
    }
}

impl Log for Queue {
    fn waiting(&self) -> u32 {
        self.0.borrow().len() as u32
    }
    fn room(&self) -> u32 {
        u32::MAX
    }
    fn take(&self) -> Option<Entry> {
        self.0.borrow_mut().pop_front()
    }
}

/// A transmitter with a FIFO that only empties when the test says so.
struct Uart {
    depth: usize,
    fill: usize,
    line: Vec<u8>,
}

impl Uart {
    const fn new(depth: usize) -> Self {
        Self {
            depth,
            fill: 0,
            line: Vec::new(),
        }
    }
}

impl Console for Uart {
    fn send(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(self.depth - self.fill);
        self.fill += taken;
        self.line.extend_from_slice(&bytes[..taken]);
        taken
    }
    fn receive(&mut self) -> Option<u8> {
        None
    }
    fn receive_line(&self) -> Option<IrqLine> {
        None
    }
    fn flush(&mut self) {
        self.fill = 0;
    }
}

/// Returns the view of a demultiplexer. Per tag this is the console, true if the tag ends another's line, and
/// the text.
fn read_line(line: &[u8]) -> Vec<(String, bool, Vec<u8>)> {
    let mut seen: Vec<(String, bool, Vec<u8>)> = Vec::new();
    let mut bytes = line.iter().copied();
    let mut records = 0_u8;
    while let Some(byte) = bytes.next() {
        match byte {
            RS => {
                let tag: Vec<u8> = bytes.by_ref().take_while(|byte| *byte != US).collect();
                let tag = String::from_utf8(tag).unwrap();
                let (breaks, tag) = tag
                    .strip_prefix("\r\n")
                    .map_or((false, &tag[..]), |tag| (true, tag));
                if tag.starts_with(char::from(RECORD)) {
                    let (number, entry) = record::read(tag.as_bytes()).expect("a whole record");
                    assert_eq!(number, records);
                    records = records.wrapping_add(1);
                    seen.push((HYPERVISOR_CONSOLE.to_owned(), breaks, text_of(&entry)));
                    continue;
                }
                let (time, name) = tag.strip_prefix('[').unwrap().split_once("] ").unwrap();
                let (seconds, micros) = time.split_once('.').unwrap();
                assert!(seconds.parse::<u64>().is_ok() && micros.len() == 6 && micros.parse::<u32>().is_ok());
                seen.push((name.strip_suffix(": ").unwrap().to_owned(), breaks, Vec::new()));
            }
            DLE => seen
                .last_mut()
                .unwrap()
                .2
                .push(bytes.next().unwrap() ^ ESCAPE_MASK),
            US => panic!("a stray end of a tag"),
            byte => seen.last_mut().expect("text before any tag").2.push(byte),
        }
    }
    seen
}

/// Returns the text of an entry of the log, with a line end if it has one.
fn text_of(entry: &Entry) -> Vec<u8> {
    let (mut next, mut piece, mut text) = (0, PieceLine::new(), Vec::new());
    while entry.piece(&Queue::default(), &mut next, &mut piece) {
        text.extend(piece.as_bytes());
    }
    text.extend(if entry.has_more() { &b""[..] } else { b"\r\n" });
    text
}

fn streams(seen: &[(String, bool, Vec<u8>)]) -> BTreeMap<String, Vec<u8>> {
    let mut streams: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for (name, _, text) in seen {
        streams.entry(name.clone()).or_default().extend(text);
    }
    streams
}

fn multiplexer<S: Shown>() -> Multiplexer<'static, spin::Spin, S> {
    let multiplexer = Multiplexer::new();
    for (name, number) in NAMES.iter().zip(0..) {
        multiplexer.add(PartitionId(number), name);
    }
    multiplexer
}

#[derive(Clone, Debug)]
enum Event {
    Put(u8, Vec<u8>),
    Log(usize),
    Pump,
    Empty(usize),
    Pass(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let byte = prop_oneof![
        6 => b'a'..=b'z',
        2 => Just(b'\n'),
        1 => prop_oneof![Just(RS), Just(US), Just(DLE), Just(b'\r')],
        1 => any::<u8>(),
    ];
    prop_oneof![
        6 => (0_u8..4, prop::collection::vec(byte, 0..120)).prop_map(|(who, bytes)| Event::Put(who, bytes)),
        1 => (0_usize..150).prop_map(Event::Log),
        4 => Just(Event::Pump),
        4 => (0_usize..100).prop_map(Event::Empty),
        1 => (0_u64..20_000_000).prop_map(Event::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_separated_is_what_was_printed(
        depth in 1_usize..300,
        events in prop::collection::vec(event(), 0..150),
        end_by_last_words in any::<bool>(),
    ) {
        separates::<Text>(depth, &events, end_by_last_words, true)?;
        separates::<Records>(depth, &events, end_by_last_words, false)?;
    }
}

/// Checks that the reader of a line gets the bytes that were printed, if the log has the form `S`.
fn separates<S: Shown>(
    depth: usize,
    events: &[Event],
    end_by_last_words: bool,
    is_text: bool,
) -> Result<(), TestCaseError> {
    let (output, log) = (multiplexer::<S>(), Queue::default());
    let mut uart = Uart::new(depth);
    let mut printed: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut now = 0;
    for event in events.iter().cloned() {
        now += 1000;
        match event {
            Event::Put(who, bytes) => {
                let room = output.room(PartitionId(who));
                let taken = output.put(PartitionId(who), &bytes, now);
                prop_assert_eq!(taken, bytes.len().min(room));
                printed
                    .entry(NAMES[usize::from(who)].to_owned())
                    .or_default()
                    .extend(&bytes[..taken]);
            }
            Event::Log(length) => {
                let text = "x".repeat(length);
                log.line(&text);
                let printed = printed.entry(HYPERVISOR_CONSOLE.to_owned()).or_default();
                printed.extend(text.as_bytes());
                printed.extend(b"\r\n");
            }
            Event::Pump => {
                let before = uart.line.len();
                output.pump(&log, &mut uart, now);
                prop_assert!(uart.line.len() - before <= PUMP_BYTES, "bounded work per call");
            }
            Event::Empty(bytes) => uart.fill = uart.fill.saturating_sub(bytes),
            Event::Pass(time) => now += time,
        }
    }
    if end_by_last_words {
        let mut left = output.drain(&log, &mut uart, now);
        left.show(&log, &mut uart, &Entry::text(now, b"the end"));
        printed
            .entry(HYPERVISOR_CONSOLE.to_owned())
            .or_default()
            .extend(b"the end\r\n");
    } else {
        let mut rounds = 0;
        while let Some(delay) = output.due(&log, now) {
            now += delay;
            uart.flush();
            output.pump(&log, &mut uart, now);
            rounds += 1;
            prop_assert!(rounds < 100_000, "output that is due is sent");
        }
    }
    let seen = read_line(&uart.line);
    let mut got = streams(&seen);
    got.retain(|_, text| !text.is_empty());
    printed.retain(|_, text| !text.is_empty());
    prop_assert_eq!(got, printed);

    // For human readers every tag begins a line on the screen.
    let mut open = false;
    for (name, breaks, text) in &seen {
        prop_assert_eq!(*breaks, open);
        // A record is a line of its own.
        let is_record = !is_text && name == HYPERVISOR_CONSOLE;
        open = !is_record && text.last() != Some(&b'\n');
    }
    // Every line has a tag: no text goes on after a line end.
    for (_, _, text) in &seen {
        let ends = text.iter().filter(|byte| **byte == b'\n').count();
        prop_assert!(ends == 0 || ends == 1 && text.last() == Some(&b'\n'));
    }
    Ok(())
}

fn pump_all(output: &Multiplexer<'_, spin::Spin, Text>, log: &Queue, uart: &mut Uart, now: u64) {
    for _ in 0..1000 {
        uart.flush();
        let before = uart.line.len();
        output.pump(log, uart, now);
        if uart.line.len() == before {
            break;
        }
    }
}

#[test]
fn lines_stay_whole_although_written_byte_by_byte() {
    let (output, log) = (multiplexer::<Text>(), Queue::default());
    let mut uart = Uart::new(1000);
    let texts = [&b"one line of linux\r\n"[..], b"and one of control\r\n"];
    for place in 0..20 {
        for (who, text) in [0, 1].into_iter().zip(texts) {
            if let Some(byte) = text.get(place) {
                output.put(PartitionId(who), &[*byte], 0);
                output.pump(&log, &mut uart, 0);
                uart.flush();
            }
        }
    }
    pump_all(&output, &log, &mut uart, 0);
    let text = String::from_utf8(uart.line).unwrap();
    assert_eq!(
        text,
        "\x1e[0.000000] linux: \x1fone line of linux\r\n\x1e[0.000000] control: \x1fand one of control\r\n"
    );
}

#[test]
fn a_prompt_appears_after_a_while_and_is_broken_off_readably() {
    let (output, log) = (multiplexer::<Text>(), Queue::default());
    let mut uart = Uart::new(1000);
    output.put(PartitionId(0), b"~ # ", 0);
    output.pump(&log, &mut uart, PARTIAL_AGE_NS - 1000);
    assert_eq!(uart.line, b"");
    assert_eq!(output.due(&log, 1_000_000), Some(PARTIAL_AGE_NS - 1_000_000));
    pump_all(&output, &log, &mut uart, PARTIAL_AGE_NS);
    assert_eq!(output.due(&log, PARTIAL_AGE_NS), None);
    output.put(PartitionId(1), b"tick\r\n", PARTIAL_AGE_NS);
    pump_all(&output, &log, &mut uart, PARTIAL_AGE_NS);
    output.put(PartitionId(0), b"ls\r\n", PARTIAL_AGE_NS);
    pump_all(&output, &log, &mut uart, PARTIAL_AGE_NS);
    assert_eq!(
        String::from_utf8(uart.line).unwrap(),
        "\x1e[0.010000] linux: \x1f~ # \x1e\r\n[0.010000] control: \x1ftick\r\n\x1e[0.010000] linux: \x1fls\r\n"
    );
}

/// Returns the bytes on the line from the completion of a line until its console has the transmitter, while
/// others flood.
fn wait_under_flood(
    output: &Multiplexer<'_, spin::Spin, Text>,
    log: &Queue,
    line: impl Fn(),
    name: &str,
    flood: &[u8],
    log_flood: bool,
) -> usize {
    let mut uart = Uart::new(PUMP_BYTES);
    let mut start = None;
    for round in 0..400 {
        for who in [0, 2, 3] {
            output.put(PartitionId(who), flood, 0);
        }
        if log_flood {
            log.line("something bad happened again");
        }
        if round == 100 {
            line();
            start = Some(uart.line.len());
        }
        uart.flush();
        output.pump(log, &mut uart, 0);
        if let Some(start) = start {
            let tag = format!("] {name}: ");
            let behind = &uart.line[start..];
            if let Some(at) = behind
                .windows(tag.len())
                .position(|bytes| bytes == tag.as_bytes())
            {
                return at;
            }
        }
    }
    panic!("{name} never got the transmitter");
}

#[test]
fn floods_cannot_take_the_transmitter() {
    // Each of three others has two turns, each of a tag and a burst of escaped bytes. The log has its turns
    // in between.
    let turn = 64 + 2 * (BURST as usize + 64);
    let bound = 2 * (3 + 1) * turn;
    for flood in [&[b'#'; RING][..], &[RS; RING], b"short\n", &[b'\n'; RING]] {
        for log_flood in [false, true] {
            let (output, log) = (multiplexer::<Text>(), Queue::default());
            let waited = wait_under_flood(
                &output,
                &log,
                || assert_eq!(output.put(PartitionId(1), b"release\r\n", 0), 9),
                "control",
                flood,
                log_flood,
            );
            assert!(waited <= bound, "{waited} > {bound} bytes");
        }
        let (output, log) = (multiplexer::<Text>(), Queue::default());
        let waited = wait_under_flood(
            &output,
            &log,
            || log.line("fault"),
            HYPERVISOR_CONSOLE,
            flood,
            false,
        );
        assert!(waited <= 2 * turn, "the log waits for one turn only: {waited}");
    }
}

#[test]
fn a_full_ring_is_no_room_and_room_comes_back() {
    let (output, log) = (multiplexer::<Text>(), Queue::default());
    let mut uart = Uart::new(PUMP_BYTES);
    assert_eq!(output.put(PartitionId(0), &[b'.'; RING + 10], 0), RING);
    assert_eq!(output.room(PartitionId(0)), 0);
    assert!(output.is_urgent(PartitionId(0)));
    output.pump(&log, &mut uart, 0);
    assert!(output.room(PartitionId(0)) > 0);
    assert_eq!(output.room(PartitionId(1)), RING, "the others' rings are theirs");
}

#[test]
fn a_console_is_found_by_its_whole_name() {
    let output = multiplexer::<Text>();
    assert_eq!(output.find(b"control"), Some(PartitionId(1)));
    for name in [&b"contro"[..], b"controls", b"", b"bulkhead"] {
        assert_eq!(output.find(name), None);
    }
}
