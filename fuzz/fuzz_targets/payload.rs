// SPDX-License-Identifier: Apache-2.0
//! Payloads: any file as program, kernel, initial file system, module or device tree overlay of a partition
//! is either refused with a report or compiles. The first byte says which of these the file is.
#![no_main]

mod support;

use libfuzzer_sys::fuzz_target;
use std::path::Path;

/// Partitions around the file.
const USES: [&str; 5] = [
    "kind = \"vm\"\nimage = \"@file\"\nmemory = \"64M\"\n",
    "kind = \"task\"\nimage = \"@file\"\nmemory = \"1M\"\n",
    "kind = \"vm\"\nimage = \"@file\"\nmemory = \"2M\"\n",
    "kind = \"vm\"\nimage = \"@file\"\nramdisk = \"@file\"\nmemory = \"64M\"\n",
    "kind = \"vm\"\nimage = \"@loop\"\ndevice-tree-overlay = \"@file\"\nmemory = \"4M\"\n",
];

fuzz_target!(|data: &[u8]| {
    let Some((kind, bytes)) = data.split_first() else {
        return;
    };
    let path = support::file("payload.dtbo");
    std::fs::write(&path, bytes).expect("the temporary folder can be written");
    let text = format!(
        "board = \"qemu-virt-aarch64\"\n[partition.a]\n{}vcpus = [{{ pcpu = 0 }}]\n",
        USES[usize::from(*kind) % USES.len()]
    );
    support::exercise(&text, Path::new("/nonexistent/system.toml"), &path);
});
