// SPDX-License-Identifier: Apache-2.0
//! A crate that may have unsafe code.
#![no_std]
