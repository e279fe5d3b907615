// SPDX-License-Identifier: Apache-2.0
//! The scenarios, in one program: each file is a module of it. So the generic kernel is compiled once for
//! all.

mod support;

mod authority;
mod boot;
mod channel;
mod circle;
mod classes;
mod control;
mod device;
mod explore_port;
mod frame_ring;
mod health;
mod hold;
mod host;
mod leftover;
mod lifecycle;
mod lock;
mod meeting;
mod network;
mod own_policy;
mod policies;
mod port;
mod prop_cap;
mod prop_console;
mod prop_hostile;
mod prop_lifecycle;
mod prop_lock;
mod prop_port;
mod record;
mod registers;
mod schedule;
mod secrets;
mod service;
mod start_on_loan;
mod trace;
mod upcall;
mod wait;

#[test]
fn each_file_of_tests_is_a_module_of_this_program() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let own = include_str!("main.rs");
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let name = entry.expect("an entry can be read").file_name();
        let name = name.to_string_lossy();
        let module = name.strip_suffix(".rs").filter(|name| *name != "main");
        if let Some(module) = module {
            assert!(own.contains(&format!("\nmod {module};\n")), "{module}");
        }
    }
}
