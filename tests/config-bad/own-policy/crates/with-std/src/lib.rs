// SPDX-License-Identifier: Apache-2.0
//! A crate that needs an operating system.
#![forbid(unsafe_code)]
