// SPDX-License-Identifier: Apache-2.0
//! A manifest that is refused with any payloads is refused before anything is built.
//!
//! The repository of these tests has a guest that cannot be built: it is no package of a workspace. So an
//! answer about the manifest comes from before a build.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder that is deleted in the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // Only disk space is at stake.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns what the tool says about a manifest with this text after a guest that cannot be built.
fn answer(name: &str, arguments: &[&str], text: &str) -> String {
    let folder = Folder(std::env::temp_dir().join(format!("bulkhead-early-{name}-{}", std::process::id())));
    let guest = folder.0.join("guests/demo/hello");
    fs::create_dir_all(&guest).expect("there is room");
    fs::create_dir_all(folder.0.join("hypervisor")).expect("there is room");
    fs::write(guest.join("Cargo.toml"), "this is no package").expect("there is room");
    let manifest = folder.0.join("system.toml");
    let text = format!(
        "board = \"qemu-virt-aarch64\"\n[partition.a]\nkind = \"vm\"\nimage = \"@guests/hello\"\nmemory = \"2M\"\n\
         vcpus = [{{ pcpu = 0, priority = 8 }}]\n{text}"
    );
    fs::write(&manifest, text).expect("there is room");
    tool(arguments, &manifest, &folder.0)
}

fn tool(arguments: &[&str], manifest: &Path, root: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_bulkhead"))
        .args(arguments)
        .arg(manifest)
        .env("NO_COLOR", "1")
        .env("BULKHEAD_ROOT", root)
        .output()
        .expect("the tool runs");
    assert_ne!(output.status.code(), Some(0), "the manifest is refused");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const OTHER: &str = "[partition.b]\nkind = \"vm\"\nmemory = \"2M\"\nvcpus = [{ pcpu = 0, priority = 4 }]\n";

#[test]
fn a_missing_payload_is_found_before_anything_is_built() {
    let text = format!("{OTHER}image = \"not-there.elf\"\nramdisk = \"nor-this.cpio\"\n");
    let commands: [&[&str]; 4] = [
        &["run"],
        &["check"],
        &["build", "--output", "not-made"],
        &["simulate"],
    ];
    for command in commands {
        let said = answer(command[0], command, &text);
        assert!(said.contains("`not-there.elf` cannot be read"), "{said}");
        assert!(said.contains("`nor-this.cpio` cannot be read"), "{said}");
        assert!(!said.contains("building"), "{said}");
    }
}

#[test]
fn an_unknown_name_a_broken_rule_and_a_missing_disk_are_found_before_anything_is_built() {
    let said = answer("name", &["run"], &format!("{OTHER}image = \"@guests/helo\"\n"));
    assert!(said.contains("did you mean `@guests/hello`"), "{said}");
    let said = answer("rule", &["run"], "watchdog = \"1us\"\n");
    assert!(said.contains("E021") && !said.contains("building"), "{said}");
    let disk = "devices = [\"disk0\"]\n[[emulator.disks]]\ndevice = \"disk0\"\nfile = \"none.img\"\n";
    let said = answer("disk", &["run"], disk);
    assert!(said.contains("has no file"), "{said}");
    assert!(!said.contains("building"), "{said}");
}

#[test]
fn what_is_sound_so_far_is_built() {
    let said = answer("sound", &["check"], "");
    assert!(!said.contains("error[E"), "{said}");
}
