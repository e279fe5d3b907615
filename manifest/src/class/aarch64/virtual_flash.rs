// SPDX-License-Identifier: Apache-2.0
//! The virtual flash of a VM: its banks, their contents, and the rules for both.

use std::rc::Rc;

use crate::diagnostic::{Code, Diagnostic, Report};
use crate::guest::Context;
use crate::model::{FlashSpec, PartitionSpec, Placed};
use crate::payload::{Bytes, Loader, Piece, blob_name, too_large};
use crate::units::format_size;
use crate::window::Window;
use bulkhead_arch_api::class::device::FLASH_ALIGN;

/// The largest bank, which is the bank of QEMU's board.
const SIZE_MAX: u64 = 64 << 20;
/// The byte of an erased flash.
const ERASED: u8 = 0xFF;

impl FlashSpec {
    /// Returns the addresses of both banks.
    pub(crate) fn banks(&self) -> [Window; 2] {
        let size = self.size.get();
        [self.base.get(), self.data_base.get()].map(|base| Window { base, size })
    }
}

/// Checks size and addresses of the banks.
pub(super) fn check(spec: &PartitionSpec, report: &mut Report) {
    let Some(flash) = &spec.flash else { return };
    let size = flash.size.get();
    if !size.is_power_of_two() || !(FLASH_ALIGN..=SIZE_MAX).contains(&size) {
        let message = format!("a bank of flash cannot have {}", format_size(size));
        let place = flash.size.place.unwrap_or(flash.place);
        report.push(
            Diagnostic::at(Code::BadMachine, place, message)
                .help("give a power of two from \"2M\" to \"64M\""),
        );
    }
    for base in [&flash.base, &flash.data_base] {
        if !base.get().is_multiple_of(FLASH_ALIGN) {
            let message = format!("a bank of flash cannot be at {:#x}", base.get());
            let place = base.place.unwrap_or(flash.place);
            report.push(Diagnostic::at(Code::BadMachine, place, message).help("give a multiple of 2M"));
        }
    }
}

/// Returns the contents of the banks; `None` if something was reported.
pub(super) fn pieces(
    context: &Context<'_>,
    loader: &mut Loader<'_>,
    report: &mut Report,
) -> Option<Vec<Piece>> {
    let Some(flash) = &context.spec.flash else {
        return Some(Vec::new());
    };
    // A size that was refused is no size to make contents for.
    if flash.size.get() > SIZE_MAX {
        return None;
    }
    let kept = match &flash.keep {
        Some(keep) if loader.path(keep, report)?.exists() => Some(keep),
        _ => None,
    };
    if let Some(keep) = kept {
        let size = loader.load(keep, report)?.len() as u64;
        if size != flash.size.get() {
            let message = format!(
                "`{}` is no bank of this flash: it has {size} bytes, not {}",
                keep.value,
                format_size(flash.size.get())
            );
            report.push(Diagnostic::at(Code::BadMachine, keep.place, message).help(
                "name another file, which `run` then makes, or give the flash the size that the file has",
            ));
            return None;
        }
    }
    let mut pieces = Vec::new();
    let [code, data] = flash.banks();
    for (what, name, bank) in [
        ("flash", flash.code.as_ref(), code),
        ("flash-data", kept.or(flash.data.as_ref()), data),
    ] {
        let contents = match name {
            Some(name) => contents(name, loader.load(name, report)?, bank.size, report)?,
            None => vec![ERASED; bank.size as usize],
        };
        pieces.push(Piece::whole(
            blob_name(context.name(), what),
            Rc::new(contents),
            bank.base,
        ));
    }
    Some(pieces)
}

/// Returns the bytes of a bank that begins with a payload.
fn contents(name: &Placed<String>, payload: Bytes, size: u64, report: &mut Report) -> Option<Vec<u8>> {
    if payload.len() as u64 > size {
        report.push(too_large(&name.value, name.place, payload.len() as u64, size));
        return None;
    }
    let mut bytes = payload.to_vec();
    bytes.resize(size as usize, ERASED);
    Some(bytes)
}
