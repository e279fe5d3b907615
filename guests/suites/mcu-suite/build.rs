// SPDX-License-Identifier: Apache-2.0
//! Links the suite with its linker script, and writes the random code of its part `blocks`.
//!
//! A block is a function of straight-line code: data processing, loads and stores of RAM and of registers of
//! the system control space in every form, special registers, IT blocks. It uses r0-r7 as data, r8 as an
//! index, and r12 as a base that changes. It finds the priorities of the interrupt lines in r9 (32 bytes that
//! behave like memory), the system control block in r10, and RAM in r11. The seed is a constant, so the
//! sequence is the same every time.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const BLOCKS: u32 = 96;
const UNITS: u32 = 24;
const SEED: u64 = 0x2545_F491_4F6C_DD1D;

struct Writer {
    state: u64,
    /// True for the Non-secure world of Armv8-M, which has no BusFault: neither its priority in SHPR1 nor
    /// BFAR.
    is_world: bool,
    text: String,
}

impl Writer {
    fn below(&mut self, limit: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) % limit
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len() as u64) as usize]
    }

    fn data(&mut self) -> String {
        format!("r{}", self.below(8))
    }

    fn line(&mut self, text: &str) {
        writeln!(self.text, "    {text}").expect("strings grow");
    }

    fn data_processing(&mut self) {
        let (a, b, c) = (self.data(), self.data(), self.data());
        let three = [
            "adds", "subs", "eor.w", "bics.w", "adcs.w", "rsbs.w", "mul", "udiv", "sdiv", "ror.w", "lsls.w",
            "orn",
        ];
        let two = [
            "mvns", "rev", "rev16", "uxtb", "sxth", "clz", "rbit", "negs", "cmp", "tst",
        ];
        match self.below(5) {
            0 | 1 => {
                let name = self.pick(&three);
                self.line(&format!("{name} {a}, {b}, {c}"));
            }
            2 => {
                let name = self.pick(&two);
                self.line(&format!("{name} {a}, {b}"));
            }
            3 => {
                let shift = self.below(31) + 1;
                self.line(&format!("add.w {a}, {b}, {c}, lsl #{shift}"));
            }
            _ => {
                let (position, width) = (self.below(16), self.below(15) + 1);
                self.line(&format!("bfi {a}, {b}, #{position}, #{width}"));
            }
        }
    }

    /// Draws a base for memory-like bytes: the register, the lowest usable offset and their number.
    fn zone(&mut self) -> (&'static str, u64, u64) {
        match self.below(4) {
            0 => ("r9", 0, 32),
            1 if self.is_world => ("r10", 0x1C, 8),
            1 => ("r10", 0x18, 12),
            2 if self.is_world => ("r10", 0x34, 4),
            2 => ("r10", 0x34, 8),
            _ => ("r11", 0, 32),
        }
    }

    /// Writes an access to one register, in every way of addressing.
    fn single(&mut self) {
        let (zone, start, length) = self.zone();
        // MMFAR and BFAR are words only.
        let sizes = if start == 0x34 { 1 } else { 3 };
        let (suffix, size) = [("", 4), ("h", 2), ("b", 1)][self.below(sizes) as usize];
        let offset = start + self.below(length / size) * size;
        let load = self.below(2) == 0;
        let sign = if load && size < 4 && self.below(2) == 0 {
            "s"
        } else {
            ""
        };
        let name = format!("{}{sign}{suffix}", if load { "ldr" } else { "str" });
        let rt = self.data();
        match self.below(8) {
            0 => self.line(&format!("{name}.w {rt}, [{zone}, #{offset}]")),
            1 => {
                self.line(&format!("mov.w r8, #{}", offset / size));
                let shift = size.trailing_zeros();
                self.line(&format!("{name}.w {rt}, [{zone}, r8, lsl #{shift}]"));
            }
            2 => {
                let above = offset + self.below(60);
                self.line(&format!("add.w r12, {zone}, #{above}"));
                self.line(&format!("{name} {rt}, [r12, #-{}]", above - offset));
            }
            3 => {
                let step = self.below(190);
                self.line(&format!("sub.w r12, {zone}, #{step}"));
                self.line(&format!("{name} {rt}, [r12, #{}]!", step + offset));
            }
            4 => {
                self.line(&format!("add.w r12, {zone}, #{offset}"));
                let step = self.below(511) as i64 - 255;
                self.line(&format!("{name} {rt}, [r12], #{step}"));
            }
            5 => {
                self.line(&format!("mov r7, {zone}"));
                self.line(&format!("adds r7, #{offset}"));
                let rt = format!("r{}", self.below(7));
                if sign.is_empty() {
                    self.line(&format!("{name} {rt}, [r7, #0]"));
                } else {
                    self.line("movs r6, #0");
                    self.line(&format!("{name} {rt}, [r7, r6]"));
                }
            }
            6 => {
                self.line(&format!("mov r7, {zone}"));
                self.line(&format!("movs r6, #{offset}"));
                let rt = format!("r{}", self.below(6));
                self.line(&format!("{name} {rt}, [r7, r6]"));
            }
            _ => self.conditional(&name, &rt, zone, offset),
        }
    }

    fn conditional(&mut self, name: &str, rt: &str, zone: &str, offset: u64) {
        let condition = self.pick(&[
            "eq", "ne", "cs", "cc", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le",
        ]);
        let other = opposite(condition);
        let spare = self.data();
        match self.below(3) {
            0 => {
                self.line(&format!("it {condition}"));
                self.line(&format!("{name}{condition}.w {rt}, [{zone}, #{offset}]"));
            }
            1 => {
                self.line(&format!("itet {condition}"));
                self.line(&format!("{name}{condition}.w {rt}, [{zone}, #{offset}]"));
                self.line(&format!("mrs{other} {spare}, basepri"));
                self.line(&format!("add{condition}.w {spare}, {spare}, #3"));
            }
            _ => {
                self.line(&format!("itte {condition}"));
                self.line(&format!("mrs{condition} {spare}, primask"));
                self.line(&format!("{name}{condition}.w {rt}, [{zone}, #{offset}]"));
                self.line(&format!("msr{other} basepri, {spare}"));
            }
        }
    }

    fn several(&mut self) {
        let zone = self.pick(&["r9", "r9", "r11"]);
        let list = self.pick(&["{r0, r3}", "{r1, r2, r5}", "{r0-r7}", "{r4, r6, r7}", "{r2, r8}"]);
        let (one, two) = (self.below(4), self.below(4) + 4);
        let double = if self.below(2) == 0 { "ldrd" } else { "strd" };
        let many = if self.below(2) == 0 { "ldm" } else { "stm" };
        match self.below(6) {
            0 => {
                self.line(&format!("mov r12, {zone}"));
                let back = self.pick(&["", "!"]);
                self.line(&format!("{many}ia.w r12{back}, {list}"));
            }
            1 => {
                self.line(&format!("add.w r12, {zone}, #32"));
                let back = self.pick(&["", "!"]);
                self.line(&format!("{many}db.w r12{back}, {list}"));
            }
            2 => {
                self.line(&format!("mov r7, {zone}"));
                self.line(&format!("{many}ia r7!, {{r0, r2, r5}}"));
            }
            3 => {
                let offset = self.below(7) * 4;
                self.line(&format!("{double} r{one}, r{two}, [{zone}, #{offset}]"));
            }
            4 => {
                let step = self.below(255) * 4;
                self.line(&format!("sub.w r12, {zone}, #{step}"));
                self.line(&format!("{double} r{one}, r{two}, [r12, #{step}]!"));
            }
            _ => {
                let step = self.below(255) * 4;
                self.line(&format!("add.w r12, {zone}, #8"));
                self.line(&format!("{double} r{one}, r{two}, [r12], #-{step}"));
            }
        }
    }

    fn special(&mut self) {
        let register = self.data();
        let read = [
            "basepri",
            "primask",
            "faultmask",
            "psp",
            "ipsr",
            "xpsr",
            "apsr",
            "basepri_max",
            "iapsr",
        ];
        match self.below(8) {
            0..=2 => {
                let name = self.pick(&read);
                self.line(&format!("mrs {register}, {name}"));
            }
            3 => self.line(&format!("msr basepri, {register}")),
            4 => self.line(&format!("msr basepri_max, {register}")),
            5 => {
                let name = self.pick(&["primask", "faultmask", "apsr_nzcvq", "psp"]);
                self.line(&format!("msr {name}, {register}"));
            }
            6 => {
                let name = self.pick(&["cpsid i", "cpsie i", "cpsid f", "cpsie f", "cpsid if", "cpsie if"]);
                self.line(name);
            }
            _ => {
                self.line("mrs r12, psp");
                self.line(&format!("add.w {register}, {register}, r12"));
            }
        }
    }

    fn block(&mut self, index: u32) {
        writeln!(self.text, ".thumb_func\nsuite_block_{index}:").expect("strings grow");
        for _ in 0..UNITS {
            match self.below(10) {
                0..=2 => self.data_processing(),
                3..=5 => self.single(),
                6 | 7 => self.several(),
                _ => self.special(),
            }
        }
        self.line("bx lr");
        self.line(".ltorg");
    }
}

fn opposite(condition: &str) -> &'static str {
    match condition {
        "eq" => "ne",
        "ne" => "eq",
        "cs" => "cc",
        "cc" => "cs",
        "mi" => "pl",
        "pl" => "mi",
        "vs" => "vc",
        "vc" => "vs",
        "hi" => "ls",
        "ls" => "hi",
        "ge" => "lt",
        "lt" => "ge",
        "gt" => "le",
        _ => "gt",
    }
}

fn main() {
    let package = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let script = format!("{package}/../../../guest/link/mcu-bare.ld");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        println!("cargo:rustc-link-search={package}");
        println!("cargo:rustc-link-arg-bins=-T{script}");
    }
    println!("cargo:rerun-if-changed={script}");
    println!("cargo:rerun-if-changed={package}/memory.x");
    println!("cargo:rerun-if-changed=build.rs");
    let mut writer = Writer {
        state: SEED,
        is_world: package.ends_with("world-suite"),
        text: ".section .text.suite_blocks, \"ax\"\n.syntax unified\n".to_owned(),
    };
    for index in 0..BLOCKS {
        writer.block(index);
    }
    writer
        .text
        .push_str(".section .rodata.suite_blocks, \"a\"\n.balign 4\n.global suite_blocks\nsuite_blocks:\n");
    for index in 0..BLOCKS {
        writeln!(writer.text, "    .word suite_block_{index}").expect("strings grow");
    }
    writer
        .text
        .push_str(".global suite_blocks_end\nsuite_blocks_end:\n");
    let folder = env::var("OUT_DIR").unwrap_or_default();
    fs::write(Path::new(&folder).join("blocks.s"), writer.text).expect("Cargo's folder can be written");
}
