// SPDX-License-Identifier: Apache-2.0
//! A policy of the user's own that the hypervisor's stack does not hold is refused when it is built in.

use std::fs;
use std::path::Path;
use std::process::Command;

/// The root of the repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// A policy whose state alone is a third of the stack of a microcontroller. Nothing else is wrong with it.
const LARGE: &str = "#![no_std]
#![forbid(unsafe_code)]
use bulkhead_sched::*;
#[derive(Clone, Debug)]
pub struct LargeState([u64; 320]);
impl OwnPolicy for LargeState {
    fn new(_vcpus: &[VcpuParameters], quantum: Ticks) -> Result<Self, PolicyError> {
        Ok(Self([quantum; 320]))
    }
}
impl Policy for LargeState {
    fn ready(&mut self, slot: Slot, _now: Ticks) {
        self.0[0] |= 1 << (slot.0 % 32);
    }
    fn withdraw(&mut self, slot: Slot, _now: Ticks) {
        self.0[0] &= !(1 << (slot.0 % 32));
    }
    fn stopped(&mut self, slot: Slot, why: StopReason, _ran: Ticks, now: Ticks) {
        if why == StopReason::Blocked {
            self.withdraw(slot, now);
        }
    }
    fn next(&mut self, _now: Ticks) -> Decision {
        match self.0[0] {
            0 => Decision::Idle(Ticks::MAX),
            ready => Decision::Run(Slot(ready.trailing_zeros() as u8), Ticks::MAX),
        }
    }
    fn ready_slots(&self) -> SlotSet {
        SlotSet(self.0[0] as u32)
    }
    fn interested(&self) -> SlotSet {
        SlotSet(u32::MAX)
    }
}
";

const SYSTEM: &str = "board = \"mps2-an500\"
[pcpu.0]
policy = \"crate:large-state\"
quantum = \"1ms\"
[partition.hello]
kind = \"vm\"
image = \"@guests/mcu-hello\"
memory = \"16K\"
vcpus = [{ pcpu = 0, priority = 10 }]
";

#[test]
fn a_policy_that_the_stack_does_not_hold_is_refused() {
    if std::env::var_os("BULKHEAD_SYSTEM_TESTS").is_none() {
        // The test compiles a class binary.
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("large-state");
    let source = folder.join("large-state/src");
    fs::create_dir_all(&source).expect("a folder");
    let root = Path::new(ROOT).canonicalize().expect("the repository");
    let package = format!(
        "[package]\nname = \"large-state\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n\
         [dependencies]\nbulkhead-sched = {{ path = {:?} }}\n",
        root.join("sched")
    );
    fs::write(folder.join("large-state/Cargo.toml"), package).expect("a file");
    fs::write(source.join("lib.rs"), LARGE).expect("a file");
    let manifest = folder.join("system.toml");
    fs::write(&manifest, SYSTEM).expect("a file");
    let mut tool = Command::new(env!("CARGO_BIN_EXE_bulkhead"));
    let tool = tool.env("BULKHEAD_ROOT", &root).arg("build").arg(&manifest);
    let found = tool
        .arg("-o")
        .arg(folder.join("out"))
        .output()
        .expect("the tool starts");
    let said = String::from_utf8_lossy(&found.stderr);
    assert!(!found.status.success(), "{said}");
    let wanted = [
        "the policy `large-state` is too large for the hypervisor's stack",
        "the deepest chain of calls and a frame take ",
        "and have 7680",
        "help: make the state and the local variables of the policy smaller",
    ];
    for part in wanted {
        assert!(said.contains(part), "{part}: {said}");
    }
}
