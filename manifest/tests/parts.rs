// SPDX-License-Identifier: Apache-2.0
//! The parts of the kernel that a manifest uses, each with the line that needs it.

use bulkhead_manifest::Unchecked;
use bulkhead_manifest::parts::{Parts, TAILORED, VARIANTS, set_of, variant_for};
use std::path::Path;

/// Returns a system of one VM, and more.
fn with(more: &str) -> String {
    format!("board = \"qemu-virt-aarch64\"\n[partition.vm]\nkind = \"vm\"\nvcpus = [{{ pcpu = 0 }}]\n{more}")
}

/// Returns the parts of a manifest as `PART LINE: WHY`, without the text of the log.
fn parts(text: &str) -> Vec<String> {
    let mut all = all_parts(text);
    all.retain(|row| !row.starts_with("text "));
    all
}

/// Returns the parts of a manifest as `PART LINE: WHY`.
fn all_parts(text: &str) -> Vec<String> {
    let used = Unchecked::read(Path::new("a.toml"), text).parts(false);
    let row = used.into_iter().map(|used| {
        let line = used.line.map_or_else(|| "-".to_owned(), |line| line.to_string());
        format!("{} {line}: {}", used.part, used.why)
    });
    row.collect()
}

#[test]
fn a_vm_alone_uses_none() {
    assert_eq!(parts(&with("")), [""; 0]);
    assert_eq!(parts("board ="), [""; 0]);
}

#[test]
fn the_text_of_the_log_is_a_part_unless_the_tool_makes_it() {
    assert_eq!(
        all_parts(&with("")),
        ["text -: the board prints text, by default"]
    );
    assert_eq!(
        all_parts(&with("[log]")),
        ["text -: the board prints text, by default"]
    );
    assert_eq!(
        all_parts(&with("[log]\ntext = \"board\"")),
        ["text 6: the board prints text"]
    );
    assert_eq!(all_parts(&with("[log]\ntext = \"tool\"")), [""; 0]);
}

#[test]
fn each_table_names_its_part() {
    for (more, row) in [
        ("[channel.c]", "channels 5: channel `c`"),
        ("[port.p]", "ports 5: port `p`"),
        ("[lock.l]", "locks 5: lock `l`"),
        ("[service.disk]", "services 5: service `disk`"),
        ("[network.lan]", "networks 5: network `lan`"),
        ("[partition.vm.flash]", "flash 5: partition `vm` has a flash"),
        ("[trace]", "trace 5: the table `trace`"),
        (
            "[signature]\nkey = \"a.pub\"",
            "signature 5: the table `signature`",
        ),
        ("[pcpu.0]\npolicy = \"edf\"", "edf 6: pCPU 0 has policy `edf`"),
        (
            "[pcpu.0]\npolicy = \"arinc653\"",
            "arinc653 6: pCPU 0 has policy `arinc653`",
        ),
        (
            "[pcpu.0]\npolicy = \"domains\"",
            "domains 6: pCPU 0 has policy `domains`",
        ),
        (
            "[pcpu.0]\npolicy = \"crate:../mine\"",
            "own-policy 6: pCPU 0 has the policy of the crate `mine`",
        ),
    ] {
        assert_eq!(parts(&with(more)), [row]);
    }
    for plain in ["pinned", "fixed-priority"] {
        assert_eq!(parts(&with(&format!("[pcpu.0]\npolicy = \"{plain}\""))), [""; 0]);
    }
}

#[test]
fn the_first_line_that_needs_a_part_is_named() {
    assert_eq!(parts(&with("[port.a]\n[port.b]")), ["ports 5: port `a`"]);
}

#[test]
fn a_part_brings_those_that_it_is_built_on() {
    let device = with("[channel.c]\ndevice = \"uart\"");
    assert_eq!(
        parts(&device),
        [
            "channels 5: channel `c`",
            "ports -: `lent` needs it",
            "lent 6: channel `c` lends device `uart`"
        ]
    );
    let side = |keys: &str| with(&format!("[channel.c]\nside = [{{ partition = \"vm\", {keys} }}]"));
    assert_eq!(
        parts(&side("pci = true")),
        [
            "channels 5: channel `c`",
            "functions 6: a side of channel `c` is a PCI function"
        ]
    );
    let held = parts(&side("held = true"));
    assert_eq!(held[2], "lent 6: a side of channel `c` is held");
    let plain = parts(&side("pci = false, held = false"));
    assert_eq!(plain, ["channels 5: channel `c`"]);
}

#[test]
fn tasks_that_can_get_a_gate_can_ask_for_upcalls() {
    let task = "[partition.t]\nkind = \"task\"\nvcpus = [{ pcpu = 0 }]\n";
    let gate = |holder: &str, keys: &str| {
        with(&format!(
            "{task}[partition.{holder}.capabilities.gate]\nevent-gate = \"t\"\n{keys}"
        ))
    };
    assert_eq!(parts(&with(task)), [""; 0]);
    let own = parts(&gate("t", ""));
    assert_eq!(own, ["upcalls 8: task `t` can ask for upcalls by `gate`"]);
    assert_eq!(parts(&gate("t", "rights = [\"write\"]")), [""; 0]);
    assert_eq!(parts(&gate("vm", "rights = [\"read\"]")), [""; 0]);
    assert_eq!(
        parts(&gate("vm", "rights = [\"read\", \"grant\"]")),
        ["upcalls 8: `vm` can pass `gate` on to a task, which can then ask for upcalls"]
    );
    // The class has no upcalls.
    let small = gate("t", "").replace("qemu-virt-aarch64", "mps2-an500");
    assert_eq!(parts(&small), [""; 0]);
}

#[test]
fn the_smallest_variant_is_that_of_the_parts() {
    let name = |more: &str| {
        let text = with(more);
        let used = Unchecked::read(Path::new("a.toml"), &text).parts(false);
        variant_for(set_of(&used)).map_or("none", |variant| variant.name)
    };
    assert_eq!(name(""), "static");
    assert_eq!(name("[port.p]"), "ipc");
    assert_eq!(name("[trace]"), "full");
    assert_eq!(name("[pcpu.0]\npolicy = \"crate:mine\""), "none");
    assert_eq!(name("[signature]\nkey = \"a.pub\""), "none");
    let left_out = Parts::ALL.without(VARIANTS[2].parts);
    assert_eq!(left_out, TAILORED);
}
