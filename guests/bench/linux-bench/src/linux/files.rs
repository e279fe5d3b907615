// SPDX-License-Identifier: Apache-2.0
//! Files and folders.

use super::cpu::{DIRECT, FSYNC, FTRUNCATE, LSEEK, MKDIRAT, OPENAT, UNLINKAT, call};
use super::{AT_FDCWD, File, O_RDWR, OWNERS, good};
use core::ffi::CStr;

const O_CREAT: usize = 0o100;
const AT_REMOVEDIR: usize = 0x200;
const SEEK_SET: usize = 0;
/// The error of a folder that is there.
const EXISTS: isize = -17;

/// Opens the first disk past the kernel's cache, if there is one.
pub fn disk() -> Option<File> {
    let path = c"/dev/vda".as_ptr() as usize;
    // SAFETY: the path ends with a zero and is only read.
    let result = unsafe { call(OPENAT, [AT_FDCWD, path, O_RDWR | DIRECT, 0, 0, 0]) };
    usize::try_from(result).ok().map(File)
}

impl File {
    /// Makes a file, or opens the one that is there.
    pub fn create(path: &CStr) -> Self {
        Self::open_with(path, O_RDWR | O_CREAT)
    }

    /// Reads until the slice is full or nothing more comes, and returns the number of bytes.
    pub fn read_full(self, into: &mut [u8]) -> usize {
        let mut done = 0;
        while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match self.read_some(rest) {
                0 => break,
                read => done += read,
            }
        }
        done
    }

    /// Goes to a place in the file.
    pub fn seek(self, place: usize) {
        // SAFETY: no memory is involved.
        good("lseek", unsafe {
            call(LSEEK, [self.0, place, SEEK_SET, 0, 0, 0])
        });
    }

    /// Gives the file this length.
    pub fn truncate(self, length: usize) {
        // SAFETY: no memory is involved.
        good("ftruncate", unsafe {
            call(FTRUNCATE, [self.0, length, 0, 0, 0, 0])
        });
    }

    /// Waits until the file's bytes are safe.
    pub fn sync(self) {
        // SAFETY: no memory is involved.
        good("fsync", unsafe { call(FSYNC, [self.0, 0, 0, 0, 0, 0]) });
    }
}

/// Makes a folder, unless it is there.
pub fn make_folder(path: &CStr) {
    let arguments = [AT_FDCWD, path.as_ptr() as usize, OWNERS, 0, 0, 0];
    // SAFETY: the path ends with a zero and is only read.
    let result = unsafe { call(MKDIRAT, arguments) };
    if result != EXISTS {
        good("mkdirat", result);
    }
}

/// Removes a file, or a folder that is empty.
pub fn remove(path: &CStr, is_folder: bool) {
    let flags = if is_folder { AT_REMOVEDIR } else { 0 };
    let arguments = [AT_FDCWD, path.as_ptr() as usize, flags, 0, 0, 0];
    // SAFETY: the path ends with a zero and is only read.
    good("unlinkat", unsafe { call(UNLINKAT, arguments) });
}
