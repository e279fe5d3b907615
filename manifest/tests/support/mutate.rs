// SPDX-License-Identifier: Apache-2.0
//! Changes correct manifests, for the fuzz target and the property. A value becomes an extreme one, one of
//! another kind or the value of another key. A line goes, comes twice, or comes with a key that does not
//! belong there.

const TRANSLATED: &str = r#"board = "qemu-virt-aarch64"

[trace]
records = 1024

[log]
text = "tool"

[pcpu.0]
policy = "fixed-priority"
quantum = "5ms"

[pcpu.1]
policy = "arinc653"

[pcpu.1.schedule.first]
frame = "20ms"
windows = [{ partition = "plant", offset = "0ms", duration = "5ms", period-start = true }, { partition = "guard", offset = "5ms", duration = "5ms" }]

[pcpu.2]
policy = "domains"

[pcpu.2.domain.urgent]
budget = "1ms"

[pcpu.2.domain.rest]
budget = "9ms"

[pcpu.3]
policy = "edf"

[emulator]
disks = [{ device = "virtio-mmio-31", size = "16M", read-only = true }]
networks = [{ device = "virtio-mmio-30" }]

[partition.linux]
kind = "vm"
image = "@raw"
bootargs = "console=ttyAMA0"
memory = "128M"
place = 0x60000000
vcpus = [{ pcpu = 0, priority = 4 }, { pcpu = 2, domain = "rest" }]
devices = ["virtio-mmio-24", "virtio-mmio-25", "virtio-mmio-26", "virtio-mmio-27", "virtio-mmio-28", "virtio-mmio-29", "virtio-mmio-30", "virtio-mmio-31"]
critical = ["virtio-mmio-31"]
trusted-dma = true
watchdog = "200ms"
restart-limit = 3

[partition.linux.health]
memory = "restart"
system = "inject"

[partition.linux.machine]
ram-base = 0x60000000
gic = { distributor = 0x08000000, redistributor = 0x080a0000, lines = 288 }
uart = { base = 0x09000000, line = 33 }
event-gate = { line = 47 }
load-at = 0x60080000
entry = 0x60080000

[partition.linux.capabilities]
gate = { event-gate = "linux", rights = ["read"] }
other = { event-gate = "guard", rights = ["write"] }
clock = { timer = true }

[partition.plant]
kind = "vm"
image = "@raw"
memory = "1M"
vcpus = [{ pcpu = 1, priority = 9 }]
time = "frozen"
autostart = false
region = [{ guest = 0x50000000, size = "64K", payload = "@raw", access = "rx" }, { guest = 0x50100000, size = "4K", access = "rw", place = 0x70000000 }]
alternative = { spare = { image = "@raw", bootargs = "x" } }
demand = { scheduler = "edf", tasks = [{ name = "loop", period = "20ms", wcet = "1ms", deadline = "10ms", vcpu = 0, priority = 1 }] }

[partition.guard]
kind = "vm"
image = "@raw"
memory = "1M"
vcpus = [{ pcpu = 1 }, { pcpu = 0, priority = 12, budget = "1ms", period = "10ms", server = "deferrable" }]
console = false

[partition.guard.capabilities]
plant = { partition = "plant", rights = ["read", "control"] }
gate = { event-gate = "guard", rights = ["read", "write"] }
schedules = { schedule = 1, rights = ["read", "control"] }

[partition.guard.watch]
partitions = ["plant", "linux"]
windows = true

[partition.logger]
kind = "task"
image = "@task"
memory = "1M"
vcpus = [{ pcpu = 0, priority = 2 }]

[partition.logger.capabilities]
clock = { timer = true }
out = { console = true }

[partition.logger.health]
task = "restart"

[partition.control]
kind = "vm"
image = "@raw"
memory = "2M"
vcpus = [{ pcpu = 3, budget = "2ms", period = "10ms", deadline = "8ms" }, { pcpu = 2, priority = 3, domain = "urgent" }]
workload = [{ kind = "sporadic", vcpu = 0, period = "10ms", execution = "1ms", shortest = "500us", spread = "2ms", first = "1ms", priority = 2 }, { kind = "bursty", vcpu = 1, period = "100ms", execution = "1ms", count = 3 }]
"#;

const IN_PLACE: &str = r#"board = "mps2-an500"

[trace]
records = 256

[pcpu.0]
policy = "fixed-priority"
quantum = "1ms"

[network.inner]

[network.outer]
uplink = "ethernet"
budget = "1ms"
period = "10ms"

[partition.motor]
kind = "vm"
image = "@mcu"
memory = "16K"
vcpus = [{ pcpu = 0, priority = 5, budget = "1ms", period = "10ms", server = "sporadic" }]
network = "outer"
mac = "02:00:00:00:00:01"
region = [{ guest = 0x60000000, size = "1K", access = "rw" }]

[partition.motor.machine]
uart = { base = 0x40004000, line = 0 }
event-gate = { line = 20 }
semihosting = false

[partition.motor.capabilities]
gate = { event-gate = "motor", rights = ["read", "write"] }
console = { console = true, rights = ["read", "write"] }

[partition.motor.health]
memory = "restart-warm"
hypercall = "stop"
"#;

/// The programs of these manifests, files of `tests/config-bad/payloads`.
pub const PROGRAMS: [(&str, &str); 3] = [("@raw", "raw.bin"), ("@task", "task.elf"), ("@mcu", "mcu.elf")];

/// The manifests to be changed.
pub const BASES: [&str; 2] = [TRANSLATED, IN_PLACE];

/// Values that are extreme, or of another kind than most keys want.
const VALUES: [&str; 58] = [
    "0",
    "1",
    "2",
    "3",
    "7",
    "8",
    "12",
    "13",
    "15",
    "16",
    "17",
    "31",
    "32",
    "33",
    "47",
    "48",
    "63",
    "64",
    "95",
    "96",
    "127",
    "288",
    "991",
    "992",
    "1019",
    "1020",
    "0xfff",
    "4096",
    "0xffff",
    "0x7fffffff",
    "0x80000000",
    "0xfffff000",
    "0xffffffff",
    "0x100000000",
    "0xfffffffff000",
    "0x1000000000000",
    "0x7fffffffffffffff",
    "0xfffffffffffff000",
    "0xffffffffffffffff",
    "18446744073709551616",
    "-1",
    "1.5",
    "true",
    "false",
    "[]",
    "{}",
    "\"\"",
    "\"0\"",
    "\"1K\"",
    "\"16777215G\"",
    "\"1ns\"",
    "\"10us\"",
    "\"10s\"",
    "\"18446744073s\"",
    "\"rw\"",
    "[\"grant\"]",
    "[{ pcpu = 0 }]",
    "\"task\"",
];

/// An input that is read from its beginning. After its end it is zeros.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> usize {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        usize::from(*first)
    }

    fn index(&mut self, count: usize) -> usize {
        (self.byte() << 8 | self.byte()) % count.max(1)
    }
}

/// Returns the keys of a manifest, from its JSON Schema.
fn keys(schema: &str) -> Vec<&str> {
    let name = |line: &'_ str| line.trim().strip_suffix("\": {").map(str::len);
    let lines = schema.lines().filter(|line| name(line).is_some());
    let names = lines.map(|line| line.trim().trim_start_matches('"').trim_end_matches("\": {"));
    names.filter(|name| *name != "properties").collect()
}

/// Returns the places of the values in a line: strings, numbers and words that are no keys, and the text
/// between brackets.
fn values(line: &str) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut brackets = Vec::new();
    let mut open: Option<usize> = None;
    let mut quoted = false;
    for (at, letter) in line.char_indices() {
        let inside = quoted || letter == '"' || letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        quoted ^= letter == '"';
        if let (Some(start), false) = (open, inside) {
            let is_key = line[at..].trim_start().starts_with('=');
            found.extend((!is_key).then_some(start..at));
            open = None;
        } else if inside && open.is_none() {
            open = Some(at);
        }
        match letter {
            '[' | '{' if !quoted => brackets.push(at),
            ']' | '}' if !quoted => found.extend(brackets.pop().map(|start| start..at + 1)),
            _ => {}
        }
    }
    found
}

/// Returns the places of the values in a text.
fn all_values(text: &str) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if !line.starts_with('[') {
            let here = values(line).into_iter();
            found.extend(here.map(|value| start + value.start..start + value.end));
        }
        start += line.len();
    }
    found
}

/// Returns the manifest that an input describes: one of the bases with up to eight changes. `schema` is the
/// schema of manifests.
pub fn mutated(input: &[u8], schema: &str) -> String {
    let mut input = Input(input);
    let mut text = BASES[input.byte() % BASES.len()].to_owned();
    for _ in 0..=input.byte() % 8 {
        let lines: Vec<&str> = text.lines().collect();
        let line = input.index(lines.len());
        let operation = input.byte() % 8;
        let value = VALUES[input.byte() % VALUES.len()];
        let places = all_values(&text);
        let place = places.get(input.index(places.len())).cloned().unwrap_or(0..0);
        let changed = |line: usize, new: &[&str]| {
            let (before, after) = (&lines[..line], &lines[line + 1..]);
            [before, new, after].concat().join("\n") + "\n"
        };
        text = match operation {
            0 => changed(line, &[]),
            1 => changed(line, &[lines[line], lines[line]]),
            2 | 3 => {
                let keys = keys(schema);
                let added = format!("{} = {value}", keys[input.index(keys.len())]);
                changed(line, &[lines[line], &added])
            }
            4 => {
                let other = places.get(input.index(places.len())).cloned().unwrap_or(0..0);
                let other = text[other].to_owned();
                text.replace_range(place, &other);
                text
            }
            _ => {
                text.replace_range(place, value);
                text
            }
        };
    }
    text
}
