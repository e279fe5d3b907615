// SPDX-License-Identifier: Apache-2.0
//! What a system test is, as data.

use bulkhead::pattern::Pattern;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// How a run must end.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// Everything expected was seen; the run is ended then.
    #[default]
    Seen,
    /// Everything expected was seen, and the board powered itself off.
    PowerOff,
    /// The hypervisor locked itself down.
    Lockdown,
    /// The whole time limit passes, nothing forbidden is seen.
    TimeLimit,
}

/// Something typed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Send {
    /// Into this console.
    pub console: String,
    /// When a line of it, complete or not, matches.
    pub after: String,
    /// The text.
    pub text: String,
}

/// How long one stretch of a run may take, compared with another. A stretch is from the first line that matches one
/// pattern to the first that matches another; patterns are `CONSOLE: REGEX`, as everywhere.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Share {
    /// Start and end of the one.
    pub part: [String; 2],
    /// Start and end of the other.
    pub whole: [String; 2],
    /// What the part takes at most, as a fraction of the whole.
    pub at_most: f64,
}

/// What a serial line of the board that no console uses is plugged into: a peer that sends and listens.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// Arguments for the emulator, with `{socket}` for the peer's.
    pub arguments: Vec<String>,
    /// What the peer sends once the emulator is there.
    pub sends: String,
    /// What it must have heard in the end.
    pub hears: String,
}

/// How the flashable file is damaged. Offsets count from the start of the system image, negative ones from
/// its end.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Damage {
    /// Only this much of the system image is left.
    Keep(i64),
    /// The lowest bit of this byte is flipped.
    Flip(i64),
    /// This byte gets this value.
    Set(i64, u8),
    /// The hypervisor's code for the exception vector of this number is broken: it crashes at the first such exception.
    Vector(u8),
    /// The hypervisor's exception vector of the first number branches to that of the second: an exception is taken for another.
    Redirect(u8, u8),
    /// The first instruction of the hypervisor's function of this name becomes an undefined one, which is what a broken invariant is on a
    /// microcontroller. Only for class binaries that execute in place.
    Undefined(String),
}

/// What a case, or all cases of a folder, say.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct Text {
    description: String,
    /// The manifest, if it is not `system.toml` beside this file: an example, tested as users get it.
    manifest: Option<String>,
    name: Option<String>,
    time_limit: Option<f64>,
    real_limit: Option<f64>,
    long: Option<bool>,
    conformance: Option<bool>,
    end: Option<End>,
    expect: BTreeMap<String, Vec<String>>,
    at_most: BTreeMap<String, u64>,
    forbid: Vec<String>,
    send: Vec<Send>,
    reset_after: Option<String>,
    log_area: Vec<String>,
    replace: Vec<(String, String)>,
    agrees_within_us: Option<u64>,
    share: Option<Share>,
    damage: Option<Damage>,
    peer: Option<Peer>,
    case: Vec<Text>,
}

/// A system test, ready to run.
#[derive(Clone, Debug)]
pub struct Case {
    /// `FOLDER` or `FOLDER/CASE`.
    pub name: String,
    /// Where the manifest is; paths in it are relative to this.
    pub path: PathBuf,
    /// The manifest's text.
    pub manifest: String,
    /// Limit on the board's clock, seconds.
    pub time_limit: f64,
    /// Limit on the wall clock, seconds.
    pub real_limit: f64,
    /// Whether it takes minutes: it runs only if long tests are asked for.
    pub long: bool,
    /// Whether the checks of `arch/conformance` run instead of the kernel.
    pub conformance: bool,
    /// How the run must end.
    pub end: End,
    /// Per console, what must be seen in this order.
    pub expect: BTreeMap<String, Vec<Pattern>>,
    /// Per console, the greatest number of lines.
    pub at_most: BTreeMap<String, u64>,
    /// What must not be seen on any console.
    pub forbid: Vec<Pattern>,
    /// What is typed.
    pub send: Vec<(Pattern, Send)>,
    /// The board is reset, with its memory kept, once a line matches.
    pub reset_after: Option<Pattern>,
    /// What the hypervisor's log area must hold at the end in some line of what `bulkhead log` shows.
    pub log_area: Vec<Pattern>,
    /// The run is traced, no record is lost, and each switch is the one that the policy decides, at most so many
    /// microseconds later.
    pub agrees_within_us: Option<u64>,
    /// The two stretches whose times are compared: start and end of the one, then of the other; and the greatest fraction.
    pub share: Option<([Pattern; 4], f64)>,
    /// Damage to the flashable file.
    pub damage: Option<Damage>,
    /// Who is at another serial line.
    pub peer: Option<Peer>,
}

/// Reads all tests below `folder`, in order of their names.
///
/// # Errors
/// Which file is wrong, and how.
pub fn load_all(folder: &Path) -> Result<Vec<Case>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut folders: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    let mut cases = Vec::new();
    for folder in folders {
        let path = folder.join("test.toml");
        let loaded = read(&path).and_then(|test| load(&folder, &test));
        cases.extend(loaded.map_err(|why| format!("{}: {why}", path.display()))?);
    }
    Ok(cases)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn load(folder: &Path, test: &str) -> Result<Vec<Case>, String> {
    let text: Text = toml::from_str(test).map_err(|error| error.to_string())?;
    if text.description.is_empty() {
        return Err("a test needs a `description`".to_owned());
    }
    let path = folder.join(text.manifest.as_deref().unwrap_or("system.toml"));
    let name = folder
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let manifest = Manifest {
        text: read(&path)?,
        path,
    };
    if text.case.is_empty() {
        return Ok(vec![join(name, &manifest, &text, &Text::default())?]);
    }
    let one = |case: &Text| {
        let case_name = case.name.as_deref().ok_or("a case needs a `name`")?;
        join(format!("{name}/{case_name}"), &manifest, &text, case)
    };
    text.case.iter().map(one).collect()
}

/// A manifest before the replacements of a case.
struct Manifest {
    path: PathBuf,
    text: String,
}

/// What the folder says, overridden and added to by the case.
fn join(name: String, manifest: &Manifest, base: &Text, case: &Text) -> Result<Case, String> {
    let mut text = manifest.text.clone();
    for (from, to) in base.replace.iter().chain(&case.replace) {
        if !text.contains(from) {
            return Err(format!("{name}: the manifest has no `{from}` to replace"));
        }
        text = text.replace(from, to);
    }
    let patterns = |texts: &[String]| {
        texts
            .iter()
            .map(|text| Pattern::new(text))
            .collect::<Result<Vec<_>, _>>()
    };
    let mut expect = BTreeMap::new();
    for (console, texts) in base.expect.iter().chain(&case.expect) {
        expect.insert(console.clone(), patterns(texts)?);
    }
    let mut at_most = base.at_most.clone();
    at_most.extend(case.at_most.clone());
    let end = case.end.or(base.end).unwrap_or_default();
    let mut forbid = patterns(&base.forbid)?;
    forbid.extend(patterns(&case.forbid)?);
    if end != End::Lockdown {
        forbid.push(Pattern::new("^bulkhead: .*(LOCKDOWN|CRASH|panic)")?);
    }
    let sends = base.send.iter().chain(&case.send);
    let send = sends
        .map(|send| Ok((Pattern::new(&send.after)?, send.clone())))
        .collect::<Result<_, String>>()?;
    let reset_after = case.reset_after.as_ref().or(base.reset_after.as_ref());
    let reset_after = reset_after.map(|text| Pattern::new(text)).transpose()?;
    let mut log_area = patterns(&base.log_area)?;
    log_area.extend(patterns(&case.log_area)?);
    let time_limit = case.time_limit.or(base.time_limit).unwrap_or(20.0);
    let real_limit = case.real_limit.or(base.real_limit).unwrap_or(120.0);
    let damage = case.damage.clone().or_else(|| base.damage.clone());
    let share = case.share.as_ref().or(base.share.as_ref());
    let share = share.map(Share::patterns).transpose()?;
    Ok(Case {
        name,
        path: manifest.path.clone(),
        manifest: text,
        time_limit,
        real_limit,
        long: case.long.or(base.long).unwrap_or(false),
        conformance: case.conformance.or(base.conformance).unwrap_or(false),
        end,
        expect,
        at_most,
        forbid,
        send,
        reset_after,
        log_area,
        agrees_within_us: case.agrees_within_us.or(base.agrees_within_us),
        share,
        damage,
        peer: case.peer.clone().or_else(|| base.peer.clone()),
    })
}

impl Share {
    fn patterns(&self) -> Result<([Pattern; 4], f64), String> {
        let ([a, b], [c, d]) = (&self.part, &self.whole);
        let [a, b, c, d] = [a, b, c, d].map(|text| Pattern::new(text));
        Ok(([a?, b?, c?, d?], self.at_most))
    }
}

impl Damage {
    /// Damages the system image at the end of `flash`.
    ///
    /// # Errors
    /// The offset is outside the image, or there is no such function.
    pub fn apply(&self, flash: &mut Vec<u8>, image_len: usize, class_binary: &Path) -> Result<(), String> {
        let start = flash.len() - image_len;
        let place = |offset: i64| {
            let from = if offset < 0 { flash.len() } else { start };
            let distance = isize::try_from(offset).unwrap_or(isize::MAX);
            let place = from
                .checked_add_signed(distance)
                .filter(|place| (start..flash.len()).contains(place));
            place.ok_or_else(|| format!("offset {offset} is outside the system image"))
        };
        match *self {
            Self::Undefined(ref function) => {
                let at = crate::function::offset_in(flash, class_binary, function)?;
                // UDF #0xFE (Arm DDI 0403E.e, A7.7.194).
                flash[at..at + 2].copy_from_slice(&0xDEFE_u16.to_le_bytes());
            }
            Self::Keep(length) => {
                let end = place(length)?;
                flash.truncate(end);
            }
            Self::Flip(offset) => {
                let place = place(offset)?;
                flash[place] ^= 1;
            }
            Self::Set(offset, value) => {
                let place = place(offset)?;
                flash[place] = value;
            }
            Self::Vector(number) => {
                let entry = vector(&flash[..start], number)?;
                // An instruction of zeros is permanently undefined (Arm DDI 0487, C6.2, UDF).
                flash[entry..entry + 4].fill(0);
            }
            Self::Redirect(from, to) => {
                let (from, to) = (vector(&flash[..start], from)?, vector(&flash[..start], to)?);
                // B: the distance in words, signed (C6.2, B).
                let words = (to as i32 - from as i32) / 4;
                let branch = 0x1400_0000 | words.cast_unsigned() & 0x03FF_FFFF;
                flash[from..from + 4].copy_from_slice(&branch.to_le_bytes());
            }
        }
        Ok(())
    }
}

/// Exception vectors of a table, and bytes of each (Arm DDI 0487, D1.4.2).
const VECTORS: usize = 16;
const VECTOR_SIZE: usize = 0x80;

/// Where the hypervisor's code for the exception vector of this number is.
fn vector(program: &[u8], number: u8) -> Result<usize, String> {
    let table = vectors(program).ok_or("the class binary has no exception vectors")?;
    Ok(table + usize::from(number) % VECTORS * VECTOR_SIZE)
}

/// Where the hypervisor's vectors are: the only aligned place whose first eight entries, which are all for exceptions
/// of the hypervisor itself, begin with the same instruction.
fn vectors(program: &[u8]) -> Option<usize> {
    (0..program.len()).step_by(VECTORS * VECTOR_SIZE).find(|table| {
        let first = |number: usize| program.get(table + number * VECTOR_SIZE..)?.first_chunk::<4>();
        first(0).is_some_and(|word| *word != [0; 4] && (1..8).all(|number| first(number) == Some(word)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: &str = r#"
description = "x"
time-limit = 3
forbid = ["never"]
at-most = { a = 5, b = 6 }
[expect]
a = ["one", "two"]
[[send]]
console = "a"
after = "[$] $"
text = "ls\n"
[[case]]
name = "log"
[[case]]
name = "stop"
end = "power-off"
replace = [['action = "log"', 'action = "stop"']]
damage = { flip = -1 }
expect.a = ["three"]
long = true
at-most.b = 7
"#;

    /// Loads `test` beside a manifest of one line.
    fn load_with(name: &str, test: &str) -> Result<Vec<Case>, String> {
        let folder = std::env::temp_dir().join(format!("bulkhead-case-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("system.toml"), "action = \"log\"\n").unwrap();
        let loaded = load(&folder, test);
        fs::remove_dir_all(&folder).unwrap();
        loaded
    }

    #[test]
    fn cases_inherit_and_override() {
        let cases = load_with("inherit", TEST).unwrap();
        assert_eq!(cases.len(), 2);
        assert!(cases[0].name.ends_with("/log"), "{}", cases[0].name);
        assert_eq!((cases[0].end, cases[0].expect["a"].len()), (End::Seen, 2));
        assert_eq!(cases[1].manifest, "action = \"stop\"\n");
        assert_eq!(
            (cases[1].end, cases[1].expect["a"].len(), cases[1].time_limit),
            (End::PowerOff, 1, 3.0)
        );
        assert_eq!(cases[1].forbid.len(), 2);
        assert_eq!((cases[0].long, cases[1].long), (false, true));
        assert_eq!((cases[0].at_most["b"], cases[1].at_most["b"]), (6, 7));
        assert_eq!(cases[1].at_most["a"], 5);
    }

    #[test]
    fn mistakes_in_a_test_are_found() {
        let why = |test: &str| load_with("mistakes", test).unwrap_err();
        assert!(why("").contains("description"));
        assert!(why("description = \"x\"\nfrobid = []").contains("frobid"));
        assert!(why("description = \"x\"\nforbid = [\"(\"]").contains("regular expression"));
        assert!(why("description = \"x\"\nreplace = [[\"a?\", \"b\"]]").contains("no `a?`"));
        assert!(why("description = \"x\"\n[[case]]").contains("name"));
        assert!(why("description = \"x\"\nmanifest = \"none.toml\"").contains("none.toml"));
    }

    #[test]
    fn damage_hits_the_image_only() {
        let flash = vec![0_u8; 10];
        let damaged = |damage: Damage| {
            let mut copy = flash.clone();
            damage.apply(&mut copy, 4, Path::new("")).map(|()| copy)
        };
        assert_eq!(damaged(Damage::Flip(0)).unwrap(), [0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(damaged(Damage::Set(-1, 7)).unwrap()[9], 7);
        assert_eq!(damaged(Damage::Keep(1)).unwrap().len(), 7);
        assert!(damaged(Damage::Flip(4)).is_err());
        assert!(damaged(Damage::Flip(-5)).is_err());
        assert!(damaged(Damage::Vector(8)).is_err());
    }

    #[test]
    fn damage_finds_the_vectors() {
        let mut flash = vec![0x11_u8; 0x2000];
        for (number, entry) in flash[0x800..0x1000].chunks_mut(VECTOR_SIZE).enumerate() {
            entry[..4].fill(if number < 8 { 0x22 } else { 0x33 });
        }
        flash[..0x800]
            .iter_mut()
            .enumerate()
            .for_each(|(place, byte)| *byte = (place / 3) as u8);
        Damage::Vector(8).apply(&mut flash, 4, Path::new("")).unwrap();
        assert_eq!(flash[0xc00..0xc05], [0, 0, 0, 0, 0x11]);
        Damage::Redirect(8, 11)
            .apply(&mut flash, 4, Path::new(""))
            .unwrap();
        assert_eq!(flash[0xc00..0xc05], [0x60, 0, 0, 0x14, 0x11]);
        Damage::Redirect(11, 10)
            .apply(&mut flash, 4, Path::new(""))
            .unwrap();
        assert_eq!(flash[0xd80..0xd85], [0xe0, 0xff, 0xff, 0x17, 0x11]);
    }
}
