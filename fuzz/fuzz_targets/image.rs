// SPDX-License-Identifier: Apache-2.0
//! The reader of the system image, which the hypervisor trusts. The input is any bytes, or any change to a
//! good image whose digests are made right again. An accepted image can be walked, and keeps the partitions'
//! memory apart.
#![no_main]

#[path = "../../image/tests/common/mod.rs"]
mod common;

use bulkhead_arch_api::class::AARCH64;
use bulkhead_image::{Image, Portable, claimed_length, sign_tables};
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static SAMPLE: LazyLock<Vec<u8>> = LazyLock::new(|| common::sample().build().expect("the sample is valid"));

/// Changes some words of `image`.
fn change(image: &mut [u8], input: &mut Unstructured<'_>) -> Result<()> {
    while !input.is_empty() {
        let at = usize::from(input.arbitrary::<u16>()?) % image.len();
        let word = match input.int_in_range(0..=3)? {
            0 => u64::from(input.arbitrary::<u8>()?).to_le_bytes(),
            1 => u64::from(input.arbitrary::<u32>()?).to_le_bytes(),
            2 => (1_u64 << input.int_in_range(0..=63)?).to_le_bytes(),
            _ => input.arbitrary::<u64>()?.to_le_bytes(),
        };
        let width = *input.choose(&[1, 2, 4, 8])?;
        for (byte, new) in image[at..].iter_mut().zip(&word[..width]) {
            *byte = *new;
        }
    }
    Ok(())
}

/// Looks at everything there is.
fn walk(image: &Image<'_>) {
    let mut ranges = Vec::new();
    for (number, partition) in image.partitions().iter().enumerate() {
        let number = number as u32;
        assert!(!image.name(&partition.name).is_empty());
        assert!(!image.vcpus_of(number).is_empty());
        for record in image.memory_of(number) {
            let (host, size) = (record.host.get(), record.size.get());
            ranges.push((host, host.checked_add(size).expect("memory does not wrap"), number));
        }
        for record in image.loads_of(number, 0) {
            let _ = image.payload(record.payload.get());
        }
        image.virtual_devices_of(number).count();
    }
    ranges.sort_unstable();
    for pair in ranges.windows(2) {
        let ((_, end, first), (start, _, second)) = (pair[0], pair[1]);
        assert!(first == second || end <= start, "memory of {first} and {second} overlaps");
    }
    let _ = (image.board_name(), image.check_payloads(&Portable));
}

fuzz_target!(|data: &[u8]| {
    let _ = claimed_length(data);
    let _ = Image::check(data, &AARCH64, &Portable).map(|image| walk(&image));
    let mut image = SAMPLE.clone();
    let _ = change(&mut image, &mut Unstructured::new(data));
    sign_tables(&mut image);
    if let Ok(image) = Image::check(&image, &AARCH64, &Portable) {
        walk(&image);
    }
});
