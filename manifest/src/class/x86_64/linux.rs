// SPDX-License-Identifier: Apache-2.0
//! The 64-bit boot protocol of Linux (Documentation/arch/x86/boot.rst and zero-page.rst).

use super::places::{ACPI, COMMAND_LINE, HIGH, LOW_END};
use crate::window::Window;

/// Offsets in the first sectors of a bzImage, and in the boot parameters.
const SETUP_SECTORS: usize = 0x1F1;
const BOOT_FLAG: usize = 0x1FE;
const MAGIC: usize = 0x202;
const VERSION: usize = 0x206;
const LOADER: usize = 0x210;
const LOAD_FLAGS: usize = 0x211;
const RAMDISK: usize = 0x218;
const RAMDISK_SIZE: usize = 0x21C;
const COMMAND_LINE_AT: usize = 0x228;
const LOAD_FLAGS_64: usize = 0x236;
const PREFERRED: usize = 0x258;
const INIT_SIZE: usize = 0x260;
/// First byte after the setup header: its length is in the jump at 0x200.
const HEADER_END: usize = 0x201;
const RSDP: usize = 0x70;
const MAP_ENTRIES: usize = 0x1E8;
const MAP: usize = 0x2D0;

/// Protocol 2.12, since which `xloadflags` is there.
const VERSION_MIN: u64 = 0x20C;
/// XLF_KERNEL_64.
const KERNEL_64: u64 = 1;
/// A loader without a number.
const LOADER_UNDEFINED: u8 = 0xFF;
/// The 64-bit entry point, from the start of the kernel.
const ENTRY_64: u64 = 0x200;
/// Bytes of the boot parameters.
const PARAMETERS: usize = 0x1000;
/// Kinds of memory.
const USABLE: u32 = 1;
const RESERVED: u32 = 2;

/// Returns the memory of a VM: address, size and kind of each stretch.
pub(super) fn memory_map(ram: Window) -> Vec<(u64, u64, u32)> {
    vec![
        (0, LOW_END, USABLE),
        (LOW_END, 0xA_0000 - LOW_END, RESERVED),
        (ACPI, HIGH - ACPI, RESERVED),
        (HIGH, ram.end() - HIGH, USABLE),
    ]
}

/// The setup header of a kernel.
pub(super) struct Setup {
    header: Vec<u8>,
    kernel_at: usize,
    preferred: u64,
    room: u64,
}

impl Setup {
    /// Reads the header of a bzImage.
    ///
    /// # Errors
    /// The description of the file, for a sentence that ends in "is".
    pub fn read(contents: &[u8]) -> Result<Self, &'static str> {
        let field = |at: usize, size: usize| {
            let bytes = contents.get(at..at + size).unwrap_or(&[]);
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        };
        if field(BOOT_FLAG, 2) != 0xAA55 || field(MAGIC, 4) != 0x5372_6448 {
            return Err("no Linux kernel for x86 and no ELF file");
        }
        if field(VERSION, 2) < VERSION_MIN || field(LOAD_FLAGS_64, 2) & KERNEL_64 == 0 {
            return Err("a Linux kernel without the 64-bit boot protocol");
        }
        let sectors = match field(SETUP_SECTORS, 1) {
            0 => 4,
            sectors => sectors,
        };
        let kernel_at = (sectors as usize + 1) * 512;
        let end = (MAGIC + field(HEADER_END, 1) as usize).min(PARAMETERS);
        if contents.len() <= kernel_at || contents.len() < end {
            return Err("a damaged Linux kernel");
        }
        let mut header = vec![0; PARAMETERS];
        header[SETUP_SECTORS..end].copy_from_slice(&contents[SETUP_SECTORS..end]);
        Ok(Self {
            header,
            kernel_at,
            preferred: field(PREFERRED, 8).max(HIGH),
            room: field(INIT_SIZE, 4),
        })
    }

    /// Returns the part of the file that is loaded.
    pub fn kernel<'k>(&self, contents: &'k [u8]) -> &'k [u8] {
        &contents[self.kernel_at..]
    }

    /// Returns where the kernel is loaded.
    pub fn load_address(&self) -> u64 {
        self.preferred
    }

    /// Returns the memory that it needs from there on until it looks at the memory map.
    pub fn room(&self) -> u64 {
        self.room
    }

    /// Returns the first instruction.
    pub fn entry(&self) -> u64 {
        self.preferred + ENTRY_64
    }

    /// Returns the boot parameters.
    pub fn parameters(&self, ram: Window, disk: Window) -> Vec<u8> {
        let mut out = self.header.clone();
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        put(LOADER, &[LOADER_UNDEFINED]);
        // LOADED_HIGH.
        put(LOAD_FLAGS, &[self.header[LOAD_FLAGS] | 1]);
        put(RAMDISK, &(disk.base as u32).to_le_bytes());
        put(RAMDISK_SIZE, &(disk.size as u32).to_le_bytes());
        put(COMMAND_LINE_AT, &(COMMAND_LINE as u32).to_le_bytes());
        put(RSDP, &ACPI.to_le_bytes());
        let map = memory_map(ram);
        put(MAP_ENTRIES, &[map.len() as u8]);
        for (index, (base, size, kind)) in map.into_iter().enumerate() {
            let at = MAP + 20 * index;
            put(at, &base.to_le_bytes());
            put(at + 8, &size.to_le_bytes());
            put(at + 16, &kind.to_le_bytes());
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel() -> Vec<u8> {
        let mut file = vec![0; 0x2000];
        let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
        put(SETUP_SECTORS, &[3]);
        put(BOOT_FLAG, &[0x55, 0xAA, 0xEB, 0x6A]);
        put(MAGIC, b"HdrS\x0F\x02");
        put(LOAD_FLAGS_64, &[0x7F]);
        put(PREFERRED, &0x100_0000_u64.to_le_bytes());
        put(INIT_SIZE, &0x337_8000_u32.to_le_bytes());
        file
    }

    #[test]
    fn a_kernel_is_loaded_where_it_wants_to_be() {
        let file = kernel();
        let setup = Setup::read(&file).ok().unwrap();
        assert_eq!((setup.load_address(), setup.entry()), (0x100_0000, 0x100_0200));
        assert_eq!((setup.kernel(&file).len(), setup.room()), (0x1800, 0x337_8000));
    }

    #[test]
    fn the_parameters_name_memory_disk_and_tables() {
        let setup = Setup::read(&kernel()).ok().unwrap();
        let ram = Window {
            base: 0,
            size: 256 << 20,
        };
        let disk = Window {
            base: 0xF00_0000,
            size: 0x1234,
        };
        let page = setup.parameters(ram, disk);
        let word = |at: usize| u32::from_le_bytes(page[at..at + 4].try_into().unwrap());
        assert_eq!(page.len(), 4096);
        assert_eq!((word(RAMDISK), word(RAMDISK_SIZE)), (0xF00_0000, 0x1234));
        assert_eq!((word(COMMAND_LINE_AT), word(RSDP)), (0x2_0000, 0xE_0000));
        assert_eq!((page[MAP_ENTRIES], page[LOADER]), (4, 0xFF));
        assert_eq!(word(MAP + 60), 0x10_0000);
        assert_eq!(word(MAP + 68), 255 << 20);
    }

    #[test]
    fn other_files_are_refused() {
        assert!(Setup::read(b"").is_err());
        let mut old = kernel();
        old[VERSION] = 0x0B;
        assert!(Setup::read(&old).is_err());
        assert!(Setup::read(&kernel()[..0x800]).is_err());
    }
}
