// SPDX-License-Identifier: Apache-2.0
//! System tests as data.

use crate::folders;
use crate::secure_boot::SecureBoot;
use bulkhead::build::host::cache_folder;
use bulkhead::build::payloads::Payloads;
use bulkhead::build::prepare::{self, Medium, Options};
use bulkhead::build::variant::{self, Choice};
use bulkhead::serial::pattern::Pattern;
use bulkhead::sign::{Found, PrivateKey};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The required end of a run.
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
    /// Everything expected was seen, and then the board's clock stood still.
    Stalled,
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

/// The longest time of one stretch of a run, compared with another. A stretch is from the first line that
/// matches one pattern to the first that matches another. Patterns are `CONSOLE: REGEX`, as everywhere.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Share {
    /// Start and end of the one.
    pub part: [String; 2],
    /// Start and end of the other.
    pub whole: [String; 2],
    /// The longest time of the part, as a fraction of the whole.
    pub at_most: f64,
}

/// A peer that sends and listens. A serial line of the board that no console uses is plugged into it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// Arguments for the emulator, with `{socket}` for the peer's.
    pub arguments: Vec<String>,
    /// The text that the peer sends once the emulator is there.
    pub sends: String,
    /// The text that the peer must have heard in the end.
    pub hears: String,
}

/// The size of a class binary: the most that a case allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weight {
    /// Bytes of code and constants.
    pub code: u64,
    /// Bytes of RAM, with the pool of a microcontroller for the partitions of the system.
    pub ram: u64,
    /// Lines of code in files of which the class binary has instructions.
    pub lines: u64,
}

/// Records of each pCPU's ring in a traced run.
const TRACE_RECORDS: u32 = 1 << 18;

/// Damage to the flashable file. Offsets count from the start of the system image, negative ones from its
/// end.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Damage {
    /// Only this much of the system image is left.
    Keep(i64),
    /// The lowest bit of this byte is flipped.
    Flip(i64),
    /// This byte gets this value.
    Set(i64, u8),
    /// The hypervisor's code for the exception vector of this number is broken: the hypervisor crashes at the
    /// first such exception.
    Vector(u8),
    /// The hypervisor's exception vector of the first number branches to the vector of the second, so one
    /// exception is taken for another.
    Redirect(u8, u8),
    /// The first instruction of the hypervisor's function of this name becomes an undefined one. On a
    /// microcontroller a broken invariant looks the same. Only for class binaries that execute in place.
    Undefined(String),
    /// The lowest bit of the hypervisor's constant of this name, which has a symbol, is flipped.
    Constant(String),
    /// The image is forged: two partitions claim the same RAM, and the digest of the tables is right.
    ClaimTwice,
    /// The image is forged: it needs this part of the kernel, too, and the digest of the tables is right.
    Needs(String),
    /// The image is forged: the policy of its first pCPU is one of a user's own with this name, and the
    /// digest of the tables is right.
    Policy(String),
    /// The image is forged: it is built to lie this many bytes further on, as after a class binary of another
    /// size, and the digest of the tables is right.
    Moved(i64),
    /// The image is signed by the key of this name in `tests/keys`, in the place of its owner's.
    SignedBy(String),
    /// The image has this version, and its owner's signature.
    Version(u64),
    /// The lowest bit of the first byte of these words is flipped, which the hypervisor or a guest could
    /// print.
    Words(String),
    /// The lowest bit of this byte of the record with the keys is flipped.
    Trust(usize),
    /// The image is forged: the first registers of the controller with this number are this many bytes
    /// further on, and the digest of the tables is right.
    Controller(u8, i64),
}

/// The text of a case, or of all cases of a folder.
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
    long_unless: Option<String>,
    conformance: Option<bool>,
    variant: Option<String>,
    sign: Option<String>,
    device_secret: Option<u8>,
    quote: Option<String>,
    weight: Option<Weight>,
    end: Option<End>,
    expect: BTreeMap<String, Vec<String>>,
    /// Per console, a file beside the manifest with the lines that must be seen in this order.
    prints: BTreeMap<String, String>,
    at_most: BTreeMap<String, u64>,
    forbid: Vec<String>,
    send: Vec<Send>,
    send_in_order: Option<bool>,
    reset_after: Option<String>,
    log_area: Vec<String>,
    replace: Vec<(String, String)>,
    objcopy: BTreeMap<String, String>,
    agrees_within_us: Option<u64>,
    longest: Option<bool>,
    exits_agree: Option<bool>,
    exits_traced: Option<bool>,
    entries_at_most: BTreeMap<String, u64>,
    used_at_most: BTreeMap<String, u64>,
    registers_agree: Option<bool>,
    within_bound: Vec<String>,
    bare: Option<BTreeMap<String, BTreeMap<String, u64>>>,
    unprivileged: Vec<String>,
    shift: Option<u8>,
    share: Option<Share>,
    stall: Option<String>,
    explained: Vec<String>,
    damage: Option<Damage>,
    iso: Option<bool>,
    efi: Option<bool>,
    secure_boot: Option<SecureBoot>,
    realtime: Option<bool>,
    peer: Option<Peer>,
    case: Vec<Text>,
    axis: Vec<Vec<Text>>,
}

/// A system test, ready to run.
#[derive(Clone, Debug)]
pub struct Case {
    /// `NAME` or `NAME/CASE`: the name of the folder, and of the case in it.
    pub name: String,
    /// The folder of the manifest. Paths in the manifest are relative to this folder.
    pub path: PathBuf,
    /// The manifest's text.
    pub manifest: String,
    /// Guests that are converted first, each with the format (`objcopy -O`). The manifest names the result.
    pub objcopy: BTreeMap<String, String>,
    /// Limit on the board's clock, seconds.
    pub time_limit: f64,
    /// Limit on the wall clock, seconds.
    pub real_limit: f64,
    /// True if the case takes minutes. It runs only if long tests are asked for.
    pub long: bool,
    /// True if the checks of `arch/conformance` run instead of the kernel.
    pub conformance: bool,
    /// The parts of the kernel in the class binary: the smallest variant, a variant by its name, or
    /// `tailored`.
    pub parts: Choice,
    /// The key in `tests/keys` that signs the image.
    pub sign: Option<PathBuf>,
    /// The secret of the device, which has 32 such bytes. It is handed over at each reset.
    pub device_secret: Option<u8>,
    /// The console of a partition that prints a quote, and the key that has signed it. The nonce is the bytes
    /// from 0 to 31.
    pub quote: Option<String>,
    /// The most that the class binary may weigh.
    pub weight: Option<Weight>,
    /// The required end of the run.
    pub end: End,
    /// Per console, what must be seen in this order.
    pub expect: BTreeMap<String, Vec<Pattern>>,
    /// Per console, the greatest number of lines.
    pub at_most: BTreeMap<String, u64>,
    /// Patterns that no console may show.
    pub forbid: Vec<Pattern>,
    /// The input that is typed.
    pub send: Vec<(Pattern, Send)>,
    /// True if nothing is typed before what comes first in `send`. Otherwise the first that matches is typed.
    pub send_in_order: bool,
    /// The board is reset, with its memory kept, once a line matches.
    pub reset_after: Option<Pattern>,
    /// Patterns that some line of the log area must match at the end, as `bulkhead log` shows it.
    pub log_area: Vec<Pattern>,
    /// The run is traced, no record is lost. Each switch is the one that the policy decides, at most so many
    /// microseconds later.
    pub agrees_within_us: Option<u64>,
    /// The run is counted, and no stretch in which the hypervisor looks at no interrupt is longer than the
    /// board charges.
    pub longest: bool,
    /// The hypervisor counts the exits that the emulator takes, each by its cause.
    pub exits_agree: bool,
    /// The most entries of partitions' vCPUs that the emulator may have made; class x86_64.
    pub entries_at_most: BTreeMap<String, u64>,
    /// Partitions, and the most percent of the run that they may have used a pCPU, by the counters.
    pub used_at_most: BTreeMap<String, u64>,
    /// The run is traced, no record is lost, and each exit that is counted for a vCPU has a record. The
    /// manifest asks for records of short exits.
    pub exits_traced: bool,
    /// The system registers that trap, as the emulator tells, are as in the documentation. Needs
    /// `exits_agree`.
    pub registers_agree: bool,
    /// Critical loops that miss no release and take as long as `check` says at most.
    pub within_bound: Vec<String>,
    /// Partitions whose programs print the same on the bare board, but for lines `cost NAME N`. Each name has
    /// the number by which the figure of the partition may be above the bare board's.
    pub bare: BTreeMap<String, BTreeMap<String, u64>>,
    /// Partitions of a microcontroller whose code never runs with privileges.
    pub unprivileged: Vec<String>,
    /// An instruction takes two to the power of this nanoseconds of virtual time, instead of one.
    pub shift: Option<u8>,
    /// The two stretches whose times are compared: start and end of the one, then of the other. After them
    /// is the greatest fraction.
    pub share: Option<([Pattern; 4], f64)>,
    /// The warning of the tool of a guest that gets nowhere.
    pub stall: Option<Pattern>,
    /// Patterns that some explanation must match which the tool gives of a report.
    pub explained: Vec<Pattern>,
    /// Damage to the flashable file.
    pub damage: Option<Damage>,
    /// The file that the emulator starts from: with `iso = true` the ISO file, with `efi = true` the PE file.
    pub medium: Medium,
    /// The signature of the PE file, for firmware that looks at signatures.
    pub secure_boot: Option<SecureBoot>,
    /// True if the board's clock is that on the wall. Such a case may say nothing of times.
    pub realtime: bool,
    /// The peer at another serial line.
    pub peer: Option<Peer>,
}

/// Reads all tests below `root`, which are in folders `CLASS/SUBJECT/NAME`, in order of their names.
///
/// # Errors
/// Which file is wrong, and how.
pub fn load_all(root: &Path) -> Result<Vec<Case>, String> {
    let mut cases = Vec::new();
    for folder in folders::all(root)? {
        cases.extend(in_folder(&folder)?);
    }
    Ok(cases)
}

/// Reads the cases of one test.
pub(crate) fn in_folder(folder: &Path) -> Result<Vec<Case>, String> {
    let path = folder.join("test.toml");
    let loaded = read(&path).and_then(|test| load(folder, &test));
    loaded.map_err(|why| format!("{}: {why}", path.display()))
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
    let mut cases = text.case.clone();
    cases.extend(product(&text.axis));
    if cases.is_empty() {
        return Ok(vec![join(name, &manifest, &text, &Text::default())?]);
    }
    let one = |case: &Text| {
        let case_name = case.name.as_deref().ok_or("a case needs a `name`")?;
        join(format!("{name}/{case_name}"), &manifest, &text, case)
    };
    cases.iter().map(one).collect()
}

/// Returns a case for each way to choose one of each axis. Its name is made of the names of the chosen ones,
/// and its replacements are theirs, in the order of the axes. It expects what they expect, and is long if one
/// of them is.
fn product(axes: &[Vec<Text>]) -> Vec<Text> {
    let Some((first, others)) = axes.split_first() else {
        return Vec::new();
    };
    let together = |cases: Vec<Text>, choices: &Vec<Text>| {
        let both = |case: &Text, choice: &Text| Text {
            name: Some(
                [case.name.clone(), choice.name.clone()]
                    .map(Option::unwrap_or_default)
                    .join("-"),
            ),
            replace: [case.replace.as_slice(), &choice.replace].concat(),
            within_bound: [case.within_bound.as_slice(), &choice.within_bound].concat(),
            expect: merged(&case.expect, &choice.expect),
            long: Some(case.long.unwrap_or(false) || choice.long.unwrap_or(false)),
            ..Text::default()
        };
        let pairs = cases
            .iter()
            .flat_map(|case| choices.iter().map(move |choice| both(case, choice)));
        pairs.collect()
    };
    others.iter().fold(first.clone(), together)
}

/// A manifest before the replacements of a case.
struct Manifest {
    path: PathBuf,
    text: String,
}

/// Returns the pattern of this line alone.
fn exactly(line: &str) -> String {
    let literal: String = line
        .chars()
        .flat_map(|letter| {
            let escape = letter.is_ascii_punctuation().then_some('\\');
            escape.into_iter().chain([letter])
        })
        .collect();
    format!("^{literal}$")
}

/// Compiles the patterns.
fn patterns(texts: &[String]) -> Result<Vec<Pattern>, String> {
    texts.iter().map(|text| Pattern::new(text)).collect()
}

/// Compiles the patterns of the folder and then of the case.
fn both(base: &[String], case: &[String]) -> Result<Vec<Pattern>, String> {
    base.iter().chain(case).map(|text| Pattern::new(text)).collect()
}

/// Returns the patterns that each console must show in order.
fn expected(
    name: &str,
    manifest: &Manifest,
    base: &Text,
    case: &Text,
) -> Result<BTreeMap<String, Vec<Pattern>>, String> {
    let mut expect = BTreeMap::new();
    for (console, texts) in base.expect.iter().chain(&case.expect) {
        expect.insert(console.clone(), patterns(texts)?);
    }
    for (console, file) in base.prints.iter().chain(&case.prints) {
        let lines: Vec<_> = read(&manifest.path.with_file_name(file))?
            .lines()
            .map(exactly)
            .collect();
        if lines.is_empty() || expect.insert(console.clone(), patterns(&lines)?).is_some() {
            return Err(format!(
                "{name}: `{file}` is empty, or `{console}` has `expect` too"
            ));
        }
    }
    Ok(expect)
}

/// Joins the text of the folder and the text of the case, which overrides and adds to it.
fn join(name: String, manifest: &Manifest, base: &Text, case: &Text) -> Result<Case, String> {
    let mut text = manifest.text.clone();
    for (from, to) in base.replace.iter().chain(&case.replace) {
        if !text.contains(from) {
            return Err(format!("{name}: the manifest has no `{from}` to replace"));
        }
        text = text.replace(from, to);
    }
    let expect = expected(&name, manifest, base, case)?;
    let at_most = merged(&base.at_most, &case.at_most);
    let end = case.end.or(base.end).unwrap_or_default();
    let mut forbid = both(&base.forbid, &case.forbid)?;
    if end != End::Lockdown {
        forbid.push(Pattern::new("^bulkhead: .*(LOCKDOWN|CRASH|panic)")?);
    }
    let sends = base.send.iter().chain(&case.send);
    let send = sends
        .map(|send| Ok((Pattern::new(&send.after)?, send.clone())))
        .collect::<Result<_, String>>()?;
    let reset_after = case.reset_after.as_ref().or(base.reset_after.as_ref());
    let reset_after = reset_after.map(|text| Pattern::new(text)).transpose()?;
    let time_limit = case.time_limit.or(base.time_limit).unwrap_or(20.0);
    let real_limit = case.real_limit.or(base.real_limit).unwrap_or(120.0);
    let exits_agree = case.exits_agree.or(base.exits_agree).unwrap_or(false);
    let registers_agree = case.registers_agree.or(base.registers_agree).unwrap_or(false);
    agreements_fit(exits_agree, registers_agree, end).map_err(|why| format!("{name}: {why}"))?;
    let damage = case.damage.clone().or_else(|| base.damage.clone());
    let parts = choice(case.variant.as_deref().or(base.variant.as_deref()))?;
    let share = case.share.as_ref().or(base.share.as_ref());
    let share = share.map(Share::patterns).transpose()?;
    let stall = case.stall.as_ref().or(base.stall.as_ref());
    let stall = stall.map(|text| Pattern::new(text)).transpose()?;
    Ok(Case {
        name,
        path: manifest.path.clone(),
        manifest: text,
        objcopy: merged(&base.objcopy, &case.objcopy),
        time_limit,
        real_limit,
        long: is_long(base, case),
        conformance: case.conformance.or(base.conformance).unwrap_or(false),
        parts,
        sign: signing_key(base, case),
        quote: case.quote.clone().or_else(|| base.quote.clone()),
        device_secret: case
            .device_secret
            .or(base.device_secret)
            .filter(|byte| *byte != 0),
        weight: case.weight.or(base.weight),
        end,
        expect,
        at_most,
        forbid,
        send,
        send_in_order: case.send_in_order.or(base.send_in_order).unwrap_or(false),
        reset_after,
        log_area: both(&base.log_area, &case.log_area)?,
        agrees_within_us: case.agrees_within_us.or(base.agrees_within_us),
        longest: case.longest.or(base.longest).unwrap_or(false),
        exits_agree,
        entries_at_most: merged(&base.entries_at_most, &case.entries_at_most),
        used_at_most: merged(&base.used_at_most, &case.used_at_most),
        exits_traced: case.exits_traced.or(base.exits_traced).unwrap_or(false),
        registers_agree,
        shift: case.shift.or(base.shift),
        within_bound: [base.within_bound.as_slice(), &case.within_bound].concat(),
        unprivileged: [base.unprivileged.as_slice(), &case.unprivileged].concat(),
        share,
        stall,
        explained: both(&base.explained, &case.explained)?,
        damage,
        medium: medium_of(case.iso.or(base.iso), case.efi.or(base.efi)),
        secure_boot: case.secure_boot.or(base.secure_boot),
        realtime: case.realtime.or(base.realtime).unwrap_or(false),
        peer: case.peer.clone().or_else(|| base.peer.clone()),
        bare: case
            .bare
            .clone()
            .or_else(|| base.bare.clone())
            .unwrap_or_default(),
    })
}

/// Tells whether a case takes minutes, here where a payload may have to be made first.
fn is_long(base: &Text, case: &Text) -> bool {
    let payload = case.long_unless.as_ref().or(base.long_unless.as_ref());
    let lacks = payload.is_some_and(|payload| !Payloads::new(cache_folder()).has(payload));
    lacks || case.long.or(base.long).unwrap_or(false)
}

/// Returns the key that signs the image of a case. The empty name stands for no key.
fn signing_key(base: &Text, case: &Text) -> Option<PathBuf> {
    let name = case.sign.as_ref().or(base.sign.as_ref())?;
    (!name.is_empty()).then(|| key(name))
}

/// Returns the class binary that a case asks for.
fn choice(variant: Option<&str>) -> Result<Choice, String> {
    Ok(match variant {
        None => Choice::Smallest,
        Some(variant::TAILORED) => Choice::Tailored,
        Some(name) => variant::parse(name).map(Choice::Named)?,
    })
}

/// Returns the numbers of all cases, with one case's before them.
fn merged<V: Clone>(base: &BTreeMap<String, V>, case: &BTreeMap<String, V>) -> BTreeMap<String, V> {
    let mut all = base.clone();
    all.extend(case.clone());
    all
}

/// Refuses what cannot be compared.
fn agreements_fit(exits: bool, registers: bool, end: End) -> Result<(), &'static str> {
    if exits && end != End::PowerOff {
        return Err("`exits-agree` needs a run that ends by itself");
    }
    if registers && !exits {
        return Err("`registers-agree` needs `exits-agree`");
    }
    Ok(())
}

impl Share {
    fn patterns(&self) -> Result<([Pattern; 4], f64), String> {
        let ([a, b], [c, d]) = (&self.part, &self.whole);
        let [a, b, c, d] = [a, b, c, d].map(|text| Pattern::new(text));
        Ok(([a?, b?, c?, d?], self.at_most))
    }
}

impl Case {
    /// Returns how the system of the case is prepared.
    pub(crate) fn options(&self) -> Options {
        Options {
            // The test, not the system, decides when time is up; a little more, so that it is the test that
            // sees it. If exits are compared the system decides, so that no exit is under way at the end.
            stop_after: Some(self.time_limit + if self.exits_agree { 0.0 } else { 1.0 }),
            trace_records: self.agrees_within_us.map(|_| TRACE_RECORDS),
            conformance: self.conformance,
            parts: self.parts,
            quiet: false,
            built_once: true,
            sign: self.sign.clone(),
        }
    }
}

impl Damage {
    /// Damages the system image in `flash`.
    ///
    /// # Errors
    /// The offset is outside the image, or there is no such function or constant, or no image.
    pub fn apply(&self, flash: &mut Vec<u8>, image: &[u8], class_binary: &Path) -> Result<(), String> {
        let start = flash
            .windows(image.len())
            .rposition(|bytes| bytes == image)
            .ok_or("the flashable file does not have the system image")?;
        let end = start + image.len();
        let place = |offset| place_in(start..end, offset);
        let image = start..end;
        match *self {
            Self::Undefined(ref function) => {
                let at = crate::function::offset_in(flash, class_binary, function)?;
                // UDF #0xFE (Arm DDI 0403E.e, A7.7.194).
                flash[at..at + 2].copy_from_slice(&0xDEFE_u16.to_le_bytes());
            }
            Self::Constant(ref name) => {
                let at = crate::function::offset_of_constant(flash, class_binary, name)?;
                flash[at] ^= 1;
            }
            Self::Needs(ref part) => {
                let why = format!("there is no part `{part}`");
                forge(&mut flash[image], &why, |image| prepare::need_part(image, part))?;
            }
            Self::Moved(bytes) => {
                let why = "there is no system image";
                forge(&mut flash[image], why, |image| prepare::move_base(image, bytes))?;
            }
            Self::Controller(index, bytes) => {
                let forger = |image: &mut [u8]| prepare::move_controller(image, index, bytes);
                forge(&mut flash[image], "the image has no such controller", forger)?;
            }
            Self::Policy(ref name) => {
                let why = "the image has no pCPU";
                forge(&mut flash[image], why, |image| prepare::name_policy(image, name))?;
            }
            Self::ClaimTwice => {
                let why = "the image has no two partitions with RAM";
                forge(&mut flash[image], why, prepare::claim_twice)?;
            }
            Self::SignedBy(ref name) => {
                let key = private_key(name)?;
                let forger = |image: &mut [u8]| key.sign(image).is_ok();
                forge(&mut flash[image], "the image cannot be signed", forger)?;
            }
            Self::Version(version) => {
                let key = private_key(OWNER)?;
                let forger =
                    |image: &mut [u8]| prepare::set_version(image, version) && key.sign(image).is_ok();
                forge(&mut flash[image], "the image cannot be given a version", forger)?;
            }
            Self::Words(ref words) => {
                let mut all = flash.windows(words.len());
                let place = all.position(|bytes| bytes == words.as_bytes());
                flash[place.ok_or("the flashable file does not have the words")?] ^= 1;
            }
            Self::Trust(offset) => {
                let record = found(flash)?.trust;
                let record = record.ok_or("the class binary has no record with keys")?;
                flash[record.start + offset] ^= 1;
            }
            Self::Keep(length) => flash.truncate(place(length)?),
            Self::Flip(offset) => flash[place(offset)?] ^= 1,
            Self::Set(offset, value) => flash[place(offset)?] = value,
            // An instruction of zeros is permanently undefined (Arm DDI 0487, C6.2, UDF).
            Self::Vector(number) => {
                let entry = vector(&flash[..start], number)?;
                flash[entry..entry + 4].fill(0);
            }
            Self::Redirect(from, to) => redirect(&mut flash[..start], from, to)?,
        }
        Ok(())
    }
}

/// Returns the place at an offset in an image. A negative offset counts from the image's end.
fn place_in(image: Range<usize>, offset: i64) -> Result<usize, String> {
    let from = if offset < 0 { image.end } else { image.start };
    let distance = isize::try_from(offset).unwrap_or(isize::MAX);
    let place = from.checked_add_signed(distance);
    let place = place.filter(|place| image.contains(place));
    place.ok_or_else(|| format!("offset {offset} is outside the system image"))
}

/// Lets the exception vector of the first number branch to the vector of the second.
fn redirect(program: &mut [u8], from: u8, to: u8) -> Result<(), String> {
    let (from, to) = (vector(program, from)?, vector(program, to)?);
    // B: the distance in words, signed (Arm DDI 0487, C6.2, B).
    let words = (to as i32 - from as i32) / 4;
    let branch = 0x1400_0000 | words.cast_unsigned() & 0x03FF_FFFF;
    program[from..from + 4].copy_from_slice(&branch.to_le_bytes());
    Ok(())
}

/// The name of the key in `tests/keys` that owns the systems of tests.
const OWNER: &str = "release";

/// Returns the file of a private key for tests.
fn key(name: &str) -> PathBuf {
    let keys = Path::new(env!("CARGO_MANIFEST_DIR")).join("keys");
    keys.join(format!("{name}.key"))
}

/// Finds the image and the keys in a flashable file.
fn found(flash: &[u8]) -> Result<Found, String> {
    Found::in_file(flash).map_err(|problem| problem.to_string())
}

/// Reads a private key for tests.
fn private_key(name: &str) -> Result<PrivateKey, String> {
    PrivateKey::read(&key(name)).map_err(|problem| problem.to_string())
}

/// Forges an image, or says why not. The digest of its tables is right after the change. The forger works on
/// a copy, because an image in an ELF file can lie anywhere.
fn forge(image: &mut [u8], why_not: &str, forger: impl FnOnce(&mut [u8]) -> bool) -> Result<(), String> {
    let mut copy = image.to_vec();
    if !forger(&mut copy) {
        return Err(why_not.to_owned());
    }
    image.copy_from_slice(&copy);
    Ok(())
}

/// Exception vectors of a table, and bytes of each (Arm DDI 0487, D1.4.2).
const VECTORS: usize = 16;
const VECTOR_SIZE: usize = 0x80;

/// Returns the file that the emulator starts from.
fn medium_of(iso: Option<bool>, efi: Option<bool>) -> Medium {
    match (iso, efi) {
        (_, Some(true)) => Medium::Uefi,
        (Some(true), _) => Medium::Disc,
        _ => Medium::Direct,
    }
}

/// Returns where the hypervisor's code for the exception vector of this number is.
fn vector(program: &[u8], number: u8) -> Result<usize, String> {
    let table = vectors(program).ok_or("the class binary has no exception vectors")?;
    Ok(table + usize::from(number) % VECTORS * VECTOR_SIZE)
}

/// Returns where the hypervisor's vectors are. This is the only aligned place whose first eight entries begin
/// with the same instruction. All eight are for exceptions of the hypervisor itself.
pub(crate) fn vectors(program: &[u8]) -> Option<usize> {
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
    fn axes_make_a_case_of_each_way_to_choose() {
        let test = r#"
description = "x"
axis = [
    [{ name = "log" }, { name = "stop", replace = [['"log"', '"stop"']] }],
    [{ name = "a", within-bound = ["a"] }, { name = "b", long = true }],
]
"#;
        let cases = load_with("axes", test).unwrap();
        let ends = ["log-a", "log-b", "stop-a", "stop-b"];
        assert!(
            cases
                .iter()
                .zip(ends)
                .all(|(case, end)| case.name.ends_with(&format!("/{end}")))
        );
        assert_eq!(cases.len(), 4);
        assert_eq!(cases[1].manifest, "action = \"log\"\n");
        assert_eq!(cases[2].manifest, "action = \"stop\"\n");
        assert_eq!((cases[2].long, cases[3].long), (false, true));
        assert_eq!((cases[0].within_bound.len(), cases[1].within_bound.len()), (1, 0));
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
        let flash = vec![0, 0, 0, 0, 0, 0, 0, 0, 0, 9];
        let damaged = |damage: Damage| {
            let mut copy = flash.clone();
            damage.apply(&mut copy, &flash[6..], Path::new("")).map(|()| copy)
        };
        assert_eq!(damaged(Damage::Flip(0)).unwrap(), [0, 0, 0, 0, 0, 0, 1, 0, 0, 9]);
        assert_eq!(damaged(Damage::Set(-1, 7)).unwrap()[9], 7);
        assert_eq!(damaged(Damage::Keep(1)).unwrap().len(), 7);
        assert!(damaged(Damage::Flip(4)).is_err());
        assert!(damaged(Damage::Flip(-5)).is_err());
        assert!(damaged(Damage::Vector(8)).is_err());
    }

    #[test]
    fn damage_finds_the_vectors() {
        let mut flash = vec![0x11_u8; 0x2000];
        let image = [0x44; 4];
        flash[0x1ffc..].fill(0x44);
        for (number, entry) in flash[0x800..0x1000].chunks_mut(VECTOR_SIZE).enumerate() {
            entry[..4].fill(if number < 8 { 0x22 } else { 0x33 });
        }
        flash[..0x800]
            .iter_mut()
            .enumerate()
            .for_each(|(place, byte)| *byte = (place / 3) as u8);
        Damage::Vector(8)
            .apply(&mut flash, &image, Path::new(""))
            .unwrap();
        assert_eq!(flash[0xc00..0xc05], [0, 0, 0, 0, 0x11]);
        Damage::Redirect(8, 11)
            .apply(&mut flash, &image, Path::new(""))
            .unwrap();
        assert_eq!(flash[0xc00..0xc05], [0x60, 0, 0, 0x14, 0x11]);
        Damage::Redirect(11, 10)
            .apply(&mut flash, &image, Path::new(""))
            .unwrap();
        assert_eq!(flash[0xd80..0xd85], [0xe0, 0xff, 0xff, 0x17, 0x11]);
    }
}
