// SPDX-License-Identifier: Apache-2.0
//! No code: cargo wants a file for a package.
