// SPDX-License-Identifier: Apache-2.0
//! The system image in a file, and the keys of the class binary before it.
//!
//! A flashable file is a class binary and an image, in the format of its class. Either is found by its first
//! bytes, and both lie in one piece in every format.

use crate::problem::Problem;
use bulkhead_abi::ObjectKind;
use bulkhead_abi::hypercall::SELF_NAME;
use bulkhead_arch_api::{ClassFacts, class};
use bulkhead_attest::{COMPONENT_CLASS_BINARY, COMPONENT_SYSTEM};
use bulkhead_image::layout::{END_MARK, Header, MAGIC, Start, TRUST_MAGIC, TrustRecord};
use bulkhead_image::{Image, ImageError, Portable, Sha256};
use bulkhead_manifest::{PublicKey, relocate};
use bulkhead_trust::Owner;
use object::LittleEndian;
use object::elf::FileHeader32;
use object::read::elf::{FileHeader, ProgramHeader};
use std::ops::Range;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// A system image in a file.
#[derive(Debug)]
pub struct Found {
    /// The bytes of the file that are the image.
    pub place: Range<usize>,
    /// The bytes that are the record with the keys, if the file has one.
    pub trust: Option<Range<usize>>,
}

/// The facts of an image that the hypervisor would run.
#[derive(Debug)]
pub struct Judged {
    /// The version of the image.
    pub version: u64,
    /// The digest of its tables.
    pub digest: [u8; 32],
    /// The name of its class.
    pub class: &'static str,
    /// The name of its board.
    pub board: String,
    /// The keys in the class binary, if the file has one with keys.
    pub keys: Vec<PublicKey>,
    /// The least version that this class binary runs.
    pub least_version: Option<u64>,
}

/// Something of an image that a quote measures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// The name that a quote gives it.
    pub name: String,
    /// Its digest.
    pub digest: [u8; 32],
}

impl Found {
    /// Finds the image in a file.
    ///
    /// # Errors
    /// The file has no complete image.
    pub fn in_file(file: &[u8]) -> Result<Self, Problem> {
        let place = places(file, &MAGIC)
            .find_map(|start| Some(start..start + image_length(file.get(start..)?)?))
            .ok_or_else(|| {
                Problem::new("the file has no complete system image")
                    .remedy("give system.img, or the flashable file, of `bulkhead build`")
            })?;
        let trust = places(file, &TRUST_MAGIC)
            .map(|start| start..start + size_of::<TrustRecord>())
            .find(|range| record(file, range).is_some_and(|record| is_filled(&record)));
        Ok(Self { place, trust })
    }

    /// Judges the image as the hypervisor would. Without `key`, the keys of the class binary in the file
    /// count.
    ///
    /// # Errors
    /// The reason why the image would be refused.
    pub fn judge(&self, file: &[u8], key: Option<PublicKey>) -> Result<Judged, Problem> {
        let image = aligned(&file[self.place.clone()]);
        let image = &image.as_bytes()[..self.place.len()];
        let (header, _) =
            Header::read_from_prefix(image).map_err(|_| Problem::new("the system image has no header"))?;
        let own = self.trust.as_ref().and_then(|range| record(file, range));
        let mut trusted = own.unwrap_or_else(TrustRecord::new_zeroed);
        match key {
            Some(key) => {
                trusted.magic = TRUST_MAGIC;
                trusted.count = 1.into();
                trusted.keys[0] = key.0;
            }
            None if own.is_none() => {
                return Err(Problem::usage("the file has no class binary with keys")
                    .remedy("give the key: --key NAME.pub"));
            }
            None => {}
        }
        let facts = class_of(&header)?;
        let load_address = load_address(image);
        let digest = || {
            self.binary_digest(file, load_address)
                .unwrap_or(header.class_binary)
        };
        let owner = Owner::new(trusted, digest);
        let refused =
            |error: ImageError| Problem::new(format!("the hypervisor would refuse the image: {error}"));
        let checked = Image::check_signed(image, facts, &Portable, &owner).map_err(refused)?;
        checked.check_payloads(&Portable).map_err(refused)?;
        check_residents(file, &checked).map_err(refused)?;
        let keys = own.map_or_else(Vec::new, |own| {
            let count = own.count.get() as usize;
            own.keys.iter().take(count).map(|key| PublicKey(*key)).collect()
        });
        Ok(Judged {
            version: checked.version(),
            digest: header.digest,
            class: facts.name,
            board: checked.board_name().to_owned(),
            keys,
            least_version: own.map(|own| own.least_version.get()),
        })
    }

    /// Returns everything that a quote about this image can measure: class binary, system, and partitions by
    /// the names that others know them by. Several partitions can have one name, and `self` is each that has
    /// a secret.
    ///
    /// # Errors
    /// The image is damaged.
    pub fn measurements(&self, file: &[u8]) -> Result<Vec<Measured>, Problem> {
        let image = aligned(&file[self.place.clone()]);
        let image = &image.as_bytes()[..self.place.len()];
        let (header, _) =
            Header::read_from_prefix(image).map_err(|_| Problem::new("the system image has no header"))?;
        let damaged = |error: bulkhead_image::ImageError| Problem::new(format!("the image: {error}"));
        let image = Image::check(image, class_of(&header)?, &Portable).map_err(damaged)?;
        image.check_payloads(&Portable).map_err(damaged)?;
        let whole = [
            (COMPONENT_CLASS_BINARY, *image.class_binary_digest()),
            (COMPONENT_SYSTEM, *image.system_digest()),
        ];
        let mut all: Vec<Measured> = whole
            .map(|(name, digest)| Measured {
                name: name.to_owned(),
                digest,
            })
            .into();
        for record in image.capabilities() {
            let name = match ObjectKind::from_number(record.kind.get() as u8) {
                Some(ObjectKind::Partition) => image.name(&record.name),
                Some(ObjectKind::Secret) => SELF_NAME,
                _ => continue,
            };
            all.push(Measured {
                name: name.to_owned(),
                digest: image.measure(record.object.get(), &Portable),
            });
        }
        Ok(all)
    }

    /// Returns the bytes of the file that are the instructions and constants of its class binary.
    #[must_use]
    fn constants(&self, file: &[u8]) -> Option<Range<usize>> {
        let range = self.trust.as_ref()?;
        let record = record(file, range)?;
        let before = usize::try_from(record.constants_before.get()).ok()?;
        let start = range.start.checked_sub(before)?;
        let end = start.checked_add(usize::try_from(record.constants_len.get()).ok()?)?;
        (end <= file.len()).then_some(start..end)
    }

    /// Returns the digest of the instructions and constants of the class binary in the file.
    fn binary_digest(&self, file: &[u8], load_address: u64) -> Option<[u8; 32]> {
        let record = record(file, self.trust.as_ref()?)?;
        let mut constants = file[self.constants(file)?].to_vec();
        relocate(&mut constants, &record, load_address);
        Some(Portable.digest(&[&constants]))
    }
}

/// Checks the programs that stay in code memory, if the file is the one that is flashed there: an ELF file
/// with all bytes at their addresses.
fn check_residents(file: &[u8], image: &Image<'_>) -> Result<(), ImageError> {
    let Ok(header) = FileHeader32::<LittleEndian>::parse(file) else {
        return Ok(());
    };
    let segments = header.program_headers(LittleEndian, file).unwrap_or_default();
    let at = |address: u64, size: usize| {
        segments.iter().find_map(|segment| {
            let offset = usize::try_from(address.checked_sub(segment.p_paddr(LittleEndian).into())?).ok()?;
            let bytes = segment.data(LittleEndian, file).ok()?;
            bytes.get(offset..offset.checked_add(size)?)
        })
    };
    for (index, resident) in (0..).zip(image.residents()) {
        let bytes = at(resident.address.get(), resident.size.get() as usize).unwrap_or_default();
        image.check_resident(index, bytes, &Portable)?;
    }
    Ok(())
}

/// Returns the facts of the class of an image.
fn class_of(header: &Header) -> Result<&'static ClassFacts, Problem> {
    let number = header.class.get();
    let mut all = class::CLASSES.iter();
    let found = all.find(|facts| facts.number == number);
    found.copied().ok_or_else(|| {
        Problem::new(format!(
            "the image is for class {number}, which this tool does not know"
        ))
    })
}

/// Returns where these bytes are in a file.
fn places<'f>(file: &'f [u8], bytes: &'f [u8]) -> impl Iterator<Item = usize> + 'f {
    let all = file.windows(bytes.len()).enumerate();
    all.filter(move |(_, window)| *window == bytes).map(|(at, _)| at)
}

/// Returns the length of the image at the start of `bytes`, if the image is complete.
fn image_length(bytes: &[u8]) -> Option<usize> {
    let (header, _) = Header::read_from_prefix(bytes).ok()?;
    let length = usize::try_from(header.total_len.get()).ok()?;
    bytes.get(..length)?.ends_with(&END_MARK).then_some(length)
}

fn record(file: &[u8], range: &Range<usize>) -> Option<TrustRecord> {
    TrustRecord::read_from_bytes(file.get(range.clone())?).ok()
}

/// Returns the load address that an image names.
fn load_address(image: &[u8]) -> u64 {
    let start = Start::ref_from_prefix(image);
    start.map_or(0, |(start, _)| start.board.load_address.get())
}

/// Tells whether a record has keys. The first bytes of one are also a constant of the code that reads it.
fn is_filled(record: &TrustRecord) -> bool {
    record.count.get() != 0 && record.reserved.get() == 0 && record.more.iter().all(|word| word.get() == 0)
}

/// Returns a copy of an image at an address that the reader wants.
fn aligned(image: &[u8]) -> Vec<u64> {
    let mut words = vec![0; image.len().div_ceil(size_of::<u64>())];
    words.as_mut_bytes()[..image.len()].copy_from_slice(image);
    words
}
