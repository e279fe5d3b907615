// SPDX-License-Identifier: Apache-2.0
//! Linux Images: the header of the arm64 boot protocol (kernel documentation, `arch/arm64/booting`), gzip,
//! and the zImage of 32-bit Arm, which unpacks itself (`arch/arm/booting`; magic number and sizes:
//! `arch/arm/boot/compressed/head.S`).

use std::io::Read;

use crate::units::{BLOCK, PAGE};

/// Offset of a raw binary, or of an Image without a size in its header, as in QEMU's loader (hw/arm/boot.c,
/// `KERNEL64_LOAD_ADDR`).
pub(crate) const DEFAULT_OFFSET: u64 = 0x8_0000;
/// Least size of a Linux kernel. Hardly anything else with a kernel's header is larger.
pub(crate) const LINUX_MIN: u64 = 2 << 20;
/// Bytes of the header.
const HEADER: usize = 64;
const MAGIC_AT: usize = 56;
const MAGIC: &[u8] = b"ARM\x64";
/// COFF machine type of 64-bit Arm.
const COFF_ARM64: u16 = 0xaa64;

/// The header of an Image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Bytes from the start of RAM to the Image.
    pub offset: u64,
    /// Bytes of memory that the Image needs from there on.
    pub size: u64,
}

/// Tells whether the file is gzip-compressed.
pub(crate) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// The reason why a gzip file gives nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GunzipError {
    Damaged(String),
    /// The file unpacks to more than the limit.
    TooLarge,
}

/// Unpacks at most `limit` bytes.
pub(crate) fn gunzip(bytes: &[u8], limit: u64) -> Result<Vec<u8>, GunzipError> {
    let mut out = Vec::new();
    let mut decoder = flate2::read::GzDecoder::new(bytes).take(limit.saturating_add(1));
    decoder
        .read_to_end(&mut out)
        .map_err(|error| GunzipError::Damaged(error.to_string()))?;
    if out.len() as u64 > limit {
        Err(GunzipError::TooLarge)
    } else {
        Ok(out)
    }
}

/// The reason why an EFI zboot kernel gives nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ZbootError {
    /// The kernel is packed in a way that we do not know.
    Method(String),
    /// Its header points outside the file.
    Damaged,
}

impl ZbootError {
    /// Tells whether the file is intact, but packed in a way that we do not know.
    pub const fn is_method(&self) -> bool {
        matches!(self, Self::Method(_))
    }
}

impl std::fmt::Display for ZbootError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Method(method) => write!(f, "it is packed by `{method}`, and only gzip is known here"),
            Self::Damaged => write!(f, "its packed part is not all there"),
        }
    }
}

/// Returns the packed kernel in an EFI zboot image, if the file is one. The header is in the kernel source,
/// `drivers/firmware/efi/libstub/zboot-header.S`: `MZ`, `zimg`, offset and size of the packed part, and from
/// byte 24 on the way it is packed.
pub(crate) fn zboot(bytes: &[u8]) -> Option<Result<&[u8], ZbootError>> {
    if !bytes.starts_with(b"MZ\0\0zimg") {
        return None;
    }
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize);
    let packed = || {
        let (start, size) = (word(8)?, word(12)?);
        Some((bytes.get(24..56)?, bytes.get(start..start.checked_add(size)?)?))
    };
    Some(match packed() {
        None => Err(ZbootError::Damaged),
        Some((method, packed)) if method.starts_with(b"gzip\0") && is_gzip(packed) => Ok(packed),
        Some((method, _)) if method.starts_with(b"gzip\0") => Err(ZbootError::Damaged),
        Some((method, _)) => {
            let end = method.iter().position(|byte| !byte.is_ascii_alphanumeric());
            let name = String::from_utf8_lossy(&method[..end.unwrap_or(method.len())]);
            Err(ZbootError::Method(name.into_owned()))
        }
    })
}

/// Offset of a zImage: 32 MiB above the start of RAM, so that the zImage need not move out of its own way
/// while it unpacks itself.
pub(crate) const ZIMAGE_OFFSET: u64 = 32 << 20;
const ZIMAGE_MAGIC_AT: usize = 0x24;
const ZIMAGE_MAGIC: [u8; 4] = 0x016f_2818_u32.to_le_bytes();
/// Offsets of two addresses: of the first byte, and of the byte after the last one.
const ZIMAGE_EXTENT: [usize; 2] = [0x28, 0x2c];

/// Tells whether the file is a little-endian zImage.
pub(crate) fn is_zimage(bytes: &[u8]) -> bool {
    bytes.get(ZIMAGE_MAGIC_AT..ZIMAGE_MAGIC_AT + 4) == Some(&ZIMAGE_MAGIC)
}

/// Checks that a zImage is complete.
///
/// # Errors
/// The mistake, in words.
pub(crate) fn check_zimage(bytes: &[u8]) -> Result<(), String> {
    let [start, end] = ZIMAGE_EXTENT.map(|at| {
        bytes
            .get(at..at + 4)
            .and_then(|word| word.try_into().ok())
            .map_or(0, u32::from_le_bytes)
    });
    let needed = end.checked_sub(start).ok_or("its header is damaged")?;
    if (bytes.len() as u64) < u64::from(needed) {
        return Err(format!("it has {} bytes of {needed}", bytes.len()));
    }
    Ok(())
}

/// Tells whether the file has the header of an arm64 Image.
pub(crate) fn is_image(bytes: &[u8]) -> bool {
    bytes.get(MAGIC_AT..MAGIC_AT + MAGIC.len()) == Some(MAGIC)
}

/// Tells whether the file is an EFI program, but no arm64 Image.
pub(crate) fn is_other_efi(bytes: &[u8]) -> bool {
    bytes.starts_with(b"MZ") && !is_image(bytes)
}

/// Reads the header of an Image.
///
/// # Errors
/// The mistake, in words.
pub(crate) fn header(bytes: &[u8]) -> Result<Header, String> {
    if bytes.len() < HEADER {
        return Err(format!("it ends within its header of {HEADER} bytes"));
    }
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
    let (mut offset, size) = (word(8), word(16));
    if size == 0 {
        // Kernels before 3.17 leave both fields out.
        return Ok(Header {
            offset: DEFAULT_OFFSET,
            size: bytes.len() as u64,
        });
    }
    sections_are_complete(bytes)?;
    if offset < PAGE {
        // QEMU puts its boot stub at the very start of RAM, and moves such an Image one block up.
        offset += BLOCK;
    }
    Ok(Header {
        offset,
        size: size.max(bytes.len() as u64),
    })
}

/// Checks that a file has all its sections. An Image with EFI stub is a PE file too, and its section table
/// gives the least length of the file.
fn sections_are_complete(bytes: &[u8]) -> Result<(), String> {
    let half = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize);
    if !bytes.starts_with(b"MZ") {
        return Ok(());
    }
    let cut = || "it ends within its EFI header".to_owned();
    let coff = word(0x3c).ok_or_else(cut)?;
    if bytes.get(coff..).is_none_or(|rest| !rest.starts_with(b"PE\0\0")) {
        return Err(if coff >= bytes.len() {
            cut()
        } else {
            "its EFI header is damaged".to_owned()
        });
    }
    let machine = half(coff + 4).ok_or_else(cut)?;
    if machine != COFF_ARM64 {
        return Err(format!(
            "its EFI header is for machine {machine:#06x}, not 64-bit Arm"
        ));
    }
    let sections = half(coff + 6).ok_or_else(cut)?;
    let table = coff + 24 + usize::from(half(coff + 20).ok_or_else(cut)?);
    for index in 0..usize::from(sections) {
        let record = table + index * 40;
        let (size, start) = (
            word(record + 16).ok_or_else(cut)?,
            word(record + 20).ok_or_else(cut)?,
        );
        if start.checked_add(size).is_none_or(|end| end > bytes.len()) {
            return Err(format!(
                "it has {} bytes, but its section {index} ends at {}",
                bytes.len(),
                start.saturating_add(size)
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::{DEFAULT_OFFSET, GunzipError, Header, ZbootError, gunzip, header, is_image, zboot};

    fn image(offset: u64, size: u64) -> Vec<u8> {
        let mut bytes = vec![0; 4096];
        bytes[8..16].copy_from_slice(&offset.to_le_bytes());
        bytes[16..24].copy_from_slice(&size.to_le_bytes());
        bytes[56..60].copy_from_slice(b"ARM\x64");
        bytes
    }

    #[test]
    fn placement_is_that_of_the_board() {
        assert!(is_image(&image(0, 0)));
        assert_eq!(
            header(&image(0x8_0000, 0)),
            Ok(Header {
                offset: DEFAULT_OFFSET,
                size: 4096
            })
        );
        assert_eq!(
            header(&image(0, 0x10_0000)),
            Ok(Header {
                offset: 2 << 20,
                size: 0x10_0000
            })
        );
        assert_eq!(
            header(&image(0x8_0000, 8192)),
            Ok(Header {
                offset: 0x8_0000,
                size: 8192
            })
        );
    }

    #[test]
    fn unpacking_is_bounded() {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(&vec![0; 1 << 20]).expect("writes to memory");
        let bomb = encoder.finish().expect("writes to memory");
        assert_eq!(gunzip(&bomb, 1 << 20).map(|bytes| bytes.len()), Ok(1 << 20));
        assert_eq!(gunzip(&bomb, (1 << 20) - 1), Err(GunzipError::TooLarge));
        assert!(matches!(
            gunzip(&bomb[..100], 1 << 20),
            Err(GunzipError::Damaged(_))
        ));
    }
    /// Returns an EFI zboot image whose header claims a packed part of `size` bytes from 64 on.
    fn wrapped(method: &[u8], size: u32, packed: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..8].copy_from_slice(b"MZ\0\0zimg");
        bytes[8] = 64;
        bytes[12..16].copy_from_slice(&size.to_le_bytes());
        bytes[24..24 + method.len()].copy_from_slice(method);
        bytes.extend(packed);
        bytes
    }

    #[test]
    fn the_packed_part_of_a_zboot_image_is_found() {
        let packed = b"\x1f\x8b and more";
        let good = wrapped(b"gzip", packed.len() as u32, packed);
        assert_eq!(zboot(&good), Some(Ok(&packed[..])));
        assert_eq!(
            zboot(&wrapped(b"gzip", 1000, packed)),
            Some(Err(ZbootError::Damaged))
        );
        assert_eq!(
            zboot(&wrapped(b"gzip", u32::MAX, packed)),
            Some(Err(ZbootError::Damaged))
        );
        assert_eq!(
            zboot(&wrapped(b"gzip", 3, b"xyz")),
            Some(Err(ZbootError::Damaged))
        );
        let method = |name: &str| Some(Err(ZbootError::Method(name.to_owned())));
        assert_eq!(zboot(&wrapped(b"zstd", 3, b"xyz")), method("zstd"));
        assert_eq!(zboot(&wrapped(b"\x1b[31m", 3, b"xyz")), method(""));
        for length in 0..good.len() {
            let cut = zboot(&good[..length]);
            assert!(matches!(cut, None | Some(Err(ZbootError::Damaged))), "{length}");
        }
        assert_eq!(zboot(&image(0, 0)), None);
    }
}
