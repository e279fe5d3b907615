// SPDX-License-Identifier: Apache-2.0
//! Every rule of the image check, with the smallest change of a valid system that breaks it.

mod common;

use bulkhead_image::layout::CLASS_AARCH64;
use bulkhead_image::{Image, Portable};
use common::sample;

#[test]
fn the_sample_is_valid_and_reads_back() {
    let builder = sample();
    let bytes = builder.build().unwrap();
    assert_eq!(bytes.len() as u64, builder.len());
    let image = Image::check(&bytes, CLASS_AARCH64, &Portable).unwrap();
    assert_eq!(image.board_name(), "qemu-virt-aarch64");
    assert_eq!(image.partitions(), builder.partitions);
    assert_eq!(image.payload(0), builder.payloads[0].bytes);
}
