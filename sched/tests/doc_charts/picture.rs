// SPDX-License-Identifier: Apache-2.0
//! A schedule as SVG: a lane per vCPU, a bar where the vCPU runs, marks for the events of the vCPU.
//!
//! The picture is readable on light and dark pages and on paper. It has no background. Its colours have
//! middle lightness and an outline of their own. Its text is in the page's colour as far as an image can know
//! that colour. Each bar has its lane, so nothing depends on colour alone.

use bulkhead_sched::Ticks;
use std::fmt::Write;
use std::path::PathBuf;

/// The event of a vCPU at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Wakes,
    Exhausted,
    Replenished,
    Window,
}

impl Mark {
    const ALL: [Self; 4] = [Self::Wakes, Self::Window, Self::Exhausted, Self::Replenished];

    const fn text(self) -> &'static str {
        match self {
            Self::Wakes => "becomes ready",
            Self::Exhausted => "budget used up",
            Self::Replenished => "budget back",
            Self::Window => "window starts",
        }
    }

    /// Returns the shape at (`x`, `y`), the top of the lane's base line.
    fn shape(self, x: u64, y: u64) -> String {
        match self {
            Self::Wakes => format!("<path class=\"up\" d=\"M{x} {}v-12m-4 5l4-5l4 5\"/>", y + 14),
            Self::Exhausted => format!("<path class=\"down\" d=\"M{} {}l8 8m0-8l-8 8\"/>", x - 4, y + 3),
            Self::Replenished => format!("<circle class=\"back\" cx=\"{x}\" cy=\"{}\" r=\"4\"/>", y + 7),
            Self::Window => format!("<path class=\"window\" d=\"M{x} {}v-26\"/>", y + 2),
        }
    }
}

const LEFT: u64 = 90;
const TICK: u64 = 20;
const LANE: u64 = 46;
const TOP: u64 = 10;
const COLOURS: [&str; 4] = ["#4477aa", "#cc6677", "#228833", "#aa7722"];

const STYLE: &str = "text{font:13px sans-serif;fill:#757575}line{stroke:#888;stroke-width:1}.grid{stroke-dasharray:1 4}\
.bar{stroke:#888;stroke-width:1}.up,.down,.window{fill:none;stroke:#757575;stroke-width:1.5}.down{stroke:#c0392b}\
.back{fill:none;stroke:#228833;stroke-width:1.5}.window{stroke-dasharray:4 2}\
@media (prefers-color-scheme:dark){text{fill:#ccc}.up,.window{stroke:#ccc}.down{stroke:#ff8a7a}.back{stroke:#6fd38a}}";

/// Draws the picture. `rows` have a `#` for each tick in which the vCPU runs.
pub fn draw(title: &str, names: &[&str], rows: &[String], marks: &[(Mark, u8, Ticks)]) -> String {
    let length = rows.iter().map(String::len).max().unwrap_or(0) as u64;
    let bottom = TOP + LANE * names.len() as u64;
    let (width, height) = (LEFT + TICK * length + 20, bottom + 54);
    let mut svg = format!(
        "<!-- SPDX-License-Identifier: Apache-2.0 -->\n<svg xmlns=\"http://www.w3.org/2000/svg\" \
         viewBox=\"0 0 {width} {height}\" width=\"{width}\" role=\"img\">\n<title>A schedule under {title}</title>\n\
         <style>{STYLE}</style>\n"
    );
    for tick in (0..=length).step_by(5) {
        let x = LEFT + TICK * tick;
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{x}\" x2=\"{x}\" y1=\"{TOP}\" y2=\"{bottom}\"/>\
             <text x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{tick}</text>",
            bottom + 16
        );
    }
    for ((lane, name), row) in (0..).zip(names).zip(rows) {
        let base = TOP + LANE * lane + 28;
        let _ = writeln!(
            svg,
            "<text x=\"4\" y=\"{}\">{name}</text><line x1=\"{LEFT}\" x2=\"{}\" y1=\"{base}\" y2=\"{base}\"/>",
            base - 6,
            LEFT + TICK * length
        );
        for (start, ticks) in runs(row) {
            let _ = writeln!(
                svg,
                "<rect class=\"bar\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"20\" fill=\"{}\"/>",
                LEFT + TICK * start,
                base - 20,
                TICK * ticks,
                COLOURS[lane as usize % COLOURS.len()]
            );
        }
        for (mark, _, at) in marks.iter().filter(|(_, slot, _)| u64::from(*slot) == lane) {
            let _ = writeln!(svg, "{}", mark.shape(LEFT + TICK * at, base));
        }
    }
    let mut x = LEFT;
    for mark in Mark::ALL {
        if marks.iter().any(|(seen, ..)| *seen == mark) {
            let _ = writeln!(
                svg,
                "{}<text x=\"{}\" y=\"{}\">{}</text>",
                mark.shape(x + 6, bottom + 32),
                x + 18,
                bottom + 44,
                mark.text()
            );
            x += 125;
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// Returns start and length of each stretch of `#`.
fn runs(row: &str) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for (at, _) in (0_u64..).zip(row.chars()).filter(|(_, mark)| *mark == '#') {
        match runs.last_mut() {
            Some((start, length)) if *start + *length == at => *length += 1,
            _ => runs.push((at, 1)),
        }
    }
    runs
}

/// Checks that the committed picture is this one. With `BLESS`, the function makes it so.
pub fn check(page: &str, picture: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../docs/policies/{page}.svg"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, picture).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == picture,
        "{page}.svg is not what the policy does: `cargo run -p xtask -- bless` draws it anew"
    );
}
